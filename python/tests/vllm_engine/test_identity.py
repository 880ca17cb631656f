"""Engines share blocks only when everything that decides about them is equal, and refuse what they cannot serve."""

from __future__ import annotations

import dataclasses
import fcntl
import importlib.metadata
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from orbitkv import CacheManagerClient, GroupState, StateDescriptor
from orbitkv.vllm import adapters, contract, fingerprint
from orbitkv.vllm.fingerprint import FingerprintError, last_change, weights_fingerprint
from orbitkv.vllm.identity import Ranks, describe, in_model_order, instance_id, one_line
from orbitkv.vllm.options import OptionError, Options, options_of
from orbitkv.vllm.support import UnsupportedError, refuse_unsupported

LAYERS = 2
BLOCKS = 4
TENSORS = {f"model.layers.{i}.attn": torch.zeros(BLOCKS, 3, 32, 128, dtype=torch.bfloat16) for i in range(LAYERS)}


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(fingerprint.OVERRIDE, raising=False)
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model's folder."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "notes.txt").write_bytes(b"no weights")
    return folder


class FullAttentionSpec(SimpleNamespace):
    """In the place of the engine's class of this name."""


def config(model: Path, **changes: Any) -> Any:
    """An engine's configuration; a change is named by its path with two underscores."""
    made = SimpleNamespace(
        model_config=SimpleNamespace(
            model=str(model),
            revision=None,
            dtype=torch.bfloat16,
            quantization=None,
            max_model_len=2048,
            is_multimodal_model=False,
            is_encoder_decoder=False,
            hf_config=SimpleNamespace(model_type="llama", to_dict=lambda: {"hidden_size": 576, "_name_or_path": "x"}),
        ),
        cache_config=SimpleNamespace(prefix_caching_hash_algo="sha256", cache_dtype="auto", calculate_kv_scales=False),
        parallel_config=SimpleNamespace(data_parallel_size=1, data_parallel_index=0),
        load_config=SimpleNamespace(load_format="auto"),
        device_config=SimpleNamespace(device_type="cpu"),
        speculative_config=None,
        compilation_config=SimpleNamespace(
            static_forward_context={name: SimpleNamespace(isa="vec") for name in TENSORS}
        ),
        kv_transfer_config=SimpleNamespace(engine_id="e", kv_connector_extra_config={}),
    )
    for path, value in changes.items():
        owner: Any = made
        *parents, name = path.split("__")
        for parent in parents:
            owner = getattr(owner, parent)
        setattr(owner, name, value)
    return made


def kv_config(**changes: Any) -> Any:
    spec = FullAttentionSpec(block_size=32, sliding_window=None, attention_chunk_size=None)
    group = SimpleNamespace(kv_cache_spec=spec, layer_names=list(TENSORS))
    fields = {"num_blocks": BLOCKS, "kv_cache_layout": "LBHNC", "kv_cache_groups": [group], **changes}
    return SimpleNamespace(**fields)


def state_of(model: Path, ranks: Ranks | None = None, scope: str = "", **changes: Any) -> StateDescriptor:
    return describe(config(model, **changes), kv_config(), TENSORS, ranks or Ranks(), scope, print)


def test_describes_what_the_tensors_are(model: Path) -> None:
    state = state_of(model)
    assert (state.layout, state.isa, state.kv_dtype, state.block_tokens) == ("HND", "vec", "bfloat16", 32)
    assert state.groups == (GroupState(layers=LAYERS, block_bytes=LAYERS * 3 * 32 * 128 * 2),)
    assert "isa=vec" in one_line(state)
    assert "adapter=-" in one_line(state)


