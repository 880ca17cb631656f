"""The connector class that vLLM loads: a thin face of the two halves."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorBase_V1,
    KVConnectorMetadata,
    KVConnectorRole,
    SupportsHMA,
)

from orbitkv.vllm.contract import TESTED_VERSIONS, check_contract, hit_source, installed_version
from orbitkv.vllm.log import logger
from orbitkv.vllm.messages import WorkerIdentity, WorkerReport, as_plan
from orbitkv.vllm.options import Options, options_of
from orbitkv.vllm.support import refuse_unsupported

if TYPE_CHECKING:
    from orbitkv import CacheManagerClient
    from orbitkv.vllm.scheduler import SchedulerSide
    from orbitkv.vllm.worker import WorkerSide


class OrbitKVConnector(KVConnectorBase_V1, SupportsHMA):  # type: ignore[misc]
    """Keeps KV blocks of vLLM in the Cache Manager of the host.

    vLLM makes one object of it in the scheduler's process and one in each worker's. Nothing starts at import: the
    module is imported in the front end as well.
    """

    # A lost block is a miss, so a preempted request needs no delivery.
    requires_kv_delivery = False
    _cache_hit_source = hit_source()

    def __init__(self, vllm_config: Any, role: KVConnectorRole, kv_cache_config: Any) -> None:
        """Checks the engine and connects the scheduler's half; the worker's begins with its KV tensors.

        Raises:
            ContractError: When the installed vLLM lacks something, naming it.
            OptionError: When an option is unknown or breaks its rule.
            UnsupportedError: When the configuration would be served wrongly, naming each reason.
        """
        is_tested = check_contract()
        super().__init__(vllm_config, role, kv_cache_config)
        self._config = vllm_config
        self._kv_config = kv_cache_config
        self._options: Options = options_of(vllm_config.kv_transfer_config)
        refuse_unsupported(vllm_config, kv_cache_config)
        if not is_tested:
            logger.warning(
                "vLLM %s was not tested with this connector; %s was", installed_version(), ", ".join(TESTED_VERSIONS)
            )
        self._scheduler: SchedulerSide | None = None
        self._worker: WorkerSide | None = None
        self._identity: WorkerIdentity | None = None
        if role == KVConnectorRole.SCHEDULER:
            self._scheduler = self._make_scheduler()

    def _connect(self, role: str) -> CacheManagerClient:
        from orbitkv import CacheManagerClient
        from orbitkv.vllm.identity import instance_id

        return CacheManagerClient(
            self._options.bootstrap_socket,
            instance_id=instance_id(self._config),
            client_name=f"vllm-{role}",
            timeout_ms=self._options.timeout_ms,
            copy_threads=self._options.copy_threads,
            verify=self._options.verify,
        )

    def _make_scheduler(self) -> SchedulerSide:
        from orbitkv.vllm.adapters import Adapters
        from orbitkv.vllm.identity import fixed_hash_seed
        from orbitkv.vllm.scheduler import SchedulerSide

        if fixed_hash_seed() is not None:
            logger.warning(
                "PYTHONHASHSEED=%s is part of every block hash: only engines started with the same value share blocks",
                fixed_hash_seed(),
            )
        transfer, lora = self._config.kv_transfer_config, self._config.lora_config
        return SchedulerSide(
            self._connect("scheduler"),
            self._options,
            may_load=transfer.is_kv_consumer and self._options.mode != "save_only",
            may_save=transfer.is_kv_producer and self._options.mode != "read_only",
            block_tokens=self._kv_config.kv_cache_groups[0].kv_cache_spec.block_size,
            adapters=Adapters("" if lora is None else lora.compute_hash(), time.time_ns()),
        )

    def _of_scheduler(self) -> SchedulerSide:
        assert self._scheduler is not None, "called in a worker"
        return self._scheduler

    def _of_worker(self) -> WorkerSide:
        assert self._worker is not None, "called in the scheduler, or before register_kv_caches"
        return self._worker

    # Scheduler

    def bind_gpu_block_pool(self, gpu_block_pool: Any) -> None:
        """Takes the pool that pins blocks of saves in progress."""
        self._of_scheduler().bind_pool(gpu_block_pool)

    def set_xfer_handshake_metadata_pp_aware(self, metadata: dict[tuple[int, int], Any]) -> None:
        """Takes what the workers say about themselves."""
        self._of_scheduler().workers([each for each in metadata.values() if isinstance(each, WorkerIdentity)])

    def get_num_new_matched_tokens(self, request: Any, num_computed_tokens: int) -> tuple[int | None, bool]:
        """Answers how many tokens beyond the computed ones can be loaded, and whether beside other steps."""
        return self._of_scheduler().matched(request, num_computed_tokens)

    def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int) -> None:
        """Takes the blocks of a request; plans the load that it was promised."""
        block_ids: Sequence[int] = blocks.get_block_ids()[0] if num_external_tokens else ()
        self._of_scheduler().allocated(request, block_ids, num_external_tokens)

    def build_connector_meta(self, scheduler_output: Any) -> KVConnectorMetadata:
        """Makes the plan of a step."""
        return self._of_scheduler().plan(scheduler_output)

    def update_connector_output(self, connector_output: Any) -> None:
        """Takes what the workers reported."""
        self._of_scheduler().reported(connector_output)

    def request_finished(self, request: Any, block_ids: list[int]) -> tuple[bool, dict[str, Any] | None]:
        """Forgets a request. Its blocks may be freed: those of saves in progress are pinned."""
        self._of_scheduler().finished(request.request_id)
        return False, None

    def request_finished_all_groups(
        self, request: Any, block_ids: tuple[list[int], ...]
    ) -> tuple[bool, dict[str, Any] | None]:
        """Forgets a request. Its blocks may be freed: those of saves in progress are pinned."""
        self._of_scheduler().finished(request.request_id)
        return False, None

    def has_pending_push_work(self) -> bool:
        """Keeps the engine stepping until pinned blocks are free."""
        return self._of_scheduler().has_pinned()

    def has_pending_block_frees(self) -> bool:
        """Whether waiting for saves frees blocks, so that no request needs to be preempted."""
        return self._of_scheduler().has_pinned()

    def reset_cache(self) -> bool | None:
        """Begins a new generation of the weights; False while requests hold blocks of the earlier one."""
        return self._of_scheduler().reset()

    # Worker

    def register_kv_caches(self, kv_caches: dict[str, Any]) -> None:
        """Describes the engine's blocks and registers its KV tensors."""
        from orbitkv.vllm.identity import describe, in_model_order, one_line, ranks_of_worker
        from orbitkv.vllm.worker import WorkerSide

        tensors = in_model_order(kv_caches)
        ranks = ranks_of_worker()
        state = describe(self._config, self._kv_config, tensors, ranks, self._options.scope, logger.info)
        logger.info("blocks of this worker are shared with engines of equal state: %s", one_line(state))
        client = self._connect(f"worker-{ranks.index}")
        self._worker = WorkerSide(
            client,
            self._options,
            ranks.index,
            state,
            lambda named: client.register(
                tensors,
                state=named,
                layout=self._kv_config.kv_cache_layout,
                num_blocks=self._kv_config.num_blocks,
                restore_only=not self._config.kv_transfer_config.is_kv_producer or self._options.mode == "read_only",
            ),
        )
        self._identity = WorkerIdentity(ranks.index, state, self._worker.epoch)

    def get_handshake_metadata(self) -> WorkerIdentity | None:
        """What this worker says about itself to the scheduler."""
        return self._identity

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        """Begins the loads of a step."""
        self._of_worker().start(as_plan(self._connector_metadata))

    def wait_for_layer_load(self, layer_name: str) -> None:
        """Waits until a layer of this step's loads has arrived."""
        if self._worker is not None:
            self._worker.wait_layer(layer_name)

    def save_kv_layer(self, layer_name: str, kv_layer: Any, attn_metadata: Any, **kwargs: Any) -> None:
        """Does nothing: blocks are stored whole, at the end of the step."""

    def wait_for_save(self) -> None:
        """Ends the step: waits for its loads, stores its blocks."""
        self._of_worker().finish(as_plan(self._connector_metadata))

    def get_finished(self, finished_req_ids: set[str]) -> tuple[set[str] | None, set[str] | None]:
        """Requests whose asynchronous loads have ended."""
        return None, self._of_worker().arrived() or None

    def get_block_ids_with_load_errors(self) -> set[int]:
        """Blocks that were not loaded, each once."""
        return self._of_worker().take_invalid()

    def build_connector_worker_meta(self) -> WorkerReport | None:
        """What the scheduler's half must know of this step."""
        return self._of_worker().report()

    def get_kv_connector_stats(self) -> Any:
        """What was restored and stored since the last call; None in the scheduler."""
        counts = None if self._worker is None else self._worker.take_counts()
        return None if counts is None else self.build_kv_connector_stats(counts)

    # The front end

    @classmethod
    def build_kv_connector_stats(cls, data: dict[str, Any] | None = None) -> Any:
        """Counts of an interval, as another process has sent them."""
        from orbitkv.vllm.stats import Stats

        return Stats(data or {})

    @classmethod
    def build_prom_metrics(
        cls,
        vllm_config: Any,
        metric_types: dict[type[Any], type[Any]],
        labelnames: list[str],
        per_engine_labelvalues: dict[int, list[object]],
    ) -> Any:
        """The connector's metrics among those of vLLM."""
        from orbitkv.vllm.stats import PromMetrics

        return PromMetrics(vllm_config, metric_types, labelnames, per_engine_labelvalues)

    # Both

    def shutdown(self) -> None:
        """Ends the session of this half."""
        if self._scheduler is not None:
            self._scheduler.close()
        if self._worker is not None:
            self._worker.close()
        self._scheduler = self._worker = None
