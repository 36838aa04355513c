"""Decodes the headers of a column of frames of any API; columns are Arrow arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from udfs.columns.arrow_columns import arrow_array
from udfs.facts.exchange_rows import API_NAMES, FAULT_NAMES, api_codes
from udfs.frames.decode_column import NO_VERSION
from udfs.frames.frame_headers import (
    API_KEY,
    API_VERSION,
    CLIENT_ID_LENGTH,
    CLIENT_ID_START,
    CORRELATION_ID,
    FAULT,
    RESPONSE_CORRELATION_ID,
    frames_in_arena,
    request_headers,
    response_headers,
)
from udfs.frames.message_columns import struct_array, texts_of_spans
from udfs.frames.message_types import DECODE_FAULT
from udfs.wire.faults import DecodeFault
from udfs.wire.header import FIXED_HEADER_BYTES

_FIELDS: list[pa.Field[Any]] = [
    pa.field("api_key", pa.int16()),
    pa.field("api_name", pa.string()),
    pa.field("api_version", pa.int16()),
    pa.field("correlation_id", pa.int32()),
    pa.field("client_id", pa.string()),
    pa.field(DECODE_FAULT, pa.string()),
]
REQUEST_HEADER = pa.struct(_FIELDS)
"""The struct that `request_header_column` makes of a frame."""


def request_header_column(frames: pa.Array[Any]) -> pa.Array[Any]:
    """The headers of requests as structs of REQUEST_HEADER. A frame may be cut after its header.

    frames: a column of any binary type.

    The bodies of some APIs contain credentials. Bodies are not read.
    """
    rows = frames_in_arena(frames)
    header = request_headers(rows)
    there = rows.ends - rows.starts >= FIXED_HEADER_BYTES
    fault = np.where(there, header[:, FAULT], DecodeFault.TRUNCATED)
    inner = [
        arrow_array(header[:, API_KEY].astype(np.int16), there),
        API_NAMES.take(api_codes(header[:, API_KEY])),
        arrow_array(header[:, API_VERSION].astype(np.int16), there),
        arrow_array(header[:, CORRELATION_ID].astype(np.int32), there),
        texts_of_spans(rows.arena, header[:, CLIENT_ID_START], header[:, CLIENT_ID_LENGTH]),
        FAULT_NAMES.take(fault),
    ]
    return struct_array(inner, REQUEST_HEADER, ~rows.known)


def response_correlation_id_column(frames: pa.Array[Any]) -> pa.Array[Any]:
    """The correlation ids of responses, int32[n], which connect them with requests; null if a frame has none.

    frames: a column of any binary type.
    """
    rows = frames_in_arena(frames)
    header = response_headers(rows, NO_VERSION, np.full(len(frames), NO_VERSION))
    return arrow_array(header[:, RESPONSE_CORRELATION_ID].astype(np.int32), header[:, FAULT] == DecodeFault.OK)
