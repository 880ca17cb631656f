"""The scheduler's half against random orders of what an engine does, with a Manager that is a set of hashes."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from orbitkv import (
    BlockHashes,
    GroupState,
    Lease,
    OrbitKVTimeoutError,
    QueryLoading,
    QueryMiss,
    QueryReady,
    QueryResult,
    StateDescriptor,
)
from orbitkv.vllm.adapters import Adapters
from orbitkv.vllm.messages import StepPlan, WorkerIdentity, WorkerReport
from orbitkv.vllm.options import Options
from orbitkv.vllm.pause import FIRST_PAUSE_S, LONGEST_PAUSE_S
from orbitkv.vllm.scheduler import (
    LEASE_RENEWED_AFTER_S,
    LOADING_BOUND_S,
    MISS_RENEWED_AFTER_S,
    WORKERS_BOUND_S,
    SchedulerSide,
)

TOKENS = 4
STATE = StateDescriptor(
    model="m",
    compute_dtype="bfloat16",
    kv_dtype="bfloat16",
    layout="HND",
    block_tokens=TOKENS,
    groups=(GroupState(layers=1, block_bytes=1000),),
    hash_scheme="sha256",
    engine="test",
)


class SetManager:
    """A client whose Manager holds a set of hashes; counts calls and live leases."""

    def __init__(self) -> None:
        self.session_epoch = 1
        self.held: set[bytes] = set()
        self.leases: dict[int, int] = {}
        self.calls = 0
        self.is_loading = False
        self.hangs = False
        self.cancelled: list[tuple[int, int]] = []
        self._ids = itertools.count(1)

    def lookup(
        self,
        namespaces: bytes | Sequence[bytes],
        hashes: BlockHashes,
        *,
        query_id: int,
        revision: int,
        max_lease_age_ms: int,
    ) -> QueryResult:
        self.calls += 1
        if self.hangs:
            raise OrbitKVTimeoutError("no answer", "INTERNAL")
        self.leases = {lease: owner for lease, owner in self.leases.items() if owner != query_id}
        if self.is_loading:
            return QueryLoading()
        found = len(list(itertools.takewhile(lambda value: value in self.held, hashes)))
        if found == 0:
            return QueryMiss("NEVER_STORED")
        leases = tuple(
            Lease(lease_id=next(self._ids), epoch=self.session_epoch, namespace=i, group=0, blocks=found)
            for i in range(len(namespaces))
        )
        self.leases |= {lease.lease_id: query_id for lease in leases}
        return QueryReady(found, leases)

    def give_back(self, lease: Lease) -> None:
        self.leases.pop(lease.lease_id, None)

    def cancel_query(self, query_id: int, revision: int) -> None:
        self.calls += 1
        if self.hangs:
            raise OrbitKVTimeoutError("no answer", "INTERNAL")
        self.cancelled.append((query_id, revision))

    def namespace(self, state: StateDescriptor) -> bytes:
        return repr(state).encode()

    def close(self) -> None:
        self.leases.clear()


class Pool:
    """Reference counts of an engine's blocks."""

    def __init__(self, blocks: int) -> None:
        self.blocks = [SimpleNamespace(block_id=i, ref_cnt=0) for i in range(blocks)]

    def touch(self, blocks: Sequence[Any]) -> None:
        for block in blocks:
            block.ref_cnt += 1

    def free_blocks(self, blocks: Any) -> None:
        for block in blocks:
            block.ref_cnt -= 1
            assert block.ref_cnt >= 0


def request(name: str, blocks: int, extra: int = 1, seed: int = 0) -> Any:
    return SimpleNamespace(
        request_id=name,
        block_hashes=[f"{seed:016d}{i:016d}".encode() for i in range(blocks)],
        num_tokens=blocks * TOKENS + extra,
        num_computed_tokens=0,
        skip_reading_prefix_cache=False,
        lora_request=None,
        status=SimpleNamespace(name="WAITING"),
    )


