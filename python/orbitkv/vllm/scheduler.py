"""The scheduler's half of the connector: looks prefixes up, takes leases, plans loads and saves.

A request is asked about once, and again only when something changed: it has other blocks or lost its own, the Manager
is another one, its lease becomes old, or others have had time to store what was missing. Its answer counts all blocks
that the Manager has, those included that the engine has itself: so a block that only the engine has is saved when its
request is next scheduled, for example after the Manager was restarted.
"""

from __future__ import annotations

import dataclasses
import itertools
import secrets
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from orbitkv import (
    BlockHashes,
    Lease,
    OrbitKVError,
    OrbitKVTimeoutError,
    QueryLoading,
    QueryReady,
    QueryResult,
    StateDescriptor,
)
from orbitkv.vllm.adapters import Adapters, mix
from orbitkv.vllm.log import logger
from orbitkv.vllm.messages import Load, Save, StepPlan, WorkerIdentity, WorkerReport
from orbitkv.vllm.options import Options
from orbitkv.vllm.pause import Pause

MAX_BLOCKS_ASKED = 32_768
LEASE_AGE_MS = 120_000
LEASE_RENEWED_AFTER_S = LEASE_AGE_MS / 1000 / 2
MISS_RENEWED_AFTER_S = 2.0
WORKERS_BOUND_S = 1.0  # longest wait for workers to say that they know a new Manager too
LOADING_BOUND_S = 10.0  # longest wait for blocks of another tier; then the request computes them

_PINNED_WARNING_AFTER_S = 60.0


class SchedulerClient(Protocol):
    """What is used of `orbitkv.CacheManagerClient`."""

    @property
    def session_epoch(self) -> int:
        """Low half of the Manager epoch; 0 without a Manager."""

    def lookup(
        self,
        namespaces: bytes | Sequence[bytes],
        hashes: BlockHashes,
        *,
        query_id: int,
        revision: int,
        max_lease_age_ms: int,
    ) -> QueryResult:
        """Asks for the longest restorable prefix, and leases it."""

    def give_back(self, lease: Lease) -> None:
        """Gives a lease back without waiting for the answer."""

    def cancel_query(self, query_id: int, revision: int) -> None:
        """Voids the answers to a query up to a revision."""

    def namespace(self, state: StateDescriptor) -> bytes:
        """Digest of a state."""

    def close(self) -> None:
        """Ends the session."""


@dataclasses.dataclass(slots=True)
class _Tracked:
    """What is known of one request.

    Attributes:
        request: The engine's request.
        query_id: Identity of its query.
        revision: Revision of its query.
        asked: Blocks that were asked about; -1 before the first answer and after one that no longer counts.
        epoch: Manager epoch of the answer.
        found: Blocks that the Manager has, from the first one on.
        leases: One for each rank, while they are neither used nor released.
        asked_at: Time of the answer, seconds.
        gave_up: Whether blocks were on their way for so long that the request is to compute them.
        loading_since: Time of the first answer that blocks are on their way; None when they are not.
        local: Blocks that the engine has, as of the last look.
        is_async: Whether the offered load goes beside other steps.
        limit: Blocks that may be loaded; fewer than all after a load that failed.
        saved: Blocks that need no saving, from the first one on.
        load: The last load that was planned.
    """

    request: Any
    query_id: int
    revision: int = 0
    asked: int = -1
    epoch: int = 0
    found: int = 0
    leases: tuple[Lease, ...] = ()
    asked_at: float = 0.0
    gave_up: bool = False
    loading_since: float | None = None
    local: int = 0
    is_async: bool = False
    limit: int = MAX_BLOCKS_ASKED
    saved: int = 0
    load: Load | None = None


@dataclasses.dataclass(slots=True)
class _Pinned:
    """Blocks of a save that no step waits for: the engine may not reuse them yet."""

    blocks: list[Any]
    ranks_left: int
    since: float
    warned: bool = False


