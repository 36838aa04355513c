"""What the replay of partition limits takes from silver tables: brokers, partitions in Metadata, requested changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables import values
from schemas.tables.event_kinds import TopicEvent
from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
from schemas.tables.silver_topics import CLUSTER_METADATA, TOPIC_CHANGES
from schemas.tables.steps import TOPIC_EVENTS, TOPIC_USES
from schemas.wire.fetch import FETCH_REQUEST
from schemas.wire.metadata import METADATA_REQUEST
from schemas.wire.produce import PRODUCE_REQUEST
from udfs.columns.arrays import Ints
from udfs.columns.arrow_columns import arrow_array, concatenate_batches, us_since_1970
from udfs.columns.arrow_columns import compute as pc
from udfs.facts.arrow_tables import arrow_schema
from udfs.replay.shared.columns import codes_of, int_column
from udfs.replay.shared.dealt_rows import Step
from udfs.replay.shared.parts_in_order import whole_rows
from udfs.replay.shared.silver_columns import (
    Column,
    constant_column,
    event_rows,
    first_text,
    is_known,
    is_text,
    rows_where,
    same_columns,
    text_or_empty,
)
from udfs.replay.shared.unit_rows import FIRST_OF_ALL
from udfs.replay.shared.window import WHOLE, Window

_T, _U, _M, _C, _X, _B, _F = (
    TOPIC_EVENTS, TOPIC_USES, CLUSTER_METADATA, TOPIC_CHANGES, EXCHANGES, RECORD_BATCHES, FETCH_PARTITIONS
)  # fmt: skip
CLUSTER = Step(_T, (), ())
CHANGED_TOPICS = Step(_U, (_U.change,), (_U.api_key, _U.connection_id, _U.exchange_no))
METADATA_COLUMNS = (
    _M.connection_id, _M.exchange_no, _M.response_time, _M.entry, _M.position, _M.node_id, _M.rack, _M.topic,
    _M.topic_id, _M.is_internal, _M.partition, _M.replica_nodes,
)  # fmt: skip
AS_CHANGED = (
    _T.partition, _T.kind, _T.connection_id, _T.exchange_no, _T.position, _T.num_partitions, _T.replication_factor,
    _T.assignments, _T.configs, _T.validate_only, _T.error_code, _T.answered_num_partitions,
    _T.answered_replication_factor,
)  # fmt: skip
CHANGE_COLUMNS = (*AS_CHANGED, _C.topic, _C.topic_id, _C.client_id, _C.request_time)
REQUEST_COLUMNS = (_X.connection_id, _X.exchange_no, _X.api_version, _X.principal)
PRODUCE_COLUMNS = (_B.connection_id, _B.exchange_no, _B.source, _B.topic, _B.topic_id, _B.request_time)
FETCH_COLUMNS = (
    _F.connection_id, _F.exchange_no, _F.reader, _F.read_position, _F.topic, _F.topic_id, _F.request_time
)  # fmt: skip
NAMING_COLUMNS = (_M.connection_id, _M.exchange_no, _M.is_named, _M.topic, _M.topic_id, _M.request_time)
COUNTED = {
    PRODUCE_REQUEST.api_key: _T.produce_requests,
    FETCH_REQUEST.api_key: _T.fetch_requests,
    METADATA_REQUEST.api_key: _T.metadata_requests,
}
"""For each API, the column that counts the requests that use a changed topic."""
BROKER_KEY, PARTITION_KEY = (_T.node_id,), (_T.topic, _T.topic_id, _T.partition)
REQUEST_KEY = (_T.connection_id, _T.exchange_no)
PLACE = (*REQUEST_KEY, _T.position)
"""The columns that order the entries of Metadata responses that came at the same time."""


def metadata_events(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The brokers and partitions that Metadata responses list, without duplicates in a batch.

    A partition is as in the first response, a broker as in the last one. batches: rows of CLUSTER_METADATA.
    """
    m = CLUSTER_METADATA
    for batch in batches:
        is_partition = pc.and_(is_text(batch[m.entry], values.PARTITION), is_known(batch[m.partition]))
        yield first_row_of_each(first_sightings(rows_where(batch, is_partition)), PARTITION_KEY)
        is_broker = pc.and_(is_text(batch[m.entry], values.BROKER), is_known(batch[m.node_id]))
        yield last_row_of_each(listed_brokers(rows_where(batch, is_broker)), BROKER_KEY)


