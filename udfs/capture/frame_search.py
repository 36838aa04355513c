"""Finds where a frame begins if no size leads to it: at the start of a capture, after a gap or after foreign bytes.

Kafka is recognised by evidence, never by port. A request is recognised by a plausible header, a response only by the
request that it answers. Every byte is a candidate, so that coalesced segments do not hide a start. A single plausible
header is not enough, because among so many candidates one can look plausible by chance.
"""

from __future__ import annotations

from udfs.capture.framing import (
    COMPLETE,
    HOLE,
    IMPLAUSIBLE,
    MAX_FRAME_BYTES,
    SIZE_BYTES,
    WAIT,
    Stream,
    extent_at,
    extent_holding,
    frame_size_at,
    piece_holding,
    settled_bytes_between,
    stream_end,
)
from udfs.capture.open_requests import OpenRequests, waiting_request
from udfs.columns.arrays import Bytes, Record, Shorts
from udfs.columns.sentinels import UNKNOWN
from udfs.kernels.kernel import kernel
from udfs.wire.header import PRODUCE, begins_request, plausible_request, request_header
from udfs.wire.primitives import read_signed
from udfs.wire.produce_start import begins_produce

# How far a chain of frames is followed to decide whether a place is the start of a frame.
CHAIN_BYTES = 1 << 20
CHAIN_LENGTH = 3
# A header with a long client id fits in this many bytes; fewer bytes of a frame are not enough to judge the frame.
ENOUGH_OF_HEADER = 512
# No header is longer, even with the longest possible client id. Bytes after this many are not looked at.
MOST_OF_HEADER = 1 << 16


@kernel
def begins_piece(stream: Stream, offset: int) -> bool:
    """Whether a segment begins with this byte. That is evidence of a frame, because applications write whole frames."""
    return offset != stream.split and stream.pieces[piece_holding(stream, offset), 0] == offset


@kernel
def may_extent_grow(stream: Stream, extent: int) -> bool:
    """Whether later packets may continue an extent."""
    return extent == len(stream.extents) - 1 and not stream.is_final


@kernel
def header_state(stream: Stream, extent: int, offset: int, size: int, apis: Shorts) -> int:
    """Whether the bytes after the size at `offset` can be the header of a request of that size.

    COMPLETE if they can; WAIT if they can be the beginning of a header and more may come; else IMPLAUSIBLE.
    """
    begin, end, start = extent_at(stream, extent)
    first = start + offset - begin + SIZE_BYTES
    behind = first + min(size, MOST_OF_HEADER)
    in_hand = min(start + end - begin, behind)
    if plausible_request(stream.arena, first, in_hand, size, apis):
        return COMPLETE
    is_cut = in_hand < behind and may_extent_grow(stream, extent)
    return WAIT if is_cut and begins_request(stream.arena, first, in_hand, apis) else IMPLAUSIBLE


@kernel
def request_begins(stream: Stream, extent: int, offset: int, apis: Shorts) -> int:
    """COMPLETE if a request begins at `offset`, WAIT if that cannot be known yet, else IMPLAUSIBLE.

    A request needs a plausible header and one more sign: a segment begins with it, or a segment ends right after it, or
    another plausible header follows. The last two signs count only for frames up to CHAIN_BYTES, because they need the
    end of the frame.
    """
    size, in_hand, grows = (
        frame_size_at(stream, extent, offset),
        stream.extents[extent, 1],
        may_extent_grow(stream, extent),
    )
    if grows and in_hand - offset < SIZE_BYTES:
        return WAIT
    if size < 0:
        return IMPLAUSIBLE
    end = offset + SIZE_BYTES + size
    if grows and end > in_hand and in_hand - offset < ENOUGH_OF_HEADER:
        return WAIT
    state = header_state(stream, extent, offset, size, apis)
    if state != COMPLETE or begins_piece(stream, offset):
        return state
    if size > CHAIN_BYTES or end > in_hand:
        return WAIT if grows and size <= CHAIN_BYTES else IMPLAUSIBLE
    if end == in_hand or begins_piece(stream, end):
        return COMPLETE
    if grows and in_hand - end < SIZE_BYTES + ENOUGH_OF_HEADER:
        return WAIT
    next_size = frame_size_at(stream, extent, end)
    return header_state(stream, extent, end, next_size, apis) if next_size >= 0 else IMPLAUSIBLE


@kernel
def produce_state(arena: Bytes, body: int, end: int, version: int, goes_on: bool, may_come: bool) -> int:
    """Whether arena[body:end] can begin the body of a Produce request: COMPLETE, WAIT or IMPLAUSIBLE.

    goes_on: whether the body goes on after `end`. may_come: whether its next bytes may still be captured.
    """
    if begins_produce(arena, body, end, version, False):
        return COMPLETE
    if not begins_produce(arena, body, end, version, goes_on):
        return IMPLAUSIBLE
    return WAIT if may_come else COMPLETE


