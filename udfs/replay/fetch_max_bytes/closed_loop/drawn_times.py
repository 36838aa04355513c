"""When a reader starts, and when what it reads is produced, drawn anew.

What a reader holds at most, and how often it fetches, depends on when it comes: how much has been produced by then,
whether the first responses of its brokers come together, and what comes between two of its fetches. Equal runs differ
in all of that. So each replication has

- another start, where the capture shows one: the time from the first batch that the reader gets to its first fetch is
  as much longer or shorter as times of equal runs are, and so is, apart from that, the time from the first batch to
  each later one. A reader that finds all that it wants, and leaves when it has read that, does so in every run;
- other first fetches to its brokers: each comes some time after the start, whichever was first in the capture;
- other pauses between batches: what is produced while the reader is there comes in the same order and within the same
  time, but with its pauses in another order, in blocks, so that bursts stay bursts.

What is produced, in which batches and at which brokers, is as captured, and so are rebalances and seeks later on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Floats, Ints, Records, read_only, stretch_edges
from udfs.columns.time_units import ALWAYS, US_PER_MS
from udfs.kernels.kernel import allocating_kernel, kernel
from udfs.replay.fetch_max_bytes.closed_loop.intent import Intent
from udfs.replay.fetch_max_bytes.closed_loop.logs import make_rising
from udfs.replay.fetch_max_bytes.closed_loop.order import draw_below, shuffle_order
from udfs.replay.fetch_max_bytes.closed_loop.state import STOP, THROTTLED, Unit

MOST_US = 10_000_000
"""So much of the time to a reader's start, or to a batch, at most differs between equal runs: the longest that a client
of the lab took from the first batch to its first fetch. What takes longer than that waits for something else."""
APART_US = 130_000
"""How long after its first fetch to any broker a consumer of the lab sent the first one to another, on average: it
waits for connections, and for the offsets from which it reads. Half of them waited half as long or less."""
APART_SHAPE = 0.5
"""The shape of the gamma distribution of how far first fetches are apart: most are close together, some are not."""
SETTLED_US = 1_000_000
"""A reader has started by so long after its first fetch: a broker that it asks later is one that it did not know. One
that is there for no longer than that after its last records has left because it had read what it wanted."""


class Start(NamedTuple):
    """What the capture shows of a reader's start.

    first_batch: when the first batch was produced that the reader got, or the start where that is not known (us).
    leaves_when_read: all that it read had been there when it first asked for it, and it left when it had read that.
    """

    first_batch: int
    leaves_when_read: bool


class CapturedTimes(NamedTuple):
    """What the capture shows of a reader's times, and in which order its rows are.

    start: None where the reader was there before, or gets only what comes later. apart_us: how far its first fetches to
    brokers are apart, on average. rank: int64[nodes], the place of each node in the order of their begins.
    requested_at: int64[partitions], when each is first asked for (us). node_of_partition, node_of_change: int64[n], the
    node of each. in_time: int64[batches], the batches of each node in the order in which they can be read.
    batches_of_node: int64[nodes + 1], where those of each node begin in `in_time`.
    """

    start: Start | None
    apart_us: float
    rank: Ints
    requested_at: Ints
    node_of_partition: Ints
    node_of_change: Ints
    in_time: Ints
    batches_of_node: Ints


class DrawnTimes(NamedTuple):
    """What is drawn of times for one replication.

    start, production: how many times as long it takes until the reader starts, and until each batch is produced. apart:
    float64[nodes], how many times `apart_us` the first fetch to each broker comes later, by rank. seed: of the order of
    pauses.
    """

    start: float
    production: float
    apart: Floats
    seed: int


def times_of_capture(intent: Intent, begins_with_capture: bool) -> CapturedTimes:
    """What the capture shows of a reader's times.

    begins_with_capture: the replay begins where the capture does, so that a reader that comes later starts.
    """
    unit, nodes, partitions = intent.unit, intent.unit.nodes, intent.unit.partitions
    apart = nodes["begin"] - nodes["begin"].min()
    apart = apart[apart <= SETTLED_US]
    node_of_partition = np.searchsorted(nodes["end_partition"], np.arange(len(partitions)), side="right")
    node_of_batch = np.repeat(node_of_partition, partitions["end_batch"] - partitions["first_batch"])
    return CapturedTimes(
        start=start_of_reader(intent) if begins_with_capture else None,
        # Few brokers say little: one more is taken to be as far apart as in the lab.
        apart_us=(int(apart.sum()) + APART_US) / len(apart),
        rank=np.argsort(np.lexsort((intent.nodes.nodes["id"], nodes["begin"]))),
        requested_at=intent.requested_at,
        node_of_partition=node_of_partition,
        node_of_change=np.searchsorted(nodes["end_change"], np.arange(len(unit.changes)), side="right"),
        in_time=np.lexsort((unit.batches["visible_at"][:-1], node_of_batch)),
        batches_of_node=stretch_edges(np.bincount(node_of_batch, minlength=len(nodes))),
    )


def start_of_reader(intent: Intent) -> Start | None:
    """The start of a reader that first gets what was there for longer than its fetches wait; None of any other, which
    may have waited for it since before the capture.
    """
    unit, nodes, partitions = intent.unit, intent.unit.nodes, intent.unit.partitions
    begin, has_batches = int(nodes["begin"].min()), partitions["start_batch"] < partitions["end_batch"]
    produced_at = unit.batches["visible_at"][partitions["start_batch"][has_batches]]
    produced_at = produced_at[produced_at < begin - int(intent.nodes.nodes["max_wait_ms"].max()) * US_PER_MS]
    if not len(produced_at):
        return None
    finds_all = bool((partitions["backlog_end"] == partitions["end_batch"]).all())
    stayed_us = int(nodes["horizon"].max()) - int(intent.servings.response.max(initial=begin))
    return Start(
        first_batch=int(produced_at[produced_at > ALWAYS].min(initial=begin)),
        leaves_when_read=finds_all and stayed_us <= SETTLED_US,
    )


def at_other_times(unit: Unit, captured: CapturedTimes, drawn: DrawnTimes) -> Unit:
    """The same reader, which starts at another time, and what it reads comes at other times."""
    requested_at, produced_at = captured.requested_at, unit.batches["visible_at"][:-1].copy()
    if captured.start:
        begin = other_begins(unit.nodes["begin"], captured, captured.start, drawn)
        requested_at = moved_times(requested_at, captured.node_of_partition, unit.nodes["begin"], begin)
        production = drawn.start if captured.start.leaves_when_read else drawn.production
        produced_at = at_other_pace(produced_at, captured.start.first_batch, production)
        unit = started_at(unit, captured.node_of_change, begin, captured.start.leaves_when_read)
    partitions, batches, visible_at = unit.partitions.copy(), unit.batches.copy(), produced_at.copy()
    begin, in_time, batches_of_node, produced_at, requested_at = map(
        read_only,
        (unit.nodes["begin"].copy(), captured.in_time, captured.batches_of_node, produced_at, requested_at),
    )
    reorder_pauses(visible_at, in_time, batches_of_node, begin, drawn.seed)
    place_batches(partitions, visible_at, produced_at, requested_at)
    batches["visible_at"][:-1] = visible_at
    return unit._replace(partitions=partitions, batches=batches)


def other_begins(begin: Ints, captured: CapturedTimes, start: Start, drawn: DrawnTimes) -> Ints:
    """When the reader first fetches from each node: int64[nodes], us.

    Nodes that it did not ask at its start begin as captured. begin: int64[nodes], us, when it did in the capture.
    """
    first = int(begin.min())
    earliest = first + (drawn.start - 1.0) * min(first - start.first_batch, MOST_US)
    apart_us = drawn.apart[captured.rank] * captured.apart_us
    is_asked = begin - first <= SETTLED_US
    return np.where(is_asked, np.rint(earliest + apart_us - apart_us[is_asked].min()).astype(np.int64), begin)


def moved_times(times: Ints, node: Ints, was: Ints, begin: Ints) -> Ints:
    """Times at which a reader does something, int64[n], us: what it does at its start goes with the node's begin, and
    nothing comes before that.

    times: int64[n], us, as captured. node: int64[n], the node of each. was, begin: int64[nodes], us, the begin of each
    node as captured, and now.
    """
    goes_along = times <= was[node] + SETTLED_US
    return np.where(goes_along, times + (begin - was)[node], np.maximum(times, begin[node]))


def at_other_pace(produced_at: Ints, first_batch: int, production: float) -> Ints:
    """When batches can be read if it takes `production` times as long from the first one on: int64[batches], us.

    produced_at: int64[batches], us, as captured. first_batch: us.
    """
    took = np.clip(produced_at - first_batch, 0, MOST_US)
    return np.where(produced_at > ALWAYS, produced_at + np.rint((production - 1.0) * took).astype(np.int64), ALWAYS)


def started_at(unit: Unit, node_of_change: Ints, begin: Ints, leaves_when_read: bool) -> Unit:
    """The reader with other begins of its nodes. It stays as long as in the capture if it leaves when it has read all;
    any other stays until the same time, but at least half as long.

    node_of_change: int64[changes]. begin: int64[nodes], us.
    """
    nodes, changes = unit.nodes.copy(), unit.changes.copy()
    was, horizon, stayed_us = nodes["begin"].copy(), nodes["horizon"], nodes["horizon"] - nodes["begin"]
    stands_still = (changes["partition"] == STOP) | (changes["partition"] == THROTTLED)
    until = moved_times(changes["to"], node_of_change, was, begin)
    changes["to"] = np.where(stands_still, until, changes["to"])
    changes["time"] = moved_times(changes["time"], node_of_change, was, begin)
    make_rising(changes["time"], read_only(np.append(nodes["first_change"], len(changes))))
    nodes["begin"] = begin
    nodes["horizon"] = begin + stayed_us if leaves_when_read else np.maximum(horizon, begin + stayed_us // 2)
    return unit._replace(nodes=nodes, changes=changes)


@allocating_kernel
def reorder_pauses(visible_at: Ints, in_time: Ints, batches_of_node: Ints, begin: Ints, seed: int) -> None:
    """Put the pauses between batches that come while a node is there into another order, in blocks.

    visible_at: int64[batches], us, written in place. in_time, batches_of_node: as in CapturedTimes. begin:
    int64[nodes], us. seed: a node has draws of its own by when it begins, so that the order of nodes is no matter.
    """
    random = np.empty(1, np.int64)
    for node in range(len(begin)):
        first, end = batches_of_node[node], batches_of_node[node + 1]
        while first < end and visible_at[in_time[first]] <= begin[node]:
            first += 1
        pauses, before = np.empty(end - first, np.int64), begin[node]
        for i in range(first, end):
            pauses[i - first] = visible_at[in_time[i]] - before
            before += pauses[i - first]
        length = max(int(np.sqrt(len(pauses))), 1)
        blocks = np.arange((len(pauses) + length - 1) // length)
        random[0] = seed ^ begin[node]
        draw_below(random, 1)
        shuffle_order(blocks, len(blocks), random)
        time, place = begin[node], first
        for block in blocks:
            begin_of_block = int(block) * length
            for i in range(begin_of_block, min(begin_of_block + length, len(pauses))):
                time += pauses[i]
                visible_at[in_time[place]] = time
                place += 1


@kernel
def place_batches(partitions: Records, visible_at: Ints, produced_at: Ints, requested_at: Ints) -> None:
    """Have the batches of each partition come one after the other, and note which of them are its backlog: those that
    were there when the reader asked for it before pauses were put into another order, and so are there then still.

    partitions: READ_PARTITION[n], written in place. visible_at: int64[batches], us, when each can be read, written in
    place. produced_at: int64[batches], us, when it could before that. requested_at: int64[partitions], us.
    """
    for p in range(len(partitions)):
        partition, latest = partitions[p], ALWAYS
        partition.backlog_end = partition.first_batch
        for b in range(partition.first_batch, partition.end_batch):
            if produced_at[b] <= requested_at[p]:
                latest = max(latest, min(visible_at[b], requested_at[p]))
                partition.backlog_end = b + 1
            else:
                latest = max(latest, visible_at[b], requested_at[p] + 1)
            visible_at[b] = latest
