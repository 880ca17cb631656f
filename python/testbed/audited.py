"""The connector with an audit of block bytes: what is restored must be what some engine computed and saved.

Digests of saved pages are kept by block hash in the file of `ORBITKV_AUDIT`, over all engines that share it. A page
whose load succeeded is compared with them before the step goes on.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch

from orbitkv.vllm import OrbitKVConnector as Connector
from orbitkv.vllm.messages import as_plan

SAMPLE_BYTES = 64
# Both halves are in one process here: what is loaded into which page, by request.
LOADS: dict[str, list[tuple[int, str]]] = {}


class OrbitKVConnector(Connector):
    """Compares every restored page with what was saved under its hash."""

    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any) -> None:
        """Begins with nothing compared."""
        super().__init__(vllm_config, role, kv_cache_config)
        self._log = Path(os.environ["ORBITKV_AUDIT"])
        self._tensors: list[Any] = []
        self._pending: dict[str, list[tuple[int, str]]] = {}
        self._compared = self._wrong = 0

    def audit(self) -> dict[str, int]:
        """Pages compared, and wrong ones."""
        return {"compared": self._compared, "wrong": self._wrong}

    def register_kv_caches(self, kv_caches: dict[str, Any]) -> None:
        """Keeps the tensors for the audit."""
        super().register_kv_caches(kv_caches)
        self._tensors = list(kv_caches.values())

    def build_connector_meta(self, scheduler_output: Any) -> Any:
        """Notes the hashes of what will be loaded; the plan carries pages only."""
        plan = super().build_connector_meta(scheduler_output)
        scheduler = self._of_scheduler()
        for load in plan.loads:
            request = scheduler._tracked[load.request_id].request
            hashes = scheduler._hashes(request, load.skip, load.skip + len(load.pages))
            assert hashes is not None, "an adapter without digest restores nothing"
            LOADS[load.request_id] = [(page, value.hex()) for page, value in zip(load.pages, hashes, strict=True)]
        return plan

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        """Notes what is loaded."""
        for load in as_plan(self._connector_metadata).loads:
            self._pending[load.request_id] = LOADS.pop(load.request_id)
        super().start_load_kv(forward_context, **kwargs)

    def wait_for_save(self) -> None:
        """Compares what this step loaded, and logs what it saved before the engine may overwrite it."""
        plan = as_plan(self._connector_metadata)
        lines = [
            json.dumps({"hash": value.hex(), "digest": self._digest(page), "sample": self._sample(page)})
            for save in plan.saves
            for page, value in zip(save.pages, save.hashes, strict=True)
        ]
        with self._log.open("a") as log:
            log.writelines(f"{line}\n" for line in lines)
        super().wait_for_save()
        for load in plan.loads:
            if not load.is_async:
                self._compare(load.request_id)

    def get_finished(self, finished_req_ids: set[str]) -> Any:
        """Compares asynchronous loads that have ended."""
        sending, received = super().get_finished(finished_req_ids)
        for request_id in received or ():
            self._compare(request_id)
        return sending, received

    def _compare(self, request_id: str) -> None:
        known = self._known()
        invalid = self._of_worker()._invalid
        for page, value in self._pending.pop(request_id):
            if page not in invalid:
                self._compared += 1
                self._wrong += self._digest(page) not in known[value]

    def _known(self) -> dict[str, set[str]]:
        known: dict[str, set[str]] = defaultdict(set)
        for line in self._log.read_text().splitlines():
            entry = json.loads(line)
            known[entry["hash"]].add(entry["digest"])
        return known

    def _sample(self, page: int) -> str:
        """Some bytes of a page, by which a test finds it in the Manager's pool."""
        content = self._tensors[-1][page].contiguous().view(-1).view(torch.uint8)
        return bytes(content[:SAMPLE_BYTES].numpy()).hex()

    def _digest(self, page: int) -> str:
        digest = hashlib.sha256()
        for tensor in self._tensors:
            digest.update(tensor[page].contiguous().view(-1).view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()