def first_sightings(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Each partition of a topic id, as first shown in Metadata. Versions without topic ids have null."""
    t, m = TOPIC_EVENTS, CLUSTER_METADATA
    return event_rows(
        {
            **same_columns(
                (t.partition, t.topic_id, t.replica_nodes, t.connection_id, t.exchange_no, t.position), rows
            ),
            t.entry: constant_column(TopicEvent.SIGHTING, rows, pa.int8()),
            t.topic: first_text(rows[m.topic], rows[m.topic_id]),
            t.time: us_since_1970(rows[m.response_time]),
            t.is_internal: pc.fill_null(rows[m.is_internal], False),
        }
    )


def listed_brokers(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Each broker that Metadata lists, with its last rack."""
    t, m = TOPIC_EVENTS, CLUSTER_METADATA
    return event_rows(
        {
            **same_columns((t.node_id, t.rack, t.connection_id, t.exchange_no, t.position), rows),
            t.entry: constant_column(TopicEvent.BROKER, rows, pa.int8()),
            t.time: us_since_1970(rows[m.response_time]),
        }
    )


def change_events(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Each requested change, from rows of TOPIC_CHANGES."""
    t, c = TOPIC_EVENTS, TOPIC_CHANGES
    for rows in batches:
        yield event_rows(
            {
                **same_columns(AS_CHANGED, rows),
                t.entry: constant_column(TopicEvent.CHANGE, rows, pa.int8()),
                t.time: us_since_1970(rows[c.request_time]),
                t.topic: first_text(rows[c.topic], rows[c.topic_id]),
                t.client_id: text_or_empty(rows[c.client_id]),
            }
        )


class Changed(NamedTuple):
    """The changes of topics, by topic and time. Each is in force until the next change of its topic.

    topics: the index of each topic. bounds: int64[topics + 1], a topic's changes are those from one bound to the next.
    begins: int64[changes], us. connection_id, exchange_no, position: int64[changes], which identify the change.
    """

    topics: dict[str | None, int]
    bounds: Ints
    begins: Ints
    connection_id: Ints
    exchange_no: Ints
    position: Ints


def changed_topics(changes: pa.Table) -> Changed:
    """The changes by topic. changes: topic, topic_id, request_time, connection_id, exchange_no and position of
    TOPIC_CHANGES.
    """
    c = TOPIC_CHANGES
    names = pc.coalesce(changes[c.topic], changes[c.topic_id]).to_pylist()
    known = sorted({name for name in names if name is not None})
    topics: dict[str | None, int] = {name: place for place, name in enumerate(known)}
    topic = np.array([topics.get(name, len(known)) for name in names], np.int64)
    numbers = [
        changes[column].cast(pa.int64()).combine_chunks().fill_null(FIRST_OF_ALL).to_numpy(zero_copy_only=False)
        for column in (c.request_time, c.connection_id, c.exchange_no, c.position)
    ]
    order = np.lexsort([*numbers[::-1], topic])
    order = order[topic[order] < len(known)]
    bounds = np.searchsorted(topic[order], np.arange(len(known) + 1))
    return Changed(topics, bounds.astype(np.int64), *(column[order] for column in numbers))


def produce_uses(
    batches: Iterable[pa.RecordBatch], changed: Changed, window: Window = WHOLE
) -> Iterator[pa.RecordBatch]:
    """The produce requests that use changed topics, from rows of RECORD_BATCHES."""
    b = RECORD_BATCHES
    for batch in batches:
        rows = rows_where(batch, is_text(batch[b.source], values.FROM_PRODUCE))
        yield uses_of_topics(rows, PRODUCE_REQUEST.api_key, changed, window)


def fetch_uses(batches: Iterable[pa.RecordBatch], changed: Changed, window: Window = WHOLE) -> Iterator[pa.RecordBatch]:
    """The fetches of consumers that want changed topics, from rows of FETCH_PARTITIONS."""
    f = FETCH_PARTITIONS
    for batch in batches:
        is_wanted = pc.and_(is_text(batch[f.reader], values.CONSUMER), is_known(batch[f.read_position]))
        yield uses_of_topics(rows_where(batch, is_wanted), FETCH_REQUEST.api_key, changed, window)


def metadata_uses(
    batches: Iterable[pa.RecordBatch], changed: Changed, window: Window = WHOLE
) -> Iterator[pa.RecordBatch]:
    """The answered Metadata requests that name changed topics, from rows of CLUSTER_METADATA."""
    m = CLUSTER_METADATA
    for batch in batches:
        yield uses_of_topics(rows_where(batch, batch[m.is_named]), METADATA_REQUEST.api_key, changed, window)


def uses_of_topics(rows: pa.RecordBatch, api_key: int, changed: Changed, window: Window = WHOLE) -> pa.RecordBatch:
    """Rows of TOPIC_USES for requests in the window that use a changed topic, each with the change in force. Successive
    rows of one use become one.
    """
    u, x = TOPIC_USES, EXCHANGES
    topics: Any = first_text(rows[_M.topic], rows[_M.topic_id])
    places = np.array([changed.topics.get(name, -1) for name in topics.dictionary.to_pylist()] or [-1], np.int64)
    topic = places[topics.indices.fill_null(0).to_numpy(zero_copy_only=False)]
    topic = np.where(topics.is_valid().to_numpy(zero_copy_only=False), topic, -1)
    time = int_column(rows, x.request_time, FIRST_OF_ALL)
    change = np.where(window.has(time) | window.is_whole, change_at(topic, time, changed), -1)
    uses = np.stack([change, *(int_column(rows, name, 0) for name in (x.connection_id, x.exchange_no))])
    uses = uses[:, change >= 0]
    is_new = np.append(True, (np.diff(uses, axis=1) != 0).any(axis=0))[: uses.shape[1]]
    change, connection_id, exchange_no = uses[:, is_new]
    return event_rows(
        {
            u.change: arrow_array(change),
            u.api_key: pa.array(np.full(len(change), api_key), pa.int16()),
            u.connection_id: arrow_array(connection_id),
            u.exchange_no: arrow_array(exchange_no),
        }
    )


def change_at(topic: Ints, time: Ints, changed: Changed) -> Ints:
    """The change of each topic in force at a time, -1 if there is none: int64[n]. A change is in force until the next
    one.

    A change whose time is not known is never in force. topic: int64[n], indices of changed topics, below 0 for others.
    time: int64[n], us, FIRST_OF_ALL if it is not known.
    """
    change = np.full(len(topic), -1)
    for place in np.unique(topic[topic >= 0]).tolist():
        first, end = changed.bounds[place : place + 2]
        rows = np.flatnonzero(topic == place)
        begins = changed.begins[first:end]
        last = np.searchsorted(begins, time[rows], side="left") - 1
        ends = np.append(begins[1:], np.iinfo(np.int64).max)
        within = (last >= 0) & (begins[last] != FIRST_OF_ALL) & (time[rows] < ends[last])
        change[rows[within]] = first + last[within]
    return change


def used_changes(batches: Iterable[pa.RecordBatch], changed: Changed) -> Iterator[pa.RecordBatch]:
    """Rows of TOPIC_EVENTS of the kind USES, from sorted rows of TOPIC_USES: how many requests of each API use the
    topic of a change.
    """
    u, t = TOPIC_USES, TOPIC_EVENTS
    counts = np.zeros((len(changed.begins), len(COUNTED)), np.int64)
    places = {api_key: place for place, api_key in enumerate(COUNTED)}
    last: tuple[int, ...] = ()
    for batch in batches:
        if not batch.num_rows:
            continue
        columns = [int_column(batch, name, 0) for name in (u.change, u.api_key, u.connection_id, u.exchange_no)]
        rows = np.stack(columns)
        is_new = np.append(tuple(rows[:, 0].tolist()) != last, (np.diff(rows, axis=1) != 0).any(axis=0))
        last = tuple(rows[:, -1].tolist())
        api = np.array([places[api_key] for api_key in rows[1].tolist()], np.int64)
        np.add.at(counts, (rows[0][is_new], api[is_new]), 1)
    used = np.flatnonzero(counts.any(axis=1))
    yield event_rows(
        {
            t.entry: pa.array(np.full(len(used), TopicEvent.USES), pa.int8()),
            t.connection_id: arrow_array(changed.connection_id[used]),
            t.exchange_no: arrow_array(changed.exchange_no[used]),
            t.position: pa.array(changed.position[used], pa.int32()),
            **{column: arrow_array(counts[used, place]) for place, column in enumerate(COUNTED.values())},
        }
    )


def request_events(batches: Iterable[pa.RecordBatch], changed: Changed) -> Iterator[pa.RecordBatch]:
    """The version and principal of each request for a change, from rows of EXCHANGES."""
    t, x = TOPIC_EVENTS, EXCHANGES
    connections = pa.array(np.unique(changed.connection_id))
    requests = set(zip(changed.connection_id.tolist(), changed.exchange_no.tolist(), strict=True))
    for batch in batches:
        rows = batch.filter(pc.is_in(batch[x.connection_id], value_set=connections))
        numbers = zip(*(int_column(rows, name, 0).tolist() for name in (x.connection_id, x.exchange_no)), strict=True)
        rows = rows.filter(pa.array([request in requests for request in numbers], pa.bool_()))
        yield event_rows(
            {
                **same_columns((t.connection_id, t.exchange_no, t.api_version), rows),
                t.entry: constant_column(TopicEvent.REQUEST, rows, pa.int8()),
                t.principal: text_or_empty(rows[x.principal]),
            }
        )


def topic_events(batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """All rows of TOPIC_EVENTS of a cluster, from the rows that tasks made: each broker and partition once, and each
    change with its request's version and principal, and the uses of its topic.
    """
    t, schema = TOPIC_EVENTS, arrow_schema(TOPIC_EVENTS)
    held = [whole_rows(batch, t) for batch in batches]
    if not held:
        return schema.empty_table()
    rows = concatenate_batches(held)
    entry = int_column(rows, t.entry, 0)
    of_kind = {kind: rows.filter(pa.array(entry == kind)) for kind in TopicEvent}
    brokers = last_row_of_each(of_kind[TopicEvent.BROKER], BROKER_KEY)
    shown = first_row_of_each(of_kind[TopicEvent.SIGHTING], PARTITION_KEY)
    requests, uses = of_kind[TopicEvent.REQUEST], of_kind[TopicEvent.USES]
    changes = with_columns(of_kind[TopicEvent.CHANGE], requests, REQUEST_KEY, (t.api_version, t.principal))
    changes = with_columns(changes, uses, (*REQUEST_KEY, t.position), tuple(COUNTED.values()))
    parts = (with_nulls_in(brokers, t.time, *PLACE), with_nulls_in(shown, *PLACE), changes)
    return pa.Table.from_batches(parts).cast(schema)


def first_row_of_each(rows: pa.RecordBatch, key: Sequence[str]) -> pa.RecordBatch:
    """The first row of each key in the order of Metadata responses; `is_internal` if any row of the key is."""
    order, begins = places_by_key(rows, key)
    first = rows.take(order[begins[:-1]])
    is_internal = int_column(rows, TOPIC_EVENTS.is_internal, 0)[order]
    internal = np.maximum.reduceat(is_internal, begins[:-1]) == 1 if rows.num_rows else is_internal == 1
    return replace_columns(first, {TOPIC_EVENTS.is_internal: arrow_array(internal)})


def last_row_of_each(rows: pa.RecordBatch, key: Sequence[str]) -> pa.RecordBatch:
    """The last row of each key in the order of Metadata responses."""
    order, begins = places_by_key(rows, key)
    return rows.take(order[begins[1:] - 1])


def places_by_key(rows: pa.RecordBatch, key: Sequence[str]) -> tuple[Ints, Ints]:
    """(the indices of rows by key, then in the order of Metadata responses, int64[rows]; where each key begins, and
    where the last ends, int64[keys + 1]).
    """
    keys = [codes_of(rows[column])[0] for column in key]
    order = np.lexsort(
        [*(int_column(rows, column, FIRST_OF_ALL) for column in (*PLACE[::-1], TOPIC_EVENTS.time)), *keys]
    )
    changes = np.logical_or.reduce([np.diff(codes[order]) != 0 for codes in keys])
    begins = np.concatenate([np.zeros(1, np.int64), np.flatnonzero(changes) + 1, np.full(1, rows.num_rows)])
    return order, begins if rows.num_rows else begins[:1]


def with_columns(
    rows: pa.RecordBatch, others: pa.RecordBatch, key: Sequence[str], columns: Sequence[str]
) -> pa.RecordBatch:
    """The rows with these columns taken from the other row with the same key, null if there is none."""
    keys = zip(*(int_column(others, column, 0).tolist() for column in key), strict=True)
    place = {of: number for number, of in enumerate(keys)}
    wanted = zip(*(int_column(rows, column, 0).tolist() for column in key), strict=True)
    places = pa.array([place.get(of) for of in wanted], pa.int64())
    return replace_columns(rows, {column: others[column].take(places) for column in columns})


def replace_columns(rows: pa.RecordBatch, columns: Mapping[str, Column]) -> pa.RecordBatch:
    """The rows with some columns replaced."""
    names = rows.schema.names
    return pa.RecordBatch.from_arrays([columns.get(name, rows[name]) for name in names], names=names)


def with_nulls_in(rows: pa.RecordBatch, *columns: str) -> pa.RecordBatch:
    """The rows with null in these columns."""
    nulls: Any = pa.nulls
    return replace_columns(rows, {column: nulls(rows.num_rows, rows[column].type) for column in columns})
