"""What the rows of changes say by themselves: which kind each is, of which topic, when, and whether it was done."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables import values
from schemas.tables.steps import TOPIC_EVENTS
from udfs.columns.arrays import Bools, Ints
from udfs.columns.arrow_columns import compute as pc
from udfs.replay.partition_limits.events import numbers, topic_numbers
from udfs.replay.partition_limits.history.topic_times import TopicTimes
from udfs.replay.partition_limits.topics import AUTO, CREATE, DELETE, GROW, MOVE, NOTHING

KINDS = {
    values.CREATE_TOPIC: CREATE,
    values.AUTO_CREATE: AUTO,
    values.CREATE_PARTITIONS: GROW,
    values.REASSIGN_PARTITION: MOVE,
    values.DELETE_TOPIC: DELETE,
}
NO_ANSWER = -(1 << 15)


class Told(NamedTuple):
    """By change, int64[changes]; done: whether the cluster did it, bool[changes]. partition: of those that move one."""

    kind: Ints
    topic: Ints
    time: Ints
    partition: Ints
    done: Bools

    @classmethod
    def of(cls, asked: pa.Table, names: pa.Array[Any]) -> Told:
        """asked: rows of TOPIC_EVENTS."""
        t = TOPIC_EVENTS
        done = (numbers(asked[t.error_code], NO_ANSWER) == 0) & (numbers(asked[t.validate_only], 0) == 0)
        return cls(
            kinds_of(asked), topic_numbers(asked[t.topic], names), numbers(asked[t.time], 0),
            numbers(asked[t.partition], 0), done,
        )  # fmt: skip

    def times(self, *kinds: int) -> TopicTimes:
        """When changes of these kinds were done."""
        return TopicTimes.of(self.topic, self.time, np.isin(self.kind, kinds) & self.done)

    def wishes(self) -> TopicTimes:
        """When Metadata requests would have made topics: their responses do not tell whether they did."""
        return TopicTimes.of(self.topic, self.time, self.kind == AUTO)


def kinds_of(asked: pa.Table) -> Ints:
    """The kind of each change."""
    names = pa.array(list(KINDS))
    numbered = np.array([*KINDS.values(), NOTHING])
    return numbered[numbers(pc.index_in(asked[TOPIC_EVENTS.kind], value_set=names), -1)]
