"""Reads the headers of a column of frames, and where their bodies begin."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from udfs.capture.framing import SIZE_BYTES
from udfs.columns.arrays import Bools, Bytes, Ints, Shorts, read_only
from udfs.columns.arrow_columns import is_not_null, offsets_and_bytes
from udfs.kernels.kernel import kernel
from udfs.wire.faults import DecodeFault
from udfs.wire.header import API_TABLE, request_header, response_body_start, response_version
from udfs.wire.primitives import read_signed

_OK = int(DecodeFault.OK)
_TRUNCATED = int(DecodeFault.TRUNCATED)
_BAD_LENGTH = int(DecodeFault.BAD_LENGTH)
_TRAILING_BYTES = int(DecodeFault.TRAILING_BYTES)

# Columns of what `read_request_headers` writes.
FAULT, API_KEY, API_VERSION, CORRELATION_ID, CLIENT_ID_START, CLIENT_ID_LENGTH, BODY = range(7)
REQUEST_COLUMNS = 7
# Columns of what `read_response_headers` writes; its first column is FAULT, too.
RESPONSE_VERSION, RESPONSE_CORRELATION_ID, RESPONSE_BODY = 1, 2, 3
RESPONSE_COLUMNS = 4


class Framed(NamedTuple):
    """A column of frames in one arena.

    starts, ends: int64[n], where each frame is in the arena, without its size. size_fault: int64[n], the DecodeFault of
    its size. known: bool[n], false for null.
    """

    arena: Bytes
    starts: Ints
    ends: Ints
    size_fault: Ints
    known: Bools


def frames_in_arena(frames: pa.Array[Any]) -> Framed:
    """The frames of a column of any binary type; their bytes are not copied."""
    column = frames if pa.types.is_binary(frames.type) else frames.cast(pa.binary())
    offsets, content = offsets_and_bytes(column)
    arena, faults = read_only(content), np.zeros(len(column), np.int64)
    check_sizes(arena, offsets, faults)
    ends = offsets[1:]
    return Framed(arena, np.minimum(offsets[:-1] + SIZE_BYTES, ends), ends, faults, is_not_null(column))


@kernel
def check_sizes(arena: Bytes, offsets: Ints, faults: Ints) -> None:
    """Compare the declared size of each frame with its bytes and write faults, int64[n].

    arena: uint8. offsets: int64[n + 1], where frames with their sizes begin, and where the last one ends.
    """
    for i in range(len(faults)):
        there = offsets[i + 1] - offsets[i] - SIZE_BYTES
        if there < 0:
            faults[i] = _TRUNCATED
            continue
        declared = read_signed(arena, offsets[i], SIZE_BYTES)
        if declared < 0:
            faults[i] = _BAD_LENGTH
        elif declared != there:
            faults[i] = _TRUNCATED if declared > there else _TRAILING_BYTES


def request_headers(frames: Framed) -> Ints:
    """The headers of requests, int64[n, REQUEST_COLUMNS], as `udfs.wire.header.request_header` reads them."""
    headers = np.empty((len(frames.starts), REQUEST_COLUMNS), np.int64)
    read_request_headers(frames, API_TABLE, headers)
    return headers


@kernel
def read_request_headers(frames: Framed, apis: Shorts, headers: Ints) -> None:
    """Write the header of each request to a row of `headers`, int64[n, REQUEST_COLUMNS]."""
    for i in range(len(frames.starts)):
        header = request_header(frames.arena, frames.starts[i], frames.ends[i], apis)
        headers[i, FAULT], headers[i, API_KEY], headers[i, API_VERSION], headers[i, CORRELATION_ID] = header[:4]
        headers[i, CLIENT_ID_START], headers[i, CLIENT_ID_LENGTH], headers[i, BODY] = header[4:]


def response_headers(frames: Framed, api_key: int, versions: Ints) -> Ints:
    """The headers of responses of one API, int64[n, RESPONSE_COLUMNS]; versions: int64[n], those of the requests."""
    headers = np.empty((len(frames.starts), RESPONSE_COLUMNS), np.int64)
    read_response_headers(frames, api_key, versions, API_TABLE, headers)
    return headers


@kernel
def read_response_headers(frames: Framed, api_key: int, versions: Ints, apis: Shorts, headers: Ints) -> None:
    """Write the header of each response to a row of `headers`, int64[n, RESPONSE_COLUMNS].

    versions: int64[n], those of the requests. apis: API_TABLE.
    """
    arena = frames.arena
    for i in range(len(frames.starts)):
        start, end, version = frames.starts[i], frames.ends[i], versions[i]
        fault, correlation_id, body = response_body_start(arena, start, end, api_key, version, apis)
        body = body if fault == _OK else -1
        headers[i, FAULT], headers[i, RESPONSE_CORRELATION_ID], headers[i, RESPONSE_BODY] = fault, correlation_id, body
        headers[i, RESPONSE_VERSION] = response_version(arena, body, end, api_key, version)
