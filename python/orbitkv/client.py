"""The engine's connection to the Cache Manager of its host."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from types import TracebackType

from orbitkv.fence import Fence
from orbitkv.hashes import BlockHashes
from orbitkv.query import Lease, QueryResult
from orbitkv.registration import Registration
from orbitkv.state import StateDescriptor
from orbitkv.tensors import TensorLike


@dataclasses.dataclass(frozen=True, slots=True)
class Health:
    """State of the Manager.

    Attributes:
        ready: Whether it takes registrations.
        percent: How much of its pool is prepared, 0 to 100.
    """

    ready: bool
    percent: int


class CacheManagerClient:
    """Connects to the Manager, now and whenever it comes back: a client made without a Manager works once one is there.

    While no Manager is there, lookups miss, saves are refused, restores fail at once, and the client says so once in
    the log. Making a client starts the Java virtual machine of the process (0.3 to 0.7 s) unless it runs already.
    Thread-safe; calls that wait do so without the GIL. Not for use in a process forked from this one: calls are
    refused there.
    """

    def __init__(
        self,
        bootstrap_socket: str | os.PathLike[str] | None = None,
        *,
        instance_id: str | None = None,
        client_name: str = "python",
        timeout_ms: int = 5000,
        spin_us: int = 25,
        copy_threads: int = 1,
        verify: bool = False,
    ) -> None:
        """Makes a client and tries to connect; without a Manager it goes on trying in the background.

        Args:
            bootstrap_socket: Socket of the Manager; by default `$ORBITKV_SOCKET`, else the Manager's own default.
            instance_id: Engine instance, random by default; another living process with the same one is refused.
            client_name: Name for the Manager's log.
            timeout_ms: Bound of every call, milliseconds.
            spin_us: Microseconds that a waiter spins before it sleeps.
            copy_threads: Java threads that copy for operations nobody waits for, 1 to 64.
            verify: Whether a restore checks the checksum of each block before it copies.

        Raises:
            JvmError: When there is no usable Java.
            InvalidRequestError: When a value breaks its rule.
            OrbitKVError: When a Manager is there and refuses, for example for its version or the user.
        """
        raise NotImplementedError

    @property
    def bootstrap_socket(self) -> str:
        """Socket of the Manager."""
        raise NotImplementedError

    @property
    def instance_id(self) -> str:
        """Engine instance of this client."""
        raise NotImplementedError

    @property
    def is_connected(self) -> bool:
        """False while no Manager is there."""
        raise NotImplementedError

    @property
    def session_epoch(self) -> int:
        """Low half of the Manager epoch; 0 while no Manager is there. Changes when another Manager is connected."""
        raise NotImplementedError

    @staticmethod
    def namespace(state: StateDescriptor) -> bytes:
        """Digest of a state, for lookups without a registration; needs no Manager.

        Returns:
            32 bytes, equal to `Registration.namespace` of a registration with an equal state.

        Raises:
            InvalidRequestError: Naming the field, its value and the rule.
        """
        raise NotImplementedError

    def lookup(
        self,
        namespaces: bytes | Sequence[bytes],
        hashes: BlockHashes,
        *,
        query_id: int = 0,
        revision: int = 0,
        max_lease_age_ms: int = 0,
    ) -> QueryResult:
        """Asks for the longest restorable prefix, and leases it.

        Costs one round trip to the Manager, some microseconds.

        Args:
            namespaces: Digest of each rank's state, at most 64; a block counts when every one of them has it.
            hashes: Block hashes of the prefix, at most 65,536.
            query_id: Identity of the query, 0 for none; an answer to a later revision ends the leases of earlier ones.
            revision: Revision of the query; grows when what is asked changes.
            max_lease_age_ms: Maximum age of the leases, 0 for the Manager's default.

        Returns:
            `QueryReady` with a lease for each namespace, `QueryLoading` or `QueryMiss`; a miss while no Manager is
            there.

        Raises:
            InvalidRequestError: When an argument breaks a rule.
            OrbitKVTimeoutError: When the Manager did not answer within the bound.
        """
        raise NotImplementedError

    def release(self, lease: Lease) -> bool:
        """Gives a lease back; False when it had ended already."""
        raise NotImplementedError

    def cancel_query(self, query_id: int, revision: int = 0) -> None:
        """Voids the answers to a query up to a revision; their leases end. Does nothing while no Manager is there."""
        raise NotImplementedError

    def register(
        self,
        tensors: Mapping[str, TensorLike],
        *,
        state: StateDescriptor,
        layout: str,
        num_blocks: int,
        restore_only: bool = False,
    ) -> Registration:
        """Registers the KV tensors of one group; while the Manager prepares its pool this waits within its bound.

        Of each tensor, pointer, shape, strides, element size and the extent of its storage are checked against the
        layout and the state, here and again before each restore and save. Layers that share their memory with an
        earlier one are registered once. Without a Manager the registration is made once one is there.

        Args:
            tensors: Tensor of each layer, in the order of the model; dimensions [block, head, token, content] for the
                layouts of vLLM, [block, bytes] for `layer-page`. The first dimension may be a multiple of
                `num_blocks`: then so many of its rows are one block.
            state: What the blocks are; its one group states the layers with memory of their own and the block bytes.
            layout: The engine's name of the layout, for example `LBHNC`; see `orbitkv.layouts`.
            num_blocks: Blocks of the engine, which are the pages of operations.
            restore_only: True for an engine that never saves: it maps the pool read-only.

        Raises:
            InvalidRequestError: Naming the layer, the value and the rule, or the unknown layout.
            OrbitKVError: When the Manager refuses, for example since a living process holds the instance.
        """
        raise NotImplementedError

    def fence(self) -> Fence:
        """A fence that is done once `Fence.signal` was called."""
        raise NotImplementedError

    def ping(self) -> None:
        """An empty round trip.

        Raises:
            ManagerUnavailableError: While no Manager is there.
        """
        raise NotImplementedError

    def health(self) -> Health:
        """State of the Manager.

        Raises:
            ManagerUnavailableError: While no Manager is there.
        """
        raise NotImplementedError

    def status(self) -> dict[str, object]:
        """What the Manager holds, as in `orbitkv status --json`.

        Raises:
            ManagerUnavailableError: While no Manager is there.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Ends the session and its registrations, waiting for copies within the bound. Idempotent."""
        raise NotImplementedError

    def __enter__(self) -> CacheManagerClient:
        """Returns itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes it."""
        self.close()
