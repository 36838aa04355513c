"""What the replay of batches takes from silver tables: the batches that each client sent, and the client's software."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa

from schemas.tables.silver import CONNECTIONS, RECORD_BATCHES
from schemas.tables.silver_topics import TOPIC_CHANGES
from schemas.tables.steps import SENT
from schemas.tables.values import CREATE_TOPIC, FROM_PRODUCE
from udfs.columns.arrow_columns import compute as pc
from udfs.columns.arrow_columns import us_since_1970
from udfs.replay.batch_split.settings import HALVES_SINCE
from udfs.replay.shared.client_software import Software, may_be_java, numbers_by_connection, release_of
from udfs.replay.shared.dealt_rows import Step
from udfs.replay.shared.process_addresses import ONE_ADDRESS_EACH, ProcessAddresses
from udfs.replay.shared.silver_columns import (
    ByConnection,
    Column,
    append_times,
    base_sequences,
    constant_text_column,
    event_rows,
    is_known,
    is_text,
    list_or_empty,
    rows_where,
    same_columns,
    text_or_empty,
)
from udfs.wire.record_batches import MAGIC_VALUE_V2

_S, _B, _C = SENT, RECORD_BATCHES, CONNECTIONS
PRODUCERS = Step(
    _S,
    (_S.client_id, _S.client_address),
    (_S.append_from, _S.request_time, _S.connection_id, _S.exchange_no, _S.position),
)
LISTS = (_S.record_sizes, _S.create_times, _S.recompressed_bytes)
"""Columns of lists that are also in RECORD_BATCHES. A missing list becomes an empty one."""
AS_SENT = (
    _S.topic, _S.partition, _S.connection_id, _S.exchange_no, _S.position, _S.size_bytes, _S.codec,
    _S.producer_id, _S.producer_epoch, _S.error_code, _S.uncompressed_bytes, _S.keyless_records,
)  # fmt: skip
"""Columns that SENT takes unchanged from RECORD_BATCHES."""
BATCH_COLUMNS = (
    *AS_SENT, *LISTS, _B.source, _B.magic, _B.client_id, _B.client_address, _B.base_timestamp, _B.base_sequence,
    _B.request_time, _B.response_time,
)  # fmt: skip
CONNECTION_COLUMNS = (
    _C.connection_id, _C.client_software_name, _C.client_software_version, _C.began_before_capture
)  # fmt: skip
CHANGE_COLUMNS = (
    TOPIC_CHANGES.topic, TOPIC_CHANGES.kind, TOPIC_CHANGES.error_code, TOPIC_CHANGES.validate_only,
    TOPIC_CHANGES.max_message_bytes, TOPIC_CHANGES.compression_type, TOPIC_CHANGES.request_time,
    TOPIC_CHANGES.connection_id, TOPIC_CHANGES.exchange_no, TOPIC_CHANGES.position,
)  # fmt: skip
PRODUCER, UNCOMPRESSED = "producer", "uncompressed"
"""Values of a topic's compression.type: brokers store batches as producers send them, or without compression."""
Release = tuple[int, int]


class Producers(NamedTuple):
    """The clients that produce, by connection; flags are 1 for yes and 0 for no.

    is_java: it may be Kafka's own client. halves: it may be Kafka's own client of HALVES_SINCE or later; a client that
    does not say its release may be. linger_ms: the default of linger.ms in its release. began_before: the connection
    was opened before the capture began. processes: those of clients that are several.
    """

    is_java: ByConnection
    halves: ByConnection
    linger_ms: ByConnection
    began_before: ByConnection
    processes: ProcessAddresses


def producers_of(
    connections: pa.Table,
    software: Mapping[int, Software],
    default_linger_ms: Callable[[Release | None], int],
    processes: ProcessAddresses = ONE_ADDRESS_EACH,
) -> Producers:
    """The clients on these connections, from rows of CONNECTIONS and from what their requests show. Only the requests
    have what a request log says about a client.

    default_linger_ms: the default of linger.ms in a release; for None, in the newest one.
    """
    c = CONNECTIONS
    java, halves, linger_ms, began = dict[int, int](), dict[int, int](), dict[int, int](), dict[int, int]()
    for row in connections.to_pylist():
        connection, name, version = (row[column] for column in CONNECTION_COLUMNS[:3])
        shown = software.get(connection)
        name, version = (shown.name, shown.version) if shown and shown.name is not None else (name, version)
        java[connection] = int(may_be_java(name, shown is not None and shown.is_nameless))
        release = release_of(version)
        halves[connection] = java[connection] and int(release is None or release >= HALVES_SINCE)
        linger_ms[connection] = default_linger_ms(release)
        began[connection] = int(row[c.began_before_capture])
    return Producers(
        is_java=numbers_by_connection(java),
        halves=numbers_by_connection(halves),
        linger_ms=numbers_by_connection(linger_ms),
        began_before=numbers_by_connection(began),
        processes=processes,
    )


