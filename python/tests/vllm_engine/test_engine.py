"""A real engine with a real model and a real Manager, in processes of their own.

An engine's start costs much more than a request, so a few engines serve many tests, in the order of this file: `plain`
has no connector, `first` computes, `second` is the engine after a restart and survives what happens to the Manager
until it is killed itself, `third` finds what that left, and so on. Equal texts would hide errors: log-probabilities
are compared.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engines import MODEL, Answer, Engine, Manager, assert_settled, same

BLOCK = 32
# Fewer blocks than the concurrent requests need: requests wait and are preempted.
SMALL_CACHE: dict[str, Any] = {"num_gpu_blocks_override": 40, "max_model_len": 1024}

STORY: dict[str, Any] = {"story": 1, "length": 600, "max_tokens": 24}
FULL = 600 // BLOCK  # 18 blocks; 24 tokens are left to compute
HEAD: dict[str, Any] = {"story": 0, "length": 400, "max_tokens": 1}
FORK: dict[str, Any] = {"story": 2, "head": 400, "length": 500, "max_tokens": 12}
SPOILED: dict[str, Any] = {"story": 3, "head": 400, "length": 600, "max_tokens": 12}  # its head loses a block
CROWD: list[dict[str, Any]] = [
    {"story": number, "head": 130, "length": 330, "max_tokens": 40} for number in range(10, 16)
]

BACK_BOUND_S = 30.0


@dataclasses.dataclass(frozen=True)
class Plain:
    """Answers of an engine without connector.

    Attributes:
        story: Of `STORY`.
        fork: Of `FORK`.
        spoiled: Of `SPOILED`.
        crowd: Of `CROWD`, each alone.
        tolerance: Largest difference of log-probabilities between requests that run alone and together.
    """

    story: Answer
    fork: Answer
    spoiled: Answer
    crowd: list[Answer]
    tolerance: float


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder with a short path, for sockets."""
    path = Path(tempfile.mkdtemp(prefix="orbitkv-"))
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def manager(folder: Path) -> Iterator[Manager]:
    """A Manager for the tests of a module."""
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
def plain() -> Plain:
    """Runs the engine without connector."""
    engine = Engine(**SMALL_CACHE)
    try:
        story, fork, spoiled = (engine.ask(**request) for request in (STORY, FORK, SPOILED))
        alone = [engine.ask(**each) for each in CROWD]
        engine.forget()
        together = engine.generate(*CROWD)
        differences = [difference(*pair) for pair in zip(alone, together, strict=True)]
        return Plain(story, fork, spoiled, alone, 2 * max(differences) + 1e-3)
    finally:
        engine.close()


def difference(one: Answer, other: Answer) -> float:
    """Largest difference of log-probabilities up to the first token that differs."""
    largest = 0.0
    pairs = zip(one.tokens, other.tokens, one.logprobs, other.logprobs, strict=True)
    for token, other_token, logprob, other_logprob in pairs:
        largest = max(largest, abs(logprob - other_logprob))
        if token != other_token:
            break
    return largest


@pytest.fixture(scope="module")
def first(manager: Manager, audit: Path) -> Iterator[Engine]:
    """The engine that computes."""
    engine = Engine(manager, audit=audit, **SMALL_CACHE)
    yield engine
    engine.kill()


@pytest.fixture(scope="module")
def second(manager: Manager, audit: Path) -> Iterator[Engine]:
    """The engine after the restart; it checks the sum of each block."""
    options = {"orbitkv.verify": True, "orbitkv.timeout_ms": 3000}
    engine = Engine(manager, audit=audit, options=options, disable_log_stats=False, **SMALL_CACHE)
    yield engine
    engine.kill()


@pytest.fixture(scope="module")
def third(manager: Manager, audit: Path) -> Iterator[Engine]:
    """The engine after one was killed."""
    engine = Engine(manager, audit=audit, **SMALL_CACHE)
    yield engine
    engine.kill()


# The first engine


def test_first_run_computes_like_an_engine_without_connector(plain: Plain, first: Engine) -> None:
    assert first.ask(**STORY) == plain.story


def test_restores_after_its_own_cache_was_emptied(plain: Plain, first: Engine, manager: Manager) -> None:
    first.forget()
    answer = first.ask(**STORY)
    assert answer.cached == FULL * BLOCK
    assert same(answer, plain.story)
    first.ask(**HEAD)
    assert_settled(manager)


