"""A reader's pace, drawn anew for each replication, and the figures of its lanes at that pace.

How fast brokers answer, and how fast an application takes records, differs from one run to the next. So each lane is
replayed several times (replications), and each replication draws

- the times: blocks of captured times out of one stretch of the capture, so that a slow phase stays slow;
- the share of a response's time that does not depend on its contents, because one capture hardly shows that share;
- one factor for the client's times and one for the brokers', as large as the difference between two equal runs
  (shared/pace_of_runs.py);
- how many batches producers make of the same records (drawn_runs.py);
- when the reader starts, and when the records that it reads are produced (drawn_times.py).

A reader at the log's end waits for records to be produced. A pause that slows it down, such as a busy machine, also
slows down the producers. So its captured times keep their order: moved elsewhere, they would meet records that would
not have been there yet.

In one replication all lanes draw the same times, so they differ by their settings alone. Figures that follow from
Kafka's rules are the same in all replications.

Most readers of a cluster have read everything and wait for more. Such a reader is replayed only a few times. If no
fetch of the reader can tell some lanes apart, one of them is replayed.
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
    in_other_batches,
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
from udfs.replay.fetch_max_bytes.closed_loop.pace_fits import Sample, Timings
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
from udfs.replay.shared.line_fit import MOST_SHARE
from udfs.replay.shared.pace_of_runs import STRETCHES, pace_differs
from udfs.replay.shared.replications import FEWEST, factors, lanes_alike, normal_draws, replications_within

FETCHES_AT_MOST = 1 << 21
"""The most fetches that are replayed for a reader's ranges, over all lanes. A larger reader has fewer replications."""


class Figures(NamedTuple):
    """The figures of a reader's lanes, float64[lanes] each.

    catch_up_ms: the time until the reader has read the slowest of the backlogs that it did not give up; inf if one is
    not read. longest_wait_ms: the longest wait of a partition for its records. requests: how many fetches the reader
    sends. held_bytes: the most bytes that the reader holds at once. end_lag_bytes: what the reader has not read by the
    capture's end. throttle_time_ms: how long the lane's quota holds the reader back, at all brokers together.
    """

    catch_up_ms: Floats
    longest_wait_ms: Floats
    requests: Floats
    held_bytes: Floats
    end_lag_bytes: Floats
    throttle_time_ms: Floats


class Drawn(NamedTuple):
    """A reader's figures at its captured pace, and at drawn paces: float64[replications, lanes] of each figure.

    counts: int64[lanes], how many replications each lane has; the rest of its figures mean nothing.
    """

    as_captured: Figures
    replications: Figures
    counts: Ints


class Draws(NamedTuple):
    """What is drawn for one reader.

    random: int64[1], the state of the generator of paces. client, brokers: float64[replications], the factors of the
    client's and the brokers' times. batches: float64[replications], the factor of the number of batches that producers
    make. shares: float64[replications, 2], the `share` of the Sample for taking and for sending. times: one for each
    replication.
    """

    random: Ints
    client: Floats
    brokers: Floats
    batches: Floats
    shares: Floats
    times: Sequence[DrawnTimes]


def draws_of_reader(reader: Reader, observed: CapturedPace, count: int) -> Draws:
    """What is drawn for a reader's replications. Readers of the same client.id and kind have the same draws."""
    seed = zlib.crc32(f"{reader.client_id}/{reader.kind}".encode())
    draws = np.random.default_rng(seed)
    client = factors(draws, runs_differ(observed.taking), count)
    # A reader at the log's end hardly shows how fast its brokers are.
    brokers = factors(draws, runs_differ(observed.taking if observed.is_at_log_end else observed.sending), count)
    shares = draws.uniform(0.0, MOST_SHARE, (count, 2))
    starts, productions = (factors(draws, STARTS_DIFFER, count).tolist() for _ in range(2))
    # The square of a standard normal value has a gamma distribution of shape 0.5 and mean 1.
    apart = np.stack([normal_draws(draws, count) ** 2 for _ in observed.late_us], axis=1)
    times = [DrawnTimes(*of) for of in zip(starts, productions, apart, strict=True)]
    return Draws(np.full(1, seed), client, brokers, factors(draws, BATCHES_DIFFER, count), shares, times)


def runs_differ(timings: Timings) -> float:
    """How much a reader's times differ from one run to the next, as in `pace_differs`."""
    return pace_differs(timings.node, timings.amount, timings.time)


