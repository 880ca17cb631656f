"""Fences: when earlier work on pages has ended."""

from __future__ import annotations

from typing import ClassVar, final


@final
class Fence:
    """Says when earlier work on the pages of an operation has ended; a copy starts only behind its fence.

    Of a save, that the bytes are written; of a restore, that earlier users of the target pages are done. Every
    operation needs one: `Fence.DONE` states that nothing is outstanding, which is true where the engine computes on
    the calling thread.
    """

    DONE: ClassVar[Fence]

    def signal(self) -> None:
        """The earlier work has ended. Idempotent; for fences of `CacheManagerClient.fence`."""
        raise NotImplementedError

    @property
    def is_done(self) -> bool:
        """True once signalled; never False again."""
        raise NotImplementedError
