"""Requests of a connection that wait for a response: which one a response answers, and which will get none.

A broker answers a request before it reads the next one: kafka.network.SocketServer mutes the connection. What the
client sends meanwhile waits in the receive buffer of the broker's socket. So a request must have been answered if more
bytes have come after it than that buffer holds. This rule bounds memory if the capture lacks responses. It depends only
on packets, not on where chunks end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.capture.chunk_output import ChunkOutput, close_requests
from udfs.capture.framing import SIZE_BYTES
from udfs.capture.segments import sort_rows
from udfs.columns.arrays import Ints, Record, Records
from udfs.columns.sentinels import UNKNOWN
from udfs.kernels.kernel import allocating_kernel, kernel

# More than receive buffers hold: socket.receive.buffer.bytes is 100 KB; if it is -1, Linux stops at 6 MB (tcp_rmem).
MOST_OPEN_BYTES = 64 << 20
# More requests than clients leave open, however small the requests are.
MOST_OPEN_REQUESTS = 100_000


class OpenRequests(NamedTuple):
    """A connection's requests by correlation id. A client may use an id again after it was answered."""

    requests: Records  # FRAME
    open: Ints  # indices of the requests that waited when this was made, in order
    keys: Ints  # sorted; correlation id << 32 | index of the request
    first: Ints  # [1], index of the first request that may still be answered
    barrier: int  # place of the first packet whose requests are not framed yet


@allocating_kernel
def open_requests(requests: Records, first: int, end: int, barrier: int) -> OpenRequests:
    """Make an index, by correlation id, of the requests in [first, end) that wait for a response.

    requests: FRAME[n]. barrier: as in OpenRequests.
    """
    waiting, keys = np.empty(end - first, np.int64), np.empty(end - first, np.int64)
    rows = np.empty(end - first, np.int64)
    n = 0
    for index in range(first, end):
        if requests[index].is_open == 1:
            waiting[n], rows[n] = index, n
            keys[n] = (requests[index].correlation_id << 32) + index
            n += 1
    rows = sort_rows(rows[:n], keys)
    for row in range(n):
        rows[row] = keys[rows[row]]
    return OpenRequests(requests, waiting[:n], rows, np.full(1, first), barrier)


@kernel
def is_past_answer(waiting: OpenRequests, nth: int, later: int) -> bool:
    """Whether the broker must have answered a request when a later one had come.

    nth, later: indices in `open`. Requests that get no response do not count, because they are not kept for later
    chunks.
    """
    request, other = waiting.requests[waiting.open[nth]], waiting.requests[waiting.open[later]]
    behind = request.stream_offset + SIZE_BYTES + request.size
    return bool(later - nth >= MOST_OPEN_REQUESTS or other.stream_offset - behind > MOST_OPEN_BYTES)


@kernel
def first_answerable(waiting: OpenRequests, place: int) -> int:
    """Index of the first request that a response in the packet at `place` may answer; earlier ones will get none.

    It depends only on `place`, not on the size of the chunk.
    """
    first, end = int(waiting.first[0]), len(waiting.open)
    if end == 0 or not is_past_answer(waiting, 0, end - 1):
        return first
    oldest = count_below(waiting.open, first)
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
def count_below(values: Ints, value: int) -> int:
    """How many of the values, sorted int64[n], are below `value`."""
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

    place: of the packet that brought the response; a request that began later cannot be the one that it answers.
    """
    low = count_below(waiting.keys, (correlation_id << 32) + first_answerable(waiting, place))
    if low == len(waiting.keys) or waiting.keys[low] >> 32 != correlation_id:
        return UNKNOWN
    index: int = waiting.keys[low] & 0xFFFFFFFF
    return index if waiting.requests[index].first_place < place else UNKNOWN


@kernel
def forget_oldest(conn: Record, waiting: OpenRequests, output: ChunkOutput, place: int) -> None:
    """Close the requests that no response in the packet at `place` or later can answer: their responses are missing."""
    waiting.first[0] = conn.first_open
    first = first_answerable(waiting, place)
    close_requests(output, conn.first_open, first)
    conn.first_open = first
