"""What Metadata responses tell of a cluster: its brokers, and partitions as they were first seen."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.steps import TOPIC_EVENTS
from udfs.arrow import array_of
from udfs.arrow import compute as pc
from udfs.replay.limits.assignments import Assigned
from udfs.replay.limits.brokers import Brokers, brokers_of
from udfs.wire.arrays import Ints

INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state")
"""Those that KIP-578 names."""

NEVER = (1 << 63) - 1


class Shown(NamedTuple):
    """Partitions that Metadata shows, by topic and partition: int64[partitions] keys, int64[partitions + 1] where the
    brokers of each begin.
    """

    key: Ints
    at: Ints
    brokers: Ints

    @staticmethod
    def key_of(topic: Ints, partition: Ints) -> Ints:
        """What partitions are sorted by."""
        return topic << 32 | partition


class Seen(NamedTuple):
    """What Metadata shows of each topic, int64[topics]: first time, partitions, and replicas of its first partition."""

    first: Ints
    partitions: Ints
    factor: Ints


def numbers(column: Any, missing: int) -> Ints:
    """A column, in one piece or several, as int64, `missing` for null."""
    filled: Ints = pc.fill_null(column.cast(pa.int64()), missing).to_numpy().astype(np.int64)
    return filled


def topic_numbers(column: Any, names: pa.Array[Any]) -> Ints:
    """The number of each topic."""
    found: Ints = numbers(pc.index_in(column, value_set=names), -1)
    return found


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


def sightings_of(sightings: pa.Table, names: pa.Array[Any]) -> Seen:
    """By topic; a topic never seen has a first time of NEVER."""
    t = TOPIC_EVENTS
    topic = topic_numbers(sightings[t.topic], names)
    first, factor = np.full(len(names), NEVER), np.zeros(len(names), np.int64)
    np.minimum.at(first, topic, numbers(sightings[t.time], NEVER))
    np.maximum.at(factor, topic, numbers(pc.list_value_length(sightings[t.replica_nodes]), 0))
    return Seen(first, np.bincount(topic, minlength=len(names)), factor)


def internal(names: pa.Array[Any]) -> Ints:
    """1 for Kafka's internal topics."""
    found: Ints = pc.is_in(names, value_set=pa.array(INTERNAL_TOPICS)).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def shown_in(sightings: pa.Table, names: pa.Array[Any], nodes: Ints) -> Shown:
    """The partitions seen, in order."""
    t = TOPIC_EVENTS
    key = Shown.key_of(topic_numbers(sightings[t.topic], names), numbers(sightings[t.partition], 0))
    order = np.argsort(key)
    lists = sightings[t.replica_nodes].take(array_of(order))
    ends = np.cumsum(numbers(pc.list_value_length(lists), 0))
    return Shown(key[order], np.append(0, ends), np.searchsorted(nodes, numbers(pc.list_flatten(lists), 0)))
