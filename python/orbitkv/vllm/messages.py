"""What the two roles of the connector tell each other: plans go to the workers, reports come back."""

from __future__ import annotations

import dataclasses
from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorHandshakeMetadata,
    KVConnectorMetadata,
    KVConnectorWorkerMetadata,
)

from orbitkv import BlockHashes, Lease, StateDescriptor


@dataclasses.dataclass(frozen=True, slots=True)
class Load:
    """Blocks of one request to restore.

    Attributes:
        request_id: The request.
        leases: One for each rank, in the order of ranks.
        skip: Blocks at the start of the leases that the engine has already.
        pages: Target page of each block behind these.
        is_async: Whether the step does not wait for it.
    """

    request_id: str
    leases: tuple[Lease, ...]
    skip: int
    pages: tuple[int, ...]
    is_async: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Save:
    """Blocks of one request to store.

    Attributes:
        request_id: The request.
        position: Position of the first block in its chain.
        parent: Hash of the block before it; None at position 0.
        hashes: Hash of each block.
        pages: Source page of each block.
        ticket: Number of a save that the step does not wait for; 0 for one that it does.
    """

    request_id: str
    position: int
    parent: bytes | None
    hashes: BlockHashes
    pages: tuple[int, ...]
    ticket: int


@dataclasses.dataclass(frozen=True, slots=True)
class StepPlan(KVConnectorMetadata):  # type: ignore[misc]
    """What the workers do in one step.

    Attributes:
        generation: Generation of the weights; a new one makes the workers register under a new namespace.
        is_idle: Whether the step computes nothing, so that workers may wait a little for what is in progress.
        loads: Blocks to restore.
        saves: Blocks to store at the end of the step.
    """

    generation: str = ""
    is_idle: bool = False
    loads: tuple[Load, ...] = ()
    saves: tuple[Save, ...] = ()


@dataclasses.dataclass(slots=True)
class WorkerReport(KVConnectorWorkerMetadata):  # type: ignore[misc]
    """What happened at the workers in one step; made only when something did.

    Attributes:
        epochs: Manager epoch under which each rank's memory is registered; 0 for none.
        finished_saves: Ranks that are done with each save that no step waited for, by ticket.
        unsaved: First block of each request that a save was planned for and not tried, or not answered.
    """

    epochs: dict[int, int] = dataclasses.field(default_factory=dict)
    finished_saves: dict[int, int] = dataclasses.field(default_factory=dict)
    unsaved: dict[str, int] = dataclasses.field(default_factory=dict)

    def aggregate(self, other: KVConnectorWorkerMetadata) -> WorkerReport:
        """Unites the reports of two workers, or of two groups of workers."""
        assert isinstance(other, WorkerReport)
        finished, unsaved = dict(self.finished_saves), dict(self.unsaved)
        for ticket, ranks in other.finished_saves.items():
            finished[ticket] = finished.get(ticket, 0) + ranks
        for request_id, position in other.unsaved.items():
            unsaved[request_id] = min(position, unsaved.get(request_id, position))
        return WorkerReport({**self.epochs, **other.epochs}, finished, unsaved)

    def __bool__(self) -> bool:
        """Whether there is anything to report."""
        return bool(self.epochs or self.finished_saves or self.unsaved)


@dataclasses.dataclass(frozen=True, slots=True)
class WorkerIdentity(KVConnectorHandshakeMetadata):  # type: ignore[misc]
    """What a worker says about itself once its memory exists.

    Attributes:
        rank: Index of the worker over all ranks of the engine.
        state: What its blocks are.
        epoch: Manager epoch under which its memory is registered; 0 for none.
    """

    rank: int
    state: StateDescriptor
    epoch: int


def as_plan(metadata: Any) -> StepPlan:
    """The plan bound to a step; an empty one when vLLM bound nothing of ours."""
    return metadata if isinstance(metadata, StepPlan) else StepPlan()
