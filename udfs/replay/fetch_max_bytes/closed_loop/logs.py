"""How far each partition's log can be read in closed loop, and from when on each batch can be read.

A batch can be read from the time at which a response first showed the batch, or a high watermark above it. If the first
response did so, it can be read from the beginning. A consumer's own fetches tell better when it could read a batch than
the fetches of others do: followers get a batch before the high watermark is above it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schemas.tables.values import FOLLOWER
from udfs.columns.arrays import Ints, Records, all_read_only, numbers_in_stretches, read_only
from udfs.columns.records import int_fields, new_records, pick_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.kernels.kernel import kernel
from udfs.replay.fetch_max_bytes.closed_loop.by_node import Handovers, NodeReads, earlier_offsets
from udfs.replay.fetch_max_bytes.closed_loop.events import NUMBER_BITS, CapturedFetches
from udfs.replay.fetch_max_bytes.closed_loop.nodes import Nodes, ends_of_connections
from udfs.replay.fetch_max_bytes.closed_loop.state import first_above
from udfs.replay.fetch_max_bytes.events import ConnectionLogs, joined_logs

NODE_LOGS = int_fields(
    "first_fetch",  # its fetches are [first_fetch, end_fetch)
    "end_fetch",
    "horizon",  # us: the end of its captured time
    "answers_at_once",  # 1: a fetch is answered as soon as there is any record for it
    "is_follower",  # 1: it reads to the log end, and not to the bound that its responses have
)
"""What has to be known about a node to say when it can read a batch."""
FETCH_TIMES = int_fields(
    "sent",  # us
    "answered",  # us: when it and all earlier fetches of its node had been answered
)
"""When a fetch was sent and answered."""
WANTED = int_fields(
    "node",
    "first_request",  # us
    "first_offset",
    "first_batch",  # its batches are [first_batch, end_batch)
    "end_batch",
    "first_bound",  # its bounds are [first_bound, end_bound)
    "end_bound",
    "first_sought",  # the offsets of its moves are [first_sought, end_sought)
    "end_sought",
)
"""A partition that a node reads."""
REACH = int_fields(
    "lowest",  # the batch at the lowest fetch offset
    "start",  # the batch at the first fetch offset
    "end",  # behind the last batch that can be read by the end of the captured time
    "backlog_end",  # behind the last batch that was there at the first request
    "is_known",  # 1: no batch is missing behind `end`
)
"""How much of a partition's log can be read."""


class ShownLogs(NamedTuple):
    """What a capture shows of logs: NODE_LOGS[nodes], FETCH_TIMES[fetches], WANTED[partitions],
    READABLE_BATCH[batches], and BOUND[bounds], whose bounds rise within a partition. sought: int64[n], offsets.
    """

    nodes: Records
    requests: Records
    partitions: Records
    batches: Records
    bounds: Records
    sought: Ints


class Log(NamedTuple):
    """What can be read: READABLE_BATCH[n], and from when on, int64[n], us; and for each partition its REACH, which says
    which of these batches it has. The batches of a partition are next to each other.
    """

    batches: Records
    visible_at: Ints
    reach: Records


@kernel
def visible_from(shown: ShownLogs, partition: int, batch: int) -> int:
    """When a batch can be read (us): when a response first had a bound above it, or first had its records, whichever is
    earlier. ALWAYS if the partition's first bound was above it, NEVER if no response showed it.

    If other readers got a batch earlier, or its producer's request was answered, a consumer can read it only after the
    response before the one that first shows a bound above it: otherwise that response would have shown such a bound. A
    batch of a transaction, for one, is in the log long before consumers of committed records can read it. If fetches
    are answered at once, a batch that came while the fetch was under way can be read when the fetch is answered.
    """
    wanted, shown_batch = shown.partitions[partition], shown.batches[batch]
    place = first_above(shown.bounds["bound"], wanted.first_bound, wanted.end_bound, shown_batch.last_offset)
    if wanted.first_bound < wanted.end_bound and place == wanted.first_bound:
        return ALWAYS
    requested, responded = NEVER, NEVER
    if place < wanted.end_bound:
        requested, responded = shown.bounds[place].request, shown.bounds[place].response
    visible = min(shown_batch.appended_before, responded)
    node = shown.nodes[wanted.node]
    if node.is_follower:
        return visible
    fetch = first_above(shown.requests["sent"], node.first_fetch, node.end_fetch, requested - 1)
    since = shown.requests[fetch - 1].answered + 1 if fetch > node.first_fetch else ALWAYS
    return responded if node.answers_at_once and visible > requested else max(visible, since)