def step(tables: dict[str, list[int]], *new: tuple[str, int, int]) -> Any:
    """A scheduler output in which requests are computed: name, tokens before, tokens in this step."""
    return SimpleNamespace(
        scheduled_new_reqs=[SimpleNamespace(req_id=name, num_computed_tokens=before) for name, before, _ in new],
        scheduled_cached_reqs=SimpleNamespace(req_ids=[], num_computed_tokens=[], resumed_req_ids=set()),
        num_scheduled_tokens={name: tokens for name, _, tokens in new},
        total_num_scheduled_tokens=sum(tokens for _, _, tokens in new),
        kv_connector_block_state=SimpleNamespace(get_block_ids=lambda name: (tables[name],)),
        has_sync_kv_loads=False,
    )


def report(**fields: Any) -> Any:
    return SimpleNamespace(
        **{"invalid_block_ids": set(), "finished_recving": set(), "kv_connector_worker_meta": None, **fields}
    )


@dataclasses.dataclass
class Side:
    """A scheduler's half with its surroundings."""

    manager: SetManager
    side: SchedulerSide
    pool: Pool
    clock: list[float]


def make(ranks: int = 1, **options: Any) -> Side:
    manager, pool, clock = SetManager(), Pool(1000), [0.0]
    side = SchedulerSide(
        manager,
        Options(**options),
        may_load=True,
        may_save=True,
        block_tokens=TOKENS,
        adapters=Adapters("", 0),
        now=lambda: clock[0],
    )
    side.workers([WorkerIdentity(rank, STATE.replace(tp_size=ranks, tp_rank=rank), 1) for rank in range(ranks)])
    side.bind_pool(pool)
    return Side(manager, side, pool, clock)


def test_asks_again_only_when_something_changed() -> None:
    it = make()
    asked = request("a", 6)
    it.manager.held |= set(asked.block_hashes[:4])
    for _ in range(50):  # a request that waits for blocks is looked at in every step
        assert it.side.matched(asked, 0) == (16, False)
    assert it.manager.calls == 1
    assert it.side.matched(asked, 8) == (8, False)  # another request computed two blocks: the same lease serves
    assert it.manager.calls == 1
    asked.block_hashes.append(b"n" * 32)
    asked.num_tokens += TOKENS
    it.side.matched(asked, 8)
    assert it.manager.calls == 2
    it.manager.session_epoch = 2
    it.side.reported(report(kv_connector_worker_meta=WorkerReport(epochs={0: 2})))
    it.side.matched(asked, 8)
    assert it.manager.calls == 3
    it.clock[0] += LEASE_RENEWED_AFTER_S + 1
    it.side.matched(asked, 8)
    assert it.manager.calls == 4
    assert len(it.manager.leases) == 1


def test_keeps_one_token_to_compute() -> None:
    it = make()
    asked = request("a", 3, extra=0)
    it.manager.held |= set(asked.block_hashes)
    assert it.side.matched(asked, 0) == (8, False)


def test_offers_nothing_to_requests_that_may_not_read() -> None:
    it = make()
    asked = request("a", 3)
    it.manager.held |= set(asked.block_hashes)
    asked.skip_reading_prefix_cache = True
    assert it.side.matched(asked, 0) == (0, False)
    assert it.manager.calls == 0


def test_offers_nothing_under_a_manager_that_a_worker_does_not_know() -> None:
    it = make(ranks=2)
    asked = request("a", 3)
    it.manager.held |= set(asked.block_hashes)
    it.side.reported(report(kv_connector_worker_meta=WorkerReport(epochs={1: 0})))
    assert it.side.matched(asked, 0) == (None, False)  # they find it at about the same time
    it.clock[0] += WORKERS_BOUND_S
    assert it.side.matched(asked, 0) == (0, False)
    it.side.reported(report(kv_connector_worker_meta=WorkerReport(epochs={1: 1})))
    assert it.side.matched(asked, 0) == (12, True)  # several ranks: never in the step that needs it


def test_waits_for_workers_when_the_manager_is_another_one() -> None:
    it = make()
    asked = request("a", 3)
    it.manager.held |= set(asked.block_hashes)
    it.clock[0] += 1000
    it.manager.session_epoch = 2
    assert it.side.matched(asked, 0) == (None, False)
    it.side.reported(report(kv_connector_worker_meta=WorkerReport(epochs={0: 2})))
    assert it.side.matched(asked, 0) == (12, False)


