"""The time of interest that a replay is restricted to: what came before it is state, what comes behind it is not there.

Events before the window take part: sessions are in the cache, bytes in the pool, partitions exist, and the estimate of
compression is where batches have brought it. But counts, waits and bytes, and whether the replay agrees with the
capture, are those of the window alone.
"""

from __future__ import annotations

from typing import NamedTuple

from udfs.columns.arrays import Bools, Ints
from udfs.columns.time_units import ALWAYS, NEVER


class Window(NamedTuple):
    """The times (us since 1970) from `begin` to before `end`; without either, as far as the capture goes.

    >>> Window(10, 20).length_within(0, 15), Window().length_within(0, 15)
    (5, 15)
    """

    begin: int = ALWAYS
    end: int = NEVER

    @property
    def is_whole(self) -> bool:
        """Whether the window is all of the capture."""
        return self.begin == ALWAYS and self.end == NEVER

    def has(self, times: Ints) -> Bools:
        """Which of the times (us) are in the window: bool[times]."""
        return (times >= self.begin) & (times < self.end)

    def length_within(self, begin: int, end: int) -> int:
        """How much of the time from `begin` to `end` is in the window (us)."""
        return max(0, min(end, self.end) - max(begin, self.begin))


WHOLE = Window()
