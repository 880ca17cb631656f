"""What the blocks of a worker are: the state descriptor, whose digest is the namespace that engines share blocks in."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

from orbitkv import GroupState, StateDescriptor, layout_of
from orbitkv.vllm.contract import installed_version
from orbitkv.vllm.fingerprint import weights_fingerprint

FORMAT_VERSION = "1"

# Configuration of a model that says where it lies and who wrote it, not what it computes.
_PLACES = ("_name_or_path", "transformers_version")
# Kinds of position scaling whose factors depend on the longest sequence.
_LENGTH_DEPENDENT = ("longrope", "dynamic")


@dataclasses.dataclass(frozen=True, slots=True)
class Ranks:
    """Place of a worker in the engine.

    Attributes:
        tp_size: Tensor parallel size.
        tp_rank: Rank in it.
        pp_size: Pipeline parallel size.
        pp_rank: Rank in it.
    """

    tp_size: int = 1
    tp_rank: int = 0
    pp_size: int = 1
    pp_rank: int = 0

    @property
    def index(self) -> int:
        """Index over all ranks."""
        return self.pp_rank * self.tp_size + self.tp_rank


def ranks_of_worker() -> Ranks:
    """Place of the worker that runs in this process."""
    from vllm.distributed.parallel_state import get_pp_group, get_tp_group

    tp, pp = get_tp_group(), get_pp_group()
    return Ranks(tp.world_size, tp.rank_in_group, pp.world_size, pp.rank_in_group)


def instance_id(vllm_config: Any) -> str:
    """Name of the engine instance, equal in all its processes."""
    name = vllm_config.kv_transfer_config.engine_id or os.environ.get("ORBITKV_INSTANCE_ID")
    if not name:
        raise ValueError("the engine has no engine_id, and ORBITKV_INSTANCE_ID is not set")
    parallel = vllm_config.parallel_config
    suffix = f"_dp{parallel.data_parallel_index}"
    wanted = parallel.data_parallel_size > 1 and not name.endswith(suffix)
    return f"{name}{suffix}" if wanted else str(name)


def in_model_order(layers: Mapping[str, Any]) -> dict[str, Any]:
    """The same layers in the order in which the model computes them."""
    return dict(sorted(layers.items(), key=lambda item: [int(number) for number in re.findall(r"\d+", item[0])]))


def describe(
    vllm_config: Any,
    kv_cache_config: Any,
    tensors: Mapping[str, Any],
    ranks: Ranks,
    scope: str,
    say: Callable[[str], None],
) -> StateDescriptor:
    """Describes the blocks of a worker.

    Args:
        vllm_config: Configuration of the engine.
        kv_cache_config: Configuration of its KV cache, with one group.
        tensors: KV tensor of each layer, [block, head, token, content].
        ranks: Place of the worker.
        scope: Isolation chosen by the operator.
        say: Takes a line for the user before a step that takes long.

    Raises:
        InvalidRequestError: Naming a layout that is not known.
        FingerprintError: When the weights have no digest.
    """
    model, cache = vllm_config.model_config, vllm_config.cache_config
    own = {tensor.data_ptr(): tensor for tensor in tensors.values()}
    any_tensor = next(iter(own.values()))
    block_bytes = sum(_block_bytes(tensor, kv_cache_config.num_blocks) for tensor in own.values())
    weights = weights_fingerprint(model.model, model.revision, str(vllm_config.load_config.load_format), say)
    return StateDescriptor(
        model=f"{model.hf_config.model_type}-{_digest_of_config(model)}",
        revision=weights,
        quantization=str(model.quantization or ""),
        compute_dtype=_name_of_dtype(model.dtype),
        kv_dtype=_name_of_dtype(any_tensor.dtype) if cache.cache_dtype == "auto" else str(cache.cache_dtype),
        layout=layout_of(str(kv_cache_config.kv_cache_layout)).state,
        isa=_isa(vllm_config, tensors),
        block_tokens=kv_cache_config.kv_cache_groups[0].kv_cache_spec.block_size,
        groups=(GroupState(layers=len(own), block_bytes=block_bytes),),
        tp_size=ranks.tp_size,
        tp_rank=ranks.tp_rank,
        pp_size=ranks.pp_size,
        pp_rank=ranks.pp_rank,
        hash_scheme=_hash_scheme(cache.prefix_caching_hash_algo),
        hash_seed=_hash_seed(cache.prefix_caching_hash_algo),
        hash_bytes=16 if cache.prefix_caching_hash_algo.startswith("xxhash") else 32,
        engine="vllm-" + ".".join(installed_version().split(".")[:2]),
        format_version=FORMAT_VERSION,
        scope=scope,
    )


def one_line(state: StateDescriptor) -> str:
    """All fields that decide about sharing, for the log."""
    fields = {field.name: getattr(state, field.name) for field in dataclasses.fields(state)}
    groups = fields.pop("groups")
    fields |= {"layers": groups[0].layers, "block_bytes": groups[0].block_bytes}
    return " ".join(f"{name}={value if value != '' else '-'}" for name, value in fields.items())


def fixed_hash_seed() -> str | None:
    """Seed of block hashes that the operator fixed for all processes; None when there is none."""
    return os.environ.get("PYTHONHASHSEED")


def _block_bytes(tensor: Any, num_blocks: int) -> int:
    rows = tensor.shape[0] // num_blocks  # kernel blocks in one block of the engine
    return int(rows * math.prod(tensor.shape[1:]) * tensor.element_size())


def _name_of_dtype(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _isa(vllm_config: Any, tensors: Mapping[str, Any]) -> str:
    """Instruction set that the CPU backend packed the pages for; empty where a backend does not pack."""
    layers = vllm_config.compilation_config.static_forward_context
    names = {str(getattr(layers.get(name), "isa", "")) for name in tensors}
    if len(names) != 1:
        raise ValueError(f"layers are packed for different instruction sets: {', '.join(sorted(names))}")
    return names.pop()


def _digest_of_config(model: Any) -> str:
    """Digest of what the model computes, overrides of the user included."""
    config = model.hf_config.to_dict()
    for name in _PLACES:
        config.pop(name, None)
    text = json.dumps(config, sort_keys=True, default=str)
    if any(kind in text for kind in _LENGTH_DEPENDENT):
        text += f" max_model_len={model.max_model_len}"
    return hashlib.sha256(text.encode()).hexdigest()


def _hash_scheme(algorithm: str) -> str:
    """The engine's algorithm; the one that pickles depends on the Python version."""
    pickles = not algorithm.endswith("_cbor")
    return f"{algorithm}-python{sys.version_info[0]}.{sys.version_info[1]}" if pickles else str(algorithm)


def _hash_seed(algorithm: str) -> str:
    """Hash that the engine begins each chain with, in hexadecimal."""
    from vllm.utils.hashing import get_hash_fn_by_name
    from vllm.v1.core.kv_cache_utils import resolve_none_hash_seed

    hash_function = get_hash_fn_by_name(algorithm)
    return bytes(hash_function(resolve_none_hash_seed(hash_function))).hex()
