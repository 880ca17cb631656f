"""The engine's connection to the Cache Manager of its host."""

from __future__ import annotations

import atexit
import dataclasses
import functools
import json
import logging
import os
import threading
import uuid
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from orbitkv import _jvm
from orbitkv._memory import CHARGES, Binding
from orbitkv._rehearsal import rehearse
from orbitkv._scratch import SCRATCH, Reader, Writer
from orbitkv.errors import InvalidRequestError, OrbitKVError, OrbitKVInternal
from orbitkv.fence import Fence
from orbitkv.hashes import BlockHashes
from orbitkv.layouts import Layout, layout_of
from orbitkv.query import Lease, QueryLoading, QueryMiss, QueryReady, QueryResult
from orbitkv.registration import Registration
from orbitkv.state import StateDescriptor
from orbitkv.tensors import TensorLike

_LOG = logging.getLogger("orbitkv")
_NAMESPACE_BYTES = 32
_LOOKUP_BYTES = 48
_LEASE_BYTES = 40
_READY, _LOADING, _BUSY, _MISS = 0, 1, 2, 4
_EMPTY = 0  # reason of a miss when the answer names none

_open_clients: set[CacheManagerClient] = set()  # a copy may run as long as its client is open: keep its tensors


@dataclasses.dataclass(frozen=True, slots=True)
class Health:
    """State of the Manager.

    Attributes:
        ready: Whether it takes registrations.
        percent: How much of its pool is prepared, 0 to 100.
    """

    ready: bool
    percent: int


@dataclasses.dataclass(frozen=True, slots=True)
class Connection:
    """How a client stands.

    Attributes:
        connected: Whether it has a session with a Manager.
        reconnects: How often a Manager was found again after a loss, or after a start without one.
        since: When it became connected or lost the Manager, seconds of the system's clock.
        last_error: Why the last session ended or the last attempt failed; empty when none has.
    """

    connected: bool
    reconnects: int
    since: float
    last_error: str


@dataclasses.dataclass(frozen=True, slots=True)
class PublishActivity:
    """What the saves of a client are at: a diagnostic, never a proof of anything about pages.

    Attributes:
        active: Saves that have not ended for their caller.
        retained: Of these, saves of a session that is over, whose copies still run.
        overdue: Of these, saves older than the bound of a call.
        longest: Seconds since the oldest of them was submitted; 0 without one.
        manager_alive: Whether the Manager's process lives.
    """

    active: int
    retained: int
    overdue: int
    longest: float
    manager_alive: bool


