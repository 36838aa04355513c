"""A producer's brokers at another pace, drawn anew for each replication, and the producer's outcomes at that pace.

How fast brokers answer differs from one run to the next, and a buffer that is just large enough in one run is too small
in another. So each lane is replayed several times (replications), and each replication draws

- how long brokers serve requests: blocks of captured times, so that a slow phase stays slow;
- one factor for all these times, as large as the difference between two equal runs.

The application's pace stays as captured: its records come when the capture has them. In one replication all lanes have
the same draws, so they differ by their settings alone. Lanes in which nothing waits are replayed only a few times.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Records
from udfs.replay.consumer_memory.producer.batches import Produced
from udfs.replay.consumer_memory.producer.replay import no_outcomes, pieces_of, replay_producer
from udfs.replay.shared.lanes import CAPTURED
from udfs.replay.shared.pace_of_runs import STRETCHES, pace_differs
from udfs.replay.shared.replications import FEWEST, factors, near_places, replications_within

BATCHES_AT_MOST = 1 << 20
"""The most batches that are replayed for a producer's ranges, over all lanes. A larger producer has fewer
replications."""


class BufferReplications(NamedTuple):
    """A producer's outcomes at drawn paces: BUFFER_OUTCOME[replications, lanes].

    counts: int64[lanes], how many replications each lane has; the rest of its outcomes mean nothing.
    """

    outcomes: Records
    counts: Ints


def replicated(sent: Produced, settings: Records, client_id: str) -> BufferReplications:
    """Replay a producer several times in every lane, each time with another pace of its brokers. Equal client ids at
    different addresses have the same draws.

    sent: of one producer. settings: BUFFER_SETTINGS[lanes].
    """
    draws, lanes = np.random.default_rng(zlib.crc32(client_id.encode())), len(settings)
    count = replications_within(BATCHES_AT_MOST, len(sent.batches) * lanes)
    slower = factors(draws, brokers_differ(sent), count)
    outcomes, counts = np.stack([no_outcomes(settings)] * count), np.full(lanes, count)
    pieces = pieces_of(sent.batches)  # of records, which come as captured
    for again in range(count):
        if again == FEWEST:
            counts[(outcomes["waits"][:again] + outcomes["exhausted"][:again]).sum(axis=0) == 0] = FEWEST
        wanted = np.flatnonzero(counts > again)
        if not len(wanted):
            break
        with_captured = np.union1d(CAPTURED, wanted)  # the captured lane shows which waits the times contain
        drawn = at_another_pace(sent, float(slower[again]), draws)
        outcomes[again, with_captured] = replay_producer(drawn, settings[with_captured], pieces).outcomes
    return BufferReplications(outcomes, counts)


def brokers_differ(sent: Produced) -> float:
    """How much the times of a producer's brokers differ from one run to the next, as in `pace_differs`. Of a request's
    time, little depends on its bytes.
    """
    connection, time = sent.requests["connection"], sent.requests["service_us"]
    return pace_differs(connection, np.zeros(len(time), np.int64), time)


def at_another_pace(sent: Produced, slower: float, draws: np.random.Generator) -> Produced:
    """What a producer sent, with brokers that take drawn times. slower: the factor of these times."""
    batches, requests = sent.batches.copy(), sent.requests.copy()
    for own in np.split(np.arange(len(requests)), np.flatnonzero(np.diff(requests["connection"])) + 1):
        requests["service_us"][own] = drawn_times(sent.requests["service_us"][own], slower, draws)
    sending_us = drawn_times(sent.batches["sending_us"], slower, draws)
    batches["held_us"] += sending_us - batches["sending_us"]
    batches["sending_us"] = sending_us
    return sent._replace(batches=batches, requests=requests)


def drawn_times(times: Ints, slower: float, draws: np.random.Generator) -> Ints:
    """As many times as there are, drawn in blocks, and longer by a factor: int64[n], us. times: int64[n], us."""
    length = max(round(float(np.sqrt(len(times) / STRETCHES))), 1)
    return np.rint(slower * times[near_places(len(times), length, draws)]).astype(np.int64)