def test_asks_again_for_a_request_that_lost_its_blocks() -> None:
    it = make()
    asked = request("a", 3)
    assert it.side.matched(asked, 0) == (0, False)
    it.side.allocated(asked, [], 0)
    it.manager.held |= set(asked.block_hashes)  # as it was computed
    assert it.side.matched(asked, 0) == (12, False)


def test_asks_again_for_a_request_that_waits_while_others_store() -> None:
    it = make()
    asked = request("a", 3)
    assert it.side.matched(asked, 0) == (0, False)
    it.manager.held |= set(asked.block_hashes)
    assert it.side.matched(asked, 0) == (0, False)
    it.clock[0] += MISS_RENEWED_AFTER_S
    assert it.side.matched(asked, 0) == (12, False)


def test_takes_no_page_of_an_earlier_load_for_its_own() -> None:
    it = make()
    first, second = request("a", 2, seed=1), request("b", 2, seed=2)
    for each in (first, second):
        it.manager.held |= set(each.block_hashes)
        assert it.side.matched(each, 0) == (8, False)
        it.side.allocated(each, [1, 2, 3], 8)
        it.side.plan(step({}))
        it.side.matched(first, 0)  # preempted: its pages are the other's now
    it.side.reported(report(invalid_block_ids={1}))
    assert it.side.matched(first, 0) == (8, False)
    assert it.side.matched(second, 0) == (0, False)


def test_leaves_a_manager_alone_that_hangs() -> None:
    it = make()
    it.manager.hangs = True
    for number in range(20):
        assert it.side.matched(request(f"r{number}", 2), 0) == (0, False)
    assert it.manager.calls == 1
    it.clock[0] += FIRST_PAUSE_S
    for number in range(20, 40):
        it.side.matched(request(f"r{number}", 2), 0)
        it.clock[0] += FIRST_PAUSE_S / 20
    assert it.manager.calls == 2, "twice as long"
    for _ in range(10):
        it.clock[0] += LONGEST_PAUSE_S
        it.side.matched(request("x", 2), 0)
    assert it.manager.calls == 12
    asked = request("a", 2)
    it.manager.hangs = False
    it.manager.held |= set(asked.block_hashes)
    assert it.side.matched(asked, 0) == (0, False)
    it.clock[0] += LONGEST_PAUSE_S
    assert it.side.matched(asked, 0) == (8, False)
    it.manager.hangs = True
    it.side.matched(request("y", 2), 0)
    it.manager.hangs = False
    it.manager.session_epoch = 2  # another one deserves another chance
    it.side.reported(report(kv_connector_worker_meta=WorkerReport(epochs={0: 2})))
    assert it.side.matched(asked, 0) == (8, False)


@pytest.mark.parametrize("end", ["aborted", "late", "reset"])
def test_lets_go_of_what_another_tier_brings(end: str) -> None:
    it = make()
    it.manager.is_loading = True
    asked = request("a", 3)
    assert it.side.matched(asked, 0) == (None, False)
    assert it.side.matched(asked, 0) == (None, False)
    if end == "aborted":
        it.side.finished("a")
    elif end == "late":
        it.clock[0] += LOADING_BOUND_S
        assert it.side.matched(asked, 0) == (0, False)
    else:
        assert it.side.reset()
    assert [revision for _, revision in it.manager.cancelled] == [3 if end == "late" else 2]


def test_waits_a_bounded_time_for_another_tier() -> None:
    it = make()
    it.manager.is_loading = True
    asked = request("a", 3)
    assert it.side.matched(asked, 0) == (None, False)
    it.clock[0] += LOADING_BOUND_S + 1
    assert it.side.matched(asked, 0) == (0, False)
    assert it.side.matched(asked, 0) == (0, False)
    it.clock[0] += 10 * MISS_RENEWED_AFTER_S  # it waits for space, and is to compute its blocks
    assert it.side.matched(asked, 0) == (0, False)
    it.side.allocated(asked, [], 0)
    assert it.side.matched(asked, 0) == (None, False)  # it was preempted: another chance


def test_saves_what_only_the_engine_has() -> None:
    it = make()
    asked = request("a", 5)
    it.manager.held |= set(asked.block_hashes[:1])
    assert it.side.matched(asked, 3 * TOKENS) == (0, False)
    it.side.allocated(asked, [], 0)
    plan = it.side.plan(step({"a": [10, 11, 12, 13, 14, 15]}, ("a", 3 * TOKENS, 2 * TOKENS + 1)))
    (save,) = plan.saves
    assert (save.position, save.pages, save.parent) == (1, (11, 12, 13, 14), asked.block_hashes[0])
    assert list(save.hashes) == asked.block_hashes[1:5]
    assert not it.manager.leases


