from __future__ import annotations

import dataclasses
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from orbitkv import (
    BindingChangedError,
    BlockHashes,
    CacheManagerClient,
    Fence,
    HostTensor,
    InvalidRequestError,
    Lease,
    LeaseEndedError,
    ManagerUnavailableError,
    OrbitKVError,
    QueryMiss,
    QueryReady,
    Registration,
    RestoreItem,
    SaveItem,
    SaveNotSubmittedError,
    _jvm,
)
from orbitkv._memory import CHARGES
from orbitkv.tensors import HostStorage
from support import BOUND, ROOT, Engine, ManagerProcess, eventually, hashes, run_python, state
from test_memory import Movable


@pytest.fixture
def client(shared_manager: ManagerProcess) -> Iterator[CacheManagerClient]:
    with CacheManagerClient(shared_manager.socket) as made:
        yield made


def save(registration: Registration, engine: Engine, batch: BlockHashes, first: int = 0) -> None:
    pages = tuple(range(first, first + len(batch)))
    for seed, page in enumerate(pages):
        engine.fill(page, seed)
    status = registration.save(SaveItem(batch, pages), fence=Fence.DONE).wait_save(BOUND)
    assert status.success, status


def ready(client: CacheManagerClient, registration: Registration, batch: BlockHashes) -> QueryReady:
    found = client.lookup(registration.namespace, batch)
    assert isinstance(found, QueryReady), found
    return found


def test_should_restore_what_was_saved_into_other_pages(client: CacheManagerClient) -> None:
    engine = Engine()
    registration = engine.register(client)
    batch = hashes(6)
    assert client.lookup(registration.namespace, batch) == QueryMiss("NEVER_STORED")
    save(registration, engine, batch)
    engine.clear()

    found = ready(client, registration, BlockHashes([*batch, *hashes(1, "other")]))
    assert found.num_hit_blocks == 6
    handle = registration.restore(RestoreItem(found.lease, (15, 14, 13, 12), skip=2), fence=Fence.DONE)
    assert handle.wait_layer("layer0", BOUND)
    assert handle.wait_layer(2, BOUND)
    status = handle.wait(BOUND)

    assert status.success
    assert handle.pages_free
    assert [engine.holds(page, seed) for seed, page in ((2, 15), (3, 14), (4, 13), (5, 12))] == [True] * 4
    assert not any(any(engine.memory[page * engine.page_bytes :][: engine.page_bytes]) for page in range(12))


def test_should_say_what_became_of_each_block(client: CacheManagerClient) -> None:
    engine = Engine()
    registration = engine.register(client)
    batch = hashes(5)
    save(registration, engine, batch[:3])

    items = [SaveItem(batch[1:], (1, 2, 3, 4), position=1, parent=batch[0])]
    status = registration.save(items, fence=Fence.DONE).wait_save(BOUND)

    assert (status.stored, status.held, status.refused) == (2, 2, 0)
    assert status.outcomes == ("HELD", "HELD", "STORED", "STORED")


