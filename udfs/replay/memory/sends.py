"""What a producer's threads sent, in pieces, and what its connections took for it: what a closed loop goes on from.

A broker takes the next request of a connection when it has answered the one before (SocketServer mutes the channel
until then, Kafka 4.4). So a request is served from when it was sent, or when the one before was answered if that was
later, until its own answer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.wire.arrays import Ints, edges

BATCH_OVERHEAD = 61
"""Bytes of a batch before its records (DefaultRecordBatch.RECORD_BATCH_OVERHEAD)."""
MOST_PIECES, MOST_PIECES_OF_BATCH = 1 << 20, 64


class Pieces(NamedTuple):
    """What is appended, int64[pieces] each, in the order of time: records of a batch, as many pieces as there is room
    for.
    """

    time: Ints  # us: when a thread has it
    size: Ints  # bytes on the wire, without the batch's header
    batch: Ints  # the captured batch that has it
    is_first: Ints  # 1: the batch's first


class Served(NamedTuple):
    """Of captured batches: int64[n] each."""

    stream: Ints  # a number for its partition on its connection
    alone: Ints  # bytes of a batch that has its first record alone
    service: Ints  # us: its request was served for so long
    after: Ints  # us: it held its memory for so much longer, as where it was sent again
    filled: Ints  # us: as in Batches


class Routes(NamedTuple):
    """Where streams go. streams: int64[connections + 1], connection c has those from its entry to the next."""

    connection: Ints  # int64[streams]
    streams: Ints
    linger: Ints  # int64[1]: us


class Sends(NamedTuple):
    """All that a closed loop goes on from."""

    pieces: Pieces
    served: Served
    routes: Routes


def serving_times(connection: Ints, request: Ints, sent: Ints, answered: Ints) -> Ints:
    """How long the request of each sending was served, us. request: a number that tells those of a connection apart."""
    _, first, number = np.unique(np.stack([connection, request]), axis=1, return_index=True, return_inverse=True)
    number = number.ravel()
    begun, done = np.full(len(first), np.iinfo(np.int64).max), np.zeros(len(first), np.int64)
    np.minimum.at(begun, number, sent)
    np.maximum.at(done, number, answered)
    order = np.lexsort((done, begun, connection[first]))
    line, until = connection[first][order], done[order]
    # What comes before on the connection, whichever of it was answered last.
    latest = np.zeros(len(order), np.int64)
    for start, end in zip(*_runs(line), strict=True):
        latest[start + 1 : end] = np.maximum.accumulate(until[start : end - 1])
    served = np.empty(len(order), np.int64)
    served[order] = np.maximum(until - np.maximum(begun[order], latest), 0)
    return served[number]


def _runs(values: Ints) -> tuple[list[int], list[int]]:
    """Where stretches of equal values begin and end."""
    bounds = np.flatnonzero(np.diff(values, prepend=-1, append=-1)) if len(values) else np.zeros(1, np.int64)
    return bounds[:-1].tolist(), bounds[1:].tolist()


def lingered(connection: Ints, request: Ints, waited: Ints) -> int:
    """How long a batch waits for more records, us: the median of requests, each by the batch that waited longest."""
    if not len(waited):
        return 0
    _, number = np.unique(np.stack([connection, request]), axis=1, return_inverse=True)
    longest = np.zeros(number.max() + 1, np.int64)
    np.maximum.at(longest, number.ravel(), waited)
    return int(np.sort(longest)[(len(longest) - 1) // 2])


def pieces_of(time: Ints, filled: Ints, size: Ints, records: Ints) -> Pieces:
    """Batches in pieces of about as many records, evenly from the first record's time to the last one's."""
    n = len(time)
    most = int(np.clip(MOST_PIECES // max(n, 1), 1, MOST_PIECES_OF_BATCH))
    count = np.clip(records, 1, most)
    start, batch = edges(count), np.repeat(np.arange(n), count)
    place = np.arange(start[-1]) - start[batch]
    last = np.maximum(filled - 1000, time)
    gaps = np.maximum(count - 1, 1)
    at = time[batch] + (last - time)[batch] * place // gaps[batch]
    whole = np.maximum(size - BATCH_OVERHEAD, 1)
    share = whole[batch] * (place + 1) // count[batch] - whole[batch] * place // count[batch]
    order = np.argsort(at, kind="stable")
    return Pieces(at[order], share[order], batch[order], (place == 0).astype(np.int64)[order])
