"""What a producer's threads sent, in pieces, and what its connections took for it: what a closed loop goes on from.

A broker takes the next request of a connection when it has answered the one before (SocketServer mutes the channel
until then, Kafka 4.4). So a request is served from when it was sent, or when the one before was answered if that was
later, until its own answer.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, edges
from udfs.columns.time_units import NEVER, US_PER_MS
from udfs.replay.shared.requests_in_flight import MAX_IN_FLIGHT
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD

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
    after: Ints  # us: it held its memory for so much longer, as where it was sent again
    filled: Ints  # us: as in Batches


class Routes(NamedTuple):
    """Where streams go. streams: int64[connections + 1], connection c has those from its entry to the next."""

    connection: Ints  # int64[streams]
    streams: Ints
    linger: Ints  # int64[1]: us


class Requests(NamedTuple):
    """Captured requests by connection, in the order of their sending, int64[requests] each but for the bounds."""

    bounds: Ints  # int64[connections + 1], as in Routes
    sent: Ints  # us
    service: Ints  # us: it was served for so long
    behind: Ints  # us: it was behind others of the connection for so long
    free: Ints  # us: since then fewer than five were in flight before it


class Sends(NamedTuple):
    """All that a closed loop goes on from."""

    pieces: Pieces
    served: Served
    routes: Routes
    requests: Requests


def requests_of(connection: Ints, request: Ints, sent: Ints, answered: Ints) -> tuple[Requests, Ints]:
    """(the requests, which of them each sending is in).

    connection: of each sending, from 0 on; request: a number that tells those of a connection apart.
    """
    pairs, number = np.unique(np.stack([connection, request]), axis=1, return_inverse=True)
    begun, done = np.full(pairs.shape[1], NEVER), np.zeros(pairs.shape[1], np.int64)
    np.minimum.at(begun, number.ravel(), sent)
    np.maximum.at(done, number.ravel(), answered)
    order = np.lexsort((done, begun, pairs[0]))
    bounds = np.searchsorted(pairs[0], np.arange(int(connection.max(initial=-1)) + 2)).astype(np.int64)
    begun, done = begun[order], done[order]
    before, free = np.zeros(len(order), np.int64), np.zeros(len(order), np.int64)
    for start, end in itertools.pairwise(bounds.tolist()):
        answers = np.maximum.accumulate(done[start:end])
        before[start + 1 : end] = answers[:-1]
        free[start + MAX_IN_FLIGHT : end] = answers[:-MAX_IN_FLIGHT]
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    behind = np.clip(before - begun, 0, np.maximum(done - begun, 0))
    served = np.maximum(done - np.maximum(begun, before), 0)
    return Requests(bounds, begun, served, behind, free), place[number.ravel()]


def share_behind(requests: Requests) -> float:
    """Of the time that requests were on their way, the part in which the connection served others before them."""
    behind = float(requests.behind.sum())
    return behind / max(behind + float(requests.service.sum()), 1.0)


def lingered(requests: Requests, request: Ints, appended: Ints) -> int:
    """How long a batch waits for more records, us: the median of requests, each by the batch that waited longest.

    request: of each batch. Requests that could not be sent when that batch began, because five were in flight, do not
    tell; where none does, it is 0.
    """
    first = np.full(len(requests.sent), NEVER)
    np.minimum.at(first, request, appended)
    longest = np.sort((requests.sent - first)[requests.free <= first])
    longest = longest[longest >= 0]
    return int(longest[(len(longest) - 1) // 2]) if len(longest) else 0


def pieces_of(time: Ints, filled: Ints, size: Ints, records: Ints) -> Pieces:
    """Batches in pieces of about as many records, evenly from the first record's time to the last one's."""
    n = len(time)
    most = int(np.clip(MOST_PIECES // max(n, 1), 1, MOST_PIECES_OF_BATCH))
    count = np.clip(records, 1, most)
    start, batch = edges(count), np.repeat(np.arange(n), count)
    place = np.arange(start[-1]) - start[batch]
    last = np.maximum(filled - US_PER_MS, time)
    gaps = np.maximum(count - 1, 1)
    at = time[batch] + (last - time)[batch] * place // gaps[batch]
    whole = np.maximum(size - RECORD_BATCH_OVERHEAD, 1)
    share = whole[batch] * (place + 1) // count[batch] - whole[batch] * place // count[batch]
    order = np.argsort(at, kind="stable")
    return Pieces(at[order], share[order], batch[order], (place == 0).astype(np.int64)[order])