@pytest.mark.parametrize("order", ["LBHNC", "LHBNC", "BLHNC", "BHLNC"])
def test_should_share_blocks_between_layouts_of_one_block_format(client: CacheManagerClient, order: str) -> None:
    shape = {"L": 2, "B": 4, "H": 3, "N": 8, "C": 16}
    descriptor = state(2, 2 * 3 * 8 * 16 * 2, "HND")

    def register(name: str) -> tuple[bytearray, list[HostTensor], Registration]:
        stride: dict[str, int] = {}
        reach = 1
        for letter in reversed(name):
            stride[letter] = reach
            reach *= shape[letter]
        memory = bytearray(reach * 2)
        storage = HostStorage(memory)
        tensors = [
            HostTensor(
                storage,
                shape=[shape[x] for x in "BHNC"],
                stride=[stride[x] for x in "BHNC"],
                offset=i * stride["L"],
                element_size=2,
            )
            for i in range(2)
        ]
        named = {str(i): tensor for i, tensor in enumerate(tensors)}
        return memory, tensors, client.register(named, state=descriptor, layout=name, num_blocks=4)

    def at(tensor: HostTensor, b: int, h: int, n: int, c: int) -> int:
        first = (tensor.data_ptr() - tensor.untyped_storage().data_ptr()) // 2
        return 2 * (first + sum(i * s for i, s in zip((b, h, n, c), tensor.stride(), strict=True)))

    source, source_tensors, from_registration = register("LBHNC")
    source[:] = bytes((i * 7 + i // 256) % 256 for i in range(len(source)))
    stored = from_registration.save(SaveItem(hashes(1), (1,)), fence=Fence.DONE).wait_save(BOUND)
    assert stored.success
    from_registration.close()

    target, target_tensors, into = register(order)
    lease = ready(client, into, hashes(1)).lease
    assert into.restore(RestoreItem(lease, (3,)), fence=Fence.DONE).wait(BOUND).success
    for old, new in zip(source_tensors, target_tensors, strict=True):
        for h in range(3):
            for n in range(8):
                for c in range(16):
                    wanted, found = at(old, 1, h, n, c), at(new, 3, h, n, c)
                    assert source[wanted : wanted + 2] == target[found : found + 2]


def test_should_begin_only_behind_its_fence(client: CacheManagerClient) -> None:
    engine = Engine()
    registration = engine.register(client)
    save(registration, engine, hashes(1, "first"))  # what follows takes no time but for its fence
    fence = client.fence()
    handle = registration.save(SaveItem(hashes(1), (3,)), fence=fence)
    assert not handle.wait_save(0.5).done
    assert handle.poll().status == "PENDING"

    engine.fill(3, 42)
    fence.signal()
    assert handle.wait_save(BOUND).success
    engine.clear()

    found = ready(client, registration, hashes(1))
    assert registration.restore(RestoreItem(found.lease, (0,)), fence=Fence.DONE).wait(BOUND).success
    assert engine.holds(0, 42)
    with pytest.raises(InvalidRequestError, match="fence=None, wanted a Fence"):
        registration.save(SaveItem(hashes(1), (3,)), fence=None)  # type: ignore[arg-type]


def test_should_free_the_pages_of_what_is_cancelled(client: CacheManagerClient) -> None:
    registration = Engine().register(client)
    handle = registration.save(SaveItem(hashes(1), (3,)), fence=client.fence())
    activity = client.publish_activity()
    assert (activity.active, activity.retained, activity.overdue, activity.manager_alive) == (1, 0, 0, True)
    assert activity.longest > 0
    handle.cancel()
    status = handle.wait_save(BOUND)
    assert client.publish_activity().active == 0
    assert (status.done, status.success, status.status) == (True, False, "CANCELLED")
    assert handle.pages_free
    assert client.lookup(registration.namespace, hashes(1)).num_hit_blocks == 0  # type: ignore[union-attr]


def test_should_use_a_lease_once(client: CacheManagerClient) -> None:
    engine = Engine()
    registration = engine.register(client)
    save(registration, engine, hashes(2))
    lease = ready(client, registration, hashes(2)).lease
    assert client.release(lease)
    assert not client.release(lease)
    engine.clear()
    with pytest.raises(LeaseEndedError):
        _require(registration.restore(RestoreItem(lease, (0, 1)), fence=Fence.DONE).wait(BOUND).status)
    assert not any(engine.memory)


def test_should_give_a_lease_back_without_waiting(client: CacheManagerClient) -> None:
    engine = Engine()
    registration = engine.register(client)
    save(registration, engine, hashes(2))
    lease = ready(client, registration, hashes(2)).lease
    client.give_back(lease)
    assert not client.release(lease)  # commands are served in their order
    client.give_back(lease)
    client.give_back(dataclasses.replace(lease, epoch=lease.epoch + 1))
    assert ready(client, registration, hashes(2)).num_hit_blocks == 2


def test_should_ask_no_more_for_layers_that_have_arrived(
    client: CacheManagerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine()
    registration = engine.register(client)
    save(registration, engine, hashes(2))
    lease = ready(client, registration, hashes(2)).lease
    fence = client.fence()
    handle = registration.restore(RestoreItem(lease, (2, 3)), fence=fence)
    assert not handle.wait_layer(0, 0)
    fence.signal()
    assert handle.wait(BOUND).success
    last = len(registration.layers) - 1
    assert handle.wait_layer(0, BOUND)
    monkeypatch.setattr(_jvm, "call", None)
    assert handle.wait_layer(last, BOUND)
    monkeypatch.undo()
    assert not handle.wait_layer(last + 1, 0)


def _require(status: str) -> None:
    if status == "LEASE_ENDED":
        raise LeaseEndedError("lease ended", status)


def test_should_end_leases_of_earlier_revisions(client: CacheManagerClient) -> None:
    engine = Engine()
    registration = engine.register(client)
    save(registration, engine, hashes(2))
    old = client.lookup(registration.namespace, hashes(2), query_id=9, revision=1)
    new = client.lookup(registration.namespace, hashes(2), query_id=9, revision=2)
    assert isinstance(old, QueryReady)
    assert isinstance(new, QueryReady)
    assert not client.release(old.lease)
    with pytest.raises(OrbitKVError) as superseded:
        client.lookup(registration.namespace, hashes(2), query_id=9, revision=1)
    assert superseded.value.status == "SUPERSEDED"
    client.cancel_query(9, 2)
    assert not client.release(new.lease)


def test_should_lease_what_every_rank_has(client: CacheManagerClient) -> None:
    engine = Engine()
    ranks = []
    for rank, blocks in ((0, 4), (1, 2)):
        registration = engine.register(client, tp_size=2, tp_rank=rank)
        save(registration, engine, hashes(blocks))
        ranks.append(registration.namespace)
        registration.close()
    found = client.lookup(ranks, hashes(4))
    assert isinstance(found, QueryReady)
    assert found.num_hit_blocks == 2
    assert [(lease.namespace, lease.blocks) for lease in found.leases] == [(0, 2), (1, 2)]


def test_should_refuse_tensors_that_changed(client: CacheManagerClient) -> None:
    tensor = Movable(bytearray(4 * 4096), shape=(4, 4096), element_size=1)
    registration = client.register({"a": tensor}, state=state(1, 4096), layout="layer-page", num_blocks=4)
    tensor.swap(bytearray(4 * 4096))
    with pytest.raises(BindingChangedError, match="pointer="):
        registration.save(SaveItem(hashes(1), (0,)), fence=Fence.DONE)
    with pytest.raises(BindingChangedError):
        registration.restore(RestoreItem(Lease(1, 1, 0, 0, 1), (0,)), fence=Fence.DONE)


def test_should_charge_a_registration_until_it_is_closed(client: CacheManagerClient) -> None:
    engine = Engine()
    before = CHARGES.charged_bytes
    registration = engine.register(client)
    assert registration.charged_bytes == len(engine.memory)
    assert CHARGES.charged_bytes == before + len(engine.memory)
    registration.close()
    registration.close()
    assert CHARGES.charged_bytes == before
    with pytest.raises(OrbitKVError, match="registration is closed"):
        registration.save(SaveItem(hashes(1), (0,)), fence=Fence.DONE)


def test_should_name_what_is_wrong_with_a_registration(client: CacheManagerClient) -> None:
    engine = Engine()
    before = CHARGES.charged_bytes
    with pytest.raises(InvalidRequestError, match="have layers=3, block bytes=12288; the state says layers=2"):
        client.register(engine.tensors, state=state(2, 12288), layout="layer-page", num_blocks=engine.pages)
    with pytest.raises(InvalidRequestError, match='layout="HND", but the tensors are "layer-page"'):
        client.register(engine.tensors, state=state(3, 12288, "HND"), layout="layer-page", num_blocks=engine.pages)
    with pytest.raises(InvalidRequestError, match='layout="LBXYC" is not known'):
        client.register(engine.tensors, state=engine.state(), layout="LBXYC", num_blocks=engine.pages)
    assert CHARGES.charged_bytes == before


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (SaveItem(hashes(2), (0,)), "hashes=2, pages=1"),
        (SaveItem(hashes(1), (16,)), r"page=16, allowed=0\.\.15"),
        (SaveItem(hashes(1), (-1,)), "page=-1"),
        (SaveItem(hashes(1), (1 << 70,)), "numbers="),
        (SaveItem(hashes(1), (0,), position=1), "position=1 with parent=false"),
        (SaveItem(hashes(1), (0,), position=1, parent=bytes(16)), "bytes of the parent=16"),
        (SaveItem(BlockHashes([bytes(16)]), (0,)), "hash bytes=16, registered=32"),
        (SaveItem(hashes(1), (0,), group=1), "group=1 is not registered"),
    ],
)
def test_should_name_what_is_wrong_with_a_save(client: CacheManagerClient, item: SaveItem, message: str) -> None:
    registration = Engine().register(client)
    with pytest.raises(InvalidRequestError, match=message):
        registration.save(item, fence=Fence.DONE)


def test_should_refuse_saves_of_a_restore_only_engine(client: CacheManagerClient) -> None:
    registration = Engine().register(client, restore_only=True)
    with pytest.raises(SaveNotSubmittedError) as refused:
        registration.save(SaveItem(hashes(1), (0,)), fence=Fence.DONE)
    assert refused.value.status == "RESTORE_ONLY"


def test_should_count_refused_blocks_of_a_full_pool(manager: ManagerProcess) -> None:
    with CacheManagerClient(manager.socket) as client:
        engine = Engine(layers=1, pages=16, page_bytes=2 << 20)
        registration = engine.register(client)
        leases = []
        for i in range(5):
            save(registration, engine, hashes(4, f"held {i}"))
            leases.append(ready(client, registration, hashes(4, f"held {i}")).lease)

        handle = registration.save(SaveItem(hashes(16, "more"), tuple(range(16))), fence=Fence.DONE)
        status = handle.wait_save(BOUND)

        assert (status.success, status.status) == (False, "POOL_FULL")
        assert status.stored + status.refused == 16
        assert status.outcomes.count("REFUSED") == status.refused > 0
        assert all(client.release(lease) for lease in leases)


def test_should_hold_the_instance_for_this_process(shared_manager: ManagerProcess) -> None:
    with CacheManagerClient(shared_manager.socket, instance_id="one") as client:
        Engine().register(client)
        result = run_python(
            "import sys\nfrom orbitkv import *\nfrom support import *\n"
            "client = CacheManagerClient(sys.argv[1], instance_id='one')\n"
            "try:\n    Engine().register(client)\nexcept OrbitKVError as error:\n    print(error.status, error)\n",
            str(shared_manager.socket),
        )
    assert "INSTANCE_HELD" in result.stdout, result
    assert "pid" in result.stdout


RESTORE_IN_ANOTHER_PROCESS = """
import sys
from orbitkv import *
from support import *
client = CacheManagerClient(sys.argv[1])
engine = Engine()
registration = engine.register(client)
found = client.lookup(registration.namespace, hashes(5))
assert found.num_hit_blocks == 5, found
pages = (9, 8, 7, 6, 5)
assert registration.restore(RestoreItem(found.lease, pages), fence=Fence.DONE).wait(BOUND).success
assert all(engine.holds(page, seed) for seed, page in enumerate(pages))
print("restored")
"""


def test_should_restore_in_another_process_and_after_the_end_of_the_first(manager: ManagerProcess) -> None:
    first = run_python(
        "import sys\nfrom orbitkv import *\nfrom support import *\nfrom test_client import save\n"
        "client = CacheManagerClient(sys.argv[1])\nengine = Engine()\n"
        "save(engine.register(client), engine, hashes(5))\nprint('saved')\n",
        str(manager.socket),
    )
    assert (first.returncode, first.stdout) == (0, "saved\n"), first
    for _ in range(2):
        result = run_python(RESTORE_IN_ANOTHER_PROCESS, str(manager.socket))
        assert (result.returncode, result.stdout) == (0, "restored\n"), result


def test_should_let_other_threads_run_while_it_waits(client: CacheManagerClient) -> None:
    registration = Engine().register(client)
    handle = registration.save(SaveItem(hashes(1), (3,)), fence=client.fence())
    waiting = threading.Event()
    ended: list[float] = []

    def wait() -> None:
        waiting.set()
        assert not handle.wait_save(2).done
        ended.append(time.monotonic())

    waiter = threading.Thread(target=wait)
    waiter.start()
    assert waiting.wait(BOUND)
    turns = 0
    while not ended:
        turns += 1
    waiter.join()
    assert turns > 100_000  # the waiter had no GIL for nearly all of its two seconds
    handle.cancel()


def test_should_serve_many_threads(client: CacheManagerClient) -> None:
    engine = Engine(pages=64)
    registration = engine.register(client)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(20):
                batch = hashes(4, f"thread {number} turn {turn}")
                pages = tuple(range(number * 8, number * 8 + 4))
                for page in pages:
                    engine.fill(page, page * 1000 + turn)
                assert registration.save(SaveItem(batch, pages), fence=Fence.DONE).wait_save(BOUND).success
                lease = ready(client, registration, batch).lease
                targets = tuple(page + 4 for page in pages)
                assert registration.restore(RestoreItem(lease, targets), fence=Fence.DONE).wait(BOUND).success
                assert all(engine.holds(page + 4, page * 1000 + turn) for page in pages)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * BOUND)
    assert not failures


