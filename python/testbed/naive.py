"""The smallest connector that restores blocks: one file a block in a folder. The reference of the benchmark.

The folder is the option `folder`, for example in /dev/shm. Nothing is checked, evicted or shared safely; loads and
saves are synchronous.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorBase_V1, KVConnectorMetadata, SupportsHMA

Pages = list[tuple[int, str]]  # page and name of its file


@dataclasses.dataclass
class Plan(KVConnectorMetadata):
    """Pages to read before a step, and to write after it."""

    loads: Pages
    saves: Pages


@dataclasses.dataclass
class Tracked:
    """A request: how many of its blocks are in the engine, in files, and saved."""

    request: Any
    local: int = 0
    found: int = 0
    saved: int = 0


class NaiveConnector(KVConnectorBase_V1, SupportsHMA):
    """Both halves, in one process."""

    requires_kv_delivery = False

    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any) -> None:
        """Makes the folder."""
        super().__init__(vllm_config, role, kv_cache_config)
        self._folder = Path(vllm_config.kv_transfer_config.kv_connector_extra_config["folder"])
        self._folder.mkdir(exist_ok=True)
        self._tokens = kv_cache_config.kv_cache_groups[0].kv_cache_spec.block_size
        self._tracked: dict[str, Tracked] = {}
        self._loads: Pages = []

    # Worker

    def register_kv_caches(self, kv_caches: dict[str, torch.Tensor]) -> None:
        """Makes one array [layer, block, bytes] of the tensors, which are views of one storage."""
        tensors = list(kv_caches.values())
        first, item = tensors[0], tensors[0].element_size()
        layer = (tensors[1].storage_offset() - first.storage_offset()) * item
        page = first.stride(0) * item
        memory = torch.empty(0, dtype=torch.int8).set_(first.untyped_storage())
        self._memory = memory.as_strided((len(tensors), first.shape[0], page), (layer, page, 1)).numpy()

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        """Reads the files of a step."""
        layers = self._memory.shape[0]
        for page, name in self._get_connector_metadata().loads:
            self._memory[:, page, :] = np.fromfile(self._folder / name, dtype=np.int8).reshape(layers, -1)

    def wait_for_layer_load(self, layer_name: str) -> None:
        """Nothing: all was read."""

    def save_kv_layer(self, layer_name: str, kv_layer: Any, attn_metadata: Any, **kwargs: Any) -> None:
        """Nothing: blocks are written whole."""

    def wait_for_save(self) -> None:
        """Writes the files of a step."""
        for page, name in self._get_connector_metadata().saves:
            part = self._folder / f"{name}.part"
            np.ascontiguousarray(self._memory[:, page, :]).tofile(part)
            os.rename(part, self._folder / name)

    # Scheduler

    def get_num_new_matched_tokens(self, request: Any, num_computed_tokens: int) -> tuple[int, bool]:
        """Counts the files of a prefix."""
        tracked = self._tracked.setdefault(request.request_id, Tracked(request))
        usable = (request.num_tokens - 1) // self._tokens
        tracked.local = num_computed_tokens // self._tokens
        tracked.found = 0
        for value in request.block_hashes[:usable]:
            if not (self._folder / value.hex()).exists():
                break
            tracked.found += 1
        return max(0, tracked.found - tracked.local) * self._tokens, False

    def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int) -> None:
        """Plans the reads."""
        tracked = self._tracked[request.request_id]
        tracked.saved = tracked.found
        if num_external_tokens:
            wanted = range(tracked.local, tracked.found)
            pages = blocks.get_block_ids()[0]
            self._loads += [(pages[i], request.block_hashes[i].hex()) for i in wanted]

    def build_connector_meta(self, scheduler_output: Any) -> Plan:
        """Plans the writes."""
        plan = Plan(self._loads, [])
        self._loads = []
        new = [(each.req_id, each.num_computed_tokens) for each in scheduler_output.scheduled_new_reqs]
        cached = scheduler_output.scheduled_cached_reqs
        for request_id, computed in [*new, *zip(cached.req_ids, cached.num_computed_tokens, strict=True)]:
            tracked = self._tracked[request_id]
            hashes = tracked.request.block_hashes
            full = min((computed + scheduler_output.num_scheduled_tokens[request_id]) // self._tokens, len(hashes))
            if full > tracked.saved:
                pages = scheduler_output.kv_connector_block_state.get_block_ids(request_id)[0]
                plan.saves += [(pages[i], hashes[i].hex()) for i in range(tracked.saved, full)]
                tracked.saved = full
        return plan

    def request_finished_all_groups(self, request: Any, block_ids: Any) -> tuple[bool, None]:
        """Forgets a request."""
        self._tracked.pop(request.request_id, None)
        return False, None
