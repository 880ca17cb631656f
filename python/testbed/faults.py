"""The audited connector with faults: a process is killed at a named point, once.

`{"do": "arm", "point": "load" | "save", "pid": pid}` of the engine's commands sets one up. At `load` the restore was
submitted and nobody has waited for it; at `save` the same holds for the blocks of a step.
"""

from __future__ import annotations

import os
import signal
from typing import Any

from audited import OrbitKVConnector as Audited

import orbitkv.vllm.worker as worker

ARMED: dict[str, int] = {}


def reach(point: str) -> None:
    """Kills the process that is to die at this point."""
    pid = ARMED.pop(point, None)
    if pid is not None:
        os.kill(pid, signal.SIGKILL)


class OrbitKVConnector(Audited):
    """Passes the named points."""

    def arm(self, point: str, pid: int) -> None:
        """Sets up a fault."""
        ARMED[point] = pid

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        """Passes `load` when something is loaded."""
        super().start_load_kv(forward_context, **kwargs)
        if self._of_worker()._sync or self._of_worker()._async:
            reach("load")


class _Worker(worker.WorkerSide):
    """Passes `save`."""

    def _submit(self, saves: Any) -> Any:
        handle = super()._submit(saves)
        if handle is not None:
            reach("save")
        return handle


worker.WorkerSide = _Worker
