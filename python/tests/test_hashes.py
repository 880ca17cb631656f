from __future__ import annotations

import pickle

import pytest

from orbitkv import BlockHashes, InvalidRequestError
from support import hashes


def test_should_share_storage_of_slices() -> None:
    batch = hashes(8)
    part = batch[2:5]
    assert len(part) == 3
    assert list(part) == [batch[2], batch[3], batch[4]]
    assert part.packed.obj is batch.packed.obj
    assert batch[-1] == batch[7]
    assert len(batch[5:2]) == 0


def test_should_compare_by_value() -> None:
    assert hashes(8) == hashes(8)
    assert hash(hashes(8)) == hash(hashes(8))
    assert hashes(8)[:3] == hashes(3)
    assert hashes(8) != hashes(8, "other")
    assert BlockHashes([bytes(32)]) != BlockHashes([bytes(16), bytes(16)])
    assert pickle.loads(pickle.dumps(hashes(8)[2:5])) == hashes(8)[2:5]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "hashes=0"),
        ([bytes(15)], "hash bytes=15, allowed=16..32"),
        ([bytes(33)], "hash bytes=33, allowed=16..32"),
        ([bytes(16), bytes(17), bytes(15)], "bytes of hash 1=17, the first has=16"),
    ],
)
def test_should_name_the_hash_that_breaks_the_rule(values: list[bytes], message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        BlockHashes(values)


def test_should_refuse_steps_and_positions_beyond_the_end() -> None:
    with pytest.raises(InvalidRequestError, match="slice step=2"):
        hashes(4)[::2]
    with pytest.raises(IndexError):
        hashes(4)[4]
