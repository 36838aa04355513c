"""A cluster that is described, not captured, as rows of TOPIC_EVENTS: its brokers, its topics, and its future
topics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.event_kinds import TopicEvent
from schemas.tables.steps import TOPIC_EVENTS
from schemas.tables.values import CREATE_TOPIC
from udfs.columns.arrays import Ints, Records
from udfs.columns.arrow_columns import arrow_array
from udfs.columns.arrow_columns import compute as pc
from udfs.columns.time_units import US_PER_DAY
from udfs.facts.arrow_tables import arrow_schema, make_rows, nulls_besides
from udfs.kernels.kernel import kernel
from udfs.replay.partition_limits.placement.brokers import PLACEMENT, Brokers, brokers_of
from udfs.replay.partition_limits.placement.java_random import java_random
from udfs.replay.partition_limits.placement.striped import Stripes, new_stripes, place_striped

_E = TOPIC_EVENTS


class SizedTopics(NamedTuple):
    """Topics of one size: how many there are, or how many are created each day."""

    name: str
    partitions: int
    replication_factor: int
    how_many: int = 0
    per_day: float = 0.0


class DescribedCluster(NamedTuple):
    """A cluster that somebody describes.

    brokers: node ids and racks, None for no rack. present: topics that exist at start_us (since 1970). coming: topics
    that are created in the `days` from then on.
    """

    brokers: Sequence[tuple[int, str | None]]
    present: Sequence[SizedTopics]
    coming: Sequence[SizedTopics]
    start_us: int
    days: float


def described_events(cluster: DescribedCluster, seed: int) -> pa.Table:
    """Rows of TOPIC_EVENTS. StripedReplicaPlacer places the existing topics; future topics are evenly spread over time.

    seed: of the placer's draws.
    """
    return pa.Table.from_batches(list(event_batches(cluster, seed)), arrow_schema(_E))


def event_batches(cluster: DescribedCluster, seed: int) -> Iterator[pa.RecordBatch]:
    """Rows of TOPIC_EVENTS: a batch of the brokers, then one for each size of topics. seed: of the placer's draws."""
    nodes, racks = zip(*sorted(cluster.brokers), strict=True)
    brokers = brokers_of(nodes, racks, [True] * len(nodes))
    yield described_broker_rows(nodes, racks)
    for number, topics in enumerate(cluster.present):
        yield present_rows(topics, brokers, cluster.start_us, seed + number)
    for number, topics in enumerate(cluster.coming):
        yield coming_rows(topics, cluster, number)


def topic_event_rows(rows: int, **columns: Any) -> pa.RecordBatch:
    """Rows of TOPIC_EVENTS with these columns; all others are null."""
    return make_rows(_E, {**columns, **nulls_besides(_E, columns, rows)})


def described_broker_rows(nodes: Sequence[int], racks: Sequence[str | None]) -> pa.RecordBatch:
    """Rows of TOPIC_EVENTS, one for each broker."""
    entry, node_id = np.full(len(nodes), TopicEvent.BROKER), np.array(nodes)
    return topic_event_rows(len(nodes), entry=entry, node_id=node_id, rack=pa.array(racks, pa.string()))


def numbered_names(name: str, count: int) -> pa.Array[Any]:
    """The names NAME-0, NAME-1 and so on, as many as `count`."""
    return pc.binary_join_element_wise(name, arrow_array(np.arange(count)).cast(pa.string()), "-")


@kernel
def place_topics(brokers: Brokers, stripes: Stripes, placement: Records, slots: Ints) -> None:
    """Place one topic after the other, each as `placement` (PLACEMENT[1]) says.

    slots: int64[replicas], where the number of each replica's broker is written.
    """
    topic = placement[0]
    for slot in range(0, len(slots), topic.partitions * topic.replication_factor):
        topic.slot = slot
        place_striped(brokers, stripes, topic, slots)


def present_rows(topics: SizedTopics, brokers: Brokers, start_us: int, seed: int) -> pa.RecordBatch:
    """Rows of TOPIC_EVENTS, one for each partition of the topics of one size that exist at start_us."""
    n, factor, placement = topics.how_many * topics.partitions, topics.replication_factor, np.zeros(1, PLACEMENT)
    placement["partitions"], placement["replication_factor"] = topics.partitions, factor
    replicas = np.zeros(n * factor, np.int64)
    place_topics(brokers, new_stripes(brokers, java_random(seed)), placement, replicas)
    nodes = arrow_array(brokers.table["node_id"][replicas].astype(np.int32))
    names = numbered_names(topics.name, topics.how_many) if topics.how_many > 1 else pa.array([topics.name])
    return topic_event_rows(
        n,
        entry=np.full(n, TopicEvent.SIGHTING),
        time=np.full(n, start_us - 1),
        topic=names.take(arrow_array(np.repeat(np.arange(topics.how_many), topics.partitions))),
        partition=np.tile(np.arange(topics.partitions), topics.how_many),
        is_internal=np.full(n, False),
        replica_nodes=pa.ListArray.from_arrays(pa.array(np.arange(n + 1) * factor, pa.int32()), nodes),
    )


def coming_times(per_day: float, days: float, start_us: int) -> Ints:
    """When each topic of a size is created: int64[topics], us, evenly, the first after half of the time between two."""
    nth = np.arange(int(per_day * days))
    return (start_us + (nth + 0.5) / per_day * US_PER_DAY).astype(np.int64)


def coming_rows(topics: SizedTopics, cluster: DescribedCluster, number: int) -> pa.RecordBatch:
    """Rows of TOPIC_EVENTS, a CreateTopics request for each topic of one size. number: their connection's id."""
    times = coming_times(topics.per_day, cluster.days, cluster.start_us)
    n = len(times)
    return topic_event_rows(
        n,
        entry=np.full(n, TopicEvent.CHANGE),
        time=times,
        topic=numbered_names(topics.name, n),
        kind=pa.repeat(CREATE_TOPIC, n),
        connection_id=np.full(n, number),
        exchange_no=np.arange(n),
        position=np.zeros(n, np.int64),
        client_id=pa.repeat(topics.name, n),
        num_partitions=np.full(n, topics.partitions),
        replication_factor=np.full(n, topics.replication_factor),
        validate_only=np.full(n, False),
    )
