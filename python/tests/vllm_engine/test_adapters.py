"""Requests with LoRA adapters in a real engine, beside requests of the model alone.

In the order of this file: `plain` has no connector, `first` computes, `second` is the engine after a restart, and under
it the bytes of an adapter change in place; `third` is the engine after a restart with these bytes. All requests have
the same tokens, so only adapters tell their blocks apart.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engines import MODEL, Answer, Engine, Manager, assert_settled, same

BLOCK = 32
STORY: dict[str, Any] = {"story": 1, "length": 300, "max_tokens": 8}
FULL = 300 // BLOCK  # 9 blocks; 12 tokens are left to compute
NAMES = ("", "one", "two")  # the model alone, and adapters
RANK = 8
ADAPTED: dict[str, Any] = {
    "enable_lora": True,
    "max_lora_rank": RANK,
    "max_loras": 2,
    "max_model_len": 512,
    "num_gpu_blocks_override": 40,
}


@dataclasses.dataclass(frozen=True)
class Plain:
    """Answers of an engine without connector; they may differ where numbers depend on how many tokens a step computes.

    Attributes:
        computed: All blocks computed.
        hit: All blocks in the engine's own cache.
    """

    computed: Answer
    hit: Answer


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder with a short path, for sockets; the adapters are in it, too."""
    path = Path(tempfile.mkdtemp(prefix="orbitkv-"))
    for seed, name in enumerate(("one", "two", "changed")):
        write_adapter(path / name, seed)
    yield path
    shutil.rmtree(path)


def write_adapter(folder: Path, seed: int) -> None:
    """Writes a random adapter as PEFT does, large enough to change the answers."""
    import torch
    from safetensors.torch import save_file

    folder.mkdir()
    model = json.loads((MODEL / "config.json").read_text())
    generator = torch.Generator().manual_seed(seed)
    heads = {"q_proj": model["num_attention_heads"], "v_proj": model["num_key_value_heads"]}
    tensors = {}
    for layer in range(model["num_hidden_layers"]):
        for module, count in heads.items():
            name = f"base_model.model.model.layers.{layer}.self_attn.{module}"
            down = torch.randn(RANK, model["hidden_size"], generator=generator)
            up = torch.randn(count * model["head_dim"], RANK, generator=generator)
            tensors[f"{name}.lora_A.weight"] = (0.05 * down).to(torch.bfloat16)
            tensors[f"{name}.lora_B.weight"] = (0.05 * up).to(torch.bfloat16)
    save_file(tensors, folder / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "r": RANK, "lora_alpha": 2 * RANK, "bias": "none", "target_modules": list(heads)}
    (folder / "adapter_config.json").write_text(json.dumps(config))


