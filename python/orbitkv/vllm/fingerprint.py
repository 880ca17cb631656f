"""Digest of a model's weights, so that engines share blocks only when their weights are the same bytes."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

OVERRIDE = "ORBITKV_MODEL_FINGERPRINT"

_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")
_THREADS = 4
_SAID_FROM_BYTES = 4 << 30  # hashing less takes a few seconds at most
_TURN_BOUND_S = 1800.0
_TURN_LOOK_S = 0.05


class FingerprintError(RuntimeError):
    """The weights have no digest; the message says why and what to set."""


def weights_fingerprint(model: str, revision: str | None, load_format: str, say: Callable[[str], None]) -> str:
    """Digest of the weight files of a model.

    Args:
        model: Folder, file, or name in the local cache of the model hub.
        revision: Revision of a name; None for the default.
        load_format: `load_format` of the engine.
        say: Takes a line for the user before a digest that takes long.

    Returns:
        64 hexadecimal digits, or the operator's own text from the environment.

    Raises:
        FingerprintError: When there are no files to make a digest of.
    """
    chosen = os.environ.get(OVERRIDE)
    if chosen:
        return chosen
    if load_format == "dummy":
        raise FingerprintError(
            f'load_format="dummy" makes random weights; name them by {OVERRIDE} to share their blocks'
        )
    files = sorted(_weight_files(model, revision))
    if not files:
        raise FingerprintError(f'no weight files found for model "{model}"; name the weights by {OVERRIDE}')
    with DigestCache().turn(files, say):
        file_digests = _digests(files, say)
    digest = hashlib.sha256()
    for name, file_digest in zip([path.name for path in files], file_digests, strict=True):
        digest.update(f"{name}\0{file_digest}\0".encode())
    return digest.hexdigest()


def files_fingerprint(folder: str) -> str:
    """Digest of all files of a folder, for example of an adapter; cached like that of weights.

    Raises:
        FingerprintError: When the folder cannot be read or is empty.
    """
    root = Path(folder)
    files = sorted(path for path in root.rglob("*") if path.is_file())
    if not files:
        raise FingerprintError(f'"{folder}" is no folder with files')
    digest = hashlib.sha256()
    for path, file_digest in zip(files, _digests(files, lambda _: None), strict=True):
        digest.update(f"{path.relative_to(root)}\0{file_digest}\0".encode())
    return digest.hexdigest()


def last_change(folder: str) -> int:
    """Time of the last change of a folder, of what is in it, or of a link on the way there.

    This is the time that no program can set, so that bytes which are new do not look old.

    Returns:
        Nanoseconds since the epoch of Unix.

    Raises:
        OSError: When something of it cannot be read.
    """
    root = Path(folder).absolute()
    links = [path for path in root.parents if path.is_symlink()]
    content = [root, *root.rglob("*")]
    facts = [path.lstat() for path in (*links, *content)] + [path.stat() for path in content]
    return max(each.st_ctime_ns for each in facts)


def _weight_files(model: str, revision: str | None) -> Iterator[Path]:
    path = Path(model)
    if path.is_file():
        yield path
        return
    folder = path if path.is_dir() else _downloaded(model, revision)
    yield from (each for each in folder.rglob("*") if each.suffix in _WEIGHTS and each.is_file())


def _downloaded(model: str, revision: str | None) -> Path:
    """Folder of a model that the engine has downloaded."""
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(model, revision=revision, local_files_only=True))
    except (OSError, ValueError) as error:
        raise FingerprintError(
            f'the files of model "{model}" are not found on this host ({error}); name the weights by {OVERRIDE}'
        ) from error


def _digests(files: list[Path], say: Callable[[str], None]) -> list[str]:
    """SHA-256 of each file, from the cache where size and times of change are those of the cached digest."""
    cache = DigestCache()
    marks = [_mark(path) for path in files]
    known = cache.read()
    missing = [i for i, mark in enumerate(marks) if mark not in known]
    missing_bytes = sum(files[i].stat().st_size for i in missing)
    if missing_bytes >= _SAID_FROM_BYTES:
        say(f"digest of {missing_bytes >> 30} GiB of weights, once for these files; {OVERRIDE} avoids it")
    with ThreadPoolExecutor(_THREADS) as pool:
        made = dict(zip([marks[i] for i in missing], pool.map(_sha256, [files[i] for i in missing]), strict=True))
    if made:
        cache.add(made)
    return [made.get(mark) or known[mark] for mark in marks]


def _mark(path: Path) -> str:
    """Path and size of a file, and its times of change in nanoseconds: one may be set, as copies do, the other not."""
    facts = path.stat()
    return f"{path.resolve()}\0{facts.st_size}\0{facts.st_mtime_ns}\0{facts.st_ctime_ns}"


def _sha256(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


class DigestCache:
    """Digests of files in the user's cache folder. A cache that cannot be read or written is no error."""

    def __init__(self) -> None:
        """Chooses the file."""
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        self._path = root / "orbitkv" / "digests.json"

    def read(self) -> dict[str, str]:
        """All digests by the mark of their file; empty when there are none or the file is damaged."""
        try:
            content = json.loads(self._path.read_text())
        except (OSError, ValueError):
            return {}
        whole = isinstance(content, dict) and all(isinstance(value, str) for value in content.values())
        return content if whole else {}

    @contextlib.contextmanager
    def turn(self, files: list[Path], say: Callable[[str], None]) -> Iterator[None]:
        """Waits while another process makes digests: all ranks of an engine want those of the same files at once.

        Does not wait when the digests of the files are known, nor longer than half an hour.
        """
        known = self.read()
        with contextlib.ExitStack() as held:
            if any(_mark(path) not in known for path in files):
                with contextlib.suppress(OSError):
                    self._path.parent.mkdir(parents=True, exist_ok=True)
                    self._wait_for(held.enter_context(open(f"{self._path}.turn", "w")), say)
            yield

    def _wait_for(self, turn: IO[str], say: Callable[[str], None]) -> None:
        end = time.monotonic() + _TURN_BOUND_S
        said = False
        while time.monotonic() < end:
            try:
                fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not said:
                    say("another process makes digests of weights: waiting for them")
                said = True
                time.sleep(_TURN_LOOK_S)
            else:
                return

    def add(self, digests: dict[str, str]) -> None:
        """Adds digests; other processes may add at the same time."""
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with open(f"{self._path}.lock", "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                self._replace(json.dumps({**self.read(), **digests}, indent=1))

    def _replace(self, text: str) -> None:
        handle, name = tempfile.mkstemp(dir=self._path.parent)
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.replace(name, self._path)
