"""When a reader starts, and when the records that it reads are produced, drawn anew for each replication.

The most bytes that a reader holds, and how often it fetches, depend on when it starts: how much has been produced by
then, and whether the first responses of its brokers come together. Equal runs differ in both. So a reader whose start
the capture shows has in each replication

- another start. The time from the first batch that it gets to its first fetch is multiplied by a drawn factor, and the
  time from the first batch to each later batch by another one. Both factors are as far from 1 as the differences
  between equal runs. A reader that finds all that it wants, and leaves when it has read it, does so in every run;
- other first fetches to its brokers. Each comes a drawn time after the start, whichever broker was first in the
  capture.

Which batches are produced, and at which brokers, is as captured. So are rebalances, seeks, and all reads from brokers
that the reader first asks after its start.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Floats, Ints, Records, read_only
from udfs.columns.time_units import ALWAYS, US_PER_MS
from udfs.kernels.kernel import kernel
from udfs.replay.fetch_max_bytes.closed_loop.intent import Intent
from udfs.replay.fetch_max_bytes.closed_loop.logs import make_rising
from udfs.replay.fetch_max_bytes.closed_loop.state import BEYOND_BOUND, REOPEN, STOP, THROTTLED, Unit, first_above

MOST_US = 10_000_000
"""The part of the time to a reader's start, or to a batch, that can differ between equal runs: the longest time that a
client in the lab took from the first batch to its first fetch. Anything beyond that waits for something else."""
APART_US = 130_000
"""The average time, in the lab, from a consumer's first fetch to any broker to its first fetch to another broker: it
waits for connections, and for the offsets from which it reads. The median was at most half as long."""
SETTLED_US = 1_000_000
"""How long a reader's start lasts after its first fetch: it did not yet know a broker that it first asks later. A
reader that stays no longer than this after its last records has left because it had read what it wanted."""


class ReaderStart(NamedTuple):
    """What the capture shows of a reader's start, and the node of each partition and change.

    first_batch: when the first batch that the reader got was produced (us); the reader's start where that is not known.
    leaves_when_read: all that the reader read was there when it first asked for it, and it left when it had read it.
    apart_us: the average time from the first fetch to the first fetch to each broker. is_asked: bool[nodes], whether
    the reader asks the node at its start. rank: int64[nodes], the rank of each node's `begin`. requested_at:
    int64[partitions], when each partition is first asked for (us). node_of_partition, node_of_change: int64[n], the
    node of each partition and of each change.
    """

    first_batch: int
    leaves_when_read: bool
    apart_us: float
    is_asked: Bools
    rank: Ints
    requested_at: Ints
    node_of_partition: Ints
    node_of_change: Ints


class DrawnTimes(NamedTuple):
    """The times that are drawn for one replication.

    start, production: the factors of the time until the reader starts, and of the time until each batch is produced.
    apart: float64[nodes], by rank, how much later the first fetch to each broker comes, as a multiple of `apart_us`: 1
    on average, most of them small and a few large.
    """

    start: float
    production: float
    apart: Floats


def start_of_reader(intent: Intent) -> ReaderStart | None:
    """The start of a reader; None where the reader may have been there before the capture.

    The capture shows the start of a reader that first gets records that were there longer than its fetches wait, if it
    also shows when these were produced, or that the reader's first fetch opens a session.
    """
    unit, nodes, partitions = intent.unit, intent.unit.nodes, intent.unit.partitions
    begin, has_batches = int(nodes["begin"].min()), partitions["start_batch"] < partitions["end_batch"]
    produced_at = unit.batches["visible_at"][partitions["start_batch"][has_batches]]
    produced_at = produced_at[produced_at < begin - int(intent.nodes.nodes["max_wait_ms"].max()) * US_PER_MS]
    known, opens = produced_at[produced_at > ALWAYS], unit.changes["partition"] == REOPEN
    if not len(known) and not (len(produced_at) and (unit.changes["time"][opens] <= begin).any()):
        return None
    finds_all = bool((partitions["backlog_end"] == partitions["end_batch"]).all())
    stays_us = int(nodes["horizon"].max()) - int(intent.servings.response.max(initial=begin))
    apart, is_asked = nodes["begin"] - begin, nodes["begin"] - begin <= SETTLED_US
    return ReaderStart(
        first_batch=int(known.min(initial=begin)),
        leaves_when_read=finds_all and stays_us <= SETTLED_US,
        # Few brokers say little, so the lab's average counts as one more broker.
        apart_us=(int(apart[is_asked].sum()) + APART_US) / np.count_nonzero(is_asked),
        is_asked=is_asked,
        rank=np.argsort(np.lexsort((intent.nodes.nodes["id"], nodes["begin"]))),
        requested_at=intent.requested_at,
        node_of_partition=np.searchsorted(nodes["end_partition"], np.arange(len(partitions)), side="right"),
        node_of_change=np.searchsorted(nodes["end_change"], np.arange(len(unit.changes)), side="right"),
    )


def started_at_other_times(unit: Unit, start: ReaderStart, drawn: DrawnTimes) -> Unit:
    """The same reader, which starts at another time and whose batches are produced at other times."""
    was, batches, partitions = unit.nodes["begin"], unit.batches.copy(), unit.partitions.copy()
    begin = other_begins(was, start, drawn)
    production = drawn.start if start.leaves_when_read else drawn.production
    counts, visible_at = partitions["end_batch"] - partitions["first_batch"], batches["visible_at"][:-1]
    is_moved = np.repeat(start.is_asked[start.node_of_partition], counts)
    visible_at[is_moved] = at_other_pace(visible_at[is_moved], start.first_batch, production)
    requested_at = moved_times(start.requested_at, start.node_of_partition, was, begin)
    note_backlogs(partitions, read_only(batches["visible_at"].copy()), read_only(requested_at))
    return with_other_begins(unit, start, begin)._replace(partitions=partitions, batches=batches)


def other_begins(begin: Ints, start: ReaderStart, drawn: DrawnTimes) -> Ints:
    """When the reader first fetches from each node: int64[nodes], us.

    Nodes that it did not ask at its start begin as captured. begin: int64[nodes], us, as captured.
    """
    first = int(begin.min())
    earliest = first + (drawn.start - 1.0) * min(first - start.first_batch, MOST_US)
    apart_us = drawn.apart[start.rank] * start.apart_us
    begins = np.rint(earliest + apart_us - apart_us[start.is_asked].min()).astype(np.int64)
    return np.where(start.is_asked, begins, begin)


def moved_times(times: Ints, node: Ints, was: Ints, begin: Ints) -> Ints:
    """Times at which a reader does something, int64[n], us. What it does at its start moves with the node's begin; what
    it does later stays at its time, but never comes before the begin.

    times: int64[n], us, as captured. node: int64[n], the node of each time. was, begin: int64[nodes], us, the begin of
    each node as captured, and now.
    """
    goes_along = times <= was[node] + SETTLED_US
    return np.where(goes_along, times + (begin - was)[node], np.maximum(times, begin[node]))


def at_other_pace(produced_at: Ints, first_batch: int, production: float) -> Ints:
    """When batches can be read, int64[batches], us, if the time from the first one to each is `production` times as
    long.

    produced_at: int64[batches], us, as captured. first_batch: us.
    """
    took = np.clip(produced_at - first_batch, 0, MOST_US)
    return np.where(produced_at > ALWAYS, produced_at + np.rint((production - 1.0) * took).astype(np.int64), ALWAYS)


def with_other_begins(unit: Unit, start: ReaderStart, begin: Ints) -> Unit:
    """The reader with other begins of its nodes, int64[nodes], us.

    A reader that leaves when it has read everything stays as long as in the capture. Any other stays until the captured
    end, but at least half as long as captured.
    """
    nodes, changes = unit.nodes.copy(), unit.changes.copy()
    was, horizon, stayed_us = nodes["begin"].copy(), nodes["horizon"], nodes["horizon"] - nodes["begin"]
    has_end = np.isin(changes["partition"], (STOP, THROTTLED, BEYOND_BOUND))
    until = moved_times(changes["to"], start.node_of_change, was, begin)
    changes["to"] = np.where(has_end, until, changes["to"])
    changes["time"] = moved_times(changes["time"], start.node_of_change, was, begin)
    make_rising(changes["time"], read_only(np.append(nodes["first_change"], len(changes))))
    nodes["begin"] = begin
    nodes["horizon"] = begin + stayed_us if start.leaves_when_read else np.maximum(horizon, begin + stayed_us // 2)
    return unit._replace(nodes=nodes, changes=changes)


@kernel
def note_backlogs(partitions: Records, visible_at: Ints, requested_at: Ints) -> None:
    """Set the backlog of each partition: the batches that are there when the reader first asks for it.

    partitions: READ_PARTITION[n], written in place. visible_at: int64[batches], us. requested_at: int64[partitions],
    us.
    """
    for p in range(len(partitions)):
        partition = partitions[p]
        partition.backlog_end = first_above(visible_at, partition.first_batch, partition.end_batch, requested_at[p])
