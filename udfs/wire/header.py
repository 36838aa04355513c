"""Reads request and response headers, and decides whether bytes can be a Kafka request.

Sources: RequestHeader.json, ResponseHeader.json, `ApiKeys` and `ApiVersionsResponse` of kafka-clients. All functions
are kernels for other kernels. An arena is uint8[bytes], and a frame is [start, end) of it, without its 4-byte size. The
parameter `apis` is always API_TABLE. A fault is a `DecodeFault`.
"""

from __future__ import annotations

import numpy as np

from schemas.wire.apis import API_KEYS, APIS
from schemas.wire.errors import UNSUPPORTED_VERSION
from udfs.columns.arrays import Bytes, Shorts
from udfs.kernels.kernel import kernel
from udfs.wire.faults import DecodeFault
from udfs.wire.primitives import SHORT, cell, read_length, read_signed, read_unsigned_varint

NO_FLEXIBLE_VERSION = np.iinfo(np.int16).max

# Columns of API_TABLE.
FLEXIBLE_FROM = 0
LAST_VERSION = 1

PRODUCE = API_KEYS["PRODUCE"]
CONTROLLED_SHUTDOWN = API_KEYS["CONTROLLED_SHUTDOWN"]
API_VERSIONS = API_KEYS["API_VERSIONS"]

# A broker or client that is newer than the declarations may use a few more versions.
VERSIONS_AHEAD = 3
# api_key, api_version, correlation_id; a client id follows, except in ControlledShutdown v0.
FIXED_HEADER_BYTES = 8

_OK = int(DecodeFault.OK)
_TRUNCATED = int(DecodeFault.TRUNCATED)
_BAD_LENGTH = int(DecodeFault.BAD_LENGTH)
_BAD_COUNT = int(DecodeFault.BAD_COUNT)
_BAD_TAG = int(DecodeFault.BAD_TAG)
_BAD_FRAME = int(DecodeFault.BAD_FRAME)
_UNKNOWN_API = int(DecodeFault.UNKNOWN_API)


def _versions_by_key() -> Shorts:
    table = np.empty((max(api.key for api in APIS) + 1, 2), np.int16)
    table[:] = (NO_FLEXIBLE_VERSION, -1)
    for api in APIS:
        table[api.key] = (NO_FLEXIBLE_VERSION if api.flexible_from is None else api.flexible_from, api.last_version)
    table.flags.writeable = False
    return table


API_TABLE = _versions_by_key()
"""int16[keys, 2], by API key: FLEXIBLE_FROM, the first flexible version, or NO_FLEXIBLE_VERSION; LAST_VERSION, the last
known version, -1 if no API has the key."""


@kernel
def skip_tags(arena: Bytes, offset: int, end: int) -> int:
    """Offset after a tag section, or the negative of a fault. arena: uint8[bytes]."""
    if offset < end and cell(arena, offset) == 0:  # the usual case
        return offset + 1
    offset, remaining = read_unsigned_varint(arena, offset, end)
    if offset >= 0 and remaining * 2 > end - offset:
        return -_BAD_COUNT
    last_tag = -1
    while offset >= 0 and remaining > 0:
        offset, tag = read_unsigned_varint(arena, offset, end)
        if offset >= 0 and tag <= last_tag:
            return -_BAD_TAG
        if offset >= 0:
            offset, size = read_unsigned_varint(arena, offset, end)
            if offset >= 0 and size > end - offset:
                return -_BAD_LENGTH
            offset = offset + size if offset >= 0 else offset
        last_tag = tag
        remaining -= 1
    return offset


@kernel
def is_flexible(api_key: int, api_version: int, apis: Shorts) -> bool:
    """Whether this version of an API has the flexible encoding (KIP-482); false for an unknown API."""
    return 0 <= api_key < len(apis) and api_version >= apis[api_key, FLEXIBLE_FROM]


