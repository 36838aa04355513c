"""A reader's pace drawn anew from what the capture shows of it, and what its lanes come to then.

How fast brokers answer and an application takes records differs from one run to the next. So every lane is replayed
again and again, each time with other times: blocks of the captured ones, out of one stretch of the capture, so that
what is slow for a while stays slow. How much of a response's time is no matter of what is in it is drawn, too, for one
capture hardly shows that. Client and brokers are then as much faster or slower as one run is than another, producers
make more or fewer batches of the same records (drawn_runs.py), and the reader starts, and what it reads comes, at other
times (drawn_times.py).

A reader at the log's end waits for what is produced. What slows it down for a while, such as a busy machine, slows down
producers as well, so its times stay where they are: at another moment they would meet records that would not have come
then.
All lanes have the same times, and differ by their settings alone. What follows from rules is the same each time.

Most readers of a cluster have read all that there is and wait for more. Such a reader is replayed a few times only, and
of lanes that no fetch of the reader can distinguish one is replayed.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Floats, Ints, Records
from udfs.columns.time_units import ALWAYS, NEVER, US_PER_MS
from udfs.kernels.kernel import allocating_kernel
from udfs.replay.fetch_max_bytes.closed_loop.drawn_runs import (
    BATCHES_DIFFER,
    STARTS_DIFFER,
    STRETCHES,
    factors,
    in_other_batches,
    normal_draws,
    pace_differs,
)
from udfs.replay.fetch_max_bytes.closed_loop.drawn_times import (
    DrawnTimes,
    ReaderStart,
    start_of_reader,
    started_at_other_times,
)
from udfs.replay.fetch_max_bytes.closed_loop.intent import Intent, with_pace
from udfs.replay.fetch_max_bytes.closed_loop.order import draw_below
from udfs.replay.fetch_max_bytes.closed_loop.pace import CapturedPace, pace_of_samples
from udfs.replay.fetch_max_bytes.closed_loop.pace_fits import MOST_SHARE, Sample
from udfs.replay.fetch_max_bytes.closed_loop.replay import (
    Member,
    ReplayedReader,
    readers_in_lanes,
    replay_by_clients_clock,
    rules_of_members,
)
from udfs.replay.fetch_max_bytes.closed_loop.settings import RULES
from udfs.replay.fetch_max_bytes.closed_loop.state import NO_BACKLOG, ReaderLanes, Unit
from udfs.replay.fetch_max_bytes.closed_loop.timeline import LEAST_BUCKETS
from udfs.replay.fetch_max_bytes.settings import FetchLanes, Reader
from udfs.replay.shared.replications import FEWEST, replications_within

FETCHES_AT_MOST = 1 << 21
"""Fetches that are replayed of a reader for its ranges, in all lanes: of a larger one there are fewer replications."""


class Figures(NamedTuple):
    """What the lanes of a reader come to, float64[lanes] each.

    catch_up_ms: until the slowest backlog is read that the reader did not give up, inf where one is not. held_bytes:
    the most that the reader holds at once. end_lag_bytes: what it has not read by the capture's end. throttle_time_ms:
    for how long the lane's quota holds the reader back, at all brokers together.
    """

    catch_up_ms: Floats
    longest_wait_ms: Floats
    requests: Floats
    held_bytes: Floats
    end_lag_bytes: Floats
    throttle_time_ms: Floats


class Drawn(NamedTuple):
    """A reader at its captured pace, and float64[replications, lanes] of each figure when its pace is drawn anew.

    counts: int64[lanes], how often each lane was replayed: only so many of its figures are there.
    """

    as_captured: Figures
    replications: Figures
    counts: Ints


class Draws(NamedTuple):
    """What is drawn for one reader.

    random: int64[1], the state of the generator of paces. client, brokers: float64[replications], how many times as
    long they take. batches: float64[replications], how many times as many batches producers make. shares:
    float64[replications, 2], how much of the times of taking and of sending is no matter of what is in a response.
    times: of each replication.
    """

    random: Ints
    client: Floats
    brokers: Floats
    batches: Floats
    shares: Floats
    times: Sequence[DrawnTimes]


def draws_of_reader(reader: Reader, observed: CapturedPace, count: int) -> Draws:
    """What is drawn for a reader's replications. The same client at another address has the same draws."""
    seed = zlib.crc32(f"{reader.client_id}/{reader.kind}".encode())
    draws = np.random.default_rng(seed)
    client = factors(draws, pace_differs(observed.taking), count)
    # A reader at the log's end shows hardly anything of how fast its brokers are.
    brokers = factors(draws, pace_differs(observed.taking if observed.is_at_log_end else observed.sending), count)
    shares = draws.uniform(0.0, MOST_SHARE, (count, 2))
    starts, productions = (factors(draws, STARTS_DIFFER, count).tolist() for _ in range(2))
    # A gamma distribution of shape 0.5 and mean 1 is that of the square of a normal one.
    apart = np.stack([normal_draws(draws, count) ** 2 for _ in observed.late_us], axis=1)
    times = [DrawnTimes(*of) for of in zip(starts, productions, apart, strict=True)]
    return Draws(np.full(1, seed), client, brokers, factors(draws, BATCHES_DIFFER, count), shares, times)