def change_in_place(folder: Path) -> None:
    """Gives adapter `one` the bytes of `changed`; its path, name, size and time of modification stay."""
    weights = folder / "one" / "adapter_model.safetensors"
    before = weights.stat()
    weights.write_bytes((folder / "changed" / weights.name).read_bytes())
    os.utime(weights, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert weights.stat().st_size == before.st_size


def request(folder: Path, name: str) -> dict[str, Any]:
    """The request with an adapter; with an empty name of the model alone."""
    ids = ("", "one", "two", "changed")
    return {**STORY, "adapter": {"name": name, "id": ids.index(name), "path": str(folder / name)}} if name else STORY


@pytest.fixture(scope="module")
def plain(folder: Path) -> dict[str, Plain]:
    """Runs the engine without connector."""
    engine = Engine(**ADAPTED)
    try:
        answers = {}
        for name in (*NAMES, "changed"):
            computed, hit = engine.ask(**request(folder, name)), engine.ask(**request(folder, name))
            assert (computed.cached, hit.cached) == (0, FULL * BLOCK)
            answers[name] = Plain(computed, hit)
        engine.close()
        return answers
    finally:
        engine.kill()


@pytest.fixture(scope="module")
def manager(folder: Path) -> Iterator[Manager]:
    """A Manager for the tests of the module."""
    made = Manager(folder)
    yield made
    made.close()


@pytest.fixture(scope="module")
def audit(folder: Path) -> Path:
    """Where engines keep digests of what they saved."""
    path = folder / "audit"
    path.touch()
    return path


@pytest.fixture(scope="module")
def second(manager: Manager, audit: Path) -> Iterator[Engine]:
    """The engine after the restart."""
    engine = Engine(manager, audit=audit, **ADAPTED)
    yield engine
    engine.kill()


def moved(engine: Engine) -> tuple[int, int, int]:
    """Blocks that an engine has restored, stored, and found stored already."""
    counters = engine.facts()["counters"]
    assert counters["failed_blocks"] == counters["refused_blocks"] == 0
    return counters["restored_blocks"], counters["stored_blocks"], counters["held_blocks"]


def test_each_adapter_has_answers_of_its_own(plain: dict[str, Plain]) -> None:
    """So that blocks of another adapter would be noticed."""
    assert len({each.computed.logprobs[0] for each in plain.values()}) == len(plain)
    assert len({each.hit.logprobs[0] for each in plain.values()}) == len(plain)


def test_adapters_and_the_model_alone_share_nothing(
    plain: dict[str, Plain], folder: Path, manager: Manager, audit: Path
) -> None:
    first = Engine(manager, audit=audit, **ADAPTED)
    try:
        for number, name in enumerate(NAMES, start=1):
            answer = first.ask(**request(folder, name))
            assert answer.cached == 0
            assert same(answer, plain[name].computed)
            assert moved(first) == (0, number * FULL, 0)
        first.close()
    finally:
        first.kill()


@pytest.mark.parametrize("name", NAMES)
def test_restores_after_the_engine_was_restarted(
    name: str, plain: dict[str, Plain], folder: Path, second: Engine
) -> None:
    before = moved(second)
    answer = second.ask(**request(folder, name))
    assert answer.cached == FULL * BLOCK
    assert same(answer, plain[name].hit)
    assert moved(second) == (before[0] + FULL, 0, 0)
    assert second.facts()["audit"] == {"compared": before[0] + FULL, "wrong": 0}


def test_restores_two_adapters_in_one_step(folder: Path, second: Engine, manager: Manager) -> None:
    second.forget()
    restored, stored, held = moved(second)
    answers = second.generate(*(request(folder, name) for name in NAMES))
    assert [answer.cached for answer in answers] == [FULL * BLOCK] * len(NAMES)
    assert moved(second) == (restored + len(NAMES) * FULL, stored, held)
    assert second.facts()["audit"]["wrong"] == 0
    assert_settled(manager)


def test_adapter_that_changes_under_the_engine_is_computed(
    plain: dict[str, Plain], folder: Path, second: Engine
) -> None:
    """The engine has the earlier bytes still, and nobody could say so by the files."""
    change_in_place(folder)
    second.forget()
    restored, stored, held = moved(second)
    answer = second.ask(**request(folder, "one"))
    assert answer.cached == 0
    assert same(answer, plain["one"].computed)
    assert moved(second) == (restored, stored, held)
    assert 'the adapter "one" use no cache' in second.words()
    assert second.ask(**request(folder, "two")).cached == FULL * BLOCK
    second.close()


def test_restores_nothing_of_other_bytes_under_the_same_name_and_path(
    plain: dict[str, Plain], folder: Path, second: Engine, manager: Manager, audit: Path
) -> None:
    assert second.process.poll() is not None
    third = Engine(manager, audit=audit, **ADAPTED)
    try:
        answer = third.ask(**request(folder, "one"))
        assert answer.cached == 0
        assert same(answer, plain["changed"].computed)
        assert moved(third) == (0, FULL, 0)
        third.forget()
        answer = third.ask(**request(folder, "one"))
        assert answer.cached == FULL * BLOCK
        assert same(answer, plain["changed"].hit)
        assert third.facts()["audit"] == {"compared": FULL, "wrong": 0}
        third.close()
    finally:
        third.kill()
    assert_settled(manager)
