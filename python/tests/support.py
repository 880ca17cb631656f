"""What several tests share: a Manager process, and memory of an engine with known bytes."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from orbitkv import BlockHashes, CacheManagerClient, GroupState, HostTensor, Registration, StateDescriptor, cli
from orbitkv.tensors import HostStorage

ROOT = Path(__file__).resolve().parents[2]
BOUND = 30.0
SCOPE = os.environ.get("TEST_SCOPE", "")  # part of every state


class ManagerProcess:
    """A Manager with a small pool in a folder of its own."""

    def __init__(self, folder: Path, pool: str = "64mb") -> None:
        self.socket = folder / "manager.sock"
        self._log = folder / "manager.log"
        self._pool = pool
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        line = [*cli.command(), "manager", "--pool-size", self._pool, "--socket", str(self.socket)]
        with self._log.open("a", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [*line, "--http-addr", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=log, text=True
            )
        watchdog = threading.Timer(BOUND, self._process.kill)
        watchdog.start()
        assert self._process.stdout is not None
        lines = []
        for text in self._process.stdout:
            lines.append(text)
            if text.startswith("ready "):
                watchdog.cancel()
                return
        watchdog.cancel()
        raise AssertionError(f"the Manager did not become ready: {lines}, {self._log.read_text()}")

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.communicate(timeout=BOUND)
            self._process = None

    def __enter__(self) -> ManagerProcess:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate(timeout=BOUND)


class Engine:
    """Pages of `layer-page` layout in one storage, layer after layer."""

    def __init__(self, layers: int = 3, pages: int = 16, page_bytes: int = 4096) -> None:
        self.layers = layers
        self.pages = pages
        self.page_bytes = page_bytes
        self.memory = bytearray(layers * pages * page_bytes)
        storage = HostStorage(self.memory)
        self.tensors = {
            f"layer{i}": HostTensor(storage, shape=(pages, page_bytes), offset=i * pages * page_bytes, element_size=1)
            for i in range(layers)
        }

    def state(self, **changes: object) -> StateDescriptor:
        return state(self.layers, self.layers * self.page_bytes).replace(**changes)

    def register(self, client: CacheManagerClient, *, restore_only: bool = False, **changes: object) -> Registration:
        return client.register(
            self.tensors,
            state=self.state(**changes),
            layout="layer-page",
            num_blocks=self.pages,
            restore_only=restore_only,
        )

    def _range(self, layer: int, page: int) -> slice:
        at = (layer * self.pages + page) * self.page_bytes
        return slice(at, at + self.page_bytes)

    def fill(self, page: int, seed: int) -> None:
        for layer in range(self.layers):
            self.memory[self._range(layer, page)] = pattern(seed, layer, self.page_bytes)

    def holds(self, page: int, seed: int) -> bool:
        return all(
            self.memory[self._range(layer, page)] == pattern(seed, layer, self.page_bytes)
            for layer in range(self.layers)
        )

    def clear(self) -> None:
        self.memory[:] = bytes(len(self.memory))


def pattern(seed: int, layer: int, byte_size: int) -> bytes:
    """Bytes that no other seed or layer has."""
    return hashlib.shake_128(f"{seed}/{layer}".encode()).digest(byte_size)


def state(layers: int, block_bytes: int, layout: str = "layer-page") -> StateDescriptor:
    return StateDescriptor(
        model="test",
        compute_dtype="bfloat16",
        kv_dtype="bfloat16",
        layout=layout,
        block_tokens=16,
        groups=(GroupState(layers=layers, block_bytes=block_bytes),),
        hash_scheme="sha256_cbor",
        engine="test 1",
        scope=SCOPE,
    )


def hashes(count: int, seed: str = "prefix") -> BlockHashes:
    return BlockHashes([hashlib.sha256(f"{seed}/{i}".encode()).digest() for i in range(count)])


def run_python(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs code in a process of its own, with the package and these helpers."""
    path = os.pathsep.join(str(ROOT / "python" / part) for part in (".", "tests"))
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": path, "TEST_SCOPE": SCOPE, **environment},
        capture_output=True,
        text=True,
        timeout=2 * BOUND,
        check=False,
    )


def eventually(condition: Callable[[], bool], what: str) -> None:
    """Waits, bounded, for something that another process does."""
    waiter = threading.Event()
    for _ in range(int(BOUND / 0.02)):
        if condition():
            return
        waiter.wait(0.02)
    raise AssertionError(f"did not happen within {BOUND} s: {what}")
