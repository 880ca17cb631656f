"""Registered KV memory of an engine."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from orbitkv.fence import Fence
from orbitkv.handles import RestoreHandle, RestoreItem, SaveHandle, SaveItem


class Registration:
    """KV tensors of one engine instance, known to the Manager; made by `CacheManagerClient.register`.

    Holds the tensors until `close`. It outlives the Manager: while none is there, saves are refused and restores fail
    at once, and when one is back, the client registers the memory again by itself. Thread-safe.
    """

    @property
    def namespace(self) -> bytes:
        """Digest of the state, for lookups; 32 bytes."""
        raise NotImplementedError

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers with memory of their own, in the order in which restores deliver them."""
        raise NotImplementedError

    @property
    def charged_bytes(self) -> int:
        """Bytes of the storages behind the tensors, each counted once."""
        raise NotImplementedError

    @property
    def is_active(self) -> bool:
        """True while the Manager knows the memory."""
        raise NotImplementedError

    @property
    def generation(self) -> int:
        """Generation of the instance's registration; 0 while not active."""
        raise NotImplementedError

    def layer_index(self, name: str) -> int:
        """Index in `layers` of the memory behind a layer; layers that share memory have the same one."""
        raise NotImplementedError

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
        raise NotImplementedError

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
        raise NotImplementedError

    def close(self) -> None:
        """Withdraws the memory and returns once no operation touches a page any more. Idempotent, bounded.

        Raises:
            OrbitKVTimeoutError: Naming what it waited for; the tensors are kept then, and close may be called again.
        """
        raise NotImplementedError

    def __enter__(self) -> Registration:
        """Returns itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes it."""
        self.close()