@kernel
def shows_a_client(stream: Stream, extent: int, offset: int, apis: Shorts) -> int:
    """Whether the request that begins at `offset` shows that this side is the client: COMPLETE, WAIT or IMPLAUSIBLE.

    A response to one of a connection's first requests looks like the header of a Produce request, so the body of a
    Produce request is checked, too. In addition, the request must have a client id, or be the first of CHAIN_LENGTH
    plausible requests with rising correlation ids.
    """
    begin, in_hand, start = extent_at(stream, extent)
    grows = may_extent_grow(stream, extent)
    last_id = -(1 << 32)
    for _ in range(CHAIN_LENGTH):
        size = frame_size_at(stream, extent, offset)
        is_cut = in_hand - offset - SIZE_BYTES < min(size, ENOUGH_OF_HEADER)
        if grows and (is_cut or in_hand - offset < SIZE_BYTES):
            return WAIT
        state = header_state(stream, extent, offset, size, apis) if size >= 0 else IMPLAUSIBLE
        if state != COMPLETE:
            return state
        first = start + offset - begin + SIZE_BYTES
        behind = first + min(size, MOST_OF_HEADER)
        end = min(behind, start + in_hand - begin)
        _, key, version, correlation_id, _, client_id_length, body = request_header(stream.arena, first, end, apis)
        if key == PRODUCE:
            state = produce_state(stream.arena, body, end, version, end < first + size, grows and end < behind)
            if state != COMPLETE:
                return state
        if client_id_length > 0:
            return COMPLETE
        if correlation_id <= last_id:
            return IMPLAUSIBLE
        last_id = correlation_id
        offset += SIZE_BYTES + size
    return COMPLETE


@kernel
def find_request(stream: Stream, offset: int, limit: int, apis: Shorts, is_client: bool) -> tuple[int, int]:
    """Look for a request in [offset, limit): (COMPLETE or WAIT, its offset) or (HOLE, where the search ended).

    is_client: whether it is known that this side sends the requests; if not, a request must begin where a segment does.
    """
    for extent in range(extent_holding(stream, offset), len(stream.extents)):
        begin, end, start = extent_at(stream, extent)
        offset = max(offset, begin)
        while offset < min(end, limit):
            can_begin = stream.arena[start + offset - begin] <= MAX_FRAME_BYTES >> 24
            if can_begin and (is_client or begins_piece(stream, offset)):
                state = request_begins(stream, extent, offset, apis)
                if state == COMPLETE and not is_client:
                    state = shows_a_client(stream, extent, offset, apis)
                if state != IMPLAUSIBLE:
                    return state, offset
            offset += 1
    return HOLE, offset


@kernel
def response_begins(stream: Stream, extent: int, offset: int, waiting: OpenRequests) -> int:
    """COMPLETE if a response begins at `offset`: a request waits for it, or sizes lead from it to such a response.

    A response to a request from before the capture is recognised by the sizes, and must begin where a segment does.
    WAIT if the sizes lead to bytes that may still come, or to where requests are not framed yet. Else IMPLAUSIBLE.
    """
    begin, in_hand, start = stream.extents[extent]
    may_chain = begins_piece(stream, offset)
    candidate = offset
    while in_hand - candidate >= 2 * SIZE_BYTES and candidate - offset <= CHAIN_BYTES:
        size = frame_size_at(stream, extent, candidate)
        if size < 0:
            return IMPLAUSIBLE
        begin, _, start = extent_at(stream, extent)
        correlation_id = read_signed(stream.arena, start + candidate - begin + SIZE_BYTES, SIZE_BYTES)
        place = stream.places[stream.pieces[piece_holding(stream, candidate + 2 * SIZE_BYTES - 1), 2]]
        if place > waiting.barrier:
            return WAIT
        if waiting_request(waiting, correlation_id, place) != UNKNOWN:
            return COMPLETE
        if not may_chain:
            return IMPLAUSIBLE
        candidate += SIZE_BYTES + size
    return WAIT if may_extent_grow(stream, extent) and may_chain and candidate - offset <= CHAIN_BYTES else IMPLAUSIBLE


@kernel
def find_response(stream: Stream, offset: int, waiting: OpenRequests) -> tuple[int, int]:
    """Look for a response from `offset` on: (COMPLETE or WAIT, its offset) or (HOLE, where the search ended)."""
    for extent in range(extent_holding(stream, offset), len(stream.extents)):
        begin, extent_end, start = extent_at(stream, extent)
        offset = max(offset, begin)
        while offset < extent_end:
            if extent_end - offset < 2 * SIZE_BYTES and may_extent_grow(stream, extent):
                return WAIT, offset
            if stream.arena[start + offset - begin] <= MAX_FRAME_BYTES >> 24:
                state = response_begins(stream, extent, offset, waiting)
                if state != IMPLAUSIBLE:
                    return state, offset
            offset += 1
    return HOLE, offset


@kernel
def skip_to(stream: Stream, direction: Record, offset: int, reason: int) -> None:
    """Move the direction's position to `offset`, and count the bytes before it as unframed for this reason."""
    lost = settled_bytes_between(stream, direction.position, offset)
    if lost > 0 and direction.lost_from == UNKNOWN:
        extent = extent_holding(stream, direction.position)
        direction.lost_from = max(direction.position, stream.extents[extent, 0])
        direction.lost_bytes, direction.lost_reason = 0, reason
        row = stream.pieces[piece_holding(stream, direction.lost_from), 2]
        direction.lost_time, direction.lost_packet = stream.times[row], stream.packets[row]
    if direction.lost_from != UNKNOWN:
        direction.lost_bytes += lost
    direction.missing_bytes += max(min(offset, stream.sent) - direction.position, 0) - lost
    direction.unframed_bytes += lost
    direction.position = offset


@kernel
def lose_sync(stream: Stream, direction: Record, reason: int) -> None:
    """Skip the byte where framing failed, or the gap before which it stopped. After that, a frame has to be found."""
    extent = extent_holding(stream, direction.position)
    behind = direction.position + 1
    if extent == len(stream.extents):
        behind = max(stream_end(stream), direction.position)
    elif stream.extents[extent, 0] > direction.position:
        behind = stream.extents[extent, 0]
    skip_to(stream, direction, behind, reason)
    direction.is_synced = 0