class CacheManagerClient:
    """Connects to the Manager, now and whenever it comes back: a client made without a Manager works once one is there.

    While no Manager is there, lookups miss, saves are refused, restores fail at once, and the client says so once in
    the log. The first client of a process starts its Java virtual machine and rehearses a restore and a save, which
    takes 0.3 to 0.8 s; the rehearsal goes on in the background for about as long. Thread-safe; calls that wait do so
    without the GIL. Not for use in a process forked from this one: calls are refused there.
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

        A Manager that refuses, for example for its version or the user, is as good as none: `connection` tells why.

        Args:
            bootstrap_socket: Socket of the Manager; by default `$ORBITKV_SOCKET`, else the Manager's own default.
            instance_id: Engine instance, random by default; another living process with the same one is refused.
            client_name: Name for the Manager's log and status.
            timeout_ms: Bound of every call, milliseconds.
            spin_us: Microseconds that a waiter spins before it sleeps.
            copy_threads: Java threads that copy for operations nobody waits for, 1 to 64.
            verify: Whether a restore checks the checksum of each block before it copies.

        Raises:
            JvmError: When there is no usable Java.
            InvalidRequestError: When a value breaks its rule.
        """
        _jvm.start()
        _close_all_at_exit()
        named = os.fspath(bootstrap_socket) if bootstrap_socket is not None else os.environ.get("ORBITKV_SOCKET", "")
        self._socket = str(_jvm.call("socket", named))
        self._instance_id = instance_id or str(uuid.uuid4())
        self._lock = threading.Lock()
        self._closed = False
        self._registrations: set[Registration] = set()
        self._handle = int(
            _jvm.call(
                "open",
                self._socket,
                self._instance_id,
                client_name,
                timeout_ms,
                spin_us * 1000,
                copy_threads,
                int(verify),
            )
        )
        _open_clients.add(self)
        rehearse(self._handle)

    @property
    def bootstrap_socket(self) -> str:
        """Socket of the Manager."""
        return self._socket

    @property
    def instance_id(self) -> str:
        """Engine instance of this client."""
        return self._instance_id

    @property
    def is_connected(self) -> bool:
        """False while no Manager is there."""
        return not self._closed and self.connection().connected

    def connection(self) -> Connection:
        """How this client stands; waits for nothing."""
        SCRATCH.reserve(0)
        connected = self._call("connection", SCRATCH.java)
        answer = Reader()
        reconnects, since_ms = answer.numbers(2)
        return Connection(bool(connected), reconnects, since_ms / 1000, answer.text())

    @property
    def session_epoch(self) -> int:
        """Low half of the Manager epoch; 0 while no Manager is there. Changes when another Manager is connected."""
        return int(self._call("epoch"))

    @staticmethod
    def namespace(state: StateDescriptor) -> bytes:
        """Digest of a state, for lookups without a registration; needs no Manager.

        Returns:
            32 bytes, equal to `Registration.namespace` of a registration with an equal state.

        Raises:
            InvalidRequestError: Naming the field, its value and the rule.
        """
        _jvm.start()  # the buffer is Java's too
        SCRATCH.reserve(_NAMESPACE_BYTES)
        _jvm.call("namespace", state.text(), SCRATCH.java)
        return bytes(SCRATCH.data[:_NAMESPACE_BYTES])

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
        ranks = [namespaces] if isinstance(namespaces, bytes) else namespaces
        joined = b"".join(ranks)
        if len(joined) != _NAMESPACE_BYTES * len(ranks):
            lengths = [len(rank) for rank in ranks]
            raise InvalidRequestError(f"namespace bytes={lengths}, wanted={_NAMESPACE_BYTES} each", "INVALID")
        writer = Writer(_LOOKUP_BYTES + _LEASE_BYTES * len(ranks) + len(joined) + len(hashes.packed))
        writer.numbers([query_id, revision, max_lease_age_ms, len(ranks), hashes.hash_bytes, len(hashes)])
        writer.raw(joined)
        writer.raw(hashes.packed)
        outcome = self._call("lookup", SCRATCH.java, SCRATCH.java)
        return _query_result(outcome)

    def release(self, lease: Lease) -> bool:
        """Gives a lease back, which costs a round trip; False when it had ended already."""
        return bool(self._call("release", lease.lease_id, lease.epoch))

    def give_back(self, lease: Lease) -> None:
        """Gives a lease back without waiting for the answer; its age ends one whose message is lost."""
        self._call("giveBack", lease.lease_id, lease.epoch)

    def cancel_query(self, query_id: int, revision: int = 0) -> None:
        """Voids the answers to a query up to a revision; their leases end. Does nothing while no Manager is there."""
        self._call("cancelQuery", query_id, revision)

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
        known = layout_of(layout)
        binding = Binding(tensors, known, num_blocks)
        _require_state(state, known, binding)
        namespace = self.namespace(state)
        _write_memory(binding, num_blocks)
        CHARGES.add(binding.storages)
        try:
            handle = self._call("register", state.text(), SCRATCH.java, int(restore_only))
        except BaseException:
            CHARGES.remove(binding.storages)
            raise
        registration = Registration(int(handle), namespace, binding, self._registrations.discard)
        self._registrations.add(registration)
        return registration

    def fence(self) -> Fence:
        """A fence that is done once `Fence.signal` was called."""
        return Fence(int(_jvm.call("fence")))

    def publish_activity(self) -> PublishActivity:
        """What the saves of this client are at, those of a Manager that is gone included; waits for nothing."""
        SCRATCH.reserve(0)
        alive = self._call("publishActivity", SCRATCH.java)
        active, retained, overdue, longest_ns = Reader().numbers(4)
        return PublishActivity(active, retained, overdue, longest_ns / 1e9, bool(alive))

    def health(self) -> Health:
        """State of the Manager.

        Raises:
            ManagerUnavailableError: While no Manager is there.
        """
        answer = int(self._call("health"))
        return Health(answer >= 1000, answer % 1000)

    def status(self) -> dict[str, object]:
        """What the Manager holds, as in `orbitkv status --json`.

        Raises:
            ManagerUnavailableError: While no Manager is there.
        """
        answer: dict[str, object] = json.loads(str(self._call("status")))
        return answer

    def close(self) -> None:
        """Ends the session and its registrations, waiting for copies within the bound. Idempotent."""
        with self._lock:
            if self._closed:
                return
            for registration in tuple(self._registrations):
                registration.close()
            _jvm.call("close", self._handle)
            self._closed = True
            _jvm.call("dropClient", self._handle)
        _open_clients.discard(self)

    def _call(self, method: str, *arguments: Any) -> Any:
        if self._closed:
            raise OrbitKVError("the client is closed", "SESSION_ENDED")
        return _jvm.call(method, self._handle, *arguments)

    def __enter__(self) -> CacheManagerClient:
        """Returns itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes it."""
        self.close()


