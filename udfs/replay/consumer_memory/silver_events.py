"""What the replay of memory takes from silver tables: messages, their sizes and times, and whose memory they take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from schemas.tables.event_kinds import HandledBy, MemoryEvent
from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
from schemas.tables.steps_memory import MEMORY_EVENTS
from schemas.tables.values import ANSWERED, BROKER, CONSUMER, FROM_FETCH, FROM_PRODUCE, PRODUCER
from schemas.wire.fetch_sessions import FINAL_EPOCH, NO_SESSION
from schemas.wire.produce import PRODUCE_REQUEST
from udfs.capture.framing import SIZE_BYTES
from udfs.columns.arrow_columns import arrow_array, us_since_1970
from udfs.columns.arrow_columns import compute as pc
from udfs.columns.time_units import US_PER_MS
from udfs.replay.shared.dealt_rows import Step
from udfs.replay.shared.process_addresses import ProcessAddresses
from udfs.replay.shared.silver_columns import (
    ByConnection,
    Column,
    append_times,
    base_sequences,
    constant_column,
    constant_text_column,
    event_rows,
    is_known,
    is_text,
    null_unless,
    partition_key,
    row_hash,
    rows_where,
    same_columns,
    sum_or_null,
    text_hash,
    text_or_empty,
)
from udfs.wire.record_batches import MAGIC_VALUE_V2, RECORD_BATCH_OVERHEAD

_T, _X, _F, _B = MEMORY_EVENTS, EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
UNITS = Step(
    _T,
    (_T.side, _T.unit, _T.unit_address),
    (
        _T.time, _T.connection_id, _T.exchange_no, _T.kind, _T.lane, _T.partition_key, _T.end_offset,
        _T.cut_end_offset, _T.size, _T.held,
    ),
)  # fmt: skip
EXCHANGE_COLUMNS = (
    _X.connection_id, _X.exchange_no, _X.broker, _X.client_id, _X.client_address, _X.api_key, _X.status,
    _X.request_time, _X.request_first_time, _X.response_time, _X.response_first_time, _X.request_bytes,
    _X.response_bytes, _X.fetch_max_bytes, _X.fetch_session_id, _X.fetch_session_epoch, _X.request_queue_time_ms,
    _X.local_time_ms, _X.missing_bytes, _X.error_code,
)  # fmt: skip
PARTITION_COLUMNS = (
    _F.connection_id, _F.exchange_no, _F.broker, _F.client_id, _F.client_address, _F.reader, _F.request_time,
    _F.topic, _F.partition, _F.read_position, _F.fetch_offset, _F.partition_max_bytes, _F.returned_bytes,
)  # fmt: skip
BATCH_COLUMNS = (
    _B.connection_id, _B.exchange_no, _B.source, _B.client_id, _B.client_address, _B.request_time, _B.response_time,
    _B.topic, _B.partition, _B.base_offset, _B.last_offset_delta, _B.size_bytes, _B.available_bytes, _B.is_cut,
    _B.codec, _B.magic, _B.record_count, _B.uncompressed_bytes, _B.timestamp_type, _B.base_timestamp,
    _B.max_timestamp, _B.producer_id, _B.producer_epoch, _B.base_sequence, _B.error_code,
)  # fmt: skip
REQUEST, RESPONSE = "request", "response"


def unit_of_client(rows: pa.RecordBatch, side: str, processes: ProcessAddresses) -> dict[str, Column]:
    """The columns with the unit of a client's rows, and the exchange of each row. processes: those of clients that are
    several.
    """
    t, x = MEMORY_EVENTS, EXCHANGES
    return {
        t.side: constant_text_column(side, rows),
        t.unit: text_or_empty(rows[x.client_id]),
        t.unit_address: processes.of(rows[x.connection_id], rows[x.client_address]),
        t.connection_id: rows[x.connection_id],
        t.exchange_no: rows[x.exchange_no],
    }


def kind_column(event: MemoryEvent, rows: pa.RecordBatch) -> Column:
    """The kind of the rows."""
    return constant_column(event, rows, pa.int8())


def exchange_events(
    batches: Iterable[pa.RecordBatch], librdkafka: ByConnection, controllers: ByConnection, processes: ProcessAddresses
) -> Iterator[pa.RecordBatch]:
    """From rows of EXCHANGES: the memory that each response took at its client, and each request at its broker.

    librdkafka: the release of connections whose client is librdkafka, from `librdkafka_clients`. controllers: the
    connections whose server is a controller, from `connections_to_controllers`. processes: those of clients that are
    several.
    """
    for batch in batches:
        rows = rows_where(batch, is_known(batch[EXCHANGES.request_time]))
        yield response_events(rows, librdkafka, processes)
        yield request_events(rows_where(rows, pc.equal(controllers.of(rows[_X.connection_id], 0), 0)))


def response_events(rows: pa.RecordBatch, librdkafka: ByConnection, processes: ProcessAddresses) -> pa.RecordBatch:
    """Every client's exchanges, with the memory that its responses took."""
    t, x = MEMORY_EVENTS, EXCHANGES
    closes = pc.and_(
        pc.equal(rows[x.fetch_session_epoch], FINAL_EPOCH), pc.not_equal(rows[x.fetch_session_id], NO_SESSION)
    )
    return event_rows(
        {
            **unit_of_client(rows, CONSUMER, processes),
            t.kind: kind_column(MemoryEvent.EXCHANGE, rows),
            t.time: us_since_1970(rows[x.request_time]),
            t.started: us_since_1970(rows[x.response_first_time]),
            t.came: null_unless(is_text(rows[x.status], ANSWERED), us_since_1970(rows[x.response_time])),
            t.size: pc.subtract(pc.add(rows[x.response_bytes], missing_of(rows, RESPONSE)), SIZE_BYTES),
            t.max_bytes: rows[x.fetch_max_bytes].cast(pa.int64()),
            t.api_key: rows[x.api_key],
            t.closes_session: closes,
            t.librdkafka: librdkafka.of(rows[x.connection_id], None),
        }
    )