def test_saves_shared_pages_of_a_step_once() -> None:
    it = make()
    first, second = request("a", 4), request("b", 3)
    for each in (first, second):
        it.side.matched(each, 0)
        it.side.allocated(each, [], 0)
    tables = {"a": [1, 2, 3, 4], "b": [1, 2, 3]}
    plan = it.side.plan(step(tables, ("a", 0, 4 * TOKENS), ("b", 0, 3 * TOKENS)))
    assert [save.pages for save in plan.saves] == [(1, 2, 3, 4)]


def test_never_loads_a_block_again_that_failed() -> None:
    it = make()
    asked = request("a", 4)
    it.manager.held |= set(asked.block_hashes)
    assert it.side.matched(asked, 0) == (16, False)
    it.side.allocated(asked, [1, 2, 3, 4, 5], 16)
    (load,) = it.side.plan(step({"a": [1, 2, 3, 4, 5]}, ("a", 16, 1))).loads
    assert (load.skip, load.pages) == (0, (1, 2, 3, 4))
    it.side.reported(report(invalid_block_ids={3}))
    plan = it.side.plan(step({"a": [1, 2, 3, 4, 5]}, ("a", 8, 9)))
    assert [(save.position, save.pages) for save in plan.saves] == [(2, (3, 4))]
    assert it.side.matched(asked, 0) == (8, False)


def test_pins_blocks_of_saves_that_no_step_waits_for() -> None:
    it = make(save="async")
    asked = request("a", 2)
    it.side.matched(asked, 0)
    it.side.allocated(asked, [], 0)
    (save,) = it.side.plan(step({"a": [7, 8, 9]}, ("a", 0, 9))).saves
    it.side.finished("a")
    assert save.ticket > 0
    assert [it.pool.blocks[i].ref_cnt for i in (7, 8, 9)] == [1, 1, 0]
    assert it.side.has_pinned()
    it.side.reported(report(kv_connector_worker_meta=WorkerReport(finished_saves={save.ticket: 1})))
    assert not it.side.has_pinned()
    assert all(block.ref_cnt == 0 for block in it.pool.blocks)


def test_saves_again_what_a_worker_did_not_try() -> None:
    it = make()
    asked = request("a", 2)
    it.side.matched(asked, 0)
    it.side.allocated(asked, [], 0)
    it.side.plan(step({"a": [7, 8, 9]}, ("a", 0, 9)))
    it.side.reported(report(kv_connector_worker_meta=WorkerReport(unsaved={"a": 0, "unknown": 3})))
    (save,) = it.side.plan(step({"a": [7, 8, 9]}, ("a", 9, 1))).saves
    assert save.pages == (7, 8)


def test_reset_forgets_what_earlier_weights_computed() -> None:
    it = make()
    asked = request("a", 3)
    it.manager.held |= set(asked.block_hashes)
    it.side.matched(asked, 0)
    before = it.side.plan(step({})).generation
    assert it.side.reset()
    after = it.side.plan(step({})).generation
    assert (before, len(after)) == ("", 32)
    assert not it.manager.leases
    it.side.matched(asked, 0)
    assert it.manager.calls == 2


def test_reset_is_refused_while_a_request_holds_blocks() -> None:
    it = make()
    asked = request("a", 3)
    it.side.matched(asked, 0)
    asked.status.name = "RUNNING"
    assert not it.side.reset()
    asked.status.name = "WAITING"
    asked.num_computed_tokens = 8  # loaded, and not scheduled yet
    assert not it.side.reset()
    asked.num_computed_tokens = 0
    assert it.side.reset()


def test_reports_of_ranks_are_united() -> None:
    first = WorkerReport({0: 5}, {1: 1, 2: 1}, {"a": 4})
    second = WorkerReport({1: 5}, {1: 1}, {"a": 2, "b": 7})
    assert first.aggregate(second) == WorkerReport({0: 5, 1: 5}, {1: 2, 2: 1}, {"a": 2, "b": 7})
    assert not WorkerReport()


