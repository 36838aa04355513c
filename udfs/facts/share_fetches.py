"""ShareFetch and ShareAcknowledge messages (KIP-932) as rows of `share_fetches` and `share_partitions`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from schemas.tables.silver_shares import SHARE_FETCHES, SHARE_PARTITIONS
from schemas.tables.table import Table
from schemas.tables.values import ACKNOWLEDGE, FETCH
from schemas.wire.declared import SHARE_ACKNOWLEDGE, SHARE_FETCH, Declared
from udfs.columns.arrays import Bools, Ints
from udfs.columns.arrow_columns import repeated_text_column
from udfs.columns.sentinels import UNKNOWN
from udfs.facts.arrow_tables import Values, make_rows
from udfs.facts.exchange_messages import MessagesOf, decode_both, note_members
from udfs.facts.exchanges import Exchanges
from udfs.facts.number_columns import Picked
from udfs.facts.share_messages import (
    ACKNOWLEDGED_PATH,
    ACQUIRED_PATH,
    FORGOTTEN_PATH,
    NAMED_PATH,
    RETURNED_PATH,
    ShareExchanges,
    message_places,
    record_bytes,
    record_sums,
    sums_by_message,
)
from udfs.facts.share_partitions import partition_rows
from udfs.wire.decoded_level import Level
from udfs.wire.messages import DecodedFrames

KINDS: Mapping[Declared, str] = {SHARE_FETCH: FETCH, SHARE_ACKNOWLEDGE: ACKNOWLEDGE}
FIRST_VERSIONS: Mapping[str, int] = {"max_records": 1, "batch_size": 1, "share_acquire_mode": 2}
"""Fields that later versions added to a ShareFetch request, each with its first version."""
LOCK_TIMEOUT_SINCE: Mapping[Declared, int] = {SHARE_FETCH: 1, SHARE_ACKNOWLEDGE: 2}
"""The first version whose response has `acquisition_lock_timeout_ms`."""


def share_rows(exchanges: Exchanges, messages_of: MessagesOf = decode_both) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """Rows of both tables for the chunk's exchanges. Notes the exchanges' errors, throttle times, groups and members.

    messages_of: gives the messages of an API's exchanges.
    """
    for declared in KINDS:
        which = exchanges.of_api(declared.request.api_key)
        if not len(which):
            continue
        messages = messages_of(exchanges, declared, which)
        note_members(exchanges, messages)
        shares = ShareExchanges(
            exchanges,
            declared,
            messages,
            message_places(len(exchanges), messages.request_exchanges, messages.request),
            message_places(len(exchanges), messages.response_exchanges, messages.response),
        )
        yield SHARE_FETCHES, fetch_rows(shares)
        for batch in partition_rows(shares):
            yield SHARE_PARTITIONS, batch


def fetch_rows(shares: ShareExchanges) -> pa.RecordBatch:
    """Rows of `share_fetches`, one for each exchange whose request was decoded."""
    exchange, t = shares.with_request, SHARE_FETCHES
    top, versions = shares.messages.request.levels[""], shares.exchanges.api_version[exchange]
    request = shares.request_of[exchange]
    return make_rows(
        t,
        shares.columns_of(exchange)
        | request_columns(top, request, versions)
        | response_columns(shares, shares.response_of[exchange], versions)
        | {
            t.kind: repeated_text_column(KINDS[shares.declared], len(exchange)),
            t.api_version: Picked(versions),
            t.share_session_epoch: Picked(top.column("share_session_epoch"), request),
            t.is_renew_ack: top.column("is_renew_ack")[request] == 1,
            t.named_partitions: sums_by_message(shares.messages.request, NAMED_PATH)[request],
            t.forgotten_partitions: sums_by_message(shares.messages.request, FORGOTTEN_PATH)[request],
            t.acknowledged_records: record_sums(shares.messages.request, ACKNOWLEDGED_PATH)[request],
        },
    )


def request_columns(top: Level, request: Ints, versions: Ints) -> dict[str, Values]:
    """The columns that only a ShareFetch has; null for a ShareAcknowledge, and for versions without them.

    top: the requests. request, versions: int64[n], the request of each row, and its version.
    """
    t = SHARE_FETCHES
    asked = (t.max_wait_ms, t.min_bytes, t.max_bytes, t.max_records, t.batch_size, t.share_acquire_mode)
    return {
        str(column): Picked(top.column(column), request, versions >= FIRST_VERSIONS.get(column, 0))
        if column in top.names
        else np.full(len(request), UNKNOWN)
        for column in asked
    }


def response_columns(shares: ShareExchanges, response: Ints, versions: Ints) -> dict[str, Values]:
    """The columns of the response, null if none was decoded.

    response, versions: int64[n], the response of each row or UNKNOWN, and the version of the exchange.
    """
    decoded, t = shares.messages.response, SHARE_FETCHES
    top, returned = decoded.levels[""], decoded.levels[RETURNED_PATH]
    acquired = record_sums(decoded, ACQUIRED_PATH)
    has_lock_timeout = versions >= LOCK_TIMEOUT_SINCE[shares.declared]
    return {
        t.returned_partitions: Picked(sums_by_message(decoded, RETURNED_PATH), response),
        t.returned_bytes: Picked(returned_bytes_of_messages(decoded), response),
        t.acquired_ranges: Picked(sums_by_message(decoded, ACQUIRED_PATH), response),
        t.acquired_records: Picked(acquired, response),
        t.redelivered_records: Picked(record_sums(decoded, ACQUIRED_PATH, redelivered(decoded)), response),
        t.failed_partitions: Picked(sums_by_message(decoded, RETURNED_PATH, failed(returned)), response),
        t.error_code: Picked(top.column("error_code"), response),
        t.acquisition_lock_timeout_ms: Picked(top.column("acquisition_lock_timeout_ms"), response, has_lock_timeout),
        t.throttle_time_ms: Picked(top.column("throttle_time_ms"), response),
    }


def redelivered(decoded: DecodedFrames) -> Bools | None:
    """Which acquired ranges had been delivered before: bool[ranges]; None if the API has no acquired ranges."""
    if ACQUIRED_PATH not in decoded.levels:
        return None
    return decoded.levels[ACQUIRED_PATH].column("delivery_count") > 1


def failed(returned: Level) -> Bools:
    """Which returned partitions have an error, for the fetch or for acknowledgements: bool[partitions]."""
    errors = returned.column("error_code") != 0
    if "acknowledge_error_code" in returned.names:
        errors |= returned.column("acknowledge_error_code") != 0
    return errors


def returned_bytes_of_messages(decoded: DecodedFrames) -> Ints:
    """The record bytes of each response, int64[messages]; UNKNOWN if the API has no records, or if the bytes of a
    partition are UNKNOWN.
    """
    returned = decoded.levels[RETURNED_PATH]
    if "records.start" not in returned.names:
        return np.full(len(decoded.fault), UNKNOWN)
    sizes = record_bytes(returned)
    unknown = sums_by_message(decoded, RETURNED_PATH, sizes == UNKNOWN) > 0
    return np.where(unknown, UNKNOWN, sums_by_message(decoded, RETURNED_PATH, sizes))