@kernel
def request_header(arena: Bytes, start: int, end: int, apis: Shorts) -> tuple[int, int, int, int, int, int, int]:
    """(fault, api_key, api_version, correlation_id, client_id_start, client_id_length, body_start).

    A null client id has length -1. Values that a cut header lacks are -1. With any fault, body_start is -1. If no API
    has the key, the fault is UNKNOWN_API, and the rest is read as in header v1. arena: uint8[bytes]. apis: API_TABLE.
    """
    if start < 0 or end > arena.size or start > end:
        return _BAD_FRAME, -1, -1, -1, -1, -1, -1
    if end - start < FIXED_HEADER_BYTES:
        return _TRUNCATED, -1, -1, -1, -1, -1, -1
    fixed = np.int64(read_signed(arena, start, FIXED_HEADER_BYTES))  # one load, and shifts that keep the signs
    key, version, correlation = int(fixed >> 48), int(fixed << 16 >> 48), int(fixed << 32 >> 32)
    body = start + FIXED_HEADER_BYTES
    if key == CONTROLLED_SHUTDOWN and version == 0:  # the only request with header v0, which has no client id
        return _OK, key, version, correlation, body, -1, body
    client_id, size = read_length(arena, body, end, SHORT)
    if client_id < 0:
        return -client_id, key, version, correlation, -1, -1, -1
    body = client_id + max(size, 0)
    if body > end:
        return _BAD_LENGTH, key, version, correlation, -1, -1, -1
    if key < 0 or key >= len(apis) or apis[key, LAST_VERSION] < 0:
        return _UNKNOWN_API, key, version, correlation, client_id, size, -1
    if version >= apis[key, FLEXIBLE_FROM]:
        body = skip_tags(arena, body, end)
        if body < 0:
            return -body, key, version, correlation, client_id, size, -1
    return _OK, key, version, correlation, client_id, size, body


@kernel
def response_body_start(
    arena: Bytes, start: int, end: int, api_key: int, api_version: int, apis: Shorts
) -> tuple[int, int, int]:
    """(fault, correlation_id, body_start) of the response to a request of this API and version.

    The header has tags if the request was flexible. ApiVersions is an exception: a client that does not know the
    broker's versions yet must be able to read it (KIP-511). arena: uint8[bytes]. apis: API_TABLE.
    """
    if start < 0 or end > arena.size or start > end:
        return _BAD_FRAME, -1, -1
    if end - start < 4:
        return _TRUNCATED, -1, -1
    correlation = read_signed(arena, start, 4)
    body = start + 4
    if api_key != API_VERSIONS and is_flexible(api_key, api_version, apis):
        body = skip_tags(arena, body, end)
        if body < 0:
            return -body, correlation, -1
    return _OK, correlation, body


@kernel
def response_version(arena: Bytes, body_start: int, end: int, api_key: int, api_version: int) -> int:
    """The version in which a response body is written: that of the request, except for ApiVersions.

    A broker that does not know the version of an ApiVersions request answers with UNSUPPORTED_VERSION in version 0, so
    that the client can read which versions are supported (KIP-511). arena: uint8[bytes].
    """
    if api_key != API_VERSIONS or body_start < 0 or end > arena.size or body_start + 2 > end:
        return api_version
    return 0 if read_signed(arena, body_start, 2) == UNSUPPORTED_VERSION else api_version


@kernel
def is_printable(arena: Bytes, start: int, size: int) -> bool:
    """Whether no byte of [start, start + size) is an ASCII control character. Names of topics have none.

    arena: uint8[bytes].
    """
    for at in range(start, start + size):  # noqa: SIM110  (numba supports no generators in all())
        if arena[at] < 0x20 or arena[at] == 0x7F:
            return False
    return True


@kernel
def is_client_id(arena: Bytes, start: int, size: int) -> bool:
    """Whether the bytes of [start, start + size) can be a client id.

    Kafka accepts any text, but binary data must not count as a client id. So an id must have no control characters, or
    be ASCII text of which at most a quarter are control characters. arena: uint8[bytes].
    """
    control = beyond_ascii = 0
    for at in range(start, start + size):
        control += int(arena[at] < 0x20 or arena[at] == 0x7F)
        beyond_ascii += int(arena[at] >= 0x80)
    return control == 0 or (beyond_ascii == 0 and 4 * control <= size)


@kernel
def begins_request(arena: Bytes, start: int, end: int, apis: Shorts) -> bool:
    """Whether a header that is cut at `end` can be the beginning of one that `plausible_request` accepts.

    arena: uint8[bytes]. apis: API_TABLE.
    """
    fault, key, version, _, _, _, _ = request_header(arena, start, end, apis)
    return fault != _OK and 0 <= key < len(apis) and 0 <= version <= apis[key, LAST_VERSION] + VERSIONS_AHEAD


@kernel
def plausible_request(arena: Bytes, start: int, end: int, size: int, apis: Shorts) -> bool:
    """Whether a frame with `size` declared bytes, of which [start, end) is there, can be a Kafka request.

    Its whole header must be there and inside the declared size, its API must be known, its version must be at most
    VERSIONS_AHEAD above the newest known one, and its client id must be null or text. arena: uint8[bytes]. apis:
    API_TABLE.
    """
    end = min(end, start + size)
    fault, key, version, _, client_id, client_id_length, _ = request_header(arena, start, end, apis)
    if fault != _OK or not 0 <= version <= apis[key, LAST_VERSION] + VERSIONS_AHEAD:
        return False
    return is_client_id(arena, client_id, client_id_length)