def restore(manager: SetManager, plan: StepPlan) -> None:
    """Uses the leases of a plan, as a worker does."""
    for load in plan.loads:
        for lease in load.leases:
            assert lease.blocks == load.skip + len(load.pages)
            assert lease.lease_id in manager.leases, "the lease of a load has ended"
            manager.give_back(lease)


@pytest.mark.parametrize("seed", range(20))
def test_survives_every_order_of_events(seed: int) -> None:
    print(f"seed={seed}")
    chance = random.Random(seed)
    it = make(save=chance.choice(["sync", "async"]), load=chance.choice(["sync", "async"]))
    requests: dict[str, Any] = {}
    waiting: dict[str, Any] = {}
    tables: dict[str, list[int]] = {}
    computed: dict[str, int] = {}
    loading: set[str] = set()
    tickets: set[int] = set()
    pages = itertools.cycle(range(1, 1000))
    for number in range(500):
        it.clock[0] += chance.random() * 10
        match chance.randrange(9):
            case 0:
                name = f"r{number}"
                requests[name] = request(name, chance.randint(0, 8), chance.randint(0, 3), number % 5)
                waiting[name] = requests[name]
            case 1 if waiting:
                name = chance.choice(list(waiting))
                asked = waiting[name]
                tokens, is_async = it.side.matched(asked, 0)
                if tokens is not None and chance.random() < 0.7:
                    tables[name] = [next(pages) for _ in range(len(asked.block_hashes) + 1)]
                    it.side.allocated(asked, tables[name], tokens)
                    computed[name] = tokens
                    if is_async:
                        loading.add(name)
                    del waiting[name]
            case 2:
                ready = [name for name in computed if name not in loading][:3]
                scheduled = []
                for name in ready:
                    left = max(1, (len(tables[name]) - 1) * TOKENS - computed[name])
                    tokens = chance.randint(1, left)
                    scheduled.append((name, computed[name], tokens))
                    computed[name] += tokens
                plan = it.side.plan(step(tables, *scheduled))
                assert isinstance(plan, StepPlan)
                tickets |= {save.ticket for save in plan.saves if save.ticket}
                for save in plan.saves:
                    assert len(save.hashes) == len(save.pages) > 0
                    it.manager.held |= set(save.hashes)
                restore(it.manager, plan)
            case 3:
                done = {ticket: 1 for ticket in tickets if chance.random() < 0.5}
                tickets -= done.keys()
                bad = {page for name in loading for page in tables[name] if chance.random() < 0.1}
                it.side.reported(
                    report(
                        invalid_block_ids=bad,
                        finished_recving=set(loading),
                        kv_connector_worker_meta=WorkerReport(finished_saves=done, unsaved={f"r{number - 9}": 0}),
                    )
                )
                loading.clear()
            case 4 if computed:  # finished or aborted
                name = chance.choice(list(computed))
                if name not in loading:
                    del computed[name], tables[name]
                    it.side.finished(name)
            case 5:
                it.side.finished(f"never-seen-{number}")
                restore(it.manager, it.side.plan(step({})))
            case 6 if computed:  # preempted: it is asked about again
                name = chance.choice(list(computed))
                if name not in loading:
                    del computed[name]
                    waiting[name] = requests[name]
            case 7:
                is_free = not loading and not tickets
                for name, each in requests.items():
                    each.status.name = "RUNNING" if name in computed else "WAITING"
                if it.side.reset():
                    assert is_free
                    assert not computed
                    assert not it.manager.leases
            case 8 if chance.random() < 0.1:
                restore(it.manager, it.side.plan(step({})))
                it.manager.session_epoch += 1
                it.manager.leases.clear()
                it.manager.held.clear()
                it.side.reported(report(kv_connector_worker_meta=WorkerReport(epochs={0: it.manager.session_epoch})))
    restore(it.manager, it.side.plan(step(tables)))
    for name in [*waiting, *computed]:
        it.side.finished(name)
    it.side.reported(report(kv_connector_worker_meta=WorkerReport(finished_saves=dict.fromkeys(tickets, 1))))
    assert not it.side.has_pinned()
    assert not it.manager.leases
    assert all(block.ref_cnt == 0 for block in it.pool.blocks)
