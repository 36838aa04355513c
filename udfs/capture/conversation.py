"""One TCP connection as a conversation: who is the client, what each side sent, which response answers which request.

A broker answers the requests of a connection in order: kafka.network.SocketServer mutes the connection until the
response is sent. So after a response has come, requests before the one that it answers will not be answered any more.
"""

from __future__ import annotations

import numpy as np

from udfs.capture.chunk_output import (
    REQUESTS,
    RESPONSES,
    ChunkOutput,
    blank_frame,
    close_requests,
    is_output_full,
    report_loss,
)
from udfs.capture.frame_search import ENOUGH_OF_HEADER, MOST_OF_HEADER, find_request, find_response, lose_sync, skip_to
from udfs.capture.framing import (
    COMPLETE,
    CUT,
    HOLE,
    IMPLAUSIBLE,
    MAX_FRAME_BYTES,
    SIZE_BYTES,
    WAIT,
    Stream,
    extent_holding,
    frame_size_at,
    measure_frame,
    move_behind_frame,
    piece_holding,
    set_frame_times,
    stream_end,
)
from udfs.capture.open_requests import OpenRequests, waiting_request
from udfs.capture.sasl import begins_tokens, skip_broker_token, skip_client_token
from udfs.capture.segments import BEHIND_ALL
from udfs.columns.arrays import Bytes, Record, Records, Shorts
from udfs.columns.sentinels import UNKNOWN
from udfs.kernels.kernel import kernel
from udfs.wire.faults import DecodeFault
from udfs.wire.header import is_client_id, request_header
from udfs.wire.primitives import read_signed
from udfs.wire.produce_start import expects_response

UNDECIDED, KAFKA, TLS, OTHER = 0, 1, 2, 3
# Why bytes are in no frame; SASL_TOKENS is one more such code. `udfs.facts.quarantine_reasons` names them for users.
BEFORE_FIRST_FRAME, BEHIND_GAP, IMPLAUSIBLE_HEADER, CUT_AT_END = 0, 1, 2, 3
# A connection counts as not Kafka's if no request is found in this many bytes of a direction.
PROBE_BYTES = 1 << 20
# Kafka adds a version to an API once or twice a year, so a higher version is not believable.
LAST_BELIEVABLE_VERSION = 100

OK, TRUNCATED, UNKNOWN_API = int(DecodeFault.OK), int(DecodeFault.TRUNCATED), int(DecodeFault.UNKNOWN_API)

FOLLOWED_CONNECTION = np.dtype(
    [
        (name, np.int64)
        for name in (
            "index",  # row in the call's connections
            "run",  # of packets, in the call that reports it
            "incarnation",  # 0, 1, ...: how often the same endpoints connected before
            "syn_sequence",  # of the client's SYN, or UNKNOWN when the capture does not show it
            "is_accepted",  # the capture has a SYN with ACK
            "lowest_0",  # lowest sequence number that direction 0 sent, or UNKNOWN
            "lowest_1",  # lowest sequence number that direction 1 sent, or UNKNOWN
            "name",  # the connection's name in the frames of a dump, UNKNOWN for captured packets
            "client",  # the direction that sends requests, or UNKNOWN
            "protocol",
            "packets",
            "first_time",
            "last_time",
            "requests",
            "orphan_responses",
            "first_open",  # index of the first request that may still be answered
            "latest_place",  # the latest last_place of its requests
        )
    ],
    align=True,
)


@kernel
def tls_packet(stream: Stream) -> int:
    """Place of the packet that completes a TLS record header (RFC 8446, 5.1) at the stream's start, or BEHIND_ALL."""
    if len(stream.extents) == 0 or stream.extents[0, 1] - stream.extents[0, 0] < 3:
        return BEHIND_ALL
    offset, start = stream.extents[0, 0], stream.extents[0, 2]
    first, major, minor = stream.arena[start], stream.arena[start + 1], stream.arena[start + 2]
    is_tls = 20 <= first <= 23 and major == 3 and minor <= 4
    return int(stream.places[stream.pieces[piece_holding(stream, offset + 2), 2]]) if is_tls else BEHIND_ALL


