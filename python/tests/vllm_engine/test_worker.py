"""A worker's half with a real Manager: what it reports of blocks that are damaged in the pool."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from engines import REPOSITORY, Manager

from orbitkv import BlockHashes, CacheManagerClient, GroupState, QueryReady, StateDescriptor
from orbitkv.vllm.messages import Load, Save, StepPlan
from orbitkv.vllm.options import Options
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
        worker.close()
