"""When a reader starts, and when what it reads is produced, drawn anew.

What a reader holds at most, and how often it fetches, depends on when it comes: how much has been produced by then, and
whether the first responses of its brokers come together. Equal runs differ in both. So a reader that the capture shows
start has in each replication

- another start: the time from the first batch that it gets to its first fetch is as much longer or shorter as times of
  equal runs are, and so is, apart from that, the time from the first batch to each later one. A reader that finds all
  that it wants, and leaves when it has read that, does so in every run;
- other first fetches to its brokers: each comes some time after the start, whichever was first in the capture.

What is produced, in which batches and at which brokers, is as captured, and so are rebalances, seeks, and all that the
reader reads from brokers that it asks later only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Floats, Ints, Records, read_only
from udfs.columns.time_units import ALWAYS, US_PER_MS
from udfs.kernels.kernel import kernel
from udfs.replay.fetch_max_bytes.closed_loop.intent import Intent
from udfs.replay.fetch_max_bytes.closed_loop.logs import make_rising
from udfs.replay.fetch_max_bytes.closed_loop.state import REOPEN, STOP, THROTTLED, Unit, first_above

MOST_US = 10_000_000
"""So much of the time to a reader's start, or to a batch, at most differs between equal runs: the longest that a client
of the lab took from the first batch to its first fetch. What takes longer than that waits for something else."""
APART_US = 130_000
"""How long after its first fetch to any broker a consumer of the lab sent the first one to another, on average: it
waits for connections, and for the offsets from which it reads. Half of them waited half as long or less."""
SETTLED_US = 1_000_000
"""A reader has started by so long after its first fetch: a broker that it asks later is one that it did not know. One
that is there for no longer than that after its last records has left because it had read what it wanted."""


class ReaderStart(NamedTuple):
    """What the capture shows of a reader's start, and whose its rows are.

    first_batch: when the first batch was produced that the reader got, or the start where that is not known (us).
    leaves_when_read: all that it read had been there when it first asked for it, and it left when it had read that.
    apart_us: how far its first fetches to brokers are apart, on average. is_asked: bool[nodes], whether it asks each at
    its start. rank: int64[nodes], the place of each in the order of their begins. requested_at: int64[partitions], when
    each is first asked for (us). node_of_partition, node_of_change: int64[n], the node of each.
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
    """What is drawn of times for one replication.

    start, production: how many times as long it takes until the reader starts, and until each batch is produced. apart:
    float64[nodes], how many times `apart_us` the first fetch to each broker comes later, by rank: 1 on average, most
    are close together and some are not.
    """

    start: float
    production: float
    apart: Floats


def start_of_reader(intent: Intent) -> ReaderStart | None:
    """The start of a reader that first gets what was there for longer than its fetches wait, if the capture shows since
    when, or that its first fetch opens a session. Any other may have been there before the capture: None.
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
        # Few brokers say little: one more is taken to be as far apart as in the lab.
        apart_us=(int(apart[is_asked].sum()) + APART_US) / np.count_nonzero(is_asked),
        is_asked=is_asked,
        rank=np.argsort(np.lexsort((intent.nodes.nodes["id"], nodes["begin"]))),
        requested_at=intent.requested_at,
        node_of_partition=np.searchsorted(nodes["end_partition"], np.arange(len(partitions)), side="right"),
        node_of_change=np.searchsorted(nodes["end_change"], np.arange(len(unit.changes)), side="right"),
    )


def started_at_other_times(unit: Unit, start: ReaderStart, drawn: DrawnTimes) -> Unit:
    """The same reader, which starts at another time, and what it reads comes at other times."""
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

    Nodes that it did not ask at its start begin as captured. begin: int64[nodes], us, when it did in the capture.
    """
    first = int(begin.min())
    earliest = first + (drawn.start - 1.0) * min(first - start.first_batch, MOST_US)
    apart_us = drawn.apart[start.rank] * start.apart_us
    begins = np.rint(earliest + apart_us - apart_us[start.is_asked].min()).astype(np.int64)
    return np.where(start.is_asked, begins, begin)


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


def with_other_begins(unit: Unit, start: ReaderStart, begin: Ints) -> Unit:
    """The reader with other begins of its nodes, int64[nodes], us. It stays as long as in the capture if it leaves when
    it has read all; any other stays until the same time, but at least half as long.
    """
    nodes, changes = unit.nodes.copy(), unit.changes.copy()
    was, horizon, stayed_us = nodes["begin"].copy(), nodes["horizon"], nodes["horizon"] - nodes["begin"]
    stands_still = (changes["partition"] == STOP) | (changes["partition"] == THROTTLED)
    until = moved_times(changes["to"], start.node_of_change, was, begin)
    changes["to"] = np.where(stands_still, until, changes["to"])
    changes["time"] = moved_times(changes["time"], start.node_of_change, was, begin)
    make_rising(changes["time"], read_only(np.append(nodes["first_change"], len(changes))))
    nodes["begin"] = begin
    nodes["horizon"] = begin + stayed_us if start.leaves_when_read else np.maximum(horizon, begin + stayed_us // 2)
    return unit._replace(nodes=nodes, changes=changes)


@kernel
def note_backlogs(partitions: Records, visible_at: Ints, requested_at: Ints) -> None:
    """Note which batches of each partition are its backlog: those that are there when the reader first asks for it.

    partitions: READ_PARTITION[n], written in place. visible_at: int64[batches], us. requested_at: int64[partitions],
    us.
    """
    for p in range(len(partitions)):
        partition = partitions[p]
        partition.backlog_end = first_above(visible_at, partition.first_batch, partition.end_batch, requested_at[p])