@kernel
def request_place(stream: Stream, offset: int) -> int:
    """Place of the packet that brought the end of the header of the request that begins at `offset`."""
    extent = extent_holding(stream, offset)
    needed = SIZE_BYTES + min(frame_size_at(stream, extent, offset), ENOUGH_OF_HEADER)
    last = min(offset + needed, stream.extents[extent, 1]) - 1
    return int(stream.places[stream.pieces[piece_holding(stream, last), 2]])


@kernel
def earliest_request(stream: Stream, state: int, offset: int) -> int:
    """Place of the earliest packet that can bring the request that `probe_side` found or waits for; BEHIND_ALL if there
    is none.
    """
    if state == HOLE or offset + SIZE_BYTES > stream_end(stream):
        return BEHIND_ALL
    return request_place(stream, offset)


@kernel
def end_of_probe(stream: Stream, state: int, offset: int) -> int:
    """Place of the packet with which a side has sent PROBE_BYTES without a request; BEHIND_ALL if there is none.

    state, offset: what `probe_side` returned for this side.
    """
    if state != HOLE or offset < PROBE_BYTES:
        return BEHIND_ALL
    last = max(PROBE_BYTES - 1, stream.extents[extent_holding(stream, PROBE_BYTES - 1), 0])
    return int(stream.places[stream.pieces[piece_holding(stream, last), 2]])


@kernel
def probe_side(stream: Stream, direction: Record, apis: Shorts, is_client: bool) -> tuple[int, int]:
    """Whether this side sends requests: (COMPLETE, where they begin); (WAIT, ...) if that is not known yet; (HOLE, ...)
    if it does not.

    is_client: whether it is known that only this side can send requests.
    """
    state, offset = find_request(stream, direction.position, direction.position + PROBE_BYTES, apis, is_client)
    if state == HOLE and offset < PROBE_BYTES and not stream.is_final:
        return WAIT, offset
    return state, offset


@kernel
def recognise_protocol(conn: Record, streams: tuple[Stream, Stream], directions: Records, apis: Shorts) -> None:
    """Decide the protocol and which side is the client, if the captured bytes allow it. What came first counts.

    directions: DIRECTION[2], the sides of the connection. apis: API_TABLE.
    """
    state_0, state_1 = HOLE, HOLE
    offset_0 = offset_1 = 0
    end_0 = end_1 = UNKNOWN
    if conn.client != 1:
        state_0, offset_0 = probe_side(streams[0], directions[0], apis, conn.client == 0)
        end_0 = end_of_probe(streams[0], state_0, offset_0)
    if conn.client != 0:
        state_1, offset_1 = probe_side(streams[1], directions[1], apis, conn.client == 1)
        end_1 = end_of_probe(streams[1], state_1, offset_1)
    held = max(stream_end(streams[0]), 0) + max(stream_end(streams[1]), 0)
    place_0 = earliest_request(streams[0], state_0, offset_0)
    place_1 = earliest_request(streams[1], state_1, offset_1)
    tls = min(tls_packet(streams[0]), tls_packet(streams[1]))
    neither = max(end_0, end_1)  # from this place on it is known that neither side sends requests
    first = min(tls, place_0, place_1, neither)
    is_settled = first <= min(streams[0].barrier, streams[1].barrier)  # nothing before it can still appear
    if is_settled and tls < min(place_0, place_1, neither):
        conn.protocol = TLS
    elif is_settled and place_0 != place_1 and (state_0 if place_0 < place_1 else state_1) == COMPLETE:
        conn.client = 0 if place_0 < place_1 else 1
        conn.protocol = KAFKA
        side = conn.client
        skip_to(streams[side], directions[side], offset_0 if side == 0 else offset_1, BEFORE_FIRST_FRAME)
        directions[side].is_synced = 1
    elif held > 0 and ((is_settled and state_0 == HOLE and state_1 == HOLE) or held > 2 * MAX_FRAME_BYTES):
        conn.protocol = OTHER