@kernel
def follows_on(batches: Records, batch: int) -> bool:
    """Whether no offset is missing between a batch and the one before. batches: READABLE_BATCH[n]."""
    return bool(batches[batch].base_offset == batches[batch - 1].last_offset + 1)


@kernel
def first_gap(batches: Records, first: int, end: int) -> int:
    """The first batch after `first` with offsets missing before it, `end` if none has. batches: READABLE_BATCH[n]."""
    for batch in range(first + 1, end):
        if not follows_on(batches, batch):
            return batch
    return end


@kernel
def lowest_known(shown: ShownLogs, partition: int, start: int) -> int:
    """The batch at the lowest offset asked for from which no offset is missing up to `start`."""
    wanted, batches = shown.partitions[partition], shown.batches
    least = min(start, wanted.end_batch - 1)
    while least > wanted.first_batch and follows_on(batches, least):
        least -= 1
    lowest = start
    for i in range(wanted.first_sought, wanted.end_sought):
        offset = shown.sought[i]
        batch = first_above(batches["last_offset"], wanted.first_batch, wanted.end_batch, offset - 1)
        if least <= batch < lowest and batches[batch].base_offset <= offset:
            lowest = batch
    return lowest


@kernel
def reach_of_logs(shown: ShownLogs, visible_at: Ints, reach: Records) -> None:
    """Fill in how far each partition can be read, and from when on each batch.

    visible_at: int64[batches], us, rising in each partition. reach: REACH[partitions]. Both are written in place.
    """
    for p in range(len(shown.partitions)):
        wanted, batches, reached = shown.partitions[p], shown.batches, reach[p]
        offset, end, horizon = wanted.first_offset, wanted.end_batch, shown.nodes[wanted.node].horizon
        start = first_above(batches["last_offset"], wanted.first_batch, end, offset - 1)
        lowest = lowest_known(shown, p, start)
        holds = start == end or batches[start].base_offset <= offset
        gap = first_gap(batches, lowest, end)
        batch, latest = lowest, ALWAYS
        while holds and batch < gap:
            latest = max(latest, batches[batch].appended_after, visible_from(shown, p, batch))
            if latest > horizon:
                break
            visible_at[batch] = latest
            batch += 1
        reached.lowest, reached.start, reached.end = lowest, start, batch
        reached.backlog_end = first_above(visible_at, lowest, batch, wanted.first_request)
        reached.is_known = 1 if holds and gap == end else 0


def readable_logs(captured: CapturedFetches, nodes: Nodes, reads: NodeReads, handovers: Handovers) -> Log:
    """What can be read of each node's partitions until the end of its captured time."""
    batches, first_batch = batches_by_partition(captured, nodes, reads, handovers)
    sought, first_sought = sought_offsets(reads, handovers)
    first_bound = partition_boundaries(reads.bounds["partition"], len(reads.partitions))
    wanted = new_records(
        WANTED,
        len(reads.partitions),
        node=reads.node,
        first_request=reads.partitions["first_request"],
        first_offset=reads.partitions["first_offset"],
        first_batch=first_batch[:-1],
        end_batch=first_batch[1:],
        first_bound=first_bound[:-1],
        end_bound=first_bound[1:],
        first_sought=first_sought[:-1],
        end_sought=first_sought[1:],
    )
    bounds, highest = reads.bounds.copy(), reads.bounds["bound"].copy()
    make_rising(highest, read_only(first_bound))
    bounds["bound"] = highest
    shown = ShownLogs(node_logs(nodes), times_of_fetches(nodes, reads.fetches), wanted, batches, bounds, sought)
    visible_at, reach = np.zeros(len(batches), np.int64), np.zeros(len(wanted), REACH)
    reach_of_logs(ShownLogs(*all_read_only(shown)), visible_at, reach)
    reach["is_known"] &= nodes.has_logs[reads.node]
    return Log(batches, visible_at, reach)


def partition_boundaries(partition: Ints, count: int) -> Ints:
    """Where the rows of each partition begin, and where the last ends: int64[count + 1]. partition: int64[rows],
    rising.
    """
    return np.searchsorted(partition, np.arange(count + 1))


