"""Exchanges as rows of the table `exchanges`, and counts of what is missing as rows of EXCHANGE_COUNTS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables import values
from schemas.tables.silver import EXCHANGES
from schemas.tables.steps import EXCHANGE_COUNTS
from schemas.wire.apis import APIS
from udfs.capture.framing import SIZE_BYTES
from udfs.columns.arrays import Bools, Ints
from udfs.columns.arrow_columns import dictionary_column
from udfs.columns.sentinels import UNKNOWN
from udfs.facts.arrow_tables import make_rows, ns_to_us, nulls_besides
from udfs.facts.exchanges import LACKING, ORPHAN_RESPONSE, UNANSWERED, Exchanges, shared_columns
from udfs.facts.number_columns import Picked
from udfs.wire.faults import DecodeFault

LOG_COLUMNS = (
    EXCHANGES.listener, EXCHANGES.security_protocol, EXCHANGES.principal, EXCHANGES.request_queue_time_ms,
    EXCHANGES.local_time_ms, EXCHANGES.remote_time_ms, EXCHANGES.api_throttle_time_ms,
    EXCHANGES.response_queue_time_ms, EXCHANGES.send_time_ms, EXCHANGES.total_time_ms, EXCHANGES.log_line,
)  # fmt: skip
"""The columns of `exchanges` that only a request log has."""
_NAME_OF = {api.key: api.name for api in APIS}
API_NAMES = pa.array([*(_NAME_OF.get(key) for key in range(max(_NAME_OF) + 1)), None], pa.string())
"""The name of each API key, as in Kafka's request log. The last one is null, for keys that no known Kafka has."""
STATUSES = pa.array([values.ANSWERED, values.NO_RESPONSE, values.UNANSWERED, values.ORPHAN_RESPONSE])
"""The word for each status code of `udfs.facts.exchanges`."""
FAULT_NAMES = pa.array([None if fault == DecodeFault.OK else fault.name.lower() for fault in DecodeFault], pa.string())
"""The name of each DecodeFault, null for OK."""


def present_bytes(of: Mapping[str, Ints]) -> Ints:
    """The bytes that the capture has of each frame, including the size; 0 if there is no frame: int64[n].

    of: fields of frames, `request_fields` or `response_fields` of Exchanges.
    """
    size = of["size"]
    return np.where(size == UNKNOWN, 0, size + SIZE_BYTES - of[LACKING])


def exchange_rows(exchanges: Exchanges, log_columns: Mapping[str, pa.Array[Any]] | None = None) -> pa.RecordBatch:
    """The rows of the table `exchanges`; log_columns: the columns in LOG_COLUMNS; None if they are null."""
    if log_columns is None:
        log_columns = nulls_besides(EXCHANGES, set(EXCHANGES.columns) - set(LOG_COLUMNS), len(exchanges))
    keys, versions = exchanges.api_key, exchanges.api_version
    is_request = exchanges.request != UNKNOWN
    in_request, in_response = exchanges.request_fields["correlation_id"], exchanges.response_fields["correlation_id"]
    correlation = np.where(is_request, in_request, in_response)
    return make_rows(
        EXCHANGES,
        shared_columns(exchanges)
        | {
            EXCHANGES.request_first_time: ns_to_us(exchanges.request_fields["first_time"]),
            EXCHANGES.response_first_time: ns_to_us(exchanges.response_fields["first_time"]),
            EXCHANGES.client_software_name: exchanges.names.texts_of(exchanges.software[0]),
            EXCHANGES.client_software_version: exchanges.names.texts_of(exchanges.software[1]),
            EXCHANGES.api_key: Picked(keys, known=is_request),
            EXCHANGES.api_name: dictionary_column(API_NAMES, api_codes(keys)),
            EXCHANGES.api_version: Picked(versions, known=is_request),
            EXCHANGES.correlation_id: correlation,
            EXCHANGES.request_packet: exchanges.request_fields["last_packet"],
            EXCHANGES.response_packet: exchanges.response_fields["last_packet"],
            EXCHANGES.request_bytes: present_bytes(exchanges.request_fields),
            EXCHANGES.response_bytes: present_bytes(exchanges.response_fields),
            EXCHANGES.missing_bytes: exchanges.missing_bytes,
            EXCHANGES.unsent_bytes: exchanges.unsent_bytes,
            EXCHANGES.status: dictionary_column(STATUSES, exchanges.status),
            EXCHANGES.error_code: exchanges.error,
            EXCHANGES.throttle_time_ms: exchanges.throttle,
            EXCHANGES.fetch_max_bytes: exchanges.fetch_max_bytes,
            EXCHANGES.fetch_replica_id: exchanges.fetch_replica_id,
            EXCHANGES.fetch_session_id: exchanges.fetch_session_id,
            EXCHANGES.fetch_session_epoch: exchanges.fetch_session_epoch,
            EXCHANGES.fetch_rack_id: exchanges.names.texts_of(exchanges.fetch_rack),
            EXCHANGES.group_id: exchanges.names.texts_of(exchanges.member[0]),
            EXCHANGES.member_id: exchanges.names.texts_of(exchanges.member[1]),
            EXCHANGES.decode_fault: dictionary_column(FAULT_NAMES, exchanges.fault),
        }
        | dict(log_columns),
    )


def api_codes(keys: Ints) -> Ints:
    """The index in API_NAMES of the name of each API key: int64[n]. keys: int64[n], below 0 for none."""
    unknown = len(API_NAMES) - 1
    return np.minimum(np.where(keys < 0, unknown, keys), unknown)


def count_rows(exchanges: Exchanges) -> pa.RecordBatch:
    """A row of EXCHANGE_COUNTS for each connection of the chunk. All columns of the exchanges must be filled in."""
    connections = len(exchanges.frames.connections)

    def counted(which: Bools) -> Ints:
        return np.bincount(exchanges.connection[which], minlength=connections)

    t = EXCHANGE_COUNTS
    return make_rows(
        t,
        {
            t.connection_id: exchanges.connection_ids,
            t.exchanges: np.bincount(exchanges.connection, minlength=connections),
            t.unanswered_requests: counted(exchanges.status == UNANSWERED),
            t.orphan_responses: counted(exchanges.status == ORPHAN_RESPONSE),
            t.cut_exchanges: counted(exchanges.missing_bytes > 0),
            t.undecoded_exchanges: counted(exchanges.fault != 0),
            t.fetches: counted(exchanges.readable_known != UNKNOWN),
            t.fetches_of_unknown_sessions: counted(exchanges.readable_known == 0),
        },
    )
