"""A cluster on paper as the rows that a captured one gives: brokers, topics that are there, topics that come to be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.steps import TOPIC_EVENTS
from schemas.tables.values import CREATE_TOPIC
from udfs.columns.arrays import Ints
from udfs.columns.arrow_columns import array_of
from udfs.columns.arrow_columns import compute as pc
from udfs.columns.time_units import US_PER_DAY
from udfs.facts.arrow_tables import arrow_schema, nulls_besides, rows_of
from udfs.replay.partition_limits.history.changes import BROKER, CHANGE, SIGHTING
from udfs.replay.partition_limits.placement.brokers import Brokers, brokers_of
from udfs.replay.partition_limits.placement.java_random import java_random
from udfs.replay.partition_limits.placement.striped import place_striped, stripes_for


class SizedTopics(NamedTuple):
    """Topics of one size: how many there are, or how many come in a day."""

    name: str
    partitions: int
    replication_factor: int
    how_many: int = 0
    per_day: float = 0.0


def described_events(
    brokers: Sequence[tuple[int, str | None]], there: Iterable[SizedTopics], coming: Iterable[SizedTopics],
    start_us: int, days: float, seed: int,
) -> pa.Table:  # fmt: skip
    """Rows of TOPIC_EVENTS: what is there lies where StripedReplicaPlacer puts it, what comes is spread evenly."""
    nodes, racks = zip(*sorted(brokers), strict=True)
    placed_on = brokers_of(nodes, racks, [True] * len(nodes))
    parts = [broker_rows(nodes, racks)]
    parts += [rows for i, topics in enumerate(there) for rows in there_rows(topics, placed_on, start_us, seed + i)]
    parts += [coming_rows(topics, start_us, days, number) for number, topics in enumerate(coming)]
    return pa.Table.from_batches(parts, arrow_schema(TOPIC_EVENTS))


def event_rows(rows: int, columns: Mapping[str, Any]) -> pa.RecordBatch:
    """Rows of TOPIC_EVENTS that are null besides these columns."""
    t = TOPIC_EVENTS
    return rows_of(t, {**columns, **nulls_besides(t, columns, rows)})


def broker_rows(nodes: Sequence[int], racks: Sequence[str | None]) -> pa.RecordBatch:
    """The brokers."""
    t, n = TOPIC_EVENTS, len(nodes)
    columns: dict[str, Any] = {
        t.entry: np.full(n, BROKER),
        t.node_id: np.array(nodes),
        t.rack: pa.array(racks, pa.string()),
    }
    return event_rows(n, columns)


def numbered(name: str, count: int) -> pa.Array[Any]:
    """NAME-0, NAME-1, ..."""
    return pc.binary_join_element_wise(name, array_of(np.arange(count)).cast(pa.string()), "-")


def there_rows(topics: SizedTopics, brokers: Brokers, start_us: int, seed: int) -> Iterable[pa.RecordBatch]:
    """Partitions of topics that are there."""
    t, n, factor = TOPIC_EVENTS, topics.how_many * topics.partitions, topics.replication_factor
    replicas, rng, stripes = np.zeros(n * factor, np.int64), java_random(seed), stripes_for(brokers)
    for topic in range(topics.how_many):
        at = topic * topics.partitions * factor
        place_striped(brokers, stripes, rng, topics.partitions, factor, replicas, at)
    names = numbered(topics.name, topics.how_many) if topics.how_many > 1 else pa.repeat(topics.name, 1)
    ends, nodes = pa.array(np.arange(n + 1) * factor, pa.int32()), array_of(brokers.node_id[replicas].astype(np.int32))
    lists = pa.ListArray.from_arrays(ends, nodes)
    columns: dict[str, Any] = {
        t.entry: np.full(n, SIGHTING), t.time: np.full(n, start_us - 1),
        t.topic: names.take(array_of(np.repeat(np.arange(topics.how_many), topics.partitions))),
        t.partition: np.tile(np.arange(topics.partitions), topics.how_many), t.is_internal: np.full(n, False),
        t.replica_nodes: lists,
    }  # fmt: skip
    yield event_rows(n, columns)


def coming_times(per_day: float, days: float, start_us: int) -> Ints:
    """When each topic of a size class comes: evenly, the first after half of what lies between two."""
    nth = np.arange(int(per_day * days))
    return (start_us + (nth + 0.5) / per_day * US_PER_DAY).astype(np.int64)


def coming_rows(topics: SizedTopics, start_us: int, days: float, number: int) -> pa.RecordBatch:
    """CreateTopics requests of one size class; `number` tells its requests from those of others."""
    t = TOPIC_EVENTS
    times = coming_times(topics.per_day, days, start_us)
    n = len(times)
    columns: dict[str, Any] = {
        t.entry: np.full(n, CHANGE), t.time: times, t.topic: numbered(topics.name, n),
        t.kind: pa.repeat(CREATE_TOPIC, n),
        t.connection_id: np.full(n, number), t.exchange_no: np.arange(n), t.position: np.zeros(n, np.int64),
        t.client_id: pa.repeat(topics.name, n), t.num_partitions: np.full(n, topics.partitions),
        t.replication_factor: np.full(n, topics.replication_factor), t.validate_only: np.full(n, False),
    }  # fmt: skip
    return event_rows(n, columns)