def _query_result(outcome: int) -> QueryResult:
    answer = Reader()
    prefix, reason, count = answer.numbers(3)
    if outcome == _READY:
        leases = tuple(Lease(*answer.numbers(5)) for _ in range(count))
        return QueryReady(prefix, leases)
    if outcome in (_LOADING, _BUSY):
        return QueryLoading(admitted=outcome == _LOADING)
    if outcome == _MISS:
        return QueryMiss("MANAGER_UNAVAILABLE" if reason == _EMPTY else _jvm.miss_name(reason))
    raise OrbitKVInternal(f"lookup: outcome={outcome}")


def _require_state(state: StateDescriptor, layout: Layout, binding: Binding) -> None:
    if state.layout != layout.state and state.layout != "MLA":
        raise InvalidRequestError(
            f'state: layout="{state.layout}", but the tensors are "{layout.name}", which is "{layout.state}"', "INVALID"
        )
    if len(state.groups) != 1:
        raise InvalidRequestError(f"state: groups={len(state.groups)}, wanted=1: several are not served yet", "INVALID")
    group = state.groups[0]
    block_bytes = sum(memory.page_bytes for memory in binding.layers.values())
    if group.layers != len(binding.layers) or group.block_bytes != block_bytes:
        raise InvalidRequestError(
            f"the tensors have layers={len(binding.layers)}, block bytes={block_bytes}; "
            f"the state says layers={group.layers}, block bytes={group.block_bytes}",
            "INVALID",
        )


def _write_memory(binding: Binding, num_blocks: int) -> None:
    layers = binding.layers.values()
    segments = sum(len(layer.segments) for layer in layers)
    writer = Writer(8 * (2 + 5 * len(layers) + 2 * segments))
    writer.numbers([num_blocks, len(layers)])
    for layer in layers:
        facts = layer.facts
        writer.numbers([facts.storage_pointer, facts.storage_bytes, layer.offset, layer.page_stride])
        writer.numbers([len(layer.segments)])
        for segment in layer.segments:
            writer.numbers(segment)


@functools.cache
def _close_all_at_exit() -> None:
    """Once, and after JPype was imported: exit handlers run in reverse order, and JPype's ends the virtual machine."""
    atexit.register(_close_all)


def _close_all() -> None:
    """Ends copies into and from the engine's memory before the interpreter lets it go."""
    for client in tuple(_open_clients):
        try:
            client.close()
        except OrbitKVError as error:
            _LOG.warning("%s", error)
