"""Producers under quotas at another pace, drawn anew for each replication, and their outcomes at that pace.

When a producer has used up its quota, and how long it then waits, differs a little from one run to the next. So each
lane is replayed several times (replications), and each replication draws

- when the application makes requests: blocks of the captured times between them, so that a slow phase stays slow. In
  all, they take as long as captured;
- how long brokers work on requests: blocks of captured times;
- one factor for the times of clients and brokers, as large as the difference between two equal runs, and one for how
  long the first request to each broker takes to come, which differs more;
- how many bytes a client saves by sending several requests as one, because the capture hardly shows that. For a client
  that does not do so, such as librdkafka, the order in which its requests of different sizes come.

In one replication all lanes have the same draws, so they differ by their settings alone. Lanes in which nobody is
throttled are replayed only a few times.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Records
from udfs.replay.fetch_max_bytes.producer_quota.events import CapturedProducers
from udfs.replay.fetch_max_bytes.producer_quota.playing import nothing_played, play_lanes
from udfs.replay.fetch_max_bytes.producer_quota.state import ProducerUnit, QuotaLane
from udfs.replay.shared.pace_of_runs import STRETCHES, pace_differs
from udfs.replay.shared.replications import FEWEST, factors, lanes_alike, near_places, replications_within

REQUESTS_AT_MOST = 1 << 21
"""The most requests that are replayed for a unit's ranges, over all lanes. A larger unit has fewer replications."""

STARTS_DIFFER = 1.3
"""How much runs of Java producers in the lab differ in how long their first request to a broker takes to come: the
standard deviation of the time's logarithm. VALIDATION.md says how it was measured."""


class QuotaReplications(NamedTuple):
    """The outcomes of producers at drawn paces: THROTTLING[replications, lanes, connections], and int64[replications,
    lanes, processes] for how long each process waits for memory.

    counts: int64[lanes], how many replications each lane has; the rest of its outcomes mean nothing.
    """

    outcomes: Records
    blocked_us: Ints
    counts: Ints


def replicated(captured: CapturedProducers, lanes: Sequence[QuotaLane], buffer_bytes: int) -> QuotaReplications:
    """Replay producers several times in every lane, each time at another pace. Equal client ids at different addresses
    have the same draws.

    buffer_bytes: buffer.memory of each process.
    """
    unit, names = captured.unit, " ".join(client_id for client_id, _ in captured.clients)
    first, of_lane = lanes_alike(
        lane.meter_of.tobytes() + np.asarray(lane.rules).tobytes() + bytes([lane.is_captured]) for lane in lanes
    )
    draws = np.random.default_rng(zlib.crc32(names.encode()))
    count = replications_within(REQUESTS_AT_MOST, len(unit.requests) * len(first))
    slower, counts = factors(draws, brokers_differ(unit), count), np.full(len(first), count)
    start = factors(draws, STARTS_DIFFER, count)
    played = nothing_played(unit, count, len(first))
    for again in range(count):
        if again == FEWEST:
            counts[played.outcomes["throttled"][:again].sum(axis=(0, 2)) == 0] = FEWEST
        wanted = np.flatnonzero(counts > again)
        if not len(wanted):
            break
        drawn = at_another_pace(unit, float(slower[again]), float(start[again]), draws)
        done = play_lanes(drawn, [lanes[place] for place in first[wanted].tolist()], buffer_bytes)
        played.outcomes[again, wanted], played.blocked_us[again, wanted] = done
    return QuotaReplications(played.outcomes[:, of_lane], played.blocked_us[:, of_lane], counts[of_lane])


def brokers_differ(unit: ProducerUnit) -> float:
    """How much the times of brokers differ from one run to the next, as in `pace_differs`. Of a request's time, little
    depends on its bytes.
    """
    time = unit.service_us
    return pace_differs(unit.requests["connection"], np.zeros(len(time), np.int64), time)


def at_another_pace(unit: ProducerUnit, slower: float, start: float, draws: np.random.Generator) -> ProducerUnit:
    """The unit with drawn times. slower: the factor of the times of clients and brokers. start: that of the time that
    the first request of each connection takes to come.
    """
    requests, connections, first = unit.requests.copy(), unit.connections.copy(), unit.first[:-1]
    place, ready = drawn_places(unit.first, draws), drawn_ready(unit, draws)
    service, idle = (np.rint(slower * times).astype(np.int64) for times in (unit.service_us[place], unit.idle_us))
    idle[first] = np.rint(start * unit.idle_us[first])
    for name in ("arrived_us", "recorded_us"):  # what becomes of a request is compared with these
        requests[name] += ready - unit.ready_us + idle - unit.idle_us
    requests["size"] = drawn_sizes(unit, draws)
    connections["saved_bytes"] = np.rint(draws.uniform(0.0, 2.0) * unit.connections["saved_bytes"])
    return unit._replace(
        requests=requests, connections=connections, service_us=service, idle_us=idle, ready_us=ready
    )  # fmt: skip


def drawn_places(edges: Ints, draws: np.random.Generator) -> Ints:
    """For each value the index of the value that is drawn for it, of the same connection or process: int64[n].

    edges: int64[m + 1], where the values of each begin.
    """
    parts = [np.zeros(0, np.int64)]
    for begin, end in pairwise(edges.tolist()):
        length = max(round(float(np.sqrt((end - begin) / STRETCHES))), 1)
        parts.append(begin + near_places(end - begin, length, draws))
    return np.concatenate(parts)


def drawn_ready(unit: ProducerUnit, draws: np.random.Generator) -> Ints:
    """When each request is made: int64[n], us. The first and the last one of each process are made as captured. Between
    them each is made as long after the one before as the request from which it takes its time was.
    """
    made, first = unit.ready_us[unit.by_process], unit.process_first
    gaps = np.diff(made, prepend=made[:1])
    gaps[first[:-1]] = 0
    drawn = gaps[drawn_places(first, draws)]
    total, wanted = (np.add.reduceat(of, first[:-1]) for of in (drawn, gaps))
    later = np.cumsum(drawn * np.repeat(wanted / np.maximum(total, 1), np.diff(first)))
    of_process = np.repeat(first[:-1], np.diff(first))
    ready = np.empty_like(made)
    ready[unit.by_process] = made[of_process] + np.rint(later - later[of_process]).astype(np.int64)
    return ready


def drawn_sizes(unit: ProducerUnit, draws: np.random.Generator) -> Ints:
    """The bytes of each request: int64[n]. The captured sizes of a connection come in another order, unless its client
    sends several requests as one, because then the order is of no importance.
    """
    sizes, connection = unit.requests["size"], unit.requests["connection"]
    other = np.lexsort((draws.random(len(sizes)), connection))
    return np.where(unit.connections["joined_bytes"][connection] == 0, sizes[other], sizes)
