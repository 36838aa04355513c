"""What the replay of a memory pool works on: exchanges, settings, working memory and results, all of them arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Records, read_only
from udfs.replay.consumer_memory.pool import POOL
from udfs.replay.consumer_memory.usage import USAGE, Spent, nothing_spent
from udfs.replay.shared.event_heap import Heap
from udfs.replay.shared.histogram import BUCKETS

NONE = -1
NOT_GIVEN_BACK = -1
MEMORY_POOL, IN_FLIGHT_ESTIMATE, REQUESTS_IN_FLIGHT, COMPLETED_AS_MAX = range(4)


class Trace(NamedTuple):
    """The exchanges of a unit in the order of their requests, int64[n]; the last two int64[connections]."""

    connection: Ints
    behind: Ints  # the next one on the connection, or NONE
    asked: Ints  # us
    started: Ints  # us: its size is known; not before asked
    came: Ints  # us: its last byte; not before started
    size: Ints  # bytes to be allocated
    held: Ints  # us from came on, or NOT_GIVEN_BACK
    records: Ints
    max_bytes: Ints  # of a fetch, else 0
    first: Ints  # exchange of a connection
    privileged: Ints  # 1: gets unpooled memory where the pool refuses (a consumer's coordinator)


class Bounds(NamedTuple):
    """Settings by lane, int64[lanes]."""

    size: Ints
    max_single: Ints
    strict: Ints
    variant: Ints
    record_us: Ints  # of the application's time for a record; AS_CAPTURED: held as long as the capture shows
    most_records: Ints  # max.poll.records
    seed: Ints


class Work(NamedTuple):
    """Working memory: int64[n] the first five, int64[connections] the others."""

    here: Ints  # 1: has come
    pooled: Ints  # bytes allocated
    left: Ints  # records not yet taken by the application
    queued_behind: Ints
    waited: Ints  # us
    head: Ints  # to be read next
    waiting_since: Ints  # us, or NONE
    overtaken: Ints
    starved: Ints
    parked: Ints  # request that is held back, or NONE
    reading: Ints  # 1: a message has its memory and is not there yet
    racing: Ints


RUN = np.dtype(
    [
        (name, np.int64)
        for name in (
            "read",  # messages read
            "bytes",
            "records",  # in the messages read
            "waits",  # messages or requests that had to wait
            "wait_us",
            "longest_us",
            "starved",  # connections
            "pinned",  # messages never given back
            "unpooled",  # messages of privileged connections that the pool refused
            "larger",  # messages larger than one allocation may be: the connection is closed
            "stuck",  # connections that wait at the end
            "smallest",  # pool that lets nobody wait
            "reckoned",  # most bytes that the variant counted
            "end",  # us
            "in_flight",  # sum of max_bytes
            "completed",  # bytes read and not yet given back
            "completed_max",  # ... counted as max_bytes each
            "busy",  # 1: the application works
            "queue_first",
            "queue_last",
            "random",
        )
    ]
)
"""What a lane's replay comes to, and its state on the way."""


class Sim(NamedTuple):
    """All of a unit's replay; waits: int64[lanes, BUCKETS], messages by how long they waited (us)."""

    trace: Trace
    bounds: Bounds
    work: Work
    heap: Heap
    spent: Spent
    waits: Ints
    pools: Records
    usages: Records
    runs: Records


def no_work(n: int, connections: int) -> Work:
    """Working memory for so many exchanges and connections."""
    of_connections = ("head", "waiting_since", "overtaken", "starved", "parked", "reading", "racing")
    return Work(*(np.zeros(connections if name in of_connections else n, np.int64) for name in Work._fields))


def new_sim(trace: Trace, bounds: Bounds) -> Sim:
    """The replay of a unit, before anything has happened."""
    n, lanes = len(trace.connection), len(bounds.size)
    room = 2 * n + 2  # an exchange is asked for, on its way, or to be given back; and the application polls
    return Sim(
        Trace(*map(read_only, trace)),
        Bounds(*map(read_only, bounds)),
        no_work(n, len(trace.first)),
        Heap(np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(1, np.int64)),
        nothing_spent(lanes),
        np.zeros((lanes, BUCKETS), np.int64),
        np.zeros(lanes, POOL),
        np.zeros(lanes, USAGE),
        np.zeros(lanes, RUN),
    )
