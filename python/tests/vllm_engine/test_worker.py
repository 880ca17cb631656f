"""A worker's half: what it reports of damaged blocks of a real Manager, and what it does when a scripted one fails."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from engines import REPOSITORY, Manager

from orbitkv import (
    BlockHashes,
    CacheManagerClient,
    GroupState,
    Lease,
    OrbitKVTimeoutError,
    QueryReady,
    Registration,
    RestoreStatus,
    SaveNotSubmittedError,
    SaveStatus,
    StateDescriptor,
)
from orbitkv.vllm.messages import Load, Save, StepPlan, WorkerReport
from orbitkv.vllm.options import Options
from orbitkv.vllm.pause import FIRST_PAUSE_S
from orbitkv.vllm.worker import WorkerSide

LAYERS = 2
BLOCKS = 30
PAGE_BYTES = 64
STATE = StateDescriptor(
    model="test",
    compute_dtype="bfloat16",
    kv_dtype="bfloat16",
    layout="layer-page",
    block_tokens=16,
    groups=(GroupState(layers=LAYERS, block_bytes=LAYERS * PAGE_BYTES),),
    hash_scheme="sha256_cbor",
    engine="test 1",
)
SOURCES = tuple(range(BLOCKS))
TARGETS = tuple(range(2 * BLOCKS - 1, BLOCKS - 1, -1))  # backwards: an index is not taken for a page


@pytest.fixture(scope="module")
def manager() -> Iterator[Manager]:
    folder = Path(tempfile.mkdtemp(prefix="orbitkv-"))
    made = Manager(folder, pool="128mb")
    yield made
    made.close()
    shutil.rmtree(folder)


def content(chain: int, block: int, layer: int) -> torch.Tensor:
    digest = hashlib.shake_128(f"{chain}/{block}/{layer}".encode()).digest(PAGE_BYTES)
    return torch.frombuffer(bytearray(digest), dtype=torch.uint8)


def chain_of(number: int) -> BlockHashes:
    return BlockHashes([hashlib.sha256(f"{number}/{block}".encode()).digest() for block in range(BLOCKS)])


def test_reports_exactly_the_damaged_block_and_reports_it_once(
    manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For every block of a prompt; all others arrive whole."""
    monkeypatch.setenv("ORBITKV_JARS", os.environ.get("ORBITKV_JARS", str(REPOSITORY / "app/target/lib")))
    pages = torch.zeros(LAYERS, 2 * BLOCKS, PAGE_BYTES, dtype=torch.uint8)
    tensors = {f"layer{i}": pages[i] for i in range(LAYERS)}
    with CacheManagerClient(manager.socket, verify=True) as client:
        namespace = client.namespace(STATE)
        worker = WorkerSide(
            client,
            Options(),
            0,
            STATE,
            lambda state: client.register(tensors, state=state, layout="layer-page", num_blocks=2 * BLOCKS),
        )
        for damaged in range(BLOCKS):
            for block in range(BLOCKS):
                for layer in range(LAYERS):
                    pages[layer, block] = content(damaged, block, layer)
            hashes = chain_of(damaged)
            worker.finish(StepPlan(saves=(Save("r", 0, None, hashes, SOURCES, 0),)))
            manager.corrupt(content(damaged, damaged, 1).numpy().tobytes())
            found = client.lookup(namespace, hashes)
            assert isinstance(found, QueryReady)
            is_async = damaged % 2 == 1
            plan = StepPlan(loads=(Load("r", found.leases, 0, TARGETS, is_async),), is_idle=True)
            worker.start(plan)
            worker.wait_layer("layer1")
            worker.finish(plan)
            while is_async and worker.arrived() != {"r"}:
                worker.finish(StepPlan(is_idle=True))  # waits a little
            assert worker.take_invalid() == {TARGETS[damaged]}
            assert worker.take_invalid() == set()
            for block in set(range(BLOCKS)) - {damaged}:
                for layer in range(LAYERS):
                    assert torch.equal(pages[layer, TARGETS[block]], content(damaged, block, layer))
        counters = worker.counters
        assert (counters.stored_blocks, counters.failed_blocks) == (BLOCKS * BLOCKS, BLOCKS)
        assert counters.restored_blocks == BLOCKS * (BLOCKS - 1)
        assert worker.take_counts() == {
            "restored_blocks": counters.restored_blocks,
            "failed_blocks": BLOCKS,
            "failed_loads": BLOCKS,
            "stored_blocks": counters.stored_blocks,
        }
        assert worker.take_counts() is None
        worker.close()


