"""What Metadata responses tell of a cluster: its brokers, and partitions of topic ids as they were first seen."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.steps import TOPIC_EVENTS
from udfs.columns.arrays import Ints
from udfs.columns.arrow_columns import array_of
from udfs.columns.arrow_columns import compute as pc
from udfs.columns.time_units import NEVER
from udfs.replay.partition_limits.assignments import Assigned
from udfs.replay.partition_limits.placement.brokers import Brokers, brokers_of

INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state")
"""Those that KIP-578 names."""


class Shown(NamedTuple):
    """Partitions that Metadata shows, as they were first, in the order of topic id and partition: int64[partitions],
    but for `at`, int64[partitions + 1], where the brokers of each begin.

    topic_id: number of the id, as in TopicIds.
    """

    topic_id: Ints
    partition: Ints
    time: Ints
    exempt: Ints  # 1: of an internal topic
    at: Ints
    brokers: Ints

    @property
    def width(self) -> Ints:
        """Replicas of each partition."""
        return np.diff(self.at)

    def rows_of(self, topic_id: Ints, partition: Ints) -> Ints:
        """The row of each partition, -1 where it is not shown."""
        key = self.topic_id << 32 | self.partition
        asked = topic_id << 32 | partition
        place = np.searchsorted(key, asked)
        found = np.append(key, -1)[place] == asked
        return np.where(found & (topic_id >= 0), place, -1)


def numbers(column: Any, missing: int) -> Ints:
    """A column, in one piece or several, as int64, `missing` for null."""
    return pc.fill_null(column.cast(pa.int64()), missing).to_numpy().astype(np.int64)


def topic_numbers(column: Any, names: pa.Array[Any]) -> Ints:
    """The number of each topic."""
    return numbers(pc.index_in(column, value_set=names), -1)


def known_brokers(listed: pa.Table, sightings: pa.Table, assigned: Assigned) -> tuple[Ints, Brokers]:
    """Node ids, ascending, and the brokers: those that only replicas name are down."""
    t = TOPIC_EVENTS
    up = numbers(listed[t.node_id], -1)
    racks = dict(zip(up.tolist(), listed[t.rack].to_pylist(), strict=True))
    nodes = np.unique(np.concatenate([up, numbers(pc.list_flatten(sightings[t.replica_nodes]), -1), assigned.nodes]))
    nodes = nodes[nodes >= 0]
    return nodes, brokers_of(
        nodes.tolist(), [racks.get(n) for n in nodes.tolist()], [n in racks for n in nodes.tolist()]
    )


def internal(names: pa.Array[Any]) -> Ints:
    """1 for Kafka's internal topics."""
    return pc.is_in(names, value_set=pa.array(INTERNAL_TOPICS)).to_numpy(zero_copy_only=False).astype(np.int64)


def shown_in(sightings: pa.Table, topic_id: Ints, nodes: Ints) -> Shown:
    """Each partition of a topic id as it was seen first; topic_id: int64[sightings]."""
    t = TOPIC_EVENTS
    partition, time = numbers(sightings[t.partition], 0), numbers(sightings[t.time], NEVER)
    order = np.lexsort((time, partition, topic_id))
    key = topic_id[order] << 32 | partition[order]
    order = order[np.append(True, np.diff(key) != 0)[: len(key)]]
    rows = sightings.take(array_of(order))
    lists = rows[t.replica_nodes]
    ends = np.cumsum(numbers(pc.list_value_length(lists), 0))
    return Shown(
        topic_id[order], partition[order], time[order], numbers(rows[t.is_internal], 0), np.append(0, ends),
        np.searchsorted(nodes, numbers(pc.list_flatten(lists), 0)),
    )  # fmt: skip
