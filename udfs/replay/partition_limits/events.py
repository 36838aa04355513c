"""Turns rows of TOPIC_EVENTS into records: brokers, partitions that Metadata shows, and requested changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables import values
from schemas.tables.event_kinds import TopicEvent
from schemas.tables.steps import TOPIC_EVENTS
from schemas.wire.errors import INVALID_REPLICA_ASSIGNMENT
from udfs.columns.arrays import Ints, Records, stretch_edges
from udfs.columns.arrow_columns import arrow_array
from udfs.columns.arrow_columns import compute as pc
from udfs.columns.records import int_fields
from udfs.columns.time_units import NEVER
from udfs.facts.arrow_tables import arrow_schema, empty_batch
from udfs.replay.partition_limits.placement.brokers import Brokers, brokers_of
from udfs.replay.partition_limits.state import AUTO_CREATE, CREATE, DELETE, GROW, MOVE, NOTHING
from udfs.replay.shared.columns import int_column
from udfs.replay.shared.silver_columns import null_unless

KINDS = {
    values.CREATE_TOPIC: CREATE,
    values.AUTO_CREATE: AUTO_CREATE,
    values.CREATE_PARTITIONS: GROW,
    values.REASSIGN_PARTITION: MOVE,
    values.DELETE_TOPIC: DELETE,
}
STRICT_FROM = {CREATE: 6, GROW: 3, DELETE: 5, AUTO_CREATE: 0}
"""From these versions on, a request is refused when its controller mutation quota is used up (KIP-599). For a Metadata
request, the broker asks the controller with the newest version (AutoTopicCreationManager)."""
INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state")
"""The internal topics that KIP-578 names."""
NO_RESPONSE = -(1 << 15)
"""Stands for an error code if the capture has no response."""
UNEVEN = -2
"""Stands for a number of replicas if the partitions of a request differ in it, or have none."""

TOPIC_REQUEST = int_fields(
    "time",  # us
    "request",  # rows of the same request have the same number and follow each other
    "kind",
    "topic",
    "partition",  # of MOVE
    "num_partitions",  # -1: the broker's default
    "replication_factor",  # likewise
    "answered_num_partitions",  # -1: the response does not tell
    "answered_replication_factor",
    "configs",
    "validate_only",
    "error_code",  # NO_RESPONSE where there is none
    "is_done",  # 1: the cluster did it
    "is_internal",  # 1: of an internal topic
    "is_strict",  # 1: refused when its mutation quota is used up
    "client",  # number of the client.id
    "connection",  # number of the connection
    "first_named",  # where the brokers that the request names begin
    "named_partitions",  # for how many partitions it names brokers; 0: Kafka places them
    "named_factor",  # how many of each, or UNEVEN
)
"""A requested change to a topic."""

SIGHTING = int_fields(
    "topic",
    "topic_id",  # a number from 1 on, 0 if Metadata has no id
    "partition",
    "time",  # us
    "is_internal",  # 1: of an internal topic
    "first_replica",  # where its brokers begin
    "replicas",
)
"""A partition of a topic id, as Metadata shows it first."""

_E = TOPIC_EVENTS
ORDER = (
    _E.entry, _E.time, _E.connection_id, _E.exchange_no, _E.position, _E.topic, _E.topic_id, _E.partition, _E.node_id,
)  # fmt: skip


class TopicEvents(NamedTuple):
    """The events of a cluster, with numbered brokers and topics.

    requests: TOPIC_REQUEST[requests] in time order. rows: the rows of TOPIC_EVENTS from which they are made.
    named_brokers: int64[replicas], the brokers that requests name. sightings: SIGHTING[sightings]. shown_brokers:
    int64[replicas], the brokers of the sightings. topics: how many topic names there are.
    """

    rows: pa.RecordBatch
    requests: Records
    named_brokers: Ints
    sightings: Records
    shown_brokers: Ints
    brokers: Brokers
    topics: int


class Assignments(NamedTuple):
    """The replicas that requests name themselves.

    nodes: int64[replicas], node ids, partition by partition. For each request: first, where its nodes begin;
    partitions, how many it names; factor, the replicas of each, or UNEVEN.
    """

    nodes: Ints
    first: Ints
    partitions: Ints
    factor: Ints


def read_topic_events(batches: Iterable[pa.RecordBatch]) -> TopicEvents:
    """The events of one cluster. batches: rows of TOPIC_EVENTS, in any order."""
    ordered = sort_topic_events(batches)
    kinds = TopicEvent.BROKER, TopicEvent.SIGHTING, TopicEvent.CHANGE
    listed, sighted, requested = (ordered.filter(pc.equal(ordered[_E.entry], entry)) for entry in kinds)
    names: pa.Array[Any] = pc.unique(pa.concat_arrays([sighted[_E.topic], requested[_E.topic]]))
    assignments, replicas = parse_assignments(valid_assignments(requested)), pc.list_flatten(sighted[_E.replica_nodes])
    shown_nodes = int_values_of(replicas, -1)
    nodes, brokers = known_brokers(listed, np.concatenate([shown_nodes, assignments.nodes]))
    return TopicEvents(
        rows=requested,
        requests=requests_from_rows(requested, names, assignments),
        named_brokers=np.searchsorted(nodes, assignments.nodes),
        sightings=sightings_of(sighted, names),
        shown_brokers=np.searchsorted(nodes, shown_nodes),
        brokers=brokers,
        topics=len(names),
    )


def sort_topic_events(batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
    """The rows of all batches in a fixed order, independent of the order in which they come."""
    schema, held = arrow_schema(TOPIC_EVENTS), list(batches)
    # Spark names the items of a list differently, and declares no column to be without nulls.
    table = pa.Table.from_batches(held).cast(schema) if held else schema.empty_table()
    ordered = table.sort_by([(str(column), "ascending") for column in ORDER]).combine_chunks()
    return ordered.to_batches()[0] if ordered.num_rows else empty_batch(TOPIC_EVENTS)


def int_values_of(column: pa.Array[Any], missing: int) -> Ints:
    """A column of whole numbers, with `missing` instead of null: int64[rows]."""
    return pc.fill_null(column.cast(pa.int64()), missing).to_numpy(zero_copy_only=False)


def places_among_names(column: pa.Array[Any], names: pa.Array[Any]) -> Ints:
    """The index of each value among the names, -1 if it is not among them: int64[rows]."""
    return int_values_of(pc.index_in(column, value_set=names), -1)


def known_brokers(listed: pa.RecordBatch, named: Ints) -> tuple[Ints, Brokers]:
    """Node ids in ascending order, int64[brokers], and the brokers. Brokers that are known from replicas only are down.

    listed: rows of brokers. named: int64[replicas], the node ids of replicas, below 0 for none.
    """
    up = int_column(listed, _E.node_id, -1)
    racks = dict(zip(up.tolist(), listed[_E.rack].to_pylist(), strict=True))
    nodes = np.unique(np.concatenate([up, named]))
    nodes = nodes[nodes >= 0]
    ids = nodes.tolist()
    return nodes, brokers_of(ids, [racks.get(node) for node in ids], [node in racks for node in ids])


def valid_assignments(requested: pa.RecordBatch) -> pa.Array[Any]:
    """The assignments of requests, without those that Kafka found invalid: they may name brokers that do not exist."""
    is_invalid = pc.fill_null(pc.equal(requested[_E.error_code], INVALID_REPLICA_ASSIGNMENT), False)
    return null_unless(pc.invert(is_invalid), requested[_E.assignments])


def parse_assignments(column: pa.Array[Any]) -> Assignments:
    """The assignments of requests, from a column of lists of texts such as `3:101,102`: a partition and its nodes."""
    request = pc.list_parent_indices(column).to_numpy().astype(np.int64)
    parts = pc.split_pattern(pc.list_flatten(column), ":", max_splits=1)
    partition = int_values_of(pc.list_element(parts, 0), 0)
    order = arrow_array(np.lexsort((partition, request)))  # by request, and then by partition
    nodes = pc.split_pattern(pc.list_element(parts, 1), ",").take(order)
    texts = pc.list_flatten(nodes)
    node = int_values_of(pc.if_else(pc.equal(texts, ""), "-1", texts), -1)
    width, n = int_values_of(pc.list_value_length(nodes), 0), len(column)
    partitions, replicas = np.bincount(request, minlength=n), np.bincount(request, width, n).astype(np.int64)
    factor = np.zeros(n, np.int64)
    np.maximum.at(factor, request, width)
    lacks = np.bincount(np.repeat(request, width)[node < 0], minlength=n)
    is_even = (factor * partitions == replicas) & (lacks == 0)
    return Assignments(node, stretch_edges(replicas)[:-1], partitions, np.where(is_even, factor, UNEVEN))


def requests_from_rows(rows: pa.RecordBatch, names: pa.Array[Any], assignments: Assignments) -> Records:
    """The changes requested: TOPIC_REQUEST[rows]."""
    requests, kind_names = np.zeros(rows.num_rows, TOPIC_REQUEST), pa.array(list(KINDS))
    for name, column, missing in (
        ("time", _E.time, 0),
        ("partition", _E.partition, 0),
        ("num_partitions", _E.num_partitions, -1),
        ("replication_factor", _E.replication_factor, -1),
        ("answered_num_partitions", _E.answered_num_partitions, -1),
        ("answered_replication_factor", _E.answered_replication_factor, -1),
        ("configs", _E.configs, 0),
        ("validate_only", _E.validate_only, 0),
        ("error_code", _E.error_code, NO_RESPONSE),
    ):
        requests[name] = int_column(rows, column, missing)
    requests["kind"] = np.array([*KINDS.values(), NOTHING])[places_among_names(rows[_E.kind], kind_names)]
    requests["topic"] = places_among_names(rows[_E.topic], names)
    requests["request"] = request_numbers(rows)
    for name, column in (("client", _E.client_id), ("connection", _E.connection_id)):
        requests[name] = places_among_names(rows[column], rows[column].unique())
    requests["is_done"] = (requests["error_code"] == 0) & (requests["validate_only"] == 0)
    is_internal = pc.is_in(names, value_set=pa.array(INTERNAL_TOPICS)).to_numpy(zero_copy_only=False)
    requests["is_internal"] = is_internal[requests["topic"]]
    strict_from = np.array([STRICT_FROM.get(kind, NEVER) for kind in range(NOTHING + 1)])
    requests["is_strict"] = strict_from[requests["kind"]] <= int_column(rows, _E.api_version, 0)
    requests["first_named"] = assignments.first
    requests["named_partitions"], requests["named_factor"] = assignments.partitions, assignments.factor
    return requests


def request_numbers(rows: pa.RecordBatch) -> Ints:
    """The number of each row's request, from 0 on in the order of the rows: int64[rows]."""
    exchange = np.stack([int_column(rows, _E.connection_id, 0), int_column(rows, _E.exchange_no, 0)])
    return np.cumsum(np.append(0, np.any(np.diff(exchange, axis=1) != 0, axis=0)))[: rows.num_rows]


def sightings_of(rows: pa.RecordBatch, names: pa.Array[Any]) -> Records:
    """The partitions that Metadata shows: SIGHTING[rows]."""
    sightings, ids = np.zeros(rows.num_rows, SIGHTING), rows[_E.topic_id]
    sightings["topic"] = places_among_names(rows[_E.topic], names)
    sightings["topic_id"] = places_among_names(ids, ids.drop_null().unique()) + 1
    sightings["partition"], sightings["time"] = int_column(rows, _E.partition, 0), int_column(rows, _E.time, NEVER)
    sightings["is_internal"] = int_column(rows, _E.is_internal, 0)
    sightings["replicas"] = int_values_of(pc.list_value_length(rows[_E.replica_nodes]), 0)
    sightings["first_replica"] = stretch_edges(sightings["replicas"])[:-1]
    return sightings
