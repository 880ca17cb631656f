"""Answers to lookups."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Lease:
    """Right to restore the blocks that a lookup found, once. Can be pickled and used by another process's session.

    Attributes:
        lease_id: Id within the Manager epoch.
        epoch: Low half of the Manager epoch; a lease of another epoch is refused.
        namespace: Index of the namespace in the lookup.
        group: Group id.
        blocks: Number of blocks, from the first hash of the lookup on.
    """

    lease_id: int
    epoch: int
    namespace: int
    group: int
    blocks: int


@dataclasses.dataclass(frozen=True, slots=True)
class QueryReady:
    """Blocks can be restored.

    Attributes:
        num_hit_blocks: Blocks before the first missing one, in every namespace asked for; at least 1.
        leases: One for each namespace, in the order of the lookup; each is to be used or released.
    """

    num_hit_blocks: int
    leases: tuple[Lease, ...]

    @property
    def lease(self) -> Lease:
        """The lease of the first namespace."""
        return self.leases[0]


@dataclasses.dataclass(frozen=True, slots=True)
class QueryLoading:
    """Not ready: ask again later, with the same query.

    Attributes:
        admitted: True while blocks are on their way from another tier; False when a budget refused the query for now.
    """

    admitted: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class QueryMiss:
    """Nothing can be restored.

    Attributes:
        reason: Why the first block is missing: `NEVER_STORED`, `EVICTED`, `OTHER_NAMESPACE`, `REFUSED`, `CLEARED`,
            `BUDGET`, `TIER`, or `MANAGER_UNAVAILABLE` when no Manager could be asked.
    """

    reason: str

    @property
    def num_hit_blocks(self) -> int:
        """0, so that ready and miss can be counted alike."""
        return 0


QueryResult = QueryReady | QueryLoading | QueryMiss
