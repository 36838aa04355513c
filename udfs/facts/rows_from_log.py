"""The step of ingest for request logs: from lines of whole connections to packed rows of the silver tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.silver import CONNECTIONS, EXCHANGES, FETCH_PARTITIONS, QUARANTINE
from schemas.tables.silver_topics import CLUSTER_METADATA, TOPIC_CHANGES
from schemas.tables.steps import EXCHANGE_COUNTS, REPEATED_LINES
from schemas.tables.table import Table
from schemas.wire.declared import (
    ALTER_PARTITION_REASSIGNMENTS,
    API_VERSIONS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    FETCH,
    METADATA,
    PRODUCE,
    SHARE_ACKNOWLEDGE,
    SHARE_FETCH,
    Declared,
)
from udfs.columns.arrays import Ints
from udfs.columns.arrow_columns import arrow_array, repeated_text_column
from udfs.columns.arrow_columns import compute as pc
from udfs.columns.sentinels import UNKNOWN
from udfs.facts.arrow_tables import make_rows, ns_to_us, pack_rows
from udfs.facts.client_software import logged_software
from udfs.facts.connections import connection_rows, not_refused_columns
from udfs.facts.exchange_messages import Messages, response_errors
from udfs.facts.exchange_rows import LOG_COLUMNS, count_rows, exchange_rows
from udfs.facts.exchanges import Exchanges, completed_exchanges
from udfs.facts.fetches import CarriedSession, fetch_messages, fetch_rows
from udfs.facts.logged_bodies import LoggedBodies, Texts, read_bodies
from udfs.facts.logged_requests import LogChunk, LoggedConnection, int_values, line_numbers, log_chunks, logged_frames
from udfs.facts.metadata import metadata_rows
from udfs.facts.pseudonyms import Pseudonyms
from udfs.facts.quarantine_reasons import BY_LINE_FAULT, QuarantineReason
from udfs.facts.releases import release_rows
from udfs.facts.repeated_lines import IDENTITY, repeated_rows
from udfs.facts.rows_from_packets import EarlierChunks
from udfs.facts.share_fetches import share_rows
from udfs.facts.topic_changes import auto_created_topics, topic_change_rows
from udfs.wire.faults import DecodeFault

READ = (
    FETCH, PRODUCE, METADATA, API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS,
    ALTER_PARTITION_REASSIGNMENTS, SHARE_FETCH, SHARE_ACKNOWLEDGE,
)  # fmt: skip
"""The APIs whose bodies are read from logs."""
READ_KEYS = tuple(declared.request.api_key for declared in READ)

LINE_ORDER = (*IDENTITY, "file_no", "line_no")
"""In this order, a connection's requests are as it sent them, because a broker answers them one after the other."""

NO_SOFTWARE = "unknown"  # org.apache.kafka.common.network.ClientInformation.UNKNOWN_NAME_OR_VERSION


def rows_from_log(
    batches: Iterable[pa.RecordBatch],
    capture_id: str,
    pseudonyms: Pseudonyms | None = None,
    *,
    rows: int = 50_000,
    size: int = 16 << 20,
) -> Iterator[pa.RecordBatch]:
    """Rows of PACKED from batches of LOGGED_REQUESTS that come sorted by LINE_ORDER.

    pseudonyms: what to call topics, clients and hosts; None to keep their names. rows, size: how many lines or bytes
    are read at a time; the rows do not depend on them.
    """
    carried, connection = EarlierChunks(), LoggedConnection()
    for chunk in log_chunks(batches, rows, size):
        yield from pack_rows(REPEATED_LINES, repeated_rows(chunk.repeated))
        for table, batch in log_tables(chunk, capture_id, carried, connection):
            yield from pack_rows(table, batch if pseudonyms is None else pseudonyms.applied_to(table, batch))


def log_tables(
    chunk: LogChunk, capture_id: str, carried: EarlierChunks, connection: LoggedConnection
) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """The rows of each table from one chunk of lines; updates `carried` and `connection`."""
    texts, lines = Texts(), chunk.requests
    software = [texts.add(known_software(lines, name)) for name in ("software_name", "software_version")]
    which = {api: np.flatnonzero(int_values(lines, "api_key") == api.request.api_key) for api in READ}
    bodies = {api: read_bodies(*api, lines["json"].take(arrow_array(which[api])), texts) for api in READ}
    exchanges = completed_exchanges(logged_frames(chunk, connection, texts), capture_id, carried.names)
    for hashes, spans in zip(exchanges.software, software, strict=True):
        hashes[:] = carried.names.learn(exchanges.frames.arena, *spans)
    exchanges.error[:], exchanges.throttle[:] = int_values(lines, "error_code"), int_values(lines, "throttle_time_ms")
    note_unread(exchanges, which, bodies)
    messages = {api: logged_messages(which[api], bodies[api]) for api in READ}
    yield from fetch_tables(exchanges, messages[FETCH], carried)
    for api in READ[1:]:
        exchanges.error[messages[api].response_exchanges] = response_errors(messages[api])
    for rows in metadata_rows(exchanges, messages[METADATA]):
        yield CLUSTER_METADATA, rows
    yield CLUSTER_METADATA, release_rows(exchanges, messages[API_VERSIONS])
    yield TOPIC_CHANGES, auto_created_topics(exchanges, messages[METADATA])
    for rows in topic_change_rows(exchanges, lambda _, api, __: messages[api]):
        yield TOPIC_CHANGES, rows
    yield from share_rows(exchanges, lambda _, api, __: messages[api])
    yield EXCHANGES, exchange_rows(exchanges, log_columns(lines))
    yield EXCHANGE_COUNTS, count_rows(exchanges)
    yield CONNECTIONS, connection_rows(exchanges, logged_software(exchanges, carried.software))
    yield QUARANTINE, unreadable_rows(chunk.unreadable, capture_id)
    yield QUARANTINE, undecodable_rows(exchanges, lines)


