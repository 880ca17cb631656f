"""Tensors whose memory is registered: what is asked of them, and plain host memory in their shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


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


class HostTensor:
    """Writable host memory, for example a numpy array, as a tensor. Keeps the object behind it alive."""

    def __init__(self, buffer: object) -> None:
        """Wraps an object with the buffer protocol.

        Args:
            buffer: Writable; of any strides.
        """
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        raise NotImplementedError

    def data_ptr(self) -> int:
        """Address of the first element."""
        raise NotImplementedError

    def stride(self) -> tuple[int, ...]:
        """Elements from one index to the next, of each dimension."""
        raise NotImplementedError

    def element_size(self) -> int:
        """Bytes of an element."""
        raise NotImplementedError

    def untyped_storage(self) -> StorageLike:
        """The memory behind it."""
        raise NotImplementedError