def drawn_figures(members: Sequence[Member], lanes: FetchLanes, replayed: Sequence[ReplayedReader]) -> list[Drawn]:
    """Replay readers together in every lane, each time with a pace drawn anew. The draws are the same for the same
    reader.
    """
    given_up = [of.outcome.given_up_backlogs == 1 for of in replayed]
    rules, of_lane = rules_that_differ(rules_of_members(members, lanes), [member.intent.unit for member in members])
    lane_count = rules[0].shape[1]
    requests = sum(int(of.outcome.lanes["requests"].sum()) for of in replayed) * lane_count // len(of_lane)
    count = replications_within(FETCHES_AT_MOST, requests)
    draws = [draws_of_reader(member.reader, member.intent.observed, count) for member in members]
    begins_with_capture = lanes.window.begin == ALWAYS
    starts = [start_of_reader(member.intent) if begins_with_capture else None for member in members]
    figures, counts = list[list[Figures]](), np.full(lane_count, count)
    for again in range(count):
        if again == FEWEST:
            counts[~np.any([has_waits(few) for of_all in figures for few in of_all], axis=0)] = FEWEST
        wanted = np.flatnonzero(counts > again)
        if not len(wanted):
            break
        units = [unit_again(*of, again) for of in zip(members, starts, draws, strict=True)]
        outcomes = replay_again(members, units, [rules_of_lanes(of, wanted, again + 1) for of in rules])
        figures.append(
            [
                placed_figures(figures_of_lanes(outcome, left), wanted, lane_count)
                for outcome, left in zip(outcomes, given_up, strict=True)
            ]
        )
    return [
        Drawn(figures_of_lanes(of.outcome, left), in_all_lanes(of_reader, of_lane), counts[of_lane])
        for of, left, of_reader in zip(replayed, given_up, zip(*figures, strict=True), strict=True)
    ]


def unit_again(member: Member, start: ReaderStart | None, draws: Draws, again: int) -> Unit:
    """What a reader reads in the replication `again`, and at which pace. start: if the capture shows it start."""
    drawn = drawn_unit(member.intent, draws.random, *draws.shares[again].tolist())
    unit = in_another_run(drawn, float(draws.client[again]), float(draws.brokers[again]))
    unit = in_other_batches(unit, float(draws.batches[again]))
    return started_at_other_times(unit, start, draws.times[again]) if start else unit


def replay_again(members: Sequence[Member], units: Sequence[Unit], rules: Sequence[Records]) -> list[ReaderLanes]:
    """Replay readers once more. units: what each of them reads. rules: RULES[nodes, lanes] of each."""
    in_lanes = readers_in_lanes([member._replace(response_room=0) for member in members], units, rules, LEAST_BUCKETS)
    replay_by_clients_clock(in_lanes)
    return [of.outcome for of in in_lanes]


def in_all_lanes(replications: Sequence[Figures], of_lane: Ints) -> Figures:
    """Figures of each replication, float64[replications, lanes], from those of lanes that differ.

    of_lane: int64[lanes], which of those each lane equals.
    """
    return Figures(*(np.stack(of)[:, of_lane] for of in zip(*replications, strict=True)))


def rules_that_differ(rules: Sequence[Records], units: Sequence[Unit]) -> tuple[list[Records], Ints]:
    """(RULES[nodes, n] of each reader, by which they are replayed in n lanes that differ; int64[lanes], which of them
    each lane is).

    rules: RULES[nodes, lanes] of each. All limits above what there is to be read are alike.
    """
    alike = [with_reachable_limits(of, unit) for of, unit in zip(rules, units, strict=True)]
    by_lane = (b"".join(of[:, lane].tobytes() for of in alike) for lane in range(alike[0].shape[1]))
    numbers: dict[bytes, int] = {}
    of_lane = np.array([numbers.setdefault(of, len(numbers)) for of in by_lane], np.int64)
    first = np.unique(of_lane, return_index=True)[1]
    return [rules_of_lanes(of, first) for of in alike], of_lane


def with_reachable_limits(rules: Records, unit: Unit) -> Records:
    """The rules with limits no larger than what there is to be read. rules: RULES[nodes, lanes]."""
    rules = rules.copy()
    most = max(int(unit.batches["bytes_before"].max(initial=0)), int(rules["min_bytes"].max(initial=0))) + 1
    for name in ("limit", "partition_max_bytes"):
        rules[name] = np.minimum(rules[name], most)
    return rules