def test_ends_in_order_and_leaves_no_session(first: Engine, manager: Manager) -> None:
    first.close()
    status = manager.status()
    assert (status["sessions"], status["sessions_retained"], status["registrations"]) == (0, 0, 0)


# The engine after the restart


def test_restores_after_the_engine_was_restarted(plain: Plain, second: Engine) -> None:
    answer = second.ask(**STORY)
    assert answer.cached == FULL * BLOCK
    assert same(answer, plain.story)
    assert second.facts()["audit"] == {"compared": FULL, "wrong": 0}


def test_restores_the_part_of_a_prompt_that_is_known(plain: Plain, second: Engine) -> None:
    answer = second.ask(**FORK)
    assert answer.cached == 400 // BLOCK * BLOCK
    assert same(answer, plain.fork)


def test_restores_beside_other_steps(plain: Plain, second: Engine) -> None:
    second.forget()
    second.call(do="set", load="async")
    answer = second.ask(**STORY)
    assert answer.cached == FULL * BLOCK
    assert same(answer, plain.story)
    second.call(do="set", load="auto")


def test_shares_nothing_between_salts(second: Engine) -> None:
    assert second.ask(**HEAD, salt="a").cached == 0
    second.forget()
    assert second.ask(**HEAD, salt="b").cached == 0
    second.forget()
    assert second.ask(**HEAD, salt="a").cached == 384


def test_computes_whole_prompts_whose_log_probabilities_are_asked_for(second: Engine) -> None:
    second.forget()
    assert second.ask(**HEAD, prompt_logprobs=1).cached == 0


@pytest.mark.parametrize("way", ["sync", "async"])
def test_serves_more_requests_than_fit(plain: Plain, second: Engine, manager: Manager, way: str) -> None:
    second.forget()
    second.call(do="set", load=way, save=way)
    before = second.facts()
    for _ in range(2):
        answers = second.generate(*CROWD)
        assert max(difference(*pair) for pair in zip(answers, plain.crowd, strict=True)) <= plain.tolerance
        second.forget()
    facts = second.facts()
    assert facts["audit"]["wrong"] == 0
    assert facts["audit"]["compared"] > before["audit"]["compared"]
    assert facts["counters"]["failed_blocks"] == 0
    assert_settled(manager)


def test_survives_requests_that_are_cancelled(plain: Plain, second: Engine, manager: Manager) -> None:
    second.forget()
    second.call(do="set", load="async", save="async")
    answers = second.play(
        {"add": "queued", **CROWD[0]},
        {"abort": "queued"},
        {"add": "loading", **CROWD[1]},
        {"steps": 1},
        {"abort": "loading"},
        {"add": "new", "story": 20, "length": 500, "max_tokens": 8},
        {"add": "kept", **CROWD[2]},
        {"steps": 2},
        {"abort": "new"},
    )
    assert difference(answers["kept"], plain.crowd[2]) <= plain.tolerance
    second.forget()
    second.call(do="set", load="auto", save="auto")
    assert second.facts()["audit"]["wrong"] == 0
    assert_settled(manager)


# A damaged pool and a lost Manager


def sample(audit: Path, block: int) -> bytes:
    """Some bytes of a block; blocks are counted as they were saved, those of `STORY` before those of `HEAD`."""
    return bytes.fromhex(json.loads(audit.read_text().splitlines()[block])["sample"])


@pytest.mark.parametrize(("load", "block"), [("auto", 7), ("async", 5)])
def test_computes_a_block_whose_bytes_changed_in_the_pool(
    plain: Plain, second: Engine, manager: Manager, audit: Path, load: str, block: int
) -> None:
    """Also when nothing else keeps the engine stepping."""
    second.forget()
    failed = second.facts()["counters"]["failed_blocks"]
    manager.corrupt(sample(audit, block))
    second.call(do="set", load=load)
    assert same(second.ask(**STORY), plain.story)
    second.call(do="set", load="auto")
    facts = second.facts()
    assert facts["counters"]["failed_blocks"] > failed
    assert facts["audit"]["wrong"] == 0
    assert "blocks were not restored" in second.words()
    second.forget()
    assert same(second.ask(**STORY), plain.story)
    assert second.facts()["counters"]["failed_blocks"] == facts["counters"]["failed_blocks"]  # it was stored again


