"""The window of time to which a replay is restricted: earlier events make up its state, later events are left out.

Events before the window are replayed: sessions are in the cache, bytes are in the pool, partitions exist, and batches
have moved the estimate of compression. But counts, waits and bytes, and whether the replay agrees with the capture, are
those of the window only.
"""

from __future__ import annotations

from typing import NamedTuple

from udfs.columns.arrays import Bools, Ints
from udfs.columns.time_units import ALWAYS, NEVER


class Window(NamedTuple):
    """The times (us since 1970) from `begin` to before `end`. Without one of them, the window goes as far as the
    capture.

    >>> Window(10, 20).length_within(0, 15), Window().length_within(0, 15)
    (5, 15)
    """

    begin: int = ALWAYS
    end: int = NEVER

    @property
    def is_whole(self) -> bool:
        """Whether the window is the whole capture."""
        return self.begin == ALWAYS and self.end == NEVER

    def has(self, times: Ints) -> Bools:
        """Which of the times (us) are in the window: bool[times]."""
        return (times >= self.begin) & (times < self.end)

    def length_within(self, begin: int, end: int) -> int:
        """How much of the time from `begin` to `end` is in the window (us)."""
        return max(0, min(end, self.end) - max(begin, self.begin))


WHOLE = Window()