CHANGES: dict[str, Callable[[Path], StateDescriptor]] = {
    "scope": lambda model: state_of(model, scope="tenant"),
    "rank": lambda model: state_of(model, Ranks(2, 1)),
    "ranks": lambda model: state_of(model, Ranks(2, 0)),
    "stage": lambda model: state_of(model, Ranks(1, 0, 2, 1)),
    "dtype": lambda model: state_of(model, model_config__dtype=torch.float16),
    "quantization": lambda model: state_of(model, model_config__quantization="gptq"),
    "cache dtype": lambda model: state_of(model, cache_config__cache_dtype="fp8_e5m2"),
    "algorithm": lambda model: state_of(model, cache_config__prefix_caching_hash_algo="sha256_cbor"),
    "configuration": lambda model: state_of(
        model,
        model_config__hf_config=SimpleNamespace(model_type="llama", to_dict=lambda: {"hidden_size": 577}),
    ),
    "instruction set": lambda model: state_of(
        model,
        compilation_config__static_forward_context={name: SimpleNamespace(isa="amx") for name in TENSORS},
    ),
    "blocks": lambda model: state_of(model).replace(block_tokens=64),
    "generation": lambda model: state_of(model).replace(weights_version="1"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_any_difference_makes_another_namespace(name: str, model: Path) -> None:
    assert CacheManagerClient.namespace(CHANGES[name](model)) != CacheManagerClient.namespace(state_of(model))


def test_seed_of_the_hashes_makes_another_namespace(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = state_of(model)
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    assert state_of(model).hash_seed != before.hash_seed


def test_place_of_the_model_does_not_matter(model: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    before = state_of(model)
    model.rename(moved)
    assert state_of(moved) == before


def test_changed_weights_are_noticed(model: Path) -> None:
    before = state_of(model)
    weights = model / "model.safetensors"
    weights.write_bytes(b"Weights")
    os.utime(weights, ns=(1, 1))
    assert state_of(model).revision != before.revision


def test_digest_of_unchanged_weights_comes_from_the_cache(
    model: Path, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = weights_fingerprint(str(model), None, "auto", print)
    monkeypatch.setattr(fingerprint, "_sha256", lambda _: pytest.fail("the file was read again"))
    assert weights_fingerprint(str(model), None, "auto", print) == before
    assert len(json.loads((cache_folder / "orbitkv/digests.json").read_text())) == 1


def test_digests_are_made_by_one_process_at_a_time(
    model: Path, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other finds them then; a lock of another open file stands for another process."""
    (cache_folder / "orbitkv").mkdir(parents=True)
    said: list[str] = []
    read = threading.Event()
    sha256 = fingerprint._sha256

    def counted(path: Path) -> str:
        read.set()
        return sha256(path)

    monkeypatch.setattr(fingerprint, "_sha256", counted)

    def waits(text: str) -> None:
        said.append(text)
        waiting.set()

    waiting = threading.Event()
    with (cache_folder / "orbitkv/digests.json.turn").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        thread = threading.Thread(target=weights_fingerprint, args=(str(model), None, "auto", waits))
        thread.start()
        assert waiting.wait(60)
        assert not read.is_set()
        fcntl.flock(other, fcntl.LOCK_UN)
    thread.join(60)
    assert read.is_set()
    assert said == ["another process makes digests of weights: waiting for them"]
    with (cache_folder / "orbitkv/digests.json.turn").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert weights_fingerprint(str(model), None, "auto", pytest.fail)  # known: nobody waits


@pytest.mark.parametrize("content", ["", "{", "[]", '{"a": 1}'])
def test_damaged_cache_of_digests_is_made_again(content: str, model: Path, cache_folder: Path) -> None:
    before = weights_fingerprint(str(model), None, "auto", print)
    (cache_folder / "orbitkv/digests.json").write_text(content)
    assert weights_fingerprint(str(model), None, "auto", print) == before


def test_fingerprint_of_the_operator_wins(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(fingerprint.OVERRIDE, "release-7")
    assert state_of(model, load_config__load_format="dummy").revision == "release-7"


def test_weights_without_digest_are_refused(tmp_path: Path, model: Path) -> None:
    with pytest.raises(FingerprintError, match=r"dummy.*ORBITKV_MODEL_FINGERPRINT"):
        weights_fingerprint(str(model), None, "dummy", print)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FingerprintError, match=r"no weight files.*ORBITKV_MODEL_FINGERPRINT"):
        weights_fingerprint(str(tmp_path / "empty"), None, "auto", print)


def test_changed_weights_are_noticed_when_their_time_is_set_back(model: Path) -> None:
    before = state_of(model)
    weights = model / "model.safetensors"
    times = weights.stat()
    after_changes = last_change(str(model)) + 1
    while last_change(str(model)) < after_changes:  # until the clock of the file system has moved on
        weights.write_bytes(b"Weights")
        os.utime(weights, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert state_of(model).revision != before.revision


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    """An adapter's folder."""
    folder = tmp_path / "adapter"
    folder.mkdir()
    (folder / "adapter_model.safetensors").write_bytes(b"a")
    return folder


def with_adapter(folder: Path | str, load_inplace: bool = False) -> Any:
    """A request with an adapter."""
    lora = SimpleNamespace(lora_path=str(folder), lora_name="same", load_inplace=load_inplace)
    return SimpleNamespace(lora_request=lora)


def digest(folder: Path, settings: str = "") -> bytes:
    """Digest that an engine makes which starts now."""
    made = adapters.Adapters(settings, last_change(str(folder)) + 1).digest_of(with_adapter(folder))
    assert made
    return made


def test_adapters_of_one_name_and_other_content_share_nothing(adapter: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "adapter_model.safetensors").write_bytes(b"b")
    hashes = [bytes([i]) * 32 for i in range(3)]
    mixed = [adapters.mix(hashes, digest(folder)) for folder in (adapter, other)]
    assert len({*mixed[0], *mixed[1], *hashes}) == 9
    assert adapters.mix(hashes, b"") == hashes


def test_adapters_share_only_under_equal_settings(adapter: Path) -> None:
    assert digest(adapter) == digest(adapter)
    assert digest(adapter, "only o_proj") != digest(adapter)


def test_settings_of_the_engine_tell_what_it_takes_of_an_adapter() -> None:
    """With other target modules or another type the same files compute other blocks."""
    from vllm.config import LoRAConfig

    settings = [LoRAConfig(), LoRAConfig(target_modules=["o_proj"]), LoRAConfig(lora_dtype="float16")]
    assert len({each.compute_hash() for each in settings}) == len(settings)


def test_adapter_that_changes_after_the_start_has_no_digest(adapter: Path) -> None:
    started = last_change(str(adapter)) + 1
    known = adapters.Adapters("", started)
    assert known.digest_of(with_adapter(adapter))
    while last_change(str(adapter)) < started:  # until the clock of the file system has moved on
        (adapter / "adapter_model.safetensors").write_bytes(b"b")
    assert known.digest_of(with_adapter(adapter)) is None
    assert adapters.Adapters("", started).digest_of(with_adapter(adapter)) is None
    assert adapters.Adapters("", last_change(str(adapter)) + 1).digest_of(with_adapter(adapter))


def test_adapter_behind_a_link_that_changes_after_the_start_has_no_digest(adapter: Path, tmp_path: Path) -> None:
    link = tmp_path / "current"
    link.symlink_to(adapter.parent, target_is_directory=True)
    inside = link / adapter.name
    started = last_change(str(inside)) + 1
    known = adapters.Adapters("", started)
    assert known.digest_of(with_adapter(inside))
    while last_change(str(inside)) < started:  # until the clock of the file system has moved on
        link.unlink()
        link.symlink_to(adapter.parent, target_is_directory=True)
    assert known.digest_of(with_adapter(inside)) is None


def test_adapter_of_unknown_content_has_no_digest(adapter: Path) -> None:
    known = adapters.Adapters("", last_change(str(adapter)) + 1)
    assert known.digest_of(with_adapter(adapter / "none")) is None
    assert known.digest_of(with_adapter("owner/name-in-a-hub")) is None
    assert known.digest_of(with_adapter(adapter, load_inplace=True)) is None
    assert known.digest_of(with_adapter(adapter))


REFUSED: dict[str, dict[str, Any]] = {
    "speculative": {"speculative_config": SimpleNamespace(method="ngram")},
    'device "cuda"': {"device_config__device_type": "cuda"},
    "multimodal": {"model_config__is_multimodal_model": True},
    "encoder-decoder": {"model_config__is_encoder_decoder": True},
    "decode_context_parallel_size=2": {"parallel_config__decode_context_parallel_size": 2},
    "random in each process": {"cache_config__prefix_caching_hash_algo": "xxhash"},
    "calculate_kv_scales": {"cache_config__calculate_kv_scales": True},
}


@pytest.mark.parametrize("words", REFUSED)
def test_unsupported_configuration_is_refused_by_name(words: str, model: Path) -> None:
    with pytest.raises(UnsupportedError, match=words):
        refuse_unsupported(config(model, **REFUSED[words]), kv_config())


def test_hybrid_models_are_refused_with_their_kinds(model: Path) -> None:
    groups = [*kv_config().kv_cache_groups, SimpleNamespace(kv_cache_spec=SimpleNamespace())]
    with pytest.raises(UnsupportedError, match=r"2 groups of layers \(FullAttentionSpec, SimpleNamespace\)"):
        refuse_unsupported(config(model), kv_config(kv_cache_groups=groups))


def test_supported_configuration_is_taken(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_unsupported(config(model), kv_config())
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    refuse_unsupported(config(model, cache_config__prefix_caching_hash_algo="xxhash"), kv_config())


def test_unknown_layout_is_refused_by_name(model: Path) -> None:
    with pytest.raises(ValueError, match="LXYZ"):
        describe(config(model), kv_config(kv_cache_layout="LXYZ"), TENSORS, Ranks(), "", print)


def test_options_are_checked() -> None:
    assert Options.read({"other": 1, "orbitkv.load": "async"}).load == "async"
    for given, words in (
        ({"orbitkv.laod": "sync"}, "orbitkv.laod is not known"),
        ({"orbitkv.load": "later"}, "orbitkv.load='later', allowed=auto, sync, async"),
        ({"orbitkv.timeout_ms": 0}, "orbitkv.timeout_ms=0, allowed=1"),
        ({"orbitkv.verify": "yes"}, "orbitkv.verify='yes', allowed is a bool"),
        ({"bootstrap_socket": "/run/x"}, r"bootstrap_socket is not known: .* begins with orbitkv\."),
        ({"orbitkv_mode": "read_only"}, r"orbitkv_mode is not known: .* begins with orbitkv\."),
    ):
        with pytest.raises(OptionError, match=words):
            Options.read(given)


@pytest.mark.parametrize(("mode", "role"), [("read_only", "kv_producer"), ("save_only", "kv_consumer")])
def test_mode_that_contradicts_the_role_is_refused(mode: str, role: str) -> None:
    def transfer(role: str) -> Any:
        return SimpleNamespace(
            kv_connector_extra_config={"orbitkv.mode": mode},
            kv_role=role,
            is_kv_producer=role != "kv_consumer",
            is_kv_consumer=role != "kv_producer",
        )

    assert options_of(transfer("kv_both")).mode == mode
    with pytest.raises(OptionError, match=f'orbitkv.mode="{mode}" with kv_role="{role}" would do nothing'):
        options_of(transfer(role))


def test_scope_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORBITKV_CACHE_SCOPE", "team-a")
    assert Options.read({}).scope == "team-a"
    assert Options.read({"orbitkv.scope": "team-b"}).scope == "team-b"
    monkeypatch.delenv("ORBITKV_CACHE_SCOPE")
    assert Options.read({}).scope == ""


def test_size_decides_how_blocks_are_loaded() -> None:
    auto = Options(async_load_bytes=100)
    assert [auto.loads_async(size) for size in (99, 100)] == [False, True]
    assert [dataclasses.replace(auto, load="sync").loads_async(100), Options(load="async").loads_async(1)] == [
        False,
        True,
    ]


def test_installed_engine_fits() -> None:
    assert contract.check_contract()
    assert contract.hit_source() is not None


def test_engine_without_package_metadata_says_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    import vllm

    def not_found(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", not_found)
    assert contract.installed_version() == vllm.__version__


def _other_parameters(self: object, other: object) -> None:
    """A hook as no version has it."""


def test_engine_without_a_hook_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorBase_V1
    from vllm.v1.core.block_pool import BlockPool

    monkeypatch.delattr(BlockPool, "touch")
    monkeypatch.setattr(KVConnectorBase_V1, "start_load_kv", _other_parameters)
    with pytest.raises(contract.ContractError, match=r"start_load_kv takes \(other\).*BlockPool\.touch is missing"):
        contract.check_contract()


def test_layers_are_ordered_as_the_model_computes_them() -> None:
    assert list(in_model_order({"l.10.a": 0, "l.2.a": 1, "l.1.a": 2})) == ["l.1.a", "l.2.a", "l.10.a"]


def test_instance_is_named_by_engine_and_replica(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert instance_id(config(model)) == "e"
    changed = {"parallel_config__data_parallel_size": 2, "parallel_config__data_parallel_index": 1}
    assert instance_id(config(model, **changed)) == "e_dp1"
    assert instance_id(config(model, kv_transfer_config__engine_id="e_dp1", **changed)) == "e_dp1"
    monkeypatch.setenv("ORBITKV_INSTANCE_ID", "named")
    assert instance_id(config(model, kv_transfer_config__engine_id=None)) == "named"