def test_saves_nothing_that_was_computed_from_a_damaged_block(
    plain: Plain, second: Engine, manager: Manager, audit: Path
) -> None:
    second.forget()
    manager.corrupt(sample(audit, FULL + 5))
    before = second.facts()["counters"]
    assert same(second.ask(**SPOILED), plain.spoiled)
    after = second.facts()["counters"]
    assert after["unsaved_steps"] == before["unsaved_steps"] + 1
    # Blocks stored from the first pass would make those of the second ones that are held already.
    new = (SPOILED["length"] + SPOILED["max_tokens"]) // BLOCK - SPOILED["head"] // BLOCK + 1  # with the damaged one
    assert after["stored_blocks"] - before["stored_blocks"] == new


def test_ends_the_request_where_the_policy_says_so(second: Engine, manager: Manager, audit: Path) -> None:
    second.forget()
    manager.corrupt(sample(audit, 3))
    second.call(do="set", policy="fail")
    assert second.ask(**STORY).finish == "error"
    second.call(do="set", policy="recompute")


def test_tells_what_it_did_among_the_metrics_of_the_engine(second: Engine) -> None:
    facts = second.facts()
    counters = facts["counters"]
    assert facts["metrics"] == {
        "vllm:orbitkv_restored_blocks": counters["restored_blocks"],
        "vllm:orbitkv_stored_blocks": counters["stored_blocks"],
        "vllm:orbitkv_load_failure": counters["failed_loads"],
        "vllm:orbitkv_save_failure": counters["failed_saves"],
    }
    assert counters["failed_loads"] >= 4
    assert counters["stored_blocks"] > 0


def await_return(engine: Engine) -> None:
    """Waits until both halves of the engine have found the Manager again by themselves."""
    deadline = time.monotonic() + BACK_BOUND_S
    while 0 in engine.facts()["epochs"]:
        assert time.monotonic() < deadline, "the engine did not find the new Manager"
        time.sleep(0.1)


def test_computes_when_the_manager_dies_during_a_load(plain: Plain, second: Engine, manager: Manager) -> None:
    second.forget()
    second.ask(**FORK)
    second.forget()
    second.call(do="arm", point="load", pid=manager.pid)
    assert same(second.ask(**FORK), plain.fork)
    manager.kill()
    second.forget()
    assert same(second.ask(**FORK), plain.fork)  # nobody is there


def test_comes_back_by_itself(plain: Plain, second: Engine, manager: Manager) -> None:
    manager.start()
    await_return(second)
    assert same(second.ask(**FORK), plain.fork)  # of the engine's own cache, and stored now
    second.forget()
    answer = second.ask(**FORK)
    assert answer.cached == 500 // BLOCK * BLOCK
    assert same(answer, plain.fork)
    assert_settled(manager)


def test_answers_when_the_manager_dies_during_a_save(plain: Plain, second: Engine, manager: Manager) -> None:
    second.forget()
    second.call(do="arm", point="save", pid=manager.pid)
    assert same(second.ask(**STORY), plain.story)
    manager.kill()
    manager.start()
    await_return(second)


def test_leaves_whole_blocks_only_when_it_is_killed_during_a_save(second: Engine, manager: Manager) -> None:
    second.ask(**HEAD)
    second.forget()
    second.call(do="arm", point="save", pid=second.process.pid)
    second.send(do="generate", requests=[STORY])
    second.awaits_death()
    deadline = time.monotonic() + BACK_BOUND_S
    while manager.status()["sessions"] > 0:
        assert time.monotonic() < deadline, "the Manager did not see that the engine died"
    assert_settled(manager)


# The engine after one was killed


def test_restores_whole_blocks_only(plain: Plain, third: Engine) -> None:
    assert same(third.ask(**STORY), plain.story)
    assert third.ask(**HEAD).cached == 384
    audit = third.facts()["audit"]
    assert audit["wrong"] == 0
    assert audit["compared"] >= 12


def test_restores_nothing_of_earlier_weights_after_a_reset(plain: Plain, third: Engine) -> None:
    assert third.call(do="reset", connector=True)["ok"]
    answer = third.ask(**STORY)
    assert answer.cached == 0
    assert same(answer, plain.story)
    third.forget()
    assert third.ask(**STORY).cached == FULL * BLOCK
    third.close()


# Other engines


def test_restores_nothing_of_other_weights(plain: Plain, third: Engine, manager: Manager, audit: Path) -> None:
    assert third.process.poll() is not None
    other = Engine(manager, audit=audit, environment={"ORBITKV_MODEL_FINGERPRINT": "other"}, **SMALL_CACHE)
    try:
        answer = other.ask(**STORY)
        assert answer.cached == 0
        assert same(answer, plain.story)
        assert manager.status()["misses_total"]["other_namespace"] > 0
        other.close()
    finally:
        other.kill()


