"""The buffer of a thread through which calls pass what is more than a few numbers."""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterable
from typing import Any

from orbitkv.errors import InvalidRequestError

_FIRST_BYTES = 64 * 1024


class Scratch(threading.local):
    """One buffer a thread, shared with Java; grows, and is made again only then."""

    def __init__(self) -> None:
        """Makes the buffer of this thread at its first use."""
        self.data = bytearray()
        self.java: Any = None

    def reserve(self, byte_size: int) -> bytearray:
        """The buffer, with at least so many bytes; what it held may be gone."""
        if self.java is None or len(self.data) < byte_size:
            import jpype.nio

            self.data = bytearray(max(_FIRST_BYTES, byte_size))
            self.java = jpype.nio.convertToDirectBuffer(self.data)
        return self.data


SCRATCH = Scratch()


class Writer:
    """Puts arguments one after the other into the buffer of this thread."""

    def __init__(self, byte_size: int) -> None:
        """Begins at the start of a buffer that has at least so many bytes."""
        self._data = SCRATCH.reserve(byte_size)
        self._at = 0

    def numbers(self, values: Iterable[int]) -> None:
        """Each as 8 bytes, little-endian."""
        batch = tuple(values)
        try:
            struct.pack_into(f"<{len(batch)}q", self._data, self._at, *batch)
        except struct.error as error:
            raise InvalidRequestError(f"numbers={batch[:8]}: {error}", "INVALID") from None
        self._at += 8 * len(batch)

    def raw(self, values: bytes | memoryview) -> None:
        """Bytes as they are."""
        end = self._at + len(values)
        self._data[self._at : end] = values
        self._at = end


class Reader:
    """Reads an answer from the buffer of this thread."""

    def __init__(self) -> None:
        """Begins at its start."""
        self._data = SCRATCH.data
        self._at = 0

    def numbers(self, count: int) -> tuple[int, ...]:
        """The next numbers."""
        values = struct.unpack_from(f"<{count}q", self._data, self._at)
        self._at += 8 * count
        return values

    def text(self) -> str:
        """A text with its length before it."""
        (length,) = self.numbers(1)
        value = self._data[self._at : self._at + length].decode("utf-8", "replace")
        self._at += length
        return value
