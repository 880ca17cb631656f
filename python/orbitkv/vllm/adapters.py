"""Block hashes of requests with an adapter (LoRA).

The engine's hashes name the adapter, not its content: two engines may call different weights by one name. So the hashes
that leave the engine are mixed with a digest of the adapter's files.

Nobody says when the engine reads them, or reads them again. Files that have not changed since before its start are
those that it computes with; of all others the digest may be that of other bytes, so they get none.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import Any

from orbitkv.vllm.fingerprint import FingerprintError, files_fingerprint, last_change
from orbitkv.vllm.log import logger


class Adapters:
    """Digests of adapters by path. An adapter without a digest gets none: its requests use no cache."""

    def __init__(self, settings: str, start_ns: int) -> None:
        """Knows none yet.

        Args:
            settings: What decides, beside an adapter's files, what the engine computes with it.
            start_ns: A time before the engine read any adapter, nanoseconds since the epoch of Unix.
        """
        self._settings = settings
        self._start_ns = start_ns
        self._digests: dict[str, bytes] = {}
        self._said: set[str] = set()

    def digest_of(self, request: Any) -> bytes | None:
        """Digest of a request's adapter: empty without an adapter, None when it cannot be made."""
        lora = getattr(request, "lora_request", None)
        if lora is None:
            return b""
        try:
            return self._digest(lora)
        except (FingerprintError, OSError) as error:
            self._say_once(f'requests with the adapter "{lora.lora_name}" use no cache: {error}')
            return None

    def _digest(self, lora: Any) -> bytes:
        if lora.load_inplace:
            raise FingerprintError("load_inplace lets the engine read it again at each step")
        path = os.path.expanduser(lora.lora_path)
        digest = self._digests.get(path)
        if digest is None:
            text = f"{files_fingerprint(path)} {self._settings}"
            digest = self._digests[path] = hashlib.sha256(text.encode()).digest()
        if last_change(path) >= self._start_ns:  # after the digest, so that no change escapes
            raise FingerprintError(f'"{path}" has changed since the engine started')
        return digest

    def _say_once(self, text: str) -> None:
        if text not in self._said:
            logger.warning("%s", text)
        self._said.add(text)


def mix(hashes: Sequence[bytes], adapter: bytes) -> list[bytes]:
    """The hashes under an adapter; the same hashes without one."""
    if not adapter:
        return list(hashes)
    return [hashlib.sha256(adapter + value).digest()[: len(value)] for value in hashes]
