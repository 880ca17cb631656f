"""Tensors whose memory is registered: what is asked of them, and plain host memory in their shape."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Protocol

from orbitkv.errors import InvalidRequestError


class StorageLike(Protocol):
    """The memory behind a tensor, as in `torch.UntypedStorage`."""

    def data_ptr(self) -> int:
        """Address of its first byte."""

    def nbytes(self) -> int:
        """Its bytes."""


class TensorLike(Protocol):
    """A strided view of host memory, as in `torch.Tensor`."""

    @property
    def shape(self) -> Sequence[int]:
        """Sizes of the dimensions."""

    def data_ptr(self) -> int:
        """Address of the first element."""

    def stride(self) -> Sequence[int]:
        """Elements from one index to the next, of each dimension."""

    def element_size(self) -> int:
        """Bytes of an element."""

    def untyped_storage(self) -> StorageLike:
        """The memory that the view is of."""


class HostStorage:
    """Writable contiguous memory of any object with the buffer protocol, which it keeps alive."""

    def __init__(self, buffer: object) -> None:
        """Takes the memory of an object, for example of a numpy array, a bytearray or an mmap."""
        view = memoryview(buffer)  # type: ignore[arg-type]
        if view.readonly or not view.c_contiguous:
            raise InvalidRequestError(
                f"buffer: readonly={view.readonly}, contiguous={view.c_contiguous}; wanted writable and contiguous",
                "INVALID",
            )
        self._bytes = (ctypes.c_char * view.nbytes).from_buffer(view)
        self.shape = view.shape or (1,)
        self.itemsize = view.itemsize

    def data_ptr(self) -> int:
        """Address of the first byte."""
        return ctypes.addressof(self._bytes)

    def nbytes(self) -> int:
        """Bytes."""
        return len(self._bytes)


class HostTensor:
    """A strided view of plain host memory, which it keeps alive."""

    def __init__(
        self,
        buffer: object,
        *,
        shape: Sequence[int] | None = None,
        stride: Sequence[int] | None = None,
        offset: int = 0,
        element_size: int | None = None,
    ) -> None:
        """Views memory.

        Args:
            buffer: Writable contiguous object with the buffer protocol, or a `HostStorage` that views share.
            shape: Sizes of the dimensions; those of the buffer by default.
            stride: Elements from one index to the next of each dimension; dense by default.
            offset: Elements before the first one.
            element_size: Bytes of an element; those of the buffer by default.
        """
        self._storage = buffer if isinstance(buffer, HostStorage) else HostStorage(buffer)
        self._element_size = element_size or self._storage.itemsize
        self._shape = tuple(self._storage.shape if shape is None else shape)
        dense = tuple(math.prod(self._shape[i + 1 :]) for i in range(len(self._shape)))
        self._stride = dense if stride is None else tuple(stride)
        self._offset = offset

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        return self._shape

    def data_ptr(self) -> int:
        """Address of the first element."""
        return self._storage.data_ptr() + self._offset * self._element_size

    def stride(self) -> tuple[int, ...]:
        """Elements from one index to the next, of each dimension."""
        return self._stride

    def element_size(self) -> int:
        """Bytes of an element."""
        return self._element_size

    def untyped_storage(self) -> HostStorage:
        """The memory behind it."""
        return self._storage