def created_limits(changes: pa.Table) -> dict[str, int]:
    """max.message.bytes of topics that a request creates with a limit of their own. changes: rows of TOPIC_CHANGES."""
    return {topic: int(limit) for topic, limit in created_with(changes, TOPIC_CHANGES.max_message_bytes).items()}


def created_codecs(changes: pa.Table) -> dict[str, str]:
    """The codec in which brokers store each topic that is created with a compression.type other than `producer`.

    changes: rows of TOPIC_CHANGES.
    """
    types = created_with(changes, TOPIC_CHANGES.compression_type)
    return {topic: "none" if codec == UNCOMPRESSED else codec for topic, codec in types.items() if codec != PRODUCER}


def created_with(changes: pa.Table, config: str) -> dict[str, Any]:
    """Each topic's value in this column, from the last request to create it that was not refused. Topics without a
    value in that request are left out. changes: rows of TOPIC_CHANGES.
    """
    c, values = TOPIC_CHANGES, dict[str, Any]()
    order = (c.request_time, c.connection_id, c.exchange_no, c.position)
    made = [
        row
        for row in changes.to_pylist()
        if row[c.kind] == CREATE_TOPIC and row[c.error_code] == 0 and row[c.validate_only] is False
    ]
    for row in sorted(made, key=lambda row: tuple((row[column] is not None, row[column]) for column in order)):
        values[row[c.topic]] = row[config]
    return {topic: value for topic, value in values.items() if value is not None}


def sent_batches(
    batches: Iterable[pa.RecordBatch],
    producers: Producers,
    created: Mapping[str, int],
    by_host: bool,
    stored: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[pa.RecordBatch]:
    """Rows of SENT from rows of RECORD_BATCHES. created: from `created_limits`. by_host: all clients of an address are
    one process. stored: the codec in which brokers store each topic's batches.
    """
    t, b = SENT, RECORD_BATCHES
    for batch in batches:
        is_produced = pc.and_(is_text(batch[b.source], FROM_PRODUCE), is_known(batch[b.size_bytes]))
        rows = rows_where(batch, pc.and_(is_produced, pc.equal(batch[b.magic], MAGIC_VALUE_V2)))
        is_java = producers.is_java.of(rows[b.connection_id], None)
        columns: dict[str, Column] = {
            **same_columns(AS_SENT, rows),
            t.client_id: constant_text_column("", rows) if by_host else text_or_empty(rows[b.client_id]),
            t.client_address: producers.processes.of(rows[b.connection_id], rows[b.client_address]),
            t.append_from: pc.coalesce(append_times(rows), us_since_1970(rows[b.request_time])),
            t.base_sequence: base_sequences(rows),
            t.request_time: us_since_1970(rows[b.request_time]),
            t.response_time: us_since_1970(rows[b.response_time]),
            **{column: list_or_empty(rows[column]) for column in LISTS},
            t.is_java: pc.equal(is_java, 1),
            t.is_told_apart: producers.processes.are_told_apart(rows[b.connection_id]),
            t.halves: pc.equal(producers.halves.of(rows[b.connection_id], None), 1),
            t.linger_ms: producers.linger_ms.of(rows[b.connection_id], 0),
            t.began_before: pc.equal(producers.began_before.of(rows[b.connection_id], None), 1),
            t.max_message_bytes: values_of_topics(rows[b.topic], created, pa.int64()),
            t.stored_codec: values_of_topics(rows[b.topic], stored, pa.string()),
        }
        yield rows_where(event_rows(columns), is_known(is_java))


def values_of_topics(topics: Column, by_topic: Mapping[str, int | str], kind: pa.DataType) -> Column:
    """The value of each row's topic, null if it has none."""
    return pc.take(pa.array([by_topic.get(topic) for topic in topics.dictionary.to_pylist()], kind), topics.indices)