@kernel
def is_believable(stream: Stream, frame: Record, state: int, apis: Shorts) -> bool:
    """Whether a frame to which sizes lead can be a request, even of an API or version that refetch does not know."""
    end = frame.start + min(frame.prefix, MOST_OF_HEADER)
    fault, key, version, _, client_id, length, _ = request_header(stream.arena, frame.start, end, apis)
    if fault != OK and fault != UNKNOWN_API:
        most = MOST_OF_HEADER if state == WAIT else ENOUGH_OF_HEADER
        is_cut = state != COMPLETE and frame.prefix < most  # a length may lead beyond the captured bytes
        return is_cut and (fault == TRUNCATED or (key >= 0 and 0 <= version <= LAST_BELIEVABLE_VERSION))
    return key >= 0 and 0 <= version <= LAST_BELIEVABLE_VERSION and is_client_id(stream.arena, client_id, length)


@kernel
def next_request(stream: Stream, direction: Record, apis: Shorts, frame: Record) -> int:
    """Measure the request at the direction's position and check its header; returns the states of `measure_frame`."""
    state = measure_frame(stream, direction.position, frame)
    if state in (HOLE, IMPLAUSIBLE) or frame.prefix < 0:
        return state
    return state if is_believable(stream, frame, state, apis) else IMPLAUSIBLE


@kernel
def read_header(arena: Bytes, frame: Record, apis: Shorts) -> None:
    """Fill in the fields of a request, FRAME, that its header in the arena gives.

    arena: uint8[bytes]. apis: API_TABLE.
    """
    fault, key, version, correlation_id, client_id, client_id_length, body = request_header(
        arena, frame.start, frame.start + frame.prefix, apis
    )
    frame.api_key, frame.api_version, frame.correlation_id = key, version, correlation_id
    frame.client_id_start, frame.client_id_length = client_id, client_id_length
    frame.body_start = body if fault == OK else UNKNOWN
    frame.awaits_response = 1
    if fault == OK:
        frame.awaits_response = expects_response(arena, body, frame.start + frame.prefix, key, version)
    frame.is_open = frame.awaits_response


@kernel
def loss_reason(state: int, stream: Stream, position: int) -> int:
    """Why the bytes from `position` on could not be framed: the code of a loss."""
    if state == IMPLAUSIBLE:
        return IMPLAUSIBLE_HEADER
    last = len(stream.extents) - 1
    is_at_end = extent_holding(stream, position) == last and stream.extents[last, 0] <= position
    more_was_sent = stream_end(stream) < stream.sent < BEHIND_ALL
    return CUT_AT_END if is_at_end and not more_was_sent else BEHIND_GAP


@kernel
def frame_requests(stream: Stream, direction: Record, conn: Record, apis: Shorts, output: ChunkOutput) -> bool:
    """Frame the client's side. Returns False if the output is full: call it again with room in the output."""
    while direction.position < stream_end(stream):
        if direction.is_synced == 0:
            state, offset = find_request(stream, direction.position, 1 << 62, apis, True)
            skip_to(stream, direction, offset, BEHIND_GAP)
            if state != COMPLETE:
                return True
            direction.is_synced = 1
        if direction.tokens > 0:
            state = skip_client_token(stream, direction, apis)
            if state == WAIT:
                return True
            if state == COMPLETE:
                continue
        if is_output_full(output):
            return False
        report_loss(output, conn, conn.client, direction)
        frame = blank_frame(output, output.requests, REQUESTS)
        state = next_request(stream, direction, apis, frame)
        if state == WAIT:
            return True
        if state in (HOLE, IMPLAUSIBLE):
            lose_sync(stream, direction, loss_reason(state, stream, direction.position))
            continue
        set_frame_times(stream, frame)
        move_behind_frame(frame, direction)
        conn.latest_place = frame.latest_place = max(conn.latest_place, frame.last_place)
        read_header(stream.arena, frame, apis)
        frame.connection, frame.number, frame.partner = conn.index, conn.requests, UNKNOWN
        conn.requests += 1
        output.counts[REQUESTS] += 1
        direction.tokens = begins_tokens(frame)
    return True