class SchedulerSide:
    """Plans loads and saves. Belongs to the scheduler's thread."""

    def __init__(
        self,
        client: SchedulerClient,
        options: Options,
        *,
        may_load: bool,
        may_save: bool,
        block_tokens: int,
        adapters: Adapters,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Makes one that plans nothing before `workers` was called.

        Args:
            client: Connection to the Manager.
            options: The connector's options.
            may_load: Whether blocks are restored.
            may_save: Whether blocks are stored.
            block_tokens: Tokens of a block.
            adapters: Digests of adapters.
            now: Clock, seconds.
        """
        self._client = client
        self._options = options
        self._may_load = may_load
        self._may_save = may_save
        self._block_tokens = block_tokens
        self._now = now
        self._adapters = adapters
        self._states: list[StateDescriptor] = []
        self._epochs: dict[int, int] = {}
        self._epoch = 0
        self._epoch_since = now()
        self._pause = Pause(now)
        self._namespaces: list[bytes] = []
        self._block_bytes = 0
        self._generation = ""
        self._tracked: dict[str, _Tracked] = {}
        self._query_ids = itertools.count(secrets.randbits(48) << 12)
        self._loads: list[Load] = []
        self._loading: dict[str, Load] = {}
        self._tickets = itertools.count(1)
        self._pinned: dict[int, _Pinned] = {}
        self._pool: Any = None
        self._is_silent = False

    # Start

    def workers(self, identities: Sequence[WorkerIdentity]) -> None:
        """Takes what the workers say about themselves, one for each rank."""
        ordered = sorted(identities, key=lambda identity: identity.rank)
        self._states = [identity.state for identity in ordered]
        self._epochs = {identity.rank: identity.epoch for identity in ordered}
        self._block_bytes = sum(state.groups[0].block_bytes for state in self._states)
        self._name()

    def bind_pool(self, pool: Any) -> None:
        """Takes the engine's block pool, which holds back blocks of saves in progress."""
        self._pool = pool

    def _name(self) -> None:
        states = [state.replace(weights_version=self._generation) for state in self._states]
        self._namespaces = [self._client.namespace(state) for state in states]

    # Looking up

    def matched(self, request: Any, computed_tokens: int) -> tuple[int | None, bool]:
        """Answers how many tokens beyond the computed ones can be loaded, and whether beside other steps."""
        tracked = self._track(request)
        tracked.load = None  # its pages are others' by now
        if self._loads:  # of a request that lost its blocks before the step that would have loaded them
            self._drop_load_not_sent(request.request_id)
        tracked.local = computed_tokens // self._block_tokens
        if not self._may_load or request.skip_reading_prefix_cache or not self._namespaces:
            return 0, False
        usable = self._usable(tracked)
        if usable <= 0:
            self._forget_answer(tracked)
            return 0, False
        epoch = self._look_at_manager()
        if self._awaits_workers(epoch) or not self._ask(tracked, usable, epoch):
            return None, False
        blocks = min(tracked.found, usable) - tracked.local
        if blocks <= 0 or not tracked.leases or not self._workers_know(tracked.epoch):
            return 0, False
        # Where one rank may fail alone, that must be known before a step uses the blocks.
        tracked.is_async = len(self._namespaces) > 1 or self._options.loads_async(blocks * self._block_bytes)
        return blocks * self._block_tokens, tracked.is_async

    def _track(self, request: Any) -> _Tracked:
        tracked = self._tracked.get(request.request_id)
        if tracked is None:
            tracked = _Tracked(request, next(self._query_ids))
            self._tracked[request.request_id] = tracked
        return tracked

    def _usable(self, tracked: _Tracked) -> int:
        """Blocks that may be loaded: full ones, but at least one token stays to be computed."""
        request = tracked.request
        full = (int(request.num_tokens) - 1) // self._block_tokens
        return min(len(request.block_hashes), full, tracked.limit)

    def _workers_know(self, epoch: int) -> bool:
        """Whether every worker can use leases of this Manager."""
        return all(known == epoch for known in self._epochs.values())

    def _look_at_manager(self) -> int:
        """Epoch of the Manager of now; 0 without one."""
        epoch = self._client.session_epoch
        if epoch != self._epoch:
            self._epoch, self._epoch_since = epoch, self._now()
            self._pause.end()
        return epoch

    def _awaits_workers(self, epoch: int) -> bool:
        """Whether workers may still find the Manager that this half has just found; steps without tokens tell, too."""
        if epoch == 0 or self._workers_know(epoch):
            return False
        return self._now() - self._epoch_since < WORKERS_BOUND_S

    def _ask(self, tracked: _Tracked, usable: int, epoch: int) -> bool:
        """Brings the answer up to date; False while blocks are on their way from another tier."""
        now = self._now()
        is_current = tracked.asked == usable and tracked.epoch == epoch and tracked.loading_since is None
        renewed_after = LEASE_RENEWED_AFTER_S if tracked.leases else MISS_RENEWED_AFTER_S
        if is_current and (tracked.gave_up or now - tracked.asked_at < renewed_after):
            return True
        hashes = self._hashes(tracked.request, 0, usable)
        if hashes is None or epoch == 0 or not self._pause.is_over:
            self._release(tracked)
            tracked.asked, tracked.epoch, tracked.found, tracked.asked_at = usable, epoch, 0, now
            return True
        return self._look_up(tracked, usable, hashes, epoch, now)

    def _look_up(self, tracked: _Tracked, usable: int, hashes: BlockHashes, epoch: int, now: float) -> bool:
        tracked.revision += 1
        # The leases of an earlier revision end with it.
        tracked.leases, tracked.found, tracked.asked, tracked.epoch, tracked.asked_at = (), 0, usable, epoch, now
        try:
            result = self._client.lookup(
                self._namespaces,
                hashes,
                query_id=tracked.query_id,
                revision=tracked.revision,
                max_lease_age_ms=LEASE_AGE_MS,
            )
        except OrbitKVError as error:
            tracked.loading_since = None
            if isinstance(error, OrbitKVTimeoutError):
                self._pause.begin()
            self._say_once(f"lookup failed, requests are computed: {error}")
            return True
        self._is_silent = False
        self._pause.end()
        if isinstance(result, QueryLoading):
            if result.admitted:
                tracked.loading_since = now if tracked.loading_since is None else tracked.loading_since
                if now - tracked.loading_since < LOADING_BOUND_S:
                    return False
                tracked.gave_up = True
            self._cancel_loading(tracked)
        tracked.loading_since = None
        if isinstance(result, QueryReady):
            tracked.found, tracked.leases = result.num_hit_blocks, result.leases
        return True

    def _hashes(self, request: Any, first: int, end: int) -> BlockHashes | None:
        """Hashes of a request's blocks; None when its adapter has no digest."""
        adapter = self._adapters.digest_of(request)
        if adapter is None:
            return None
        return BlockHashes(mix(request.block_hashes[first:end], adapter))

    def _say_once(self, text: str) -> None:
        """Warns, until something works again."""
        if not self._is_silent:
            logger.warning("%s", text)
        self._is_silent = True

    # Planning

    def allocated(self, request: Any, block_ids: Sequence[int], external_tokens: int) -> None:
        """Takes the blocks of a request; plans the load that it was promised."""
        tracked = self._track(request)
        blocks = external_tokens // self._block_tokens
        if blocks > 0:
            pages = tuple(block_ids[tracked.local : tracked.local + blocks])
            tracked.load = Load(request.request_id, tracked.leases, tracked.local, pages, tracked.is_async)
            tracked.leases = ()
            self._loads.append(tracked.load)
            if tracked.is_async:
                self._loading[request.request_id] = tracked.load
        else:
            self._release(tracked)
        tracked.asked, tracked.gave_up = -1, False  # when it is asked about again, it has lost these blocks
        if request.request_id not in self._loading or blocks > 0:
            tracked.saved = tracked.found

    def plan(self, output: Any) -> StepPlan:
        """Makes the plan of a step from what the engine scheduled."""
        loads, self._loads = tuple(self._loads), []
        saves: tuple[Save, ...] = ()
        if self._may_save and self._namespaces and self._are_workers_registered():
            saves = self._plan_saves(output)
        if not loads and not saves and output.total_num_scheduled_tokens > 0:
            return StepPlan(self._generation)
        return StepPlan(self._generation, output.total_num_scheduled_tokens == 0, loads, saves)

    def _are_workers_registered(self) -> bool:
        return all(epoch != 0 for epoch in self._epochs.values())

    def _plan_saves(self, output: Any) -> tuple[Save, ...]:
        scheduled = output.num_scheduled_tokens
        ready: list[tuple[_Tracked, int]] = []
        for new in output.scheduled_new_reqs:
            self._add_ready(ready, new.req_id, new.num_computed_tokens + scheduled[new.req_id])
        cached = output.scheduled_cached_reqs
        for request_id, computed in zip(cached.req_ids, cached.num_computed_tokens, strict=True):
            self._add_ready(ready, request_id, computed + scheduled[request_id])
        if not ready:
            return ()
        step_bytes = sum(full - tracked.saved for tracked, full in ready) * self._block_bytes
        is_async = self._options.saves_async(step_bytes) and self._pool is not None
        pages_seen: set[int] = set()
        saves = [self._plan_save(tracked, full, output, is_async, pages_seen) for tracked, full in ready]
        return tuple(save for save in saves if save is not None)

    def _add_ready(self, ready: list[tuple[_Tracked, int]], request_id: str, tokens: int) -> None:
        """Adds a request when blocks will be full at the end of the step that it needs to save."""
        tracked = self._tracked.get(request_id)
        if tracked is None:
            return
        full = tokens // self._block_tokens
        if full > tracked.saved:
            full = min(full, len(tracked.request.block_hashes))
            if full > tracked.saved:
                ready.append((tracked, full))

    def _plan_save(
        self, tracked: _Tracked, full: int, output: Any, is_async: bool, pages_seen: set[int]
    ) -> Save | None:
        request, first = tracked.request, tracked.saved
        tracked.saved = full
        tables = output.kv_connector_block_state.get_block_ids(request.request_id)
        if tables is None:
            return None
        table = tables[0]
        while first < full and table[first] in pages_seen:  # shared with a request of this step
            first += 1
        hashes = self._hashes(request, max(0, first - 1), full) if first < full else None
        if hashes is None:
            return None
        pages = tuple(table[first:full])
        pages_seen.update(pages)
        parent = hashes[0] if first > 0 else None
        ticket = self._pin(pages) if is_async else 0
        return Save(request.request_id, first, parent, hashes[1:] if first > 0 else hashes, pages, ticket)

    def _pin(self, pages: Sequence[int]) -> int:
        ticket = next(self._tickets)
        blocks = [self._pool.blocks[page] for page in pages]
        self._pool.touch(blocks)
        self._pinned[ticket] = _Pinned(blocks, len(self._namespaces), self._now())
        return ticket

    # Reports

    def reported(self, output: Any) -> None:
        """Takes what the workers reported of a step."""
        if output.invalid_block_ids:
            self._load_failed(output.invalid_block_ids)
        for request_id in output.finished_recving or ():
            self._loading.pop(request_id, None)
        report = output.kv_connector_worker_meta
        if not isinstance(report, WorkerReport):
            return
        self._epochs.update(report.epochs)
        for request_id, position in report.unsaved.items():
            tracked = self._tracked.get(request_id)
            if tracked is not None:
                tracked.saved = min(tracked.saved, position)
        for ticket, ranks in report.finished_saves.items():
            self._unpin(ticket, ranks)

    def _load_failed(self, invalid: set[int]) -> None:
        """The engine computes these blocks: they are not loaded again, and saved once they are there."""
        for tracked in self._tracked.values():
            load = tracked.load
            if load is None:
                continue
            bad = [index for index, page in enumerate(load.pages) if page in invalid]
            if bad:
                tracked.limit = min(tracked.limit, load.skip + bad[0])
                tracked.found = min(tracked.found, tracked.limit)
                tracked.saved = min(tracked.saved, tracked.limit)
                tracked.asked = -1
                tracked.load = None

    def _unpin(self, ticket: int, ranks: int) -> None:
        pinned = self._pinned.get(ticket)
        if pinned is None:
            return
        pinned.ranks_left -= ranks
        if pinned.ranks_left <= 0:
            del self._pinned[ticket]
            self._pool.free_blocks(reversed(pinned.blocks))

    def has_pinned(self) -> bool:
        """Whether blocks are held back until workers report the end of their saves."""
        if not self._pinned:
            return False
        now = self._now()
        for ticket, pinned in self._pinned.items():
            if not pinned.warned and now - pinned.since > _PINNED_WARNING_AFTER_S:
                logger.warning("save %d holds %d blocks for more than a minute", ticket, len(pinned.blocks))
                pinned.warned = True
        return True

    # Ends

    def finished(self, request_id: str) -> None:
        """Forgets a request, known or not, scheduled or not; gives its leases back."""
        tracked = self._tracked.pop(request_id, None)
        if tracked is not None:
            self._release(tracked)
        if self._loads:
            self._drop_load_not_sent(request_id)

    def _drop_load_not_sent(self, request_id: str) -> None:
        for load in [load for load in self._loads if load.request_id == request_id]:
            self._loads.remove(load)
            self._loading.pop(request_id, None)
            self._give_back(load.leases)

    def _forget_answer(self, tracked: _Tracked) -> None:
        self._release(tracked)
        tracked.asked, tracked.found, tracked.gave_up = -1, 0, False

    def _release(self, tracked: _Tracked) -> None:
        leases, tracked.leases = tracked.leases, ()
        self._give_back(leases)
        self._cancel_loading(tracked)

    def _cancel_loading(self, tracked: _Tracked) -> None:
        """Lets go of blocks that the Manager holds until the others of a query have arrived."""
        if tracked.loading_since is None:
            return
        tracked.loading_since = None
        if not self._pause.is_over:
            return
        try:
            self._client.cancel_query(tracked.query_id, tracked.revision)
        except OrbitKVError as error:  # their age ends them
            if isinstance(error, OrbitKVTimeoutError):
                self._pause.begin()
            logger.debug("a query was not cancelled: %s", error)

    def _give_back(self, leases: Sequence[Lease]) -> None:
        try:
            for lease in leases:
                self._client.give_back(lease)
        except OrbitKVError as error:  # they end with their age or the session
            logger.debug("leases were not released: %s", error)

    def reset(self) -> bool:
        """Begins a new generation of the weights: nothing of the earlier one is ever loaded again.

        Returns:
            False when requests hold blocks of the earlier weights, whose saves could not be told apart.
        """
        if (
            self._pinned
            or self._loading
            or self._loads
            or any(_holds_blocks(each.request) for each in self._tracked.values())
        ):
            logger.warning("the cache is reset only while no request holds blocks; nothing was reset")
            return False
        self._generation = secrets.token_hex(16)
        for tracked in self._tracked.values():
            self._forget_answer(tracked)
            tracked.limit, tracked.saved, tracked.load = MAX_BLOCKS_ASKED, 0, None
        if self._states:
            self._name()
        logger.info("weights_version=%s from now on: blocks of earlier weights are not found", self._generation)
        return True

    def close(self) -> None:
        """Ends the session with the Manager."""
        self._tracked.clear()
        self._client.close()


def _holds_blocks(request: Any) -> bool:
    return request.status.name in ("RUNNING", "WAITING_FOR_REMOTE_KVS") or request.num_computed_tokens > 0