def drawn_figures(members: Sequence[Member], lanes: FetchLanes, replayed: Sequence[ReplayedReader]) -> list[Drawn]:
    """Replay readers together in every lane, with a newly drawn pace in each replication. A reader always has the same
    draws.
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
    """What a reader reads in the replication `again`, and at which pace. start: None where it is not captured."""
    drawn = drawn_unit(member.intent, draws.random, *draws.shares[again].tolist())
    unit = in_another_run(drawn, float(draws.client[again]), float(draws.brokers[again]))
    unit = in_other_batches(unit, float(draws.batches[again]))
    return started_at_other_times(unit, start, draws.times[again]) if start else unit


def replay_again(members: Sequence[Member], units: Sequence[Unit], rules: Sequence[Records]) -> list[ReaderLanes]:
    """Replay readers once more. units: what each reader reads. rules: RULES[nodes, lanes] of each reader."""
    in_lanes = readers_in_lanes([member._replace(response_room=0) for member in members], units, rules, LEAST_BUCKETS)
    replay_by_clients_clock(in_lanes)
    return [of.outcome for of in in_lanes]


def in_all_lanes(replications: Sequence[Figures], of_lane: Ints) -> Figures:
    """Figures of all lanes in each replication, float64[replications, lanes], from the figures of the lanes that
    differ.

    of_lane: int64[lanes], for each lane the index of the differing lane that it equals.
    """
    return Figures(*(np.stack(of)[:, of_lane] for of in zip(*replications, strict=True)))


def rules_that_differ(rules: Sequence[Records], units: Sequence[Unit]) -> tuple[list[Records], Ints]:
    """(RULES[nodes, n] of each reader, for the n lanes that differ; int64[lanes], for each lane the index of the
    differing lane that it equals).

    rules: RULES[nodes, lanes] of each reader. Limits above all that there is to be read count as equal.
    """
    alike = [with_reachable_limits(of, unit) for of, unit in zip(rules, units, strict=True)]
    by_lane = (b"".join(of[:, lane].tobytes() for of in alike) for lane in range(alike[0].shape[1]))
    first, of_lane = lanes_alike(by_lane)
    return [rules_of_lanes(of, first) for of in alike], of_lane


def with_reachable_limits(rules: Records, unit: Unit) -> Records:
    """The rules with limits no larger than what there is to be read. rules: RULES[nodes, lanes]."""
    rules = rules.copy()
    most = max(int(unit.batches["bytes_before"].max(initial=0)), int(rules["min_bytes"].max(initial=0))) + 1
    for name in ("limit", "partition_max_bytes"):
        rules[name] = np.minimum(rules[name], most)
    return rules


def rules_of_lanes(rules: Records, lanes: Ints, again: int = 0) -> Records:
    """The rules of some lanes: RULES[nodes, n]. lanes: int64[n], their indices. again: added to the seeds."""
    of_lanes = np.zeros((rules.shape[0], len(lanes)), RULES)
    of_lanes[:] = rules[:, lanes]
    of_lanes["seed"] += again
    return of_lanes


def has_waits(figures: Figures) -> Bools:
    """Whether the reader has a backlog, or waits for records, in each lane: bool[lanes]."""
    return (figures.catch_up_ms > 0) | (figures.longest_wait_ms > 0)


def placed_figures(figures: Figures, lanes: Ints, count: int) -> Figures:
    """The figures of some lanes in their places among `count` lanes; the others have 0. lanes: int64[n], indices."""
    placed = np.zeros((len(Figures._fields), count))
    placed[:, lanes] = figures
    return Figures(*placed)


def figures_of_lanes(outcome: ReaderLanes, given_up: Ints) -> Figures:
    """The figures of all lanes. given_up: bool[partitions], whether the captured reader gave up the backlog."""
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
    """What the reader reads, at a newly drawn pace. For a reader at the log's end the times keep their order.

    random: int64[1], the generator's state, which changes. taking_share, sending_share: the `share` of each Sample.
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
    """The unit in another run. of_client, of_brokers: the factors of the client's and the brokers' times."""
    nodes, taking, sending = unit.nodes.copy(), unit.taking.copy(), unit.sending.copy()
    for name in ("gap_us", "start_us", "poll_us"):
        nodes[name] *= of_client
    taking["time"] *= of_client
    for name in ("answer_us", "late_us"):
        nodes[name] *= of_brokers
    sending["time"] *= of_brokers
    return unit._replace(nodes=nodes, taking=taking, sending=sending)


@allocating_kernel
def drawn_rows(node: Ints, begin: Ints, together: bool, random: Ints) -> Ints:
    """Draw as many rows as there are, as indices: int64[n]. A node of which no row is drawn gets its own rows added.

    node: int64[rows], the node of each row. begin: int64[nodes], us; it seeds the draws of a node, so that the draws do
    not depend on the order of nodes. together: all nodes are one sequence; else each node is a sequence of its own.
    random: int64[1], as for `draw_below`.
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
    """Indices of `count` values, drawn as blocks out of one stretch of these values: int64[count].

    The first block is always the first one, for a client that has just started is slower, and so is a broker that reads
    records that are not in its memory. random: int64[1], as for `draw_below`.
    """
    stretch = max(count // STRETCHES, min(count, STRETCHES))
    length = max(int(np.sqrt(stretch)), 1)
    begin, places = draw_below(random, count - stretch + 1), np.empty(count, np.int64)
    for first in range(0, count, length):
        start = 0 if first == 0 else begin + draw_below(random, stretch - length + 1)
        for i in range(first, min(first + length, count)):
            places[i] = start + i - first
    return places
