"""Metadata responses as rows of `cluster_metadata`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.silver_topics import CLUSTER_METADATA
from schemas.tables.table import Column
from schemas.tables.values import BROKER, PARTITION, TOPIC
from udfs.columns.arrays import Bools, Ints
from udfs.columns.arrow_columns import repeated_text_column
from udfs.columns.picking import position_among
from udfs.facts.arrow_tables import Values, make_rows, nulls_besides
from udfs.facts.exchange_messages import Messages
from udfs.facts.exchanges import Exchanges, shared_columns
from udfs.facts.hashed_names import ABSENT
from udfs.wire.decoded_level import Level
from udfs.wire.messages import DecodedFrames

SHARED = (
    CLUSTER_METADATA.capture_id,
    CLUSTER_METADATA.connection_id,
    CLUSTER_METADATA.exchange_no,
    CLUSTER_METADATA.broker,
    CLUSTER_METADATA.request_time,
    CLUSTER_METADATA.response_time,
)


def metadata_rows(exchanges: Exchanges, messages: Messages) -> Iterator[pa.RecordBatch]:
    """Rows of `cluster_metadata` for decoded Metadata exchanges."""
    summary = MetadataSummary(names_topics(exchanges, messages), cluster_ids(exchanges, messages))
    yield listed_broker_rows(exchanges, messages, summary)
    yield listed_topic_rows(exchanges, messages, summary)
    yield listed_partition_rows(exchanges, messages, summary)


class MetadataSummary(NamedTuple):
    """What Metadata messages say as a whole.

    names_topics: bool[exchanges], whether the request names topics. cluster: int64[exchanges], the hash of the cluster
    id in the response, ABSENT if it has none.
    """

    names_topics: Bools
    cluster: Ints


def names_topics(exchanges: Exchanges, messages: Messages) -> Bools:
    """Whether each exchange's request names topics: bool[exchanges]. One that names none asks for all or none."""
    named = messages.request_exchanges[messages.request.levels["topics"].parent]
    return np.bincount(named, minlength=len(exchanges)) > 0


def cluster_ids(exchanges: Exchanges, messages: Messages) -> Ints:
    """The hash of the cluster's id in the response of each exchange, or ABSENT: int64[exchanges]."""
    by_exchange = np.full(len(exchanges), ABSENT)
    starts, lengths = messages.response.levels[""].span("cluster_id")
    known = np.flatnonzero(lengths > 0)
    hashes = exchanges.names.learn(exchanges.frames.arena, starts[known], lengths[known])
    by_exchange[messages.response_exchanges[known]] = hashes
    return by_exchange


def entry_rows(
    exchanges: Exchanges, entry: str, exchange: Ints, position: Ints, columns: Mapping[Column, Values]
) -> pa.RecordBatch:
    """Rows of one kind of entry. Columns that are not given are null. exchange, position: int64[n]."""
    shared = shared_columns(exchanges, exchange)
    given: dict[str, Values] = {
        **{str(name): shared[str(name)] for name in SHARED},
        str(CLUSTER_METADATA.entry): repeated_text_column(entry, len(exchange)),
        str(CLUSTER_METADATA.position): position,
        **{str(name): values for name, values in columns.items()},
    }
    return make_rows(CLUSTER_METADATA, {**given, **nulls_besides(CLUSTER_METADATA, given, len(exchange))})


def listed_broker_rows(exchanges: Exchanges, messages: Messages, summary: MetadataSummary) -> pa.RecordBatch:
    """One row for each broker in the responses."""
    level = messages.response.levels["brokers"]
    exchange = messages.response_exchanges[level.parent]
    text = {name: span_texts(exchanges, level, name) for name in ("host", "rack")}
    t = CLUSTER_METADATA
    return entry_rows(
        exchanges, BROKER, exchange, position_among(level.parent),
        {t.cluster_id: exchanges.names.texts_of(summary.cluster[exchange]), t.node_id: level.column("node_id"),
         t.host: text["host"], t.port: level.column("port"), t.rack: text["rack"]},
    )  # fmt: skip


def topic_columns(exchanges: Exchanges, topics: Level, rows: Ints) -> dict[Column, pa.Array[Any] | Ints]:
    """Name and id of topics, and whether they are internal; rows: int64[n], rows of the level."""
    hashes = exchanges.names.learn_topics(exchanges.frames.arena, topics, "name")
    _, topic_id = exchanges.names.topic_columns(hashes[rows])
    t = CLUSTER_METADATA
    return {
        t.topic: span_texts(exchanges, topics, "name").take(rows),
        t.topic_id: topic_id,
        t.is_internal: topics.column("is_internal")[rows] == 1,
    }


def listed_topic_rows(exchanges: Exchanges, messages: Messages, summary: MetadataSummary) -> pa.RecordBatch:
    """One row for each topic without partitions in the responses; most of these topics have an error."""
    level = messages.response.levels["topics"]
    rows = np.flatnonzero(level.column("partitions.count") <= 0)
    exchange = messages.response_exchanges[level.parent[rows]]
    columns = topic_columns(exchanges, level, rows) | {
        CLUSTER_METADATA.cluster_id: exchanges.names.texts_of(summary.cluster[exchange]),
        CLUSTER_METADATA.is_named: pa.array(summary.names_topics[exchange]),
        CLUSTER_METADATA.error_code: level.column("error_code")[rows],
    }
    return entry_rows(exchanges, TOPIC, exchange, position_among(level.parent)[rows], columns)


def listed_partition_rows(exchanges: Exchanges, messages: Messages, summary: MetadataSummary) -> pa.RecordBatch:
    """One row for each partition in the responses."""
    decoded = messages.response
    topics, level = decoded.levels["topics"], decoded.levels["topics.partitions"]
    frame = topics.parent[level.parent]
    exchange = messages.response_exchanges[frame]
    t = CLUSTER_METADATA
    columns = topic_columns(exchanges, topics, level.parent) | {
        t.cluster_id: exchanges.names.texts_of(summary.cluster[exchange]),
        t.is_named: pa.array(summary.names_topics[exchange]),
        t.partition: level.column("partition_index"),
        t.leader_id: level.column("leader_id"),
        t.leader_epoch: level.column("leader_epoch"),
        t.replica_nodes: node_lists(decoded, level, "replica_nodes"),
        t.isr_nodes: node_lists(decoded, level, "isr_nodes"),
        t.error_code: level.column("error_code"),
    }
    return entry_rows(exchanges, PARTITION, exchange, position_among(frame), columns)


def node_lists(decoded: DecodedFrames, level: Level, name: str) -> pa.Array[Any]:
    """The node ids of each partition in an array field, as lists."""
    nodes = decoded.levels[f"topics.partitions.{name}"]
    offsets = np.searchsorted(nodes.parent, np.arange(level.rows + 1))
    ids: pa.Array[Any] = pa.array(nodes.column("value"), pa.int32())
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), ids)


def span_texts(exchanges: Exchanges, level: Level, name: str) -> pa.Array[Any]:
    """The texts of a level's string field, one for each row."""
    return exchanges.names.texts_of(exchanges.names.learn(exchanges.frames.arena, *level.span(name)))
