from __future__ import annotations

import dataclasses

import pytest

from orbitkv import CacheManagerClient, GroupState, InvalidRequestError, LimitError, StateDescriptor
from support import state

BASE = state(2, 8192)
OTHER: dict[str, object] = {
    "layout": "HND",
    "block_tokens": 32,
    "groups": (GroupState(layers=2, block_bytes=4096),),
    "tp_size": 2,
    "tp_rank": 1,
    "pp_size": 2,
    "pp_rank": 1,
    "dcp_size": 2,
    "dcp_rank": 1,
    "replicated": True,
    "hash_bytes": 16,
}


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(StateDescriptor)])
def test_should_give_each_field_a_namespace_of_its_own(field: str) -> None:
    changes = {field: OTHER.get(field, "other")}
    if field.endswith("_rank"):
        changes[field.replace("rank", "size")] = 2
        same = BASE.replace(**{field.replace("rank", "size"): 2})
    else:
        same = BASE
    assert CacheManagerClient.namespace(same.replace()) == CacheManagerClient.namespace(same)
    assert CacheManagerClient.namespace(same.replace(**changes)) != CacheManagerClient.namespace(same)


@pytest.mark.parametrize("text", ['a"b', "a\\b", "a\nb\tc\0d", "é", "😀", "'", 'x" layout: "NHD', "}\x1f\x7f"])
def test_should_pass_any_text_as_it_is(text: str) -> None:
    digest = CacheManagerClient.namespace(BASE.replace(model=text))
    assert digest != CacheManagerClient.namespace(BASE.replace(model=text + " "))
    assert len(digest) == 32


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layout": "XYZ"}, 'layout="XYZ", allowed='),
        ({"model": ""}, "model is empty"),
        ({"tp_rank": 1}, "tp_rank=1"),
        ({"hash_bytes": 64}, "hash_bytes=64"),
        ({"groups": ()}, "groups=0"),
        ({"groups": (GroupState(kind="prefix", window_tokens=5, layers=1, block_bytes=1),)}, "window_tokens=5"),
    ],
)
def test_should_name_the_field_that_breaks_a_rule(changes: dict[str, object], message: str) -> None:
    with pytest.raises((InvalidRequestError, LimitError), match=message):
        CacheManagerClient.namespace(BASE.replace(**changes))
