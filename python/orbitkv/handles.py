"""Handles of restores and saves in progress. Dropping a handle cancels nothing. All are thread-safe."""

from __future__ import annotations

import dataclasses

from orbitkv.hashes import BlockHashes
from orbitkv.query import Lease


@dataclasses.dataclass(frozen=True, slots=True)
class RestoreItem:
    """Blocks of one lease and where they go.

    Attributes:
        lease: The lease; consumed whole.
        pages: Target page of each wanted block, in the order of the lease.
        skip: Blocks at the start of the lease that are not wanted.
    """

    lease: Lease
    pages: tuple[int, ...]
    skip: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class SaveItem:
    """Blocks that follow each other in one chain, and where their bytes are.

    Attributes:
        hashes: Hash of each block.
        pages: Source page of each block.
        position: Position of the first block in its chain, counted in blocks.
        parent: Hash of the block before the first one; None at position 0, and only there.
        group: Group id.
    """

    hashes: BlockHashes
    pages: tuple[int, ...]
    position: int = 0
    parent: bytes | None = None
    group: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class RestoreStatus:
    """How a restore stands.

    Attributes:
        done: Whether it has ended.
        success: Whether every block was delivered.
        message: What the Manager or the copy said; empty when all is well.
        status: `OK`, `PENDING`, or how it failed.
        failed: Indices of pages whose block was not delivered, counted over the items in order.
        copy_ns: Nanoseconds that the copy took.
    """

    done: bool
    success: bool
    message: str = ""
    status: str = "PENDING"
    failed: tuple[int, ...] = ()
    copy_ns: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class SaveStatus:
    """How a save stands. Pending is never a receipt: nothing is known of the blocks then.

    Attributes:
        done: Whether it has ended.
        success: Whether every block is stored or was held already.
        message: What the Manager or the copy said; empty when all is well.
        status: `OK`, `PENDING`, or how it failed; `SESSION_ENDED` when the outcome is unknown.
        stored: Blocks that this save stored.
        held: Blocks that were held already.
        refused: Blocks refused or not stored.
        outcomes: `STORED`, `HELD`, `REFUSED` or `NOT_STORED` for each block, counted over the items in order; empty
            when that answer was lost.
        copy_ns: Nanoseconds that the copy took.
    """

    done: bool
    success: bool
    message: str = ""
    status: str = "PENDING"
    stored: int = 0
    held: int = 0
    refused: int = 0
    outcomes: tuple[str, ...] = ()
    copy_ns: int = 0


class RestoreHandle:
    """A restore in progress."""

    @property
    def operation_id(self) -> int:
        """Slot and generation of the operation, unique within the session."""
        raise NotImplementedError

    @property
    def session_epoch(self) -> int:
        """Low half of the Manager epoch."""
        raise NotImplementedError

    @property
    def key(self) -> str:
        """Name for logs: `manager:<epoch>:<operation>`."""
        raise NotImplementedError

    @property
    def pages_free(self) -> bool:
        """True once the target pages are the caller's again, whatever happens next."""
        raise NotImplementedError

    def poll(self) -> RestoreStatus:
        """How it stands now; returns at once."""
        raise NotImplementedError

    def wait(self, timeout: float) -> RestoreStatus:
        """Waits for the end, at first by copying on this thread, without the GIL.

        Args:
            timeout: Seconds; when they have passed, the status is pending and nothing is proven.
        """
        raise NotImplementedError

    def wait_layer(self, layer: int | str, timeout: float) -> bool:
        """Waits until a layer has arrived in every page; layers arrive in the order of registration.

        Args:
            layer: Name of the layer, or its index among the registered ones.
            timeout: Seconds.

        Returns:
            False when the time has passed, or the restore ended without the layer: `poll` tells which.
        """
        raise NotImplementedError

    def cancel(self) -> None:
        """Asks for the end; `wait` tells when it has come, and only then the pages may be used."""
        raise NotImplementedError


class SaveHandle:
    """A save in progress."""

    @property
    def operation_id(self) -> int:
        """Slot and generation of the operation, unique within the session."""
        raise NotImplementedError

    @property
    def pages_free(self) -> bool:
        """True once the source pages may be overwritten, whatever happens next."""
        raise NotImplementedError

    def poll(self) -> SaveStatus:
        """How it stands now; returns at once."""
        raise NotImplementedError

    def wait_save(self, timeout: float) -> SaveStatus:
        """Waits until the blocks are visible or refused, at first by copying on this thread, without the GIL.

        Args:
            timeout: Seconds; when they have passed, the status is pending, which is never a receipt.
        """
        raise NotImplementedError

    def cancel(self) -> None:
        """Asks for the end; `wait_save` tells when it has come."""
        raise NotImplementedError
