"""Registered KV memory of an engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import TracebackType

from orbitkv import _jvm
from orbitkv._memory import CHARGES, Binding
from orbitkv._scratch import SCRATCH, Writer
from orbitkv.errors import InvalidRequestError, OrbitKVError, SaveNotSubmittedError
from orbitkv.fence import Fence
from orbitkv.handles import RestoreHandle, RestoreItem, SaveHandle, SaveItem

_RESTORE_ITEM_BYTES = 56
_SAVE_ITEM_BYTES = 72  # with a parent


class Registration:
    """KV tensors of one engine instance, known to the Manager; made by `CacheManagerClient.register`.

    Holds the tensors until `close`. It outlives the Manager: while none is there, saves are refused and restores fail
    at once, and when one is back, the client registers the memory again by itself. Thread-safe.
    """

    def __init__(self, handle: int, namespace: bytes, binding: Binding, forget: Callable[[Registration], None]) -> None:
        """For the client: a registration of the bridge, already charged."""
        self._handle = handle
        self._namespace = namespace
        self._binding = binding
        self._storages = binding.storages
        self._forget = forget
        self._lock = threading.Lock()
        self._closed = False

    @property
    def namespace(self) -> bytes:
        """Digest of the state, for lookups; 32 bytes."""
        return self._namespace

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers with memory of their own, in the order in which restores deliver them."""
        return tuple(self._binding.layers)

    @property
    def charged_bytes(self) -> int:
        """Bytes of the storages behind the tensors, each counted once."""
        return sum(size for _, size in self._storages)

    @property
    def is_active(self) -> bool:
        """True while the Manager knows the memory."""
        return not self._closed and bool(_jvm.call("isRegistered", self._handle))

    @property
    def generation(self) -> int:
        """Generation of the instance's registration; 0 while not active."""
        return 0 if self._closed else int(_jvm.call("generation", self._handle))

    def layer_index(self, name: str) -> int:
        """Index in `layers` of the memory behind a layer; layers that share memory have the same one."""
        index = self._binding.index.get(name)
        if index is None:
            raise InvalidRequestError(f'layer="{name}" is not registered', "INVALID")
        return index

    def restore(self, items: RestoreItem | Sequence[RestoreItem], *, fence: Fence) -> RestoreHandle:
        """Begins to restore blocks of leases into pages; the copy runs on Java threads or in `wait`.

        Args:
            items: Leases, each consumed whole, and their target pages.
            fence: Done once earlier users of the target pages are.

        Raises:
            InvalidRequestError: When an item breaks a rule. The leases stay.
            LeaseEndedError: When a lease is of an earlier Manager.
            BindingChangedError: When a tensor changed since the registration.
            ManagerUnavailableError: When no Manager is there.
            OrbitKVError: When nothing more can be submitted, naming the limit. The leases stay.
        """
        batch = [items] if isinstance(items, RestoreItem) else list(items)
        self._require_usable(fence)
        pages = sum(len(item.pages) for item in batch)
        writer = Writer(8 + _RESTORE_ITEM_BYTES * len(batch) + 8 * pages)
        writer.numbers([len(batch)])
        for item in batch:
            lease = item.lease
            writer.numbers([lease.lease_id, lease.epoch, lease.namespace, lease.group, lease.blocks])
            writer.numbers([item.skip, len(item.pages), *item.pages])
        handle = _jvm.call("restore", self._handle, SCRATCH.java, fence.handle)
        epoch = batch[0].lease.epoch
        return RestoreHandle(int(handle), pages, epoch, self._binding.index)

    def save(self, items: SaveItem | Sequence[SaveItem], *, fence: Fence) -> SaveHandle:
        """Begins to store blocks from pages; the copy runs on Java threads or in `wait_save`.

        The pages must keep their bytes until `SaveHandle.pages_free`.

        Args:
            items: Blocks, their hashes and source pages.
            fence: Done once the bytes of the pages are written.

        Raises:
            SaveNotSubmittedError: When the save was refused before anything was launched: no Manager, a full ring or
                budget, a read-only session. The pages are free.
            InvalidRequestError: When an item breaks a rule.
            BindingChangedError: When a tensor changed since the registration.
        """
        batch = [items] if isinstance(items, SaveItem) else list(items)
        self._require_usable(fence)
        pages = 0
        byte_size = 8
        for item in batch:
            if len(item.hashes) != len(item.pages):
                raise InvalidRequestError(f"hashes={len(item.hashes)}, pages={len(item.pages)}", "INVALID")
            if item.parent is not None and len(item.parent) != item.hashes.hash_bytes:
                raise InvalidRequestError(
                    f"bytes of the parent={len(item.parent)}, of a hash={item.hashes.hash_bytes}", "INVALID"
                )
            pages += len(item.pages)
            byte_size += _SAVE_ITEM_BYTES + len(item.hashes.packed) + 8 * len(item.pages)
        writer = Writer(byte_size)
        writer.numbers([len(batch)])
        for item in batch:
            hashes = item.hashes
            parent = item.parent
            writer.numbers([item.group, item.position, hashes.hash_bytes, len(hashes), 0 if parent is None else 1])
            if parent is not None:
                writer.raw(parent)
            writer.raw(hashes.packed)
            writer.numbers(item.pages)
        try:
            handle = _jvm.call("save", self._handle, SCRATCH.java, fence.handle)
        except InvalidRequestError:
            raise
        except OrbitKVError as error:  # the call either submits or throws
            raise SaveNotSubmittedError(str(error), error.status) from None
        return SaveHandle(int(handle), pages)

    def close(self) -> None:
        """Withdraws the memory and returns once no operation touches a page any more. Idempotent, bounded.

        Raises:
            OrbitKVTimeoutError: Naming what it waited for; the tensors are kept then, and close may be called again.
        """
        with self._lock:
            if self._closed:
                return
            _jvm.call("unregister", self._handle)
            self._closed = True
            _jvm.call("dropRegistration", self._handle)
            CHARGES.remove(self._storages)
            self._binding.release()
        self._forget(self)

    def _require_usable(self, fence: Fence) -> None:
        if not isinstance(fence, Fence):
            raise InvalidRequestError(f"fence={fence!r}, wanted a Fence", "INVALID")
        if self._closed:
            raise OrbitKVError("the registration is closed", "UNKNOWN_REGISTRATION")
        self._binding.require_unchanged()

    def __enter__(self) -> Registration:
        """Returns itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes it."""
        self.close()
