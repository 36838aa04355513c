"""Requests of a connection that wait for an answer: which one a response answers, and which none can answer any more.

A broker answers a request before it reads the next: kafka.network.SocketServer mutes the connection. What else a client
has sent lies in the receive buffer of the broker's socket, so that a request behind which more has come is past its
answer. That bounds memory where the capture lacks responses, and depends on packets alone, not on where chunks end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.capture.chunk_output import Found, close_requests
from udfs.capture.framing import SIZE_BYTES
from udfs.capture.segments import UNKNOWN, in_order
from udfs.columns.arrays import Ints, Record, Records
from udfs.kernels.kernel import allocating_kernel, kernel

# More than receive buffers hold: socket.receive.buffer.bytes is 100 KB; where it is -1, Linux stops at 6 MB (tcp_rmem).
MOST_OPEN_BYTES = 64 << 20
# More than clients leave open, however small their requests are.
MOST_OPEN_REQUESTS = 100_000


class OpenRequests(NamedTuple):
    """A connection's requests by correlation id; one id may be used again once it was answered."""

    requests: Records  # FRAME
    open: Ints  # indices of those that waited when this was made, in order
    keys: Ints  # sorted; correlation id << 32 | index of the request
    first: Ints  # [1], index of the first request that may still be answered
    barrier: int  # place of the packet from which on requests are not framed yet


@allocating_kernel
def open_requests(requests: Records, first: int, end: int, barrier: int) -> OpenRequests:
    """The requests with indices in [first, end) that wait for a response, as OpenRequests."""
    waiting, keys = np.empty(end - first, np.int64), np.empty(end - first, np.int64)
    rows = np.empty(end - first, np.int64)
    n = 0
    for index in range(first, end):
        if requests[index].is_open == 1:
            waiting[n], rows[n] = index, n
            keys[n] = (requests[index].correlation_id << 32) + index
            n += 1
    rows = in_order(rows[:n], keys)
    for row in range(n):
        rows[row] = keys[rows[row]]
    return OpenRequests(requests, waiting[:n], rows, np.full(1, first), barrier)


@kernel
def is_past_answer(waiting: OpenRequests, nth: int, later: int) -> bool:
    """Whether the broker has read a request, and so answered it, by the time that a later one had come.

    nth, later: indices in `open`. Requests that get no answer do not count: they are not carried over to other chunks.
    """
    request, other = waiting.requests[waiting.open[nth]], waiting.requests[waiting.open[later]]
    behind = request.stream_offset + SIZE_BYTES + request.size
    return bool(later - nth >= MOST_OPEN_REQUESTS or other.stream_offset - behind > MOST_OPEN_BYTES)


@kernel
def first_answerable(waiting: OpenRequests, place: int) -> int:
    """Index of the first request that may be answered by what came with this packet: any before it is past its answer.

    What had come is told by `place` alone, not by what the chunk has in hand.
    """
    first, end = int(waiting.first[0]), len(waiting.open)
    if end == 0 or not is_past_answer(waiting, 0, end - 1):
        return first
    oldest = rows_before(waiting.open, first)
    come = oldest
    while come < end:
        middle = (come + end) // 2
        if waiting.requests[waiting.open[middle]].latest_place < place:
            come = middle + 1
        else:
            end = middle
    low, high = oldest, come
    while low < high:
        middle = (low + high) // 2
        if is_past_answer(waiting, middle, come - 1):
            low = middle + 1
        else:
            high = middle
    return int(waiting.open[low]) if low > oldest else first


@kernel
def rows_before(values: Ints, value: int) -> int:
    """How many of the values, sorted int64[n], are below one."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def waiting_request(waiting: OpenRequests, correlation_id: int, place: int) -> int:
    """Index of the first request that waits for a response with this correlation id, or UNKNOWN.

    place: of the packet that brought the response; only what had begun before it can be what it answers.
    """
    low = rows_before(waiting.keys, (correlation_id << 32) + first_answerable(waiting, place))
    if low == len(waiting.keys) or waiting.keys[low] >> 32 != correlation_id:
        return UNKNOWN
    index: int = waiting.keys[low] & 0xFFFFFFFF
    return index if waiting.requests[index].first_place < place else UNKNOWN


@kernel
def forget_oldest(conn: Record, waiting: OpenRequests, found: Found, place: int) -> None:
    """Close the requests that nothing can answer which comes from this packet on: the capture lacks their responses."""
    waiting.first[0] = conn.first_open
    first = first_answerable(waiting, place)
    close_requests(found, conn.first_open, first)
    conn.first_open = first
