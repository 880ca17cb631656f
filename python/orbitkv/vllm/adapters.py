"""Block hashes of requests with an adapter (LoRA).

The engine's hashes name the adapter, not its content: two engines may call different weights by one name. So the hashes
that leave the engine are mixed with a digest of the adapter's files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from orbitkv.vllm.fingerprint import FingerprintError, files_fingerprint


class Adapters:
    """Digests of adapters by path. An adapter without a digest gets none: its requests use no cache."""

    def __init__(self) -> None:
        """Knows none yet."""
        self._digests: dict[str, bytes | None] = {}

    def digest_of(self, request: Any) -> bytes | None:
        """Digest of a request's adapter: empty without an adapter, None when it cannot be made."""
        lora = getattr(request, "lora_request", None)
        if lora is None:
            return b""
        path = str(lora.lora_path)
        if path not in self._digests:
            try:
                self._digests[path] = bytes.fromhex(files_fingerprint(path))
            except (FingerprintError, OSError):
                self._digests[path] = None
        return self._digests[path]

    def forget(self) -> None:
        """Makes the digests again: adapters may have changed in place."""
        self._digests.clear()


def mix(hashes: Sequence[bytes], adapter: bytes) -> list[bytes]:
    """The hashes under an adapter; the same hashes without one."""
    if not adapter:
        return list(hashes)
    return [hashlib.sha256(adapter + value).digest()[: len(value)] for value in hashes]
