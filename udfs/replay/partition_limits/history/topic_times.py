"""Events of topics by name and time: the last one before a time, and the next one after it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Ints, Records
from udfs.columns.searches import place_behind
from udfs.columns.sentinels import NONE
from udfs.replay.partition_limits.state import AUTO_CREATE


class TopicTimes(NamedTuple):
    """Rows of another table in the order of topic and time: int64[rows] each. row: the index in that table."""

    topic: Ints
    time: Ints
    row: Ints

    @classmethod
    def of(cls, topic: Ints, time: Ints, which: Bools) -> TopicTimes:
        """The rows of another table that are in `which`.

        topic, time: int64[n], of all its rows, us. which: bool[n].
        """
        rows = np.flatnonzero(which)
        rows = rows[np.lexsort((time[rows], topic[rows]))]
        return cls(topic[rows], time[rows], rows)

    def up_to(self, topic: Ints, time: Ints) -> Ints:
        """How many rows have an earlier topic, or this topic at or before the time: int64[n].

        topic, time: int64[n], us.
        """
        return place_behind(self.topic, self.time, topic, time)

    def last(self, topic: Ints, time: Ints) -> Ints:
        """The topic's last row at or before the time, NONE if there is none: int64[n]. topic, time: int64[n], us."""
        return self._row(self.up_to(topic, time) - 1, topic)

    def next(self, topic: Ints, time: Ints) -> Ints:
        """The topic's first row after the time, NONE if there is none: int64[n]. topic, time: int64[n], us."""
        return self._row(self.up_to(topic, time), topic)

    def _row(self, place: Ints, topic: Ints) -> Ints:
        """The row at an index, if it belongs to the topic."""
        topics, rows = np.append(self.topic, NONE), np.append(self.row, NONE)
        within = np.where((place >= 0) & (place < len(self.row)), place, len(self.row))
        return np.where(topics[within] == topic, rows[within], NONE)


def times_done(requests: Records, *kinds: int) -> TopicTimes:
    """When changes of these kinds were done. requests: TOPIC_REQUEST[requests]."""
    is_done = np.isin(requests["kind"], kinds) & (requests["is_done"] == 1)
    return TopicTimes.of(requests["topic"], requests["time"], is_done)


def times_of_auto_creation(requests: Records) -> TopicTimes:
    """When Metadata requests would have created topics: their responses do not tell whether they did.

    requests: TOPIC_REQUEST[requests].
    """
    return TopicTimes.of(requests["topic"], requests["time"], requests["kind"] == AUTO_CREATE)