def test_should_report_health_and_status(client: CacheManagerClient) -> None:
    health = client.health()
    assert health.ready
    assert health.percent == 100
    assert client.status()["pool_capacity_bytes"] == 64 << 20


def test_should_fail_typed_and_within_its_bound_when_the_manager_is_killed(manager: ManagerProcess) -> None:
    with CacheManagerClient(manager.socket, timeout_ms=2000) as client:
        engine = Engine()
        registration = engine.register(client)
        save(registration, engine, hashes(2))
        found = ready(client, registration, hashes(2))
        handle = registration.save(SaveItem(hashes(1, "late"), (3,)), fence=client.fence())
        manager.stop(signal.SIGKILL)
        began = time.monotonic()

        status = handle.wait_save(BOUND)
        assert status.done
        assert not status.success
        assert handle.pages_free
        with pytest.raises(OrbitKVError):
            registration.restore(RestoreItem(found.lease, (0, 1)), fence=Fence.DONE)
        with pytest.raises(SaveNotSubmittedError):
            registration.save(SaveItem(hashes(1), (0,)), fence=Fence.DONE)
        assert time.monotonic() - began < 10


def test_should_begin_without_a_manager_and_find_it_again(manager: ManagerProcess) -> None:
    manager.stop()
    with CacheManagerClient(manager.socket, timeout_ms=2000) as client:
        engine = Engine()
        registration = engine.register(client)
        assert not client.is_connected
        assert not registration.is_active
        assert client.lookup(registration.namespace, hashes(1)) == QueryMiss("MANAGER_UNAVAILABLE")
        assert not client.release(Lease(1, 1, 0, 0, 1))
        client.cancel_query(1, 1)
        with pytest.raises(SaveNotSubmittedError, match="no Manager"):
            registration.save(SaveItem(hashes(1), (0,)), fence=Fence.DONE)
        with pytest.raises(ManagerUnavailableError, match="no Manager"):
            registration.restore(RestoreItem(Lease(1, 1, 0, 0, 1), (0,)), fence=Fence.DONE)
        with pytest.raises(ManagerUnavailableError, match="no Manager"):
            client.health()

        for turn in range(2):
            manager.start()
            eventually(lambda: registration.is_active, "the registration with the Manager")
            assert client.connection().reconnects == turn + 1
            assert client.lookup(registration.namespace, hashes(3)) == QueryMiss("NEVER_STORED")
            save(registration, engine, hashes(3))
            lease = ready(client, registration, hashes(3)).lease
            manager.stop(signal.SIGKILL)
            eventually(lambda: not client.is_connected, "the loss of the Manager")
            with pytest.raises(ManagerUnavailableError):
                registration.restore(RestoreItem(lease, (0, 1, 2)), fence=Fence.DONE)
        manager.start()
        eventually(lambda: registration.is_active, "the registration with the Manager")
        with pytest.raises(LeaseEndedError):
            registration.restore(RestoreItem(lease, (0, 1, 2)), fence=Fence.DONE)


def test_should_refuse_calls_after_close(shared_manager: ManagerProcess) -> None:
    client = CacheManagerClient(shared_manager.socket)
    client.close()
    client.close()
    assert not client.is_connected
    with pytest.raises(OrbitKVError, match="client is closed"):
        client.lookup(bytes(32), hashes(1))


def test_should_run_the_example_of_the_documentation(shared_manager: ManagerProcess) -> None:
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    example = page.split("```python\n")[1].split("```")[0]
    result = run_python(example, ORBITKV_SOCKET=str(shared_manager.socket))
    assert result.returncode == 0, result
    assert result.stdout.startswith("RestoreStatus(done=True, success=True"), result


def test_should_refuse_namespaces_of_another_length(client: CacheManagerClient) -> None:
    with pytest.raises(InvalidRequestError, match=r"namespace bytes=\[31\], wanted=32 each"):
        client.lookup(bytes(31), hashes(1))
