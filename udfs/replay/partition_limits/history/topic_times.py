"""Changes to topics by name and time: which came last before a time, and which comes next."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Ints
from udfs.columns.searches import behind

NONE = -1


class TopicTimes(NamedTuple):
    """What happens to topics, in the order of topic and time: int64[events]; row: which row of its own table it is."""

    topic: Ints
    time: Ints
    row: Ints

    @classmethod
    def of(cls, topic: Ints, time: Ints, which: Bools) -> TopicTimes:
        """Those rows of `topic` and `time` that are in `which`."""
        rows = np.flatnonzero(which)
        rows = rows[np.lexsort((time[rows], topic[rows]))]
        return cls(topic[rows], time[rows], rows)

    def up_to(self, topic: Ints, time: Ints) -> Ints:
        """Events of topics before this one, and of this topic at or before the time."""
        return behind(self.topic, self.time, topic, time)

    def last(self, topic: Ints, time: Ints) -> Ints:
        """By topic the row of the last event at or before the time, NONE for none."""
        return self._row(self.up_to(topic, time) - 1, topic)

    def next(self, topic: Ints, time: Ints) -> Ints:
        """By topic the row of the first event after the time, NONE for none."""
        return self._row(self.up_to(topic, time), topic)

    def _row(self, place: Ints, topic: Ints) -> Ints:
        """The row at a place where that is of the topic."""
        topics, rows = np.append(self.topic, NONE), np.append(self.row, NONE)
        within = np.where((place >= 0) & (place < len(self.row)), place, len(self.row))
        return np.where(topics[within] == topic, rows[within], NONE)
