"""The connector with a clock around each of its hooks, for the benchmark."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

from orbitkv.vllm import OrbitKVConnector as Connector

_NO_HOOKS = ("register_kv_caches", "shutdown")


class Clock:
    """Time spent in hooks of both halves, which share a process here."""

    seconds = 0.0


class OrbitKVConnector(Connector):
    """Counts the time that the engine spends in it."""

    def hook_seconds(self) -> float:
        """Seconds in hooks since the start."""
        return Clock.seconds


def _timed(hook: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(hook)
    def timed(*arguments: Any, **named: Any) -> Any:
        began = time.perf_counter()
        try:
            return hook(*arguments, **named)
        finally:
            Clock.seconds += time.perf_counter() - began

    return timed


for _name, _hook in vars(Connector).items():
    if callable(_hook) and not _name.startswith("_") and _name not in _NO_HOOKS:
        setattr(OrbitKVConnector, _name, _timed(_hook))
