"""Block hashes of a prefix, packed once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import overload

from orbitkv.errors import InvalidRequestError

MIN_HASH_BYTES = 16
MAX_HASH_BYTES = 32


class BlockHashes:
    """Immutable batch of block hashes of one length, in the order of the prefix.

    The hashes lie one behind the other in one buffer, which is built once; slices of step 1 share it. Two batches are
    equal when their hashes are.
    """

    __slots__ = ("_data", "_hash_bytes")

    def __init__(self, hashes: Iterable[bytes]) -> None:
        """Packs hashes.

        Args:
            hashes: At least one hash of 16 to 32 bytes, all of one length.

        Raises:
            InvalidRequestError: Naming the hash whose length breaks the rule.
        """
        batch = hashes if isinstance(hashes, list | tuple) else list(hashes)
        if not batch:
            raise InvalidRequestError("hashes=0, at least one is needed", "INVALID")
        length = len(batch[0])
        if not MIN_HASH_BYTES <= length <= MAX_HASH_BYTES:
            raise InvalidRequestError(f"hash bytes={length}, allowed={MIN_HASH_BYTES}..{MAX_HASH_BYTES}", "INVALID")
        data = b"".join(batch)
        if len(data) != length * len(batch) or any(len(value) != length for value in batch):
            index = next(i for i, value in enumerate(batch) if len(value) != length)
            raise InvalidRequestError(f"bytes of hash {index}={len(batch[index])}, the first has={length}", "INVALID")
        self._data = memoryview(data)
        self._hash_bytes = length

    @classmethod
    def _of(cls, data: memoryview, hash_bytes: int) -> BlockHashes:
        batch = cls.__new__(cls)
        batch._data = data
        batch._hash_bytes = hash_bytes
        return batch

    @property
    def hash_bytes(self) -> int:
        """Bytes of each hash, 16 to 32."""
        return self._hash_bytes

    @property
    def packed(self) -> memoryview:
        """All hashes, read-only: hash i begins at byte `i * hash_bytes`."""
        return self._data

    def __len__(self) -> int:
        """Number of hashes."""
        return len(self._data) // self._hash_bytes

    @overload
    def __getitem__(self, index: int) -> bytes: ...

    @overload
    def __getitem__(self, index: slice) -> BlockHashes: ...

    def __getitem__(self, index: int | slice) -> bytes | BlockHashes:
        """One hash, or a slice of step 1 that shares storage."""
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                raise InvalidRequestError(f"slice step={step}, allowed=1", "INVALID")
            data = self._data[start * self._hash_bytes : max(start, stop) * self._hash_bytes]
            return BlockHashes._of(data, self._hash_bytes)
        at = index + len(self) if index < 0 else index
        if not 0 <= at < len(self):
            raise IndexError(f"hash={index}, hashes={len(self)}")
        return bytes(self._data[at * self._hash_bytes : (at + 1) * self._hash_bytes])

    def __iter__(self) -> Iterator[bytes]:
        """The hashes in order."""
        return (self[i] for i in range(len(self)))

    def __eq__(self, other: object) -> bool:
        """True for a batch of the same hashes."""
        if not isinstance(other, BlockHashes):
            return NotImplemented
        return self._hash_bytes == other._hash_bytes and self._data == other._data

    def __hash__(self) -> int:
        """Follows equality."""
        return hash((self._hash_bytes, bytes(self._data)))

    def __reduce__(self) -> tuple[type[BlockHashes], tuple[list[bytes]]]:
        """Packs the hashes again in another process."""
        return BlockHashes, (list(self),)

    def __repr__(self) -> str:
        """Number and length of the hashes."""
        return f"BlockHashes(hashes={len(self)}, hash_bytes={self._hash_bytes})"
