"""How long a Manager that lives but does not answer is left alone."""

from __future__ import annotations

from collections.abc import Callable

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 10.0


class Pause:
    """Time without calls that wait, after one that waited in vain: twice as long each time. Belongs to one thread.

    Without it every new request and every step that stores would wait for a Manager that hangs.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        """Makes one that is over.

        Args:
            now: Clock, seconds.
        """
        self._now = now
        self._length = 0.0
        self._end = 0.0

    @property
    def is_over(self) -> bool:
        """Whether the Manager may be asked."""
        return self._length == 0.0 or self._now() >= self._end

    def begin(self) -> None:
        """A call waited in vain."""
        if not self.is_over:  # so did others that were made before
            return
        self._length = min(LONGEST_PAUSE_S, max(FIRST_PAUSE_S, 2 * self._length))
        self._end = self._now() + self._length

    def end(self) -> None:
        """The Manager has answered, or is another one."""
        self._length = 0.0