@pytest.mark.long
def test_restores_nothing_of_another_block_size(manager: Manager, audit: Path) -> None:
    other = Engine(manager, audit=audit, **{**SMALL_CACHE, "num_gpu_blocks_override": 20, "block_size": 64})
    try:
        assert other.ask(**STORY).cached == 0
        other.close()
    finally:
        other.kill()


def test_works_in_several_processes_and_starts_without_a_manager(plain: Plain, manager: Manager) -> None:
    manager.kill()
    engine = Engine(manager, module="orbitkv.vllm", processes=True, **SMALL_CACHE)
    try:
        assert same(engine.ask(**STORY), plain.story)
        manager.start()
        deadline = time.monotonic() + BACK_BOUND_S
        while (status := manager.status())["published_blocks_total"] == 0 or status["sessions"] < 2:
            assert time.monotonic() < deadline, "the engine did not find the Manager"
            engine.ask(**HEAD)
            engine.forget()
        engine.ask(**STORY)
        engine.forget()
        answer = engine.ask(**STORY)
        assert answer.cached == FULL * BLOCK
        assert same(answer, plain.story)
        engine.close()
    finally:
        engine.kill()
    assert_settled(manager)


def test_restores_what_the_own_cache_would_give_whatever_the_steps_are(folder: Path, tmp_path: Path) -> None:
    """Where results depend on what else a step computes, a hit differs from the first answer."""
    sockets = folder / "tiles"
    sockets.mkdir()
    audit = tmp_path / "audit"
    audit.touch()
    manager = Manager(sockets)
    engine = Engine(manager, audit=audit, step_tokens=0, **SMALL_CACHE)
    try:
        engine.ask(**STORY)
        hit = engine.ask(**STORY)
        assert hit.cached == FULL * BLOCK
        engine.close()
        engine = Engine(manager, audit=audit, step_tokens=0, **SMALL_CACHE)
        assert engine.ask(**STORY) == hit
        assert engine.facts()["audit"] == {"compared": FULL, "wrong": 0}
        engine.close()
        assert_settled(manager)
    finally:
        engine.kill()
        manager.close()


def test_restores_from_ssd_after_the_manager_was_restarted(plain: Plain, folder: Path, tmp_path: Path) -> None:
    ssd, sockets = tmp_path / "ssd", folder / "ssd"
    ssd.mkdir()
    sockets.mkdir()
    audit = tmp_path / "audit"
    audit.touch()
    manager = Manager(sockets, "--ssd-cache-path", str(ssd), "--ssd-cache-capacity", "256mb")
    engine = Engine(manager, audit=audit, **SMALL_CACHE)
    try:
        assert same(engine.ask(**STORY), plain.story)
        manager.close()
        manager.start()
        await_return(engine)
        assert manager.status()["ssd"]["read_blocks_total"] == 0
        engine.forget()
        answer = engine.ask(**STORY)
        assert answer.cached == FULL * BLOCK
        assert same(answer, plain.story)
        assert engine.facts()["audit"] == {"compared": FULL, "wrong": 0}
        assert manager.status()["ssd"]["read_blocks_total"] == FULL
        engine.close()
        assert_settled(manager)
        manager.close()
    finally:
        engine.kill()
        manager.kill()


@pytest.fixture
def small_model(tmp_path: Path) -> Path:
    """A model whose heads can be divided among two ranks; its weights are random, and large so that blocks matter."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(7)
    config = LlamaConfig(
        vocab_size=49152,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=2048,
        initializer_range=0.3,
        tie_word_embeddings=True,
    )
    folder = tmp_path / "small"
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(MODEL / name, folder)
    return folder


def test_restores_in_two_ranks(manager: Manager, small_model: Path) -> None:
    engine = Engine(
        manager, module="orbitkv.vllm", processes=True, model=small_model, tensor_parallel_size=2, **SMALL_CACHE
    )
    try:
        computed = engine.ask(**STORY)
        engine.forget()
        restored = engine.ask(**STORY)
        assert (computed.cached, restored.cached) == (0, FULL * BLOCK)
        assert difference(restored, computed) <= 1e-3
        status = manager.status()
        assert sorted(session["registrations"] for session in status["session_list"]) == [0, 1, 1]
        engine.close()
    finally:
        engine.kill()
    assert_settled(manager)
