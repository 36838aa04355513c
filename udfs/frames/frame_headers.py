"""Where the bodies of a column of frames begin, and what the headers before them say."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from udfs.capture.framing import SIZE_BYTES
from udfs.columns.arrays import Bools, Bytes, Ints, Shorts, read_only
from udfs.columns.arrow_columns import binary_bytes, valid
from udfs.kernels.kernel import kernel
from udfs.wire.faults import DecodeFault
from udfs.wire.header import API_TABLE, request_header, response_body_start, response_version
from udfs.wire.primitives import signed

_OK = int(DecodeFault.OK)
_TRUNCATED = int(DecodeFault.TRUNCATED)
_BAD_LENGTH = int(DecodeFault.BAD_LENGTH)
_TRAILING_BYTES = int(DecodeFault.TRAILING_BYTES)

# Columns of what `read_request_headers` writes.
FAULT, API_KEY, API_VERSION, CORRELATION_ID, CLIENT_ID_START, CLIENT_ID_LENGTH, BODY = range(7)
REQUEST_COLUMNS = 7
# Columns of what `read_response_headers` writes, behind fault and before body as above.
RESPONSE_VERSION, RESPONSE_CORRELATION_ID, RESPONSE_BODY = 1, 2, 3
RESPONSE_COLUMNS = 4


class Framed(NamedTuple):
    """A column of frames in one arena.

    starts, ends: int64[n], the frame without its size; size_fault: int64[n], DecodeFault of the size itself; known:
    bool[n], false for null.
    """

    arena: Bytes
    starts: Ints
    ends: Ints
    size_fault: Ints
    known: Bools


def framed(frames: pa.Array[Any]) -> Framed:
    """The frames of a binary column, of any width of offsets, which are not copied."""
    column = frames if pa.types.is_binary(frames.type) else frames.cast(pa.binary())
    offsets, content = binary_bytes(column)
    arena, faults = read_only(content), np.zeros(len(column), np.int64)
    check_sizes(arena, offsets, faults)
    ends = offsets[1:]
    return Framed(arena, np.minimum(offsets[:-1] + SIZE_BYTES, ends), ends, faults, valid(column))


@kernel
def check_sizes(arena: Bytes, offsets: Ints, faults: Ints) -> None:
    """Compare the size that each frame says with what there is: offsets int64[n + 1] to faults int64[n]."""
    for i in range(len(faults)):
        there = offsets[i + 1] - offsets[i] - SIZE_BYTES
        if there < 0:
            faults[i] = _TRUNCATED
            continue
        said = signed(arena, offsets[i], SIZE_BYTES)
        if said < 0:
            faults[i] = _BAD_LENGTH
        elif said != there:
            faults[i] = _TRUNCATED if said > there else _TRAILING_BYTES


def request_headers(frames: Framed) -> Ints:
    """int64[n, REQUEST_COLUMNS]: what `udfs.wire.header.request_header` says of each frame."""
    found = np.empty((len(frames.starts), REQUEST_COLUMNS), np.int64)
    read_request_headers(frames.arena, frames.starts, frames.ends, API_TABLE, found)
    return found


@kernel
def read_request_headers(arena: Bytes, starts: Ints, ends: Ints, apis: Shorts, found: Ints) -> None:
    """Write a row of `found` for every request frame [start, end)."""
    for i in range(len(starts)):
        header = request_header(arena, starts[i], ends[i], apis)
        found[i, FAULT], found[i, API_KEY], found[i, API_VERSION], found[i, CORRELATION_ID] = header[:4]
        found[i, CLIENT_ID_START], found[i, CLIENT_ID_LENGTH], found[i, BODY] = header[4:]


def response_headers(frames: Framed, api_key: int, versions: Ints) -> Ints:
    """int64[n, RESPONSE_COLUMNS] of responses to requests of one API, each in its version, int64[n]."""
    found = np.empty((len(frames.starts), RESPONSE_COLUMNS), np.int64)
    read_response_headers(frames.arena, frames.starts, frames.ends, api_key, versions, API_TABLE, found)
    return found


@kernel
def read_response_headers(
    arena: Bytes, starts: Ints, ends: Ints, api_key: int, versions: Ints, apis: Shorts, found: Ints
) -> None:
    """Write a row of `found` for every response frame [start, end)."""
    for i in range(len(starts)):
        fault, correlation_id, body = response_body_start(arena, starts[i], ends[i], api_key, versions[i], apis)
        body = body if fault == _OK else -1
        found[i, FAULT], found[i, RESPONSE_CORRELATION_ID], found[i, RESPONSE_BODY] = fault, correlation_id, body
        found[i, RESPONSE_VERSION] = response_version(arena, body, ends[i], api_key, versions[i])
