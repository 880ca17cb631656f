"""What vLLM's log and `/metrics` show of the connector. Imported when vLLM asks for it."""

from __future__ import annotations

from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1.metrics import KVConnectorPromMetrics, KVConnectorStats

# Field of the worker's counters: name of the metric, to which Prometheus adds `_total`, and what it counts.
METRICS = {
    "restored_blocks": ("vllm:orbitkv_restored_blocks", "Blocks restored from the Cache Manager."),
    "stored_blocks": ("vllm:orbitkv_stored_blocks", "Blocks stored in the Cache Manager."),
    "failed_loads": ("vllm:orbitkv_load_failure", "Loads of which blocks were not delivered."),
    "failed_saves": ("vllm:orbitkv_save_failure", "Saves that were refused or not stored whole."),
}


class Stats(KVConnectorStats):  # type: ignore[misc]
    """Counts of an interval by field, over all workers. Can be pickled."""

    def reset(self) -> None:
        """Forgets the counts."""
        self.data: dict[str, int] = {}

    def aggregate(self, other: KVConnectorStats) -> KVConnectorStats:
        """Adds the counts of another worker or interval."""
        for field, number in other.data.items():
            self.data[field] = self.data.get(field, 0) + number
        return self

    def reduce(self) -> dict[str, int | float]:
        """The counts, for the log."""
        return dict(self.data)

    def is_empty(self) -> bool:
        """Whether nothing was counted."""
        return not self.data


class PromMetrics(KVConnectorPromMetrics):  # type: ignore[misc]
    """The counters of `METRICS`, one of each for every engine."""

    def __init__(
        self,
        vllm_config: Any,
        metric_types: dict[type[Any], type[Any]],
        labelnames: list[str],
        per_engine_labelvalues: dict[int, list[object]],
    ) -> None:
        """Registers the counters.

        Args:
            vllm_config: Configuration of the engine.
            metric_types: Classes to use for those of the Prometheus client.
            labelnames: Names of the labels.
            per_engine_labelvalues: Their values for each engine.
        """
        super().__init__(vllm_config, metric_types, labelnames, per_engine_labelvalues)
        self._counters: dict[str, dict[int, Any]] = {}
        for field, (name, text) in METRICS.items():
            counter = self._counter_cls(name=name, documentation=text, labelnames=labelnames)
            self._counters[field] = {
                engine: counter.labels(*values) for engine, values in per_engine_labelvalues.items()
            }

    def observe(self, transfer_stats_data: dict[str, Any], engine_idx: int = 0) -> None:
        """Adds the counts of an interval."""
        for field, counters in self._counters.items():
            counters[engine_idx].inc(transfer_stats_data.get(field, 0))
