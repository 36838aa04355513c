"""One TCP connection as a conversation: who is the client, what each side sent, which response answers which request.

`converse` gets what is settled of both directions and reports all that is complete. A broker answers the requests of a
connection in order (kafka.network.SocketServer mutes it until the response is sent), so a response settles every request
before its own.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from udfs.capture.framing import (
    COMPLETE,
    CUT,
    HOLE,
    IMPLAUSIBLE,
    MAX_FRAME_BYTES,
    SIZE_BYTES,
    WAIT,
    date,
    extent_holding,
    grow,
    int32_at,
    measure,
    piece_holding,
    size_at,
    stream_end,
    take,
)
from udfs.capture.segments import UNKNOWN
from udfs.capture.sync import (
    HEADER_BYTES,
    find_request,
    find_response,
    lose_sync,
    open_requests,
    report_loss,
    skip_to,
    waiting_request,
)
from udfs.wire.faults import DecodeFault
from udfs.wire.header import expects_response, is_printable, request_header
from udfs.wire.kernel import kernel

UNDECIDED, KAFKA, TLS, OTHER = 0, 1, 2, 3
NEVER = (1 << 62) - 1
# Why bytes are in no frame; `udfs.facts.reasons` has the words.
BEFORE_FIRST_FRAME, BEHIND_GAP, IMPLAUSIBLE_HEADER, CUT_AT_END = 0, 1, 2, 3
# A first request is looked for in this much of a direction before the connection is called not Kafka.
PROBE_BYTES = 1 << 20
# Kafka adds a version to an API once or twice a year.
LAST_BELIEVABLE_VERSION = 100

OK, TRUNCATED, UNKNOWN_API = int(DecodeFault.OK), int(DecodeFault.TRUNCATED), int(DecodeFault.UNKNOWN_API)

CONNECTION = np.dtype(
    [
        (name, np.int64)
        for name in (
            "run",  # of packets, in the call that reports it
            "incarnation",  # 0, 1, ...: how often the same endpoints had connected before
            "syn_sequence",  # of the client's SYN, or UNKNOWN when the capture does not show it
            "client",  # the direction that sends requests, or UNKNOWN
            "protocol",
            "packets",
            "first_time",
            "last_time",
            "requests",
            "orphan_responses",
            "first_open",  # index of the first request that may still be answered
        )
    ],
    align=True,
)
LOSS = np.dtype(
    [
        (name, np.int64)
        for name in ("connection", "direction", "stream_offset", "bytes", "reason", "time", "packet")
    ],
    align=True,
)


@kernel
def tls_packet(stream):  # type: ignore[no-untyped-def]
    """The packet by which the first bytes in hand are a TLS record header (RFC 8446, section 5.1), or NEVER."""
    if len(stream.extents) == 0 or stream.extents[0, 1] - stream.extents[0, 0] < 3:
        return NEVER
    offset, start = stream.extents[0, 0], stream.extents[0, 2]
    first, major, minor = stream.arena[start], stream.arena[start + 1], stream.arena[start + 2]
    is_tls = 20 <= first <= 23 and major == 3 and minor <= 4
    return stream.packets[stream.pieces[piece_holding(stream, offset + 2), 2]] if is_tls else NEVER


@kernel
def request_packet(stream, offset):  # type: ignore[no-untyped-def]
    """The packet that brought the end of the header of the request that begins at `offset`."""
    extent = extent_holding(stream, offset)
    needed = SIZE_BYTES + min(size_at(stream, extent, offset), HEADER_BYTES)
    last = min(offset + needed, stream.extents[extent, 1]) - 1
    return stream.packets[stream.pieces[piece_holding(stream, last), 2]]


@kernel
def probe(stream, direction, apis, is_client):  # type: ignore[no-untyped-def]
    """Whether this side sends requests: (COMPLETE, where the first begins), (WAIT, ...) or (HOLE, ...) for no."""
    state, offset = find_request(stream, direction.position, direction.position + PROBE_BYTES, apis, is_client)
    if state == HOLE and offset < PROBE_BYTES and not stream.is_final:
        return WAIT, offset
    return state, offset


@kernel
def recognise(conn, streams, directions, apis):  # type: ignore[no-untyped-def]
    """Decide the connection's protocol and who is the client, if the evidence in hand allows: what came first counts."""
    state_0, state_1 = HOLE, HOLE
    offset_0 = offset_1 = 0
    if conn.client != 1:
        state_0, offset_0 = probe(streams[0], directions[0], apis, conn.client == 0)
    if conn.client != 0:
        state_1, offset_1 = probe(streams[1], directions[1], apis, conn.client == 1)
    held = max(stream_end(streams[0]), 0) + max(stream_end(streams[1]), 0)
    packet_0 = request_packet(streams[0], offset_0) if state_0 == COMPLETE else NEVER
    packet_1 = request_packet(streams[1], offset_1) if state_1 == COMPLETE else NEVER
    tls = min(tls_packet(streams[0]), tls_packet(streams[1]))
    if tls < min(packet_0, packet_1):
        conn.protocol = TLS
    elif packet_0 != packet_1:
        conn.client = 0 if packet_0 < packet_1 else 1
        conn.protocol = KAFKA
        side = conn.client
        skip_to(streams[side], directions[side], offset_0 if side == 0 else offset_1, BEFORE_FIRST_FRAME)
        directions[side].is_synced = 1
    elif held > 0 and ((state_0 == HOLE and state_1 == HOLE) or held > 2 * MAX_FRAME_BYTES):
        conn.protocol = OTHER


