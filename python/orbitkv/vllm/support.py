"""Configurations that the connector refuses, each by its name and before anything starts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orbitkv.vllm.identity import fixed_hash_seed


class UnsupportedError(ValueError):
    """The engine's configuration is not supported; the message names what, all of it."""


def refuse_unsupported(vllm_config: Any, kv_cache_config: Any) -> None:
    """Refuses what would be served wrongly.

    Raises:
        UnsupportedError: Naming each reason.
    """
    reasons = [*find_unsupported(vllm_config), *_of_groups(kv_cache_config)]
    if reasons:
        raise UnsupportedError("OrbitKV does not support this engine configuration: " + "; ".join(reasons))


def find_unsupported(vllm_config: Any) -> Iterator[str]:
    """Names each part of the configuration that is not supported."""
    model, parallel = vllm_config.model_config, vllm_config.parallel_config
    device = vllm_config.device_config.device_type
    if device != "cpu":
        yield f'device "{device}": only "cpu" works today'
    if vllm_config.speculative_config is not None:
        yield f'speculative decoding ("{vllm_config.speculative_config.method}")'
    if model.is_multimodal_model:
        yield f'multimodal model "{model.model}"'
    if model.is_encoder_decoder:
        yield f'encoder-decoder model "{model.model}"'
    for name in ("decode_context_parallel_size", "prefill_context_parallel_size"):
        if getattr(parallel, name, 1) > 1:
            yield f"{name}={getattr(parallel, name)}"
    if getattr(vllm_config.cache_config, "calculate_kv_scales", False):
        yield "calculate_kv_scales: the scales depend on the requests of one engine"
    algorithm = vllm_config.cache_config.prefix_caching_hash_algo
    if algorithm.startswith("xxhash"):
        yield from _of_xxhash(algorithm)


def _of_xxhash(algorithm: str) -> Iterator[str]:
    if fixed_hash_seed() is None:
        yield (
            f'prefix_caching_hash_algo="{algorithm}" without PYTHONHASHSEED: its seed is random in each process, so no '
            "other process could ever find a block; use sha256 or sha256_cbor, or set PYTHONHASHSEED everywhere"
        )


def _of_groups(kv_cache_config: Any) -> Iterator[str]:
    groups = kv_cache_config.kv_cache_groups
    if len(groups) != 1:
        kinds = ", ".join(type(group.kv_cache_spec).__name__ for group in groups)
        yield f"hybrid model with {len(groups)} groups of layers ({kinds})"
        return
    spec = groups[0].kv_cache_spec
    if type(spec).__name__ != "FullAttentionSpec":
        yield f'layers of kind "{type(spec).__name__}"; full attention works today'
        return
    for name in ("sliding_window", "attention_chunk_size"):
        if getattr(spec, name, None):
            yield f"{name}={getattr(spec, name)}"