def batches_by_partition(
    captured: CapturedFetches, nodes: Nodes, reads: NodeReads, handovers: Handovers
) -> tuple[Records, Ints]:
    """(each partition's known batches, without duplicates and in offset order, READABLE_BATCH[n]; where those of each
    partition begin, int64[partitions + 1]).
    """
    logs, count = joined_logs(captured.logs), len(reads.partitions)
    partition, rows = rows_by_partition(
        partitions_of_logs(captured, nodes, reads, logs), reads.first_stay, handovers
    )  # fmt: skip
    counts = np.diff(logs.first)[rows]
    batches, partition = (
        pick_records(logs.batches, numbers_in_stretches(logs.first[rows], counts)),
        np.repeat(partition, counts),
    )
    order = np.lexsort((batches["base_offset"], partition))
    base, partition = batches["base_offset"][order], partition[order]
    is_first = np.append(True, (base[1:] != base[:-1]) | (partition[1:] != partition[:-1]))[: len(base)]
    return pick_records(batches, order[is_first]), partition_boundaries(partition[is_first], count)


def partitions_of_logs(captured: CapturedFetches, nodes: Nodes, reads: NodeReads, logs: ConnectionLogs) -> Ints:
    """The partition of each row of logs, as its first stay; NONE if its connection does not read it: int64[rows]."""
    numbers = np.array([captured.partitions.get(key, NONE) for key in captured.log_partitions], np.int64)
    node, number = nodes.node[logs.connection_id], numbers[logs.number]
    keys = reads.node << NUMBER_BITS | reads.partitions["number"]
    order = np.argsort(keys, kind="stable")
    key = node << NUMBER_BITS | number
    place = order[np.minimum(np.searchsorted(keys[order], key), len(keys) - 1)]
    return np.where((node != NONE) & (number != NONE) & (keys[place] == key), place, NONE)


def rows_by_partition(partition: Ints, first_stay: Ints, handovers: Handovers) -> tuple[Ints, Ints]:
    """(The partition, the row of logs) for each row that tells about a partition's log: int64[n] each.

    All stays of a partition at a node have the same rows. For a partition that comes from another broker, the rows from
    there count as well. partition: int64[rows], the first stay of each row's partition, or NONE. first_stay:
    int64[partitions].
    """
    count = len(first_stay)
    order = np.argsort(partition, kind="stable")
    first = partition_boundaries(partition[order], count)
    if not len(handovers.before) and (first_stay == np.arange(count)).all():
        return partition[order][first[0] :], order[first[0] :]
    of_first = np.split(order, first)[1:-1]
    rows = [of_first[stay] for stay in first_stay.tolist()]
    for before, after in zip(handovers.before.tolist(), handovers.after.tolist(), strict=True):
        rows[after] = np.append(rows[after], rows[before])
    return np.repeat(np.arange(count), [len(of) for of in rows]), np.concatenate(rows)


def sought_offsets(reads: NodeReads, handovers: Handovers) -> tuple[Ints, Ints]:
    """(the offsets of moves, and the first offsets at earlier brokers, by partition, int64[n]; where those of each
    partition begin, int64[partitions + 1]).
    """
    moved, offsets = earlier_offsets(handovers, reads)
    partition = np.append(reads.moves["partition"], moved)
    order = np.argsort(partition, kind="stable")
    offset = np.append(reads.moves["fetch_offset"], offsets)[order]
    return offset, partition_boundaries(partition[order], len(reads.partitions))


def node_logs(nodes: Nodes) -> Records:
    """What has to be known about each node: NODE_LOGS[nodes]."""
    return new_records(
        NODE_LOGS,
        len(nodes.nodes),
        first_fetch=nodes.first_fetch[:-1],
        end_fetch=nodes.first_fetch[1:],
        horizon=ends_of_connections(nodes.nodes),
        answers_at_once=nodes.nodes["min_bytes"] <= 1,
        is_follower=nodes.reader == FOLLOWER,
    )


def times_of_fetches(nodes: Nodes, fetches: Records) -> Records:
    """When each fetch was sent, and when it and all earlier ones of its node were answered: FETCH_TIMES[fetches]."""
    answered = fetches["response"].copy()
    make_rising(answered, read_only(nodes.first_fetch))
    return new_records(FETCH_TIMES, len(fetches), sent=fetches["request"], answered=answered)


@kernel
def make_rising(values: Ints, first: Ints) -> None:
    """Replace each value of a stretch by the highest value of the stretch up to it.

    values: int64[n], written in place. first: int64[stretches + 1], where each stretch begins.
    """
    for stretch in range(len(first) - 1):
        for i in range(first[stretch] + 1, first[stretch + 1]):
            values[i] = max(values[i], values[i - 1])
