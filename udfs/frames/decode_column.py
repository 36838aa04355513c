"""Decodes a column of frames, with a column of their versions, into a column of structs; all are Arrow arrays.

A frame that cannot be decoded has null in every field except `decode_fault`; a null frame is null. No content of a
frame raises an error.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from schemas.wire.message import Message
from udfs.columns.arrays import Ints
from udfs.columns.arrow_columns import arrow_array, is_not_null
from udfs.facts.exchange_rows import FAULT_NAMES
from udfs.frames.frame_headers import (
    API_KEY,
    API_VERSION,
    BODY,
    FAULT,
    RESPONSE_BODY,
    RESPONSE_VERSION,
    Framed,
    frames_in_arena,
    request_headers,
    response_headers,
)
from udfs.frames.message_columns import Decodings, columns_of_struct, struct_array
from udfs.frames.message_types import message_type
from udfs.wire.faults import DecodeFault
from udfs.wire.messages import decode_bodies

NO_VERSION = -1


def request_column(message: Message, versions: pa.Array[Any], frames: pa.Array[Any]) -> pa.Array[Any]:
    """Requests of one message as structs of `message_type(message)`.

    versions: integers; for null, the version in the frame's header counts. frames: binary.
    """
    rows = frames_in_arena(frames)
    header = request_headers(rows)
    in_header = header[:, API_VERSION]
    other_version = (version_numbers(versions) != in_header) & is_not_null(versions)
    fault = np.select(
        [rows.size_fault != 0, header[:, FAULT] != 0, header[:, API_KEY] != message.api_key, other_version],
        [rows.size_fault, header[:, FAULT], DecodeFault.OTHER_API, DecodeFault.OTHER_VERSION],
        default=DecodeFault.OK,
    )
    return _decode_frames(message, rows, header[:, BODY], in_header, fault)


def response_column(message: Message, versions: pa.Array[Any], frames: pa.Array[Any]) -> pa.Array[Any]:
    """Responses of one message as structs of `message_type(message)`.

    versions: integers, those of the requests, because responses do not have them. frames: binary.
    """
    rows = frames_in_arena(frames)
    header = response_headers(rows, message.api_key, version_numbers(versions))
    fault = np.where(rows.size_fault != 0, rows.size_fault, header[:, FAULT])
    return _decode_frames(message, rows, header[:, RESPONSE_BODY], header[:, RESPONSE_VERSION], fault)


def version_numbers(versions: pa.Array[Any]) -> Ints:
    """The versions, a column of any integer type, as int64[n]; NO_VERSION for null and for what is no version."""
    wide: Any = versions.cast(pa.int64()).fill_null(NO_VERSION)
    numbers: Ints = wide.to_numpy(zero_copy_only=False)
    return np.where((numbers < 0) | (numbers > np.iinfo(np.int16).max), NO_VERSION, numbers)


def _decode_frames(message: Message, rows: Framed, bodies: Ints, versions: Ints, fault: Ints) -> pa.Array[Any]:
    """Structs of the bodies. Bodies with a fault, in `fault` or found while decoding, have null fields."""
    wanted = np.flatnonzero((fault == DecodeFault.OK) & rows.known)
    body = decode_bodies(message, rows.arena, bodies[wanted], rows.ends[wanted], versions[wanted].astype(np.int16))
    fault = fault.astype(np.int64)
    fault[wanted] = body.fault
    place = np.zeros(len(fault), np.int64)
    place[wanted] = np.arange(len(wanted))
    at = arrow_array(place, (fault == DecodeFault.OK) & rows.known)
    inner = columns_of_struct(Decodings(body.levels, rows.arena), message.fields)
    if at.null_count:
        inner = [column.take(at) for column in inner]
    return struct_array([*inner, FAULT_NAMES.take(fault)], message_type(message), ~rows.known)