def request_events(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Every broker's requests, with the time at which each was handled, if a request log tells it."""
    t, x = MEMORY_EVENTS, EXCHANGES
    requested, answered = us_since_1970(rows[x.request_time]), us_since_1970(rows[x.response_time])
    handled_ms = pc.add(rows[x.request_queue_time_ms], rows[x.local_time_ms])
    handled = pc.round(pc.multiply(handled_ms, float(US_PER_MS)), round_mode="half_towards_infinity")
    by_log = sum_or_null(requested, whole_number(handled))  # a log may have any number
    return event_rows(
        {
            t.side: constant_text_column(BROKER, rows),
            t.unit: rows[x.broker],
            t.unit_address: constant_text_column("", rows),
            **same_columns((t.connection_id, t.exchange_no, t.api_key), rows),
            t.kind: kind_column(MemoryEvent.EXCHANGE, rows),
            t.time: requested,
            t.started: us_since_1970(rows[x.request_first_time]),
            t.came: requested,
            t.size: pc.subtract(pc.add(rows[x.request_bytes], missing_of(rows, REQUEST)), SIZE_BYTES),
            t.held: pc.if_else(is_text(rows[x.status], ANSWERED), pc.subtract(answered, requested), 0),
            t.released: pc.min_element_wise(pc.coalesce(by_log, answered), answered),
            t.released_by: pc.if_else(is_known(by_log), HandledBy.REQUEST_LOG, HandledBy.RESPONSE).cast(pa.int8()),
        }
    )


def missing_of(rows: pa.RecordBatch, side: str) -> Column:
    """How many bytes of requests, or of responses, the capture lacks: int64[n].

    A cut message takes memory for all of its bytes, which its size field gives. EXCHANGES has the sum for both
    messages; it goes to the one that is cut. If the response was read, that is the request. If not, it is the larger
    message: the request of a Produce, the response of any other API.
    """
    x = EXCHANGES
    is_produce = pc.fill_null(pc.equal(rows[x.api_key], PRODUCE_REQUEST.api_key), False)
    of_request = pc.or_(is_produce, is_known(rows[x.error_code]))
    is_of_side = of_request if side == REQUEST else pc.invert(of_request)
    return pc.if_else(is_of_side, pc.fill_null(rows[x.missing_bytes], 0), pa.scalar(0, pa.int64()))


def whole_number(column: Column) -> Column:
    """Floats as int64, null if they are not whole numbers of that range."""
    values = column.to_numpy(zero_copy_only=False)
    fits = np.isfinite(values) & (np.abs(values) < float(1 << 62))
    return arrow_array(np.where(fits, values, 0).astype(np.int64), fits)


def partition_events(batches: Iterable[pa.RecordBatch], processes: ProcessAddresses) -> Iterator[pa.RecordBatch]:
    """The partitions of consumers' fetches, from rows of FETCH_PARTITIONS. processes: those of clients that are
    several.
    """
    t, f = MEMORY_EVENTS, FETCH_PARTITIONS
    for batch in batches:
        rows = rows_where(batch, pc.and_(is_text(batch[f.reader], CONSUMER), is_known(batch[f.request_time])))
        yield event_rows(
            {
                **unit_of_client(rows, CONSUMER, processes),
                t.kind: kind_column(MemoryEvent.PARTITION, rows),
                t.time: us_since_1970(rows[f.request_time]),
                t.broker_key: text_hash(rows[f.broker]),
                t.partition_key: partition_key(rows[_F.topic], rows[_F.partition]),
                t.fetch_offset: null_unless(is_known(rows[f.read_position]), rows[f.fetch_offset]),
                t.partition_max_bytes: rows[f.partition_max_bytes].cast(pa.int64()),
                t.returned_bytes: rows[f.returned_bytes],
                t.is_told_apart: processes.are_told_apart(rows[f.connection_id]),
            }
        )


def batch_events(
    batches: Iterable[pa.RecordBatch], java: ByConnection, processes: ProcessAddresses
) -> Iterator[pa.RecordBatch]:
    """From rows of RECORD_BATCHES: what consumers fetched, and what producers sent.

    java: 1 for connections of clients that may be Kafka's own, 0 for those of others. processes: those of clients that
    are several.
    """
    b = RECORD_BATCHES
    for batch in batches:
        rows = rows_where(batch, is_known(batch[b.request_time]))
        yield fetched_batches(rows_where(rows, is_text(rows[b.source], FROM_FETCH)), processes)
        yield produced_batches(rows_where(rows, is_text(rows[b.source], FROM_PRODUCE)), java, processes)


def fetched_batches(rows: pa.RecordBatch, processes: ProcessAddresses) -> pa.RecordBatch:
    """The batches in fetch responses. If a batch is cut off, only the bytes that came count."""
    t, b = MEMORY_EVENTS, RECORD_BATCHES
    is_whole = pc.invert(rows[b.is_cut])
    is_compressed = pc.and_(is_whole, pc.invert(is_text(rows[b.codec], "none")))
    # In wrappers of the earlier formats, every message has a header of its own.
    is_new = pc.fill_null(pc.equal(rows[b.magic], MAGIC_VALUE_V2), False)
    header = pc.if_else(is_new, pa.scalar(RECORD_BATCH_OVERHEAD, pa.int64()), pa.scalar(0, pa.int64()))
    behind = sum_or_null(rows[b.base_offset], pc.add(rows[b.last_offset_delta].cast(pa.int64()), 1))
    return event_rows(
        {
            **unit_of_client(rows, CONSUMER, processes),
            t.kind: kind_column(MemoryEvent.BATCH, rows),
            t.time: us_since_1970(rows[b.request_time]),
            t.size: rows[b.available_bytes],
            t.partition_key: partition_key(rows[_F.topic], rows[_F.partition]),
            t.end_offset: null_unless(is_whole, behind),
            t.cut_end_offset: null_unless(pc.invert(is_whole), behind),
            t.records: null_unless(is_whole, rows[b.record_count]).cast(pa.int64()),
            t.uncompressed: null_unless(is_compressed, pc.add(rows[b.uncompressed_bytes], header)),
            t.compressed: is_compressed,
        }
    )


def produced_batches(rows: pa.RecordBatch, java: ByConnection, processes: ProcessAddresses) -> pa.RecordBatch:
    """The batches of produce requests. A batch begins with its first record, if its timestamp can be the time of
    append.
    """
    t, b = MEMORY_EVENTS, RECORD_BATCHES
    requested = us_since_1970(rows[b.request_time])
    key = row_hash(text_hash(rows[b.topic]), rows[b.partition], rows[b.producer_id], rows[b.producer_epoch])
    return event_rows(
        {
            **unit_of_client(rows, PRODUCER, processes),
            t.kind: kind_column(MemoryEvent.BATCH, rows),
            t.time: pc.coalesce(
                null_unless(is_text(rows[b.timestamp_type], "CreateTime"), append_times(rows)), requested
            ),
            t.started: requested,
            t.came: us_since_1970(rows[b.response_time]),
            t.size: pc.coalesce(rows[b.size_bytes], rows[b.available_bytes]),
            t.partition_key: key,
            t.sequence: base_sequences(rows).cast(pa.int64()),
            t.records: rows[b.record_count].cast(pa.int64()),
            t.compressed: pc.invert(is_text(rows[b.codec], "none")),
            t.error_code: rows[b.error_code],
            t.first_timestamp: rows[b.base_timestamp],
            t.last_timestamp: rows[b.max_timestamp],
            t.is_java: pc.equal(java.of(rows[b.connection_id], 1), 1),
            t.is_told_apart: processes.are_told_apart(rows[b.connection_id]),
        }
    )