class Scripted:
    """A client, its registration and its handles in one, whose answers a test chooses; notes what is called."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.given_back: list[Lease] = []
        self.is_active = True
        self.session_epoch = 7
        self.pages_free = False
        self.key = self.operation_id = "1"
        self.fails: dict[str, Exception] = {}
        self.restores: list[RestoreStatus] = []
        self.saves: list[SaveStatus] = []
        self.clock = 0.0

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if name in self.fails:
            raise self.fails[name]

    def worker(self) -> WorkerSide:
        return WorkerSide(cast("CacheManagerClient", self), Options(), 0, STATE, self._register, lambda: self.clock)

    def _register(self, _state: StateDescriptor) -> Registration:
        self._called("register")
        return cast("Registration", self)

    def close(self) -> None:
        self._called("close")

    def give_back(self, lease: Lease) -> None:
        self.given_back.append(lease)

    def layer_index(self, name: str) -> int:
        return int(name)

    def restore(self, _item: object, **_fence: object) -> Any:
        self._called("restore")
        return self

    def save(self, _items: object, **_fence: object) -> Any:
        self._called("save")
        return self

    def wait_layer(self, layer: int, _timeout: float) -> bool:
        self._called(f"wait_layer {layer}")
        return False

    def wait(self, _timeout: float) -> RestoreStatus:
        self._called("wait")
        return self.restores.pop(0) if len(self.restores) > 1 else self.restores[0]

    def poll(self) -> SaveStatus:
        return self.wait_save(0)

    def wait_save(self, _timeout: float) -> SaveStatus:
        self._called("wait_save")
        return self.saves.pop(0) if len(self.saves) > 1 else self.saves[0]

    def cancel(self) -> None:
        self._called("cancel")


LEASE = Lease(1, 7, 0, 0, 2)
LOAD = StepPlan(loads=(Load("r", (LEASE,), 0, (4, 5), False),), saves=(Save("s", 3, None, chain_of(1), SOURCES, 0),))
SAVE = StepPlan(saves=(Save("s", 3, None, chain_of(1), SOURCES, 0),))
PENDING = RestoreStatus(False, False)
STORED = SaveStatus(True, True, "", "OK", stored=BLOCKS)
UNANSWERED = SaveStatus(True, False, "not claimed within ms=5000", "CANCELLED", refused=BLOCKS)
TOO_SLOW = SaveStatus(True, False, "cancelled by the caller", "CANCELLED", refused=BLOCKS)


@pytest.mark.parametrize(
    ("answers", "waits", "invalid"),
    [
        ([PENDING, RestoreStatus(True, True)], ["wait", "cancel", "wait"], set()),
        ([RestoreStatus(True, True)], ["wait"], set()),
        ([PENDING, PENDING, RestoreStatus(True, False, "", "CANCELLED")], ["wait", "cancel", "wait", "wait"], {4, 5}),
    ],
)
def test_lets_no_layer_compute_before_a_late_load_has_ended(
    answers: list[RestoreStatus], waits: list[str], invalid: set[int]
) -> None:
    it = Scripted()
    worker = it.worker()
    it.restores, it.saves = answers, [STORED]
    worker.start(LOAD)
    it.calls.clear()
    worker.wait_layer("0")
    assert it.calls == ["wait_layer 0", *waits]
    worker.finish(LOAD)
    assert worker.take_invalid() == invalid
    report = worker.report()
    assert (report.unsaved if report else {}) == ({"s": 3} if invalid else {}), "what follows from a failed load"


def test_gives_leases_of_refused_loads_back() -> None:
    it = Scripted()
    worker = it.worker()
    it.fails["restore"] = OrbitKVTimeoutError("full", "LIMIT")
    worker.start(LOAD)
    assert it.given_back == [LEASE]
    worker.finish(LOAD)
    assert worker.take_invalid() == {4, 5}


@pytest.mark.parametrize("call", ["close", "register"])
def test_goes_on_when_pages_cannot_be_registered_again(call: str) -> None:
    it = Scripted()
    worker = it.worker()
    it.fails[call] = OrbitKVTimeoutError("no answer", "INTERNAL")
    plan = StepPlan("new weights")
    reports = []
    for _ in range(5):
        worker.start(plan)
        worker.finish(plan)
        reports.append(worker.report())
    assert it.calls.count(call) == (1 if call == "close" else 2)
    assert reports == [WorkerReport(epochs={0: 0}), None, None, None, None], "nobody loads or saves meanwhile"
    it.fails.clear()
    it.clock += FIRST_PAUSE_S
    worker.start(plan)
    worker.start(plan)
    assert worker.report() == WorkerReport(epochs={0: 7})
    assert it.calls.count("register") == (2 if call == "close" else 3)


@pytest.mark.parametrize("ticket", [0, 9])
@pytest.mark.parametrize("answer", [UNANSWERED, SaveStatus(False, False)])
def test_leaves_a_manager_alone_that_does_not_answer_saves(ticket: int, answer: SaveStatus) -> None:
    it = Scripted()
    worker = it.worker()
    plan = dataclasses.replace(SAVE, saves=(dataclasses.replace(SAVE.saves[0], ticket=ticket),))
    it.saves, it.pages_free = [answer], True
    reports = []
    for _ in range(5):
        worker.finish(plan)
        reports.append(worker.report())
    assert it.calls.count("save") == 1
    finished = {ticket: 1} if ticket else {}
    assert reports == 5 * [WorkerReport(unsaved={"s": 3}, finished_saves=finished)]
    it.clock += FIRST_PAUSE_S
    it.saves = [STORED]
    for _ in range(2):
        worker.finish(plan)
        assert worker.report() == (WorkerReport(finished_saves=finished) if ticket else None)
    assert it.calls.count("save") == 3
    assert worker.counters.stored_blocks == 2 * BLOCKS
    assert worker.counters.failed_saves == 1


def test_tries_a_save_that_was_too_slow_not_again() -> None:
    it = Scripted()
    worker = it.worker()
    it.saves = [SaveStatus(False, False), TOO_SLOW]
    worker.finish(SAVE)
    assert worker.report() is None
    it.saves = [STORED]
    worker.finish(SAVE)
    assert worker.counters.stored_blocks == BLOCKS


def test_counts_a_save_that_no_step_waited_for_in_the_step_that_reports_it() -> None:
    it = Scripted()
    worker = it.worker()
    worker.finish(dataclasses.replace(SAVE, saves=(dataclasses.replace(SAVE.saves[0], ticket=9),)))
    assert worker.take_counts() is None
    it.saves, it.pages_free = [STORED], True
    assert worker.take_counts() == {"stored_blocks": BLOCKS}
    assert worker.report() == WorkerReport(finished_saves={9: 1})


@pytest.mark.parametrize(("status", "unsaved"), [("NOT_READY", {"s": 3}), ("RESTORE_ONLY", None)])
def test_tries_saves_again_only_where_that_can_help(status: str, unsaved: dict[str, int] | None) -> None:
    it = Scripted()
    worker = it.worker()
    it.fails["save"] = SaveNotSubmittedError("refused", status)
    worker.finish(SAVE)
    report = worker.report()
    assert (report.unsaved if report else None) == unsaved