def log_columns(lines: pa.RecordBatch) -> dict[str, pa.Array[Any]]:
    """The columns of `exchanges` that only a request log has."""
    return {column: lines[column] for column in LOG_COLUMNS if column != EXCHANGES.log_line} | {
        EXCHANGES.log_line: arrow_array(line_numbers(lines))
    }


def known_software(lines: pa.RecordBatch, name: str) -> pa.StringArray:
    """The name or version of each client's software, null if the broker did not know it."""
    return pc.if_else(pc.equal(lines[name], NO_SOFTWARE), None, lines[name])


def note_unread(exchanges: Exchanges, which: dict[Declared, Ints], bodies: dict[Declared, LoggedBodies]) -> None:
    """Note a fault with each exchange whose bodies could not be read. which: the exchanges of each API, int64[n]."""
    for api, lines in which.items():
        exchanges.fault[lines[~bodies[api].read]] = int(DecodeFault.BAD_JSON)


def logged_messages(which: Ints, bodies: LoggedBodies) -> Messages:
    """The messages of some exchanges whose bodies could be read. which: int64[n], indices of exchanges."""
    read = which[bodies.read]
    return Messages(read, bodies.request, read[bodies.answered], bodies.response)


def fetch_tables(
    exchanges: Exchanges, messages: Messages, carried: EarlierChunks
) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """The rows of `fetch_partitions`; updates `carried`."""
    for rows in fetch_rows(exchanges, fetch_messages(exchanges, messages), carried.session):
        yield FETCH_PARTITIONS, rows
    if exchanges.frames.finished == len(exchanges.frames.connections):
        carried.session = CarriedSession()


def unreadable_rows(lines: pa.RecordBatch, capture_id: str) -> pa.RecordBatch:
    """A row of `quarantine` for each line that reports no request."""
    reasons = pa.array([None, *(BY_LINE_FAULT[code].value for code in sorted(BY_LINE_FAULT))])
    time = int_values(lines, "completed")
    nothing = np.zeros(lines.num_rows, np.int64)
    return line_rows(
        capture_id,
        lines,
        connection_id=nothing,
        exchange_no=arrow_array(nothing, nothing < 0),
        reason=reasons.take(lines["fault"]),
        time=ns_to_us(np.where(time > 0, time, UNKNOWN)),
    )


def undecodable_rows(exchanges: Exchanges, lines: pa.RecordBatch) -> pa.RecordBatch:
    """A row of `quarantine` for each line of an exchange whose messages could not be read."""
    rows = np.flatnonzero(exchanges.fault)
    return line_rows(
        exchanges.capture_id,
        lines.take(arrow_array(rows)),
        connection_id=exchanges.connection_id[rows],
        exchange_no=arrow_array(exchanges.number[rows]),
        reason=repeated_text_column(QuarantineReason.UNDECODABLE.value, len(rows)),
        time=ns_to_us(exchanges.request_fields["last_time"][rows]),
    )


def line_rows(
    capture_id: str,
    lines: pa.RecordBatch,
    *,
    connection_id: Ints,
    exchange_no: pa.Array[Any],
    reason: pa.Array[Any],
    time: Ints,
) -> pa.RecordBatch:
    """Rows of `quarantine` for lines. They say where the lines are, and never what the lines contain.

    lines: of LOGGED_REQUESTS. connection_id: int64[lines]. time: int64[lines], us since 1970, or UNKNOWN.
    """
    t, n, number = QUARANTINE, lines.num_rows, line_numbers(lines)
    return make_rows(
        t,
        {
            t.capture_id: repeated_text_column(capture_id, n),
            t.connection_id: connection_id,
            t.direction: repeated_text_column("line", n),
            t.stream_offset: number,
            t.exchange_no: exchange_no,
            t.reason: reason,
            t.bytes: int_values(lines, "size"),
            t.missing_bytes: np.zeros(n, np.int64),
            t.time: time,
            t.packet: number,
            **not_refused_columns(n),
        },
    )
