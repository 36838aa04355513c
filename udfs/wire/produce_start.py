"""Reads the beginning of a Produce request. It shows whether the request gets a response, and whether it is one at all.

Source: ProduceRequest.json of kafka-clients. The functions are kernels for other kernels. A body is [body_start, end)
of the arena, uint8[bytes].
"""

from __future__ import annotations

from udfs.columns.arrays import Bytes
from udfs.kernels.kernel import kernel
from udfs.wire.faults import DecodeFault
from udfs.wire.header import API_TABLE, FLEXIBLE_FROM, PRODUCE, is_printable
from udfs.wire.primitives import COMPACT, INT, SHORT, read_length, read_signed

TRANSACTIONAL_FROM = 3  # the first version that begins with a transactional id
TOPIC_IDS_FROM = 13  # the first version that has topic ids instead of names
ACKS_BYTES, TIMEOUT_BYTES = 2, 4

_FLEXIBLE = int(API_TABLE[PRODUCE, FLEXIBLE_FROM])
_TRUNCATED = int(DecodeFault.TRUNCATED)


@kernel
def acks_offset(arena: Bytes, body_start: int, end: int, api_version: int) -> int:
    """Where the field acks is in the body of a Produce request; the negative of a fault if `end` cuts it off.

    arena: uint8[bytes].
    """
    acks = body_start
    if api_version >= TRANSACTIONAL_FROM:
        acks, size = read_length(arena, acks, end, COMPACT if api_version >= _FLEXIBLE else SHORT)
        if acks < 0:
            return acks
        if size > end - acks:
            return -_TRUNCATED
        acks += max(size, 0)
    return acks if acks + ACKS_BYTES <= end else -_TRUNCATED


@kernel
def expects_response(arena: Bytes, body_start: int, end: int, api_key: int, api_version: int) -> bool:
    """Whether the broker answers a request. It answers all except a Produce with acks=0. Also True if acks is cut off.

    arena: uint8[bytes].
    """
    if api_key != PRODUCE or body_start < 0 or end > arena.size:
        return True
    acks = acks_offset(arena, body_start, end, api_version)
    return acks < 0 or read_signed(arena, acks, ACKS_BYTES) != 0


@kernel
def begins_produce(arena: Bytes, body_start: int, end: int, api_version: int, is_cut: bool) -> bool:
    """Whether a body can be that of a Produce request: it has acks of -1, 0 or 1, and the name or id of a first topic.

    The check is needed because a response with a small correlation id looks like the header of a Produce request: API
    key 0, with the id as its version. A string after it, such as a topic's name, looks like a client id. arena:
    uint8[bytes]. is_cut: whether the body goes on after `end`; it may then be cut anywhere.
    """
    acks = acks_offset(arena, body_start, end, api_version) if body_start >= 0 else -_TRUNCATED
    if acks < 0:
        return is_cut and acks == -_TRUNCATED
    is_flexible = api_version >= _FLEXIBLE
    topic, count = read_length(arena, acks + ACKS_BYTES + TIMEOUT_BYTES, end, COMPACT if is_flexible else INT)
    if not -1 <= read_signed(arena, acks, ACKS_BYTES) <= 1:
        return False
    if topic < 0:
        return is_cut and topic == -_TRUNCATED
    if count < 1 or api_version >= TOPIC_IDS_FROM:
        return count >= 1
    name, size = read_length(arena, topic, end, COMPACT if is_flexible else SHORT)
    if name < 0 or size < 1 or size > end - name:
        return is_cut and (size > 0 or name == -_TRUNCATED)
    return is_printable(arena, name, size)
