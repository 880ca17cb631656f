"""Handles of restores and saves in progress. Dropping a handle cancels nothing. All are thread-safe."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable

from orbitkv import _jvm
from orbitkv._scratch import SCRATCH, Reader
from orbitkv.errors import InvalidRequestError
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


_PENDING = -1
_OUTCOMES = ("STORED", "HELD", "REFUSED", "NOT_STORED")
_ANSWER_BYTES = 4096  # of an answer without its blocks; messages are shorter


def _nanoseconds(timeout: float) -> int:
    if not 0 <= timeout <= 1e9:
        raise InvalidRequestError(f"timeout={timeout}, allowed=0..1e9 seconds", "INVALID")
    return int(timeout * 1e9)


class RestoreHandle:
    """A restore in progress."""

    __slots__ = ("_arrived", "_epoch", "_handle", "_layers", "_operation", "_pages")

    def __init__(self, handle: int, pages: int, epoch: int, layers: dict[str, int]) -> None:
        """For the registration: an operation of the bridge."""
        self._handle = handle
        self._pages = pages
        self._epoch = epoch
        self._layers = layers
        self._arrived = 0  # layers, as last heard
        self._operation: int | None = None

    @property
    def operation_id(self) -> int:
        """Slot and generation of the operation, unique within the session."""
        if self._operation is None:
            self._operation = int(_jvm.call("restoreId", self._handle))
        return self._operation

    @property
    def session_epoch(self) -> int:
        """Low half of the Manager epoch."""
        return self._epoch

    @property
    def key(self) -> str:
        """Name for logs: `manager:<epoch>:<operation>`."""
        return f"manager:{self._epoch & (1 << 64) - 1:x}:{self.operation_id:x}"

    @property
    def pages_free(self) -> bool:
        """True once the target pages are the caller's again, whatever happens next."""
        return bool(_jvm.call("restorePagesFree", self._handle))

    def poll(self) -> RestoreStatus:
        """How it stands now; returns at once."""
        return self.wait(0)

    def wait(self, timeout: float) -> RestoreStatus:
        """Waits for the end, at first by copying on this thread, without the GIL.

        Args:
            timeout: Seconds; when they have passed, the status is pending and nothing is proven.
        """
        SCRATCH.reserve(_ANSWER_BYTES + 8 * self._pages)
        code = _jvm.call("waitRestore", self._handle, _nanoseconds(timeout), SCRATCH.java)
        if code == _PENDING:
            return RestoreStatus(False, False)
        answer = Reader()
        copy_ns, count = answer.numbers(2)
        failed = answer.numbers(count)
        return RestoreStatus(True, code == 0, answer.text(), _jvm.status_name(code), failed, copy_ns)

    def wait_layer(self, layer: int | str, timeout: float) -> bool:
        """Waits until a layer has arrived in every page; layers arrive in the order of registration.

        Args:
            layer: Name of the layer, or its index among the registered ones.
            timeout: Seconds.

        Returns:
            False when the time has passed, or the restore ended without the layer: `poll` tells which.
        """
        if isinstance(layer, str):
            found = self._layers.get(layer)
            if found is None:
                raise InvalidRequestError(f'layer="{layer}" is not registered', "INVALID")
            layer = found
        if layer < self._arrived:
            return True
        arrived = int(_jvm.call("waitLayer", self._handle, layer, _nanoseconds(timeout)))
        self._arrived = max(self._arrived, arrived)
        return layer < arrived

    def cancel(self) -> None:
        """Asks for the end; `wait` tells when it has come, and only then the pages may be used."""
        _jvm.call("cancelRestore", self._handle)

    def __del__(self, is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        """Gives the bridge's object back; cancels nothing. At the process's end, names of modules are gone."""
        if not is_ending():
            _jvm.drop("dropRestore", self._handle)


class SaveHandle:
    """A save in progress."""

    __slots__ = ("_handle", "_operation", "_pages")

    def __init__(self, handle: int, pages: int) -> None:
        """For the registration: an operation of the bridge."""
        self._handle = handle
        self._pages = pages
        self._operation: int | None = None

    @property
    def operation_id(self) -> int:
        """Slot and generation of the operation, unique within the session."""
        if self._operation is None:
            self._operation = int(_jvm.call("saveId", self._handle))
        return self._operation

    @property
    def pages_free(self) -> bool:
        """True once the source pages may be overwritten, whatever happens next."""
        return bool(_jvm.call("savePagesFree", self._handle))

    def poll(self) -> SaveStatus:
        """How it stands now; returns at once."""
        return self.wait_save(0)

    def wait_save(self, timeout: float) -> SaveStatus:
        """Waits until the blocks are visible or refused, at first by copying on this thread, without the GIL.

        Args:
            timeout: Seconds; when they have passed, the status is pending, which is never a receipt.
        """
        SCRATCH.reserve(_ANSWER_BYTES + 8 * self._pages)
        code = _jvm.call("waitSave", self._handle, _nanoseconds(timeout), SCRATCH.java)
        if code == _PENDING:
            return SaveStatus(False, False)
        answer = Reader()
        copy_ns, stored, held, refused, count = answer.numbers(5)
        outcomes = tuple(_OUTCOMES[value] for value in answer.numbers(count))
        status = _jvm.status_name(code)
        return SaveStatus(True, code == 0, answer.text(), status, stored, held, refused, outcomes, copy_ns)

    def cancel(self) -> None:
        """Asks for the end; `wait_save` tells when it has come."""
        _jvm.call("cancelSave", self._handle)

    def __del__(self, is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        """Gives the bridge's object back; cancels nothing. At the process's end, names of modules are gone."""
        if not is_ending():
            _jvm.drop("dropSave", self._handle)
