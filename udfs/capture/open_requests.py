"""Requests of a connection that wait for an answer: which one a response answers, and which none can answer any more.

A broker answers a request before it reads the next: kafka.network.SocketServer mutes the connection. What else a client
has sent lies in the receive buffer of the broker's socket, so that a request behind which more has come is past its
answer. That bounds memory where the capture lacks responses, and depends on packets alone, not on where chunks end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.capture.found import Found, close_requests
from udfs.capture.framing import SIZE_BYTES
from udfs.capture.segments import UNKNOWN, in_order
from udfs.wire.arrays import Ints, Record, Records
from udfs.wire.kernel import allocating_kernel, kernel

# More than receive buffers hold: socket.receive.buffer.bytes is 100 KB; where it is -1, Linux stops at 6 MB (tcp_rmem).
MOST_OPEN_BYTES = 64 << 20
# More than clients leave open, however small their requests are.
MOST_OPEN_REQUESTS = 100_000


class OpenRequests(NamedTuple):
    """A connection's requests by correlation id; one id may be used again once it was answered."""

    requests: Records  # FRAME
    keys: Ints  # sorted; correlation id << 32 | index of the request
    first: Ints  # [1], index of the first request that may still be answered
    end: int  # index behind the last request
    barrier: int  # place of the packet from which on requests are not framed yet


@allocating_kernel
def open_requests(requests: Records, first: int, end: int, barrier: int) -> OpenRequests:
    """The requests with indices in [first, end) that wait for a response, as OpenRequests."""
    keys, rows = np.empty(end - first, np.int64), np.empty(end - first, np.int64)
    n = 0
    for index in range(first, end):
        if requests[index].is_open == 1:
            keys[n] = (requests[index].correlation_id << 32) + index
            rows[n] = n
            n += 1
    rows = in_order(rows[:n], keys)
    for row in range(n):
        rows[row] = keys[rows[row]]
    return OpenRequests(requests, rows, np.full(1, first), end, barrier)


@kernel
def is_past_answer(requests: Records, index: int, later: int) -> bool:
    """Whether the broker has read request `index`, and so answered it, by the time that request `later` had come."""
    behind = requests[index].stream_offset + SIZE_BYTES + requests[index].size
    return bool(later - index >= MOST_OPEN_REQUESTS or requests[later].stream_offset - behind > MOST_OPEN_BYTES)


@kernel
def first_answerable(waiting: OpenRequests, place: int) -> int:
    """Index of the first request that may be answered by what came with this packet: any before it is past its answer.

    What had come is told by `place` alone, not by what the chunk has in hand.
    """
    first = int(waiting.first[0])
    if first == waiting.end or not is_past_answer(waiting.requests, first, waiting.end - 1):
        return first
    come, end = first, waiting.end
    while come < end:
        middle = (come + end) // 2
        if waiting.requests[middle].latest_place < place:
            come = middle + 1
        else:
            end = middle
    low, high = first, come
    while low < high:
        middle = (low + high) // 2
        if is_past_answer(waiting.requests, middle, come - 1):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def waiting_request(waiting: OpenRequests, correlation_id: int, place: int) -> int:
    """Index of the first request that waits for a response with this correlation id, or UNKNOWN.

    place: of the packet that brought the response; only what had begun before it can be what it answers.
    """
    key = (correlation_id << 32) + first_answerable(waiting, place)
    low, high = 0, len(waiting.keys)
    while low < high:
        middle = (low + high) // 2
        if waiting.keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    if low == len(waiting.keys) or waiting.keys[low] >> 32 != correlation_id:
        return UNKNOWN
    index: int = waiting.keys[low] & 0xFFFFFFFF
    return index if waiting.requests[index].first_place < place else UNKNOWN


@kernel
def forget_oldest(conn: Record, waiting: OpenRequests, found: Found) -> None:
    """Close the requests that nothing can answer which comes from the barrier on: the capture lacks their responses."""
    waiting.first[0] = conn.first_open
    first = first_answerable(waiting, waiting.barrier)
    close_requests(found, conn.first_open, first)
    conn.first_open = first