def rules_of_lanes(rules: Records, lanes: Ints, again: int = 0) -> Records:
    """The rules of some lanes: RULES[nodes, n]. lanes: int64[n], which they are. again: added to the seeds."""
    of_lanes = np.zeros((rules.shape[0], len(lanes)), RULES)
    of_lanes[:] = rules[:, lanes]
    of_lanes["seed"] += again
    return of_lanes


def has_waits(figures: Figures) -> Bools:
    """Whether each lane has anything to catch up on, or waits: bool[lanes]."""
    return (figures.catch_up_ms > 0) | (figures.longest_wait_ms > 0)


def placed_figures(figures: Figures, lanes: Ints, count: int) -> Figures:
    """Figures of some lanes as those of `count` lanes, 0 of the others. lanes: int64[n], which they are."""
    placed = np.zeros((len(Figures._fields), count))
    placed[:, lanes] = figures
    return Figures(*placed)


def figures_of_lanes(outcome: ReaderLanes, given_up: Ints) -> Figures:
    """The figures of all lanes. given_up: bool[partitions], whose backlog the captured reader left."""
    took = outcome.catch_up_us[~given_up]
    took_ms = np.where(took == NEVER, np.inf, np.where(took == NO_BACKLOG, 0, took) / US_PER_MS)
    return Figures(
        catch_up_ms=took_ms.max(axis=0, initial=0.0),
        longest_wait_ms=outcome.sums.partitions["longest_us"].max(axis=0, initial=0) / US_PER_MS,
        requests=outcome.lanes["requests"].astype(np.float64),
        held_bytes=outcome.timeline.held.max(axis=1).astype(np.float64),
        end_lag_bytes=outcome.lanes["end_lag"].astype(np.float64),
        throttle_time_ms=outcome.lanes["throttle_ms"].astype(np.float64),
    )


def drawn_unit(intent: Intent, random: Ints, taking_share: float, sending_share: float) -> Unit:
    """What the reader reads, at a pace that is drawn anew; where it is at the log's end its times keep their order.

    random: int64[1], the generator's state, moved on. The shares: how much of a response's time is no matter of what is
    in it, as `Sample` has them.
    """
    observed, begin = intent.observed, intent.unit.nodes["begin"].copy()
    if observed.is_at_log_end:
        taking, sending = (np.arange(len(of.node)) for of in (observed.taking, observed.sending))
    else:
        taking = drawn_rows(observed.taking.node, begin, observed.is_one_process, random)
        sending = drawn_rows(observed.sending.node, begin, False, random)
    pace = pace_of_samples(observed, Sample(taking, taking_share), Sample(sending, sending_share))
    return intent.unit._replace(
        nodes=with_pace(intent.unit.nodes.copy(), pace), taking=pace.taking.points, sending=pace.sending.points
    )


def in_another_run(unit: Unit, of_client: float, of_brokers: float) -> Unit:
    """The same in another run, in which client and brokers take so many times as long."""
    nodes, taking, sending = unit.nodes.copy(), unit.taking.copy(), unit.sending.copy()
    for name in ("gap_us", "poll_us"):
        nodes[name] *= of_client
    taking["time"] *= of_client
    for name in ("answer_us", "late_us"):
        nodes[name] *= of_brokers
    sending["time"] *= of_brokers
    return unit._replace(nodes=nodes, taking=taking, sending=sending)


@allocating_kernel
def drawn_rows(node: Ints, begin: Ints, together: bool, random: Ints) -> Ints:
    """The rows of a drawing, as many as there are: int64[rows]. A node of which it has none keeps its own.

    node: int64[rows], whose time each is. begin: int64[nodes], us: a node has draws of its own by when it begins, so
    that the order of nodes is no matter. together: all nodes are one sequence, else each is one. random: int64[1], as
    of `draw_below`.
    """
    if not together:
        drawn, of_node = np.empty(0, np.int64), np.empty(1, np.int64)
        draw_below(random, 1)
        for of in range(len(begin)):
            own = np.flatnonzero(node == of)
            of_node[0] = random[0] ^ begin[of]
            drawn = np.append(drawn, own[draw_blocks(len(own), of_node)])
        return drawn
    drawn = draw_blocks(len(node), random)
    for of in range(len(begin)):
        if not np.any(node[drawn] == of):
            drawn = np.append(drawn, np.flatnonzero(node == of))
    return drawn


@allocating_kernel
def draw_blocks(count: int, random: Ints) -> Ints:
    """Places of `count` values in blocks out of one stretch of them: int64[count].

    The first block stays the first, for a client that has just started is slower, and so is a broker that reads what is
    not in its memory. random: int64[1], as of `draw_below`.
    """
    stretch = max(count // STRETCHES, min(count, STRETCHES))
    length = max(int(np.sqrt(stretch)), 1)
    begin, places = draw_below(random, count - stretch + 1), np.empty(count, np.int64)
    for first in range(0, count, length):
        start = 0 if first == 0 else begin + draw_below(random, stretch - length + 1)
        for i in range(first, min(first + length, count)):
            places[i] = start + i - first
    return places
