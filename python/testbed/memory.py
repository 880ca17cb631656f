"""Private memory that the client adds to an engine's process: one number, KiB, on standard output.

A small process does what a worker and a scheduler do: it connects twice, registers pages, and saves, looks up and
restores them many times. Private memory (`RssAnon` of proc(5)) is read before the first client exists and at the end;
the pages are touched before.

Usage: memory.py SOCKET
"""

from __future__ import annotations

import gc
import hashlib
import sys
from pathlib import Path

import numpy as np

from orbitkv import (
    BlockHashes,
    CacheManagerClient,
    Fence,
    GroupState,
    HostTensor,
    QueryReady,
    RestoreItem,
    SaveItem,
    StateDescriptor,
)

PAGES, PAGE_BYTES, LAYERS, ROUNDS, BLOCKS = 64, 24 * 1024, 30, 200, 16


def private_kib() -> int:
    """Private memory of this process, KiB."""
    gc.collect()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["RssAnon"].split()[0])


def main() -> None:
    """Measures."""
    memory = np.ones((LAYERS, PAGES, PAGE_BYTES), dtype=np.int8)
    state = StateDescriptor(
        model="memory",
        compute_dtype="int8",
        kv_dtype="int8",
        layout="layer-page",
        block_tokens=32,
        groups=(GroupState(layers=LAYERS, block_bytes=LAYERS * PAGE_BYTES),),
        hash_scheme="sha256",
        engine="memory",
    )
    before = private_kib()
    with (
        CacheManagerClient(sys.argv[1], instance_id="memory") as scheduler,
        CacheManagerClient(sys.argv[1], instance_id="memory") as worker,
    ):
        tensors = {f"layers.{i}": HostTensor(memory[i]) for i in range(LAYERS)}
        with worker.register(tensors, state=state, layout="layer-page", num_blocks=PAGES) as registration:
            for number in range(ROUNDS):
                hashes = BlockHashes([hashlib.sha256(f"{number} {i}".encode()).digest() for i in range(BLOCKS)])
                pages = tuple(range(BLOCKS))
                assert registration.save(SaveItem(hashes, pages), fence=Fence.DONE).wait_save(5).success
                found = scheduler.lookup(registration.namespace, hashes)
                assert isinstance(found, QueryReady)
                assert registration.restore(RestoreItem(found.lease, pages), fence=Fence.DONE).wait(5).success
            after = private_kib()
    print(after - before)


if __name__ == "__main__":
    main()