@kernel
def is_believable(stream, frame, state, apis):  # type: ignore[no-untyped-def]
    """Whether a frame that a size has led to can be a request, also of an API or version not known yet."""
    end = frame.start + frame.prefix
    fault, key, version, _, client_id, length, _ = request_header(stream.arena, frame.start, end, apis)
    if fault != OK and fault != UNKNOWN_API:
        is_cut = state != COMPLETE and frame.prefix < HEADER_BYTES  # a length may lead out of what is in hand
        return is_cut and (fault == TRUNCATED or (key >= 0 and 0 <= version <= LAST_BELIEVABLE_VERSION))
    return key >= 0 and 0 <= version <= LAST_BELIEVABLE_VERSION and is_printable(stream.arena, client_id, length)


@kernel
def next_request(stream, direction, apis, frame):  # type: ignore[no-untyped-def]
    """Measure the request at the direction's position and judge its header; as `measure`."""
    state = measure(stream, direction.position, frame)
    if state == HOLE or state == IMPLAUSIBLE or frame.prefix < 0:
        return state
    return state if is_believable(stream, frame, state, apis) else IMPLAUSIBLE


@kernel
def read_header(arena, frame, apis):  # type: ignore[no-untyped-def]
    """Fill in what the request's header says."""
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
def reason_of(state, stream):  # type: ignore[no-untyped-def]
    """The reason to give for bytes that could not be framed."""
    if state == IMPLAUSIBLE:
        return IMPLAUSIBLE_HEADER
    return CUT_AT_END if stream.is_final else BEHIND_GAP


@njit(cache=True, nogil=True)
def frame_requests(stream, direction, conn, c, apis, requests, n, losses, n_losses):  # type: ignore[no-untyped-def]
    """Frame the client's side. Returns (requests, their count, losses, their count)."""
    while direction.position < stream_end(stream):
        if direction.is_synced == 0:
            state, offset = find_request(stream, direction.position, 1 << 62, apis, True)
            skip_to(stream, direction, offset, BEHIND_GAP)
            if state != COMPLETE:
                break
            direction.is_synced = 1
        losses, n_losses = report_loss(losses, n_losses, c, conn.client, direction)
        requests = grow(requests, n)
        frame = requests[n]
        state = next_request(stream, direction, apis, frame)
        if state == WAIT:
            break
        if state == HOLE or state == IMPLAUSIBLE:
            lose_sync(stream, direction, reason_of(state, stream))
            continue
        date(stream, frame)
        take(frame, direction)
        read_header(stream.arena, frame, apis)
        frame.connection, frame.number, frame.partner = c, conn.requests, UNKNOWN
        conn.requests += 1
        n += 1
    return requests, n, losses, n_losses


@kernel
def next_response(stream, direction, waiting, frame):  # type: ignore[no-untyped-def]
    """Measure the response at the direction's position and find its request: (state, request index or UNKNOWN).

    WAIT also for a response that came behind the barrier, where requests are not framed yet. A response nobody waits for
    is believed when the size behind it is plausible, or no more was sent: the capture began between the two.
    """
    state = measure(stream, direction.position, frame)
    if state != COMPLETE and state != CUT:
        return state, UNKNOWN
    date(stream, frame)
    if frame.last_packet > waiting.barrier:
        return WAIT, UNKNOWN
    if frame.prefix < SIZE_BYTES:
        return HOLE, UNKNOWN
    frame.correlation_id = int32_at(stream.arena, frame.start)
    match = waiting_request(waiting, frame.correlation_id, frame.last_packet)
    if match == UNKNOWN and state == COMPLETE:
        behind = direction.position + SIZE_BYTES + frame.size
        extent = extent_holding(stream, direction.position)
        if stream.extents[extent, 1] - behind >= SIZE_BYTES:
            return (COMPLETE if size_at(stream, extent, behind) >= 0 else IMPLAUSIBLE), UNKNOWN
        if extent == len(stream.extents) - 1 and not stream.is_final:
            return WAIT, UNKNOWN
    return state, match


@kernel
def settle(conn, requests, match, response):  # type: ignore[no-untyped-def]
    """Close the open requests up to `match`: those before it will get no answer any more."""
    for i in range(conn.first_open, match):
        requests[i].is_open = 0
    requests[match].is_open, requests[match].partner = 0, response
    conn.first_open = match + 1


@njit(cache=True, nogil=True)
def frame_responses(stream, direction, conn, c, barrier, requests, n_requests, responses, n, losses, n_losses):  # type: ignore[no-untyped-def]
    """Frame the broker's side and pair it with the requests. Returns (responses, their count, losses, their count)."""
    waiting = open_requests(requests, conn.first_open, n_requests, barrier)
    while direction.position < stream_end(stream):
        waiting.first[0] = conn.first_open
        if direction.is_synced == 0:
            state, offset = find_response(stream, direction.position, waiting)
            skip_to(stream, direction, offset, BEHIND_GAP if direction.framed_bytes > 0 else BEFORE_FIRST_FRAME)
            if state != COMPLETE:
                break
            direction.is_synced = 1
        losses, n_losses = report_loss(losses, n_losses, c, 1 - conn.client, direction)
        responses = grow(responses, n)
        frame = responses[n]
        state, match = next_response(stream, direction, waiting, frame)
        if state == WAIT:
            break
        if state == HOLE or state == IMPLAUSIBLE:
            lose_sync(stream, direction, reason_of(state, stream))
            continue
        take(frame, direction)
        frame.connection, frame.partner = c, match
        if match == UNKNOWN:
            conn.orphan_responses += 1
            frame.number = -conn.orphan_responses
        else:
            frame.number = requests[match].number
            settle(conn, requests, match, n)
        n += 1
    return responses, n, losses, n_losses
