"""What the replay of producers' quotas takes from silver tables: Produce requests, and when their records were made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from schemas.tables.silver import EXCHANGES, RECORD_BATCHES
from schemas.tables.steps import PRODUCE_EVENTS
from schemas.tables.values import FROM_PRODUCE, NO_RESPONSE
from udfs.capture.framing import SIZE_BYTES
from udfs.columns.arrow_columns import compute as pc
from udfs.columns.arrow_columns import us_since_1970
from udfs.columns.time_units import US_PER_MS
from udfs.replay.fetch_max_bytes.who_has_quotas import PRODUCE, Client
from udfs.replay.shared.columns import rows_alike
from udfs.replay.shared.dealt_rows import Step
from udfs.replay.shared.process_addresses import ONE_ADDRESS_EACH, ProcessAddresses, with_process_address
from udfs.replay.shared.silver_columns import (
    DELIVERY_TIMEOUT_MS,
    ByConnection,
    Column,
    event_rows,
    is_known,
    is_text,
    null_unless,
    rows_where,
    text_or_empty,
)

_T, _X, _B = PRODUCE_EVENTS, EXCHANGES, RECORD_BATCHES
CREATE_TIME = "CreateTime"
"""A value of RECORD_BATCHES.timestamp_type."""
PRODUCERS = Step(_T, (_T.unit,), (_T.time, _T.connection_id, _T.exchange_no))
PRODUCE_COLUMNS = (
    _X.connection_id, _X.exchange_no, _X.broker, _X.client_address, _X.client_id, _X.api_key, _X.api_version,
    _X.request_time, _X.response_time, _X.response_first_time, _X.request_bytes, _X.missing_bytes, _X.unsent_bytes,
    _X.status, _X.throttle_time_ms,
)  # fmt: skip
MADE_COLUMNS = (
    _B.connection_id, _B.exchange_no, _B.source, _B.client_id, _B.client_address, _B.request_time, _B.max_timestamp,
    _B.timestamp_type,
)  # fmt: skip


def produce_events(
    batches: Iterable[pa.RecordBatch],
    began_before: ByConnection,
    groups: Mapping[Client, str],
    processes: ProcessAddresses = ONE_ADDRESS_EACH,
) -> Iterator[pa.RecordBatch]:
    """A row for each Produce request that came whole and whose size is known.

    began_before: 1 for each connection that began before the capture. groups: the groups of producers that share
    quotas. processes: those of clients that are several.
    """
    t, x = PRODUCE_EVENTS, EXCHANGES
    for batch in batches:
        is_whole = pc.and_(pc.greater(batch[x.request_bytes], 0), pc.equal(batch[x.unsent_bytes], 0))
        is_produce = pc.and_(pc.equal(batch[x.api_key], PRODUCE), is_known(batch[x.request_time]))
        rows = with_process_address(rows_where(batch, pc.and_(is_produce, is_whole)), processes)
        answered = pc.coalesce(rows[x.response_first_time], rows[x.response_time])
        size = pc.subtract(pc.add(rows[x.request_bytes], rows[x.missing_bytes]), SIZE_BYTES)
        columns: dict[str, Column] = {
            **columns_of_request(rows, groups),
            **{str(c): rows[c] for c in (t.broker, t.client_address, t.api_version, t.throttle_time_ms)},
            t.client_id: text_or_empty(rows[x.client_id]),
            t.response_time: us_since_1970(answered),
            t.size: size,
            t.is_answered: pc.invert(is_text(rows[x.status], NO_RESPONSE)),
            t.began_before: pc.equal(began_before.of(rows[x.connection_id], 0), 1),
        }
        yield event_rows(columns)


def made_events(
    batches: Iterable[pa.RecordBatch], groups: Mapping[Client, str], processes: ProcessAddresses = ONE_ADDRESS_EACH
) -> Iterator[pa.RecordBatch]:
    """A row for each batch of a Produce request whose records say when they were made. processes: those of clients that
    are several.
    """
    t, b = PRODUCE_EVENTS, RECORD_BATCHES
    for batch in batches:
        is_produced = pc.and_(is_text(batch[b.source], FROM_PRODUCE), is_text(batch[b.timestamp_type], CREATE_TIME))
        rows = rows_where(batch, pc.and_(is_produced, is_known(batch[b.request_time])))
        rows = with_process_address(rows, processes)
        made = last_made(rows)
        rows, made = rows_where(rows, is_known(made)), made.drop_null()
        yield event_rows({**columns_of_request(rows, groups), t.made_time: made})


def columns_of_request(rows: pa.RecordBatch, groups: Mapping[Client, str]) -> dict[str, Column]:
    """The columns that both kinds of rows have. rows: rows of EXCHANGES or RECORD_BATCHES."""
    t = PRODUCE_EVENTS
    return {
        t.unit: units_of(rows, groups),
        t.time: us_since_1970(rows[EXCHANGES.request_time]),
        t.connection_id: rows[EXCHANGES.connection_id],
        t.exchange_no: rows[EXCHANGES.exchange_no],
    }


def units_of(rows: pa.RecordBatch, groups: Mapping[Client, str]) -> Column:
    """The name of each row's group, or of the producer itself if it shares no quota, as a dictionary column."""
    client_id, address = text_or_empty(rows[EXCHANGES.client_id]), rows[EXCHANGES.client_address]
    number, first = rows_alike(rows.num_rows, client_id, address)
    clients = zip(*(column.take(first).to_pylist() for column in (client_id, address)), strict=True)
    names = pa.array([groups.get(client) or " at ".join(client) for client in clients], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(number, pa.int32()), names)


def last_made(rows: pa.RecordBatch) -> Column:
    """When the last record of each batch was made (us); null if its timestamps are not the client's times. Such
    timestamps are later than the request, or earlier than it by more than a producer tries to send a record.
    """
    b = RECORD_BATCHES
    requested, last_ms = us_since_1970(rows[b.request_time]), rows[b.max_timestamp]
    is_time = pc.less(pc.abs(last_ms), (1 << 62) // US_PER_MS)  # a client may write any number there
    made = pc.multiply(null_unless(is_time, last_ms), US_PER_MS)
    age = pc.subtract(requested, made)
    return null_unless(pc.and_(pc.greater_equal(age, 0), pc.less_equal(age, DELIVERY_TIMEOUT_MS * US_PER_MS)), made)
