"""Fences: when earlier work on pages has ended."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import ClassVar, final

from orbitkv import _jvm


@final
class Fence:
    """Says when earlier work on the pages of an operation has ended; a copy starts only behind its fence.

    Of a save, that the bytes are written; of a restore, that earlier users of the target pages are done. Every
    operation needs one: `Fence.DONE` states that nothing is outstanding, which is true where the engine computes on
    the calling thread. Others come from `CacheManagerClient.fence`.
    """

    __slots__ = ("_handle", "_signalled")

    DONE: ClassVar[Fence]

    def __init__(self, handle: int) -> None:
        """For the client: a fence of the bridge, or 0 for one that is done."""
        self._handle = handle
        self._signalled = handle == 0

    def signal(self) -> None:
        """The earlier work has ended. Idempotent."""
        if not self._signalled:
            _jvm.call("signal", self._handle)
            self._signalled = True

    @property
    def is_done(self) -> bool:
        """True once signalled; never False again."""
        return self._signalled

    @property
    def handle(self) -> int:
        """Its id in the bridge; 0 once it is done."""
        return 0 if self._signalled else self._handle

    def __del__(self, is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        """Gives the bridge's object back. At the process's end, names of modules are gone."""
        if self._handle and not is_ending():
            _jvm.drop("dropFence", self._handle)


Fence.DONE = Fence(0)