@kernel
def next_response(stream: Stream, direction: Record, waiting: OpenRequests, frame: Record) -> tuple[int, int]:
    """Measure the response at the direction's position and find its request: (state, request index or UNKNOWN).

    The state is also WAIT for a response that came after the barrier, where requests are not framed yet. A response for
    which no request waits is accepted if a plausible size follows it, or nothing: the capture then began between the
    request and the response.
    """
    state = measure_frame(stream, direction.position, frame)
    if state not in (COMPLETE, CUT):
        return state, UNKNOWN
    set_frame_times(stream, frame)
    if frame.last_place > waiting.barrier:
        return WAIT, UNKNOWN
    if frame.prefix < SIZE_BYTES:
        return HOLE, UNKNOWN
    frame.correlation_id = read_signed(stream.arena, frame.start, SIZE_BYTES)
    match = waiting_request(waiting, frame.correlation_id, frame.last_place)
    if match == UNKNOWN and state == COMPLETE:
        behind = direction.position + SIZE_BYTES + frame.size
        extent = extent_holding(stream, direction.position)
        if stream.extents[extent, 1] - behind >= SIZE_BYTES:
            return (COMPLETE if frame_size_at(stream, extent, behind) >= 0 else IMPLAUSIBLE), UNKNOWN
        if extent == len(stream.extents) - 1 and not stream.is_final:
            return WAIT, UNKNOWN
    return state, match


@kernel
def pair_response(conn: Record, match: int, frame: Record, output: ChunkOutput) -> None:
    """Join the next response of `output` with its request. Requests before that one will get no response any more.

    match: index of the request, or UNKNOWN for a response whose request was not captured.
    """
    frame.connection, frame.partner = conn.index, match
    if match == UNKNOWN:
        conn.orphan_responses += 1
        frame.number = -conn.orphan_responses
        return
    close_requests(output, conn.first_open, match + 1)
    output.requests[match].partner = output.counts[RESPONSES]
    frame.number = output.requests[match].number
    conn.first_open = match + 1


@kernel
def frame_responses(
    stream: Stream, direction: Record, conn: Record, waiting: OpenRequests, output: ChunkOutput
) -> bool:
    """Frame the broker's side and pair responses with the requests that wait for them.

    Returns False if the output is full: call it again with room in the output.
    """
    while direction.position < stream_end(stream):
        waiting.first[0] = conn.first_open
        if direction.is_synced == 0:
            state, offset = find_response(stream, direction.position, waiting)
            skip_to(stream, direction, offset, BEHIND_GAP if direction.framed_bytes > 0 else BEFORE_FIRST_FRAME)
            if state != COMPLETE:
                return True
            direction.is_synced = 1
        if is_output_full(output):
            return False
        frame = blank_frame(output, output.responses, RESPONSES)
        if direction.tokens > 0:
            state = skip_broker_token(stream, direction, waiting, frame)
            if state == WAIT:
                return True
            if state == COMPLETE:
                continue
        report_loss(output, conn, 1 - conn.client, direction)
        state, match = next_response(stream, direction, waiting, frame)
        if state == WAIT:
            return True
        if state in (HOLE, IMPLAUSIBLE):
            lose_sync(stream, direction, loss_reason(state, stream, direction.position))
            continue
        move_behind_frame(frame, direction)
        pair_response(conn, match, frame, output)
        output.counts[RESPONSES] += 1
        direction.tokens = match != UNKNOWN and begins_tokens(output.requests[match])
    return True
