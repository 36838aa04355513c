"""What one fetcher of a lane reads: its share of the partitions that the follower's captured fetchers read.

If several captured fetchers were connected to the same leader at the same time, their connections become one node. The
curve of how long that node takes its records adds up theirs at equal progress: after half of its records, it has taken
as long as all of them together after half of theirs. The same holds for the curve of how long its leader sends records.
All other times of the node are the mean of theirs. The node stands still while all of them stand still, and opens a
session whenever the first of them does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Ints, Records, stretch_edges
from udfs.columns.records import join_records, new_records, pick_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.replay.fetch_max_bytes.closed_loop.state import (
    LEAVE,
    LOG_BATCH,
    NODE,
    POINT,
    READ_PARTITION,
    READING_CHANGE,
    REOPEN,
    STOP,
    THROTTLED,
    Unit,
)

MEANS = ("gap_us", "start_us", "poll_us", "answer_us", "late_us")
BATCHES_OF_PARTITION = ("first_batch", "start_batch", "end_batch", "backlog_end")
CURVES = ("taking", "sending")


class Rows(NamedTuple):
    """Which rows of a unit go into a joined unit.

    group: int64[nodes], the node of the joined unit that each node becomes; NONE if none of the node's partitions go
    there. partition: int64[n], the partitions that go there, in their new order. node_of_partition, node_of_change:
    int64[rows], the node of each partition and of each change of the unit.
    """

    group: Ints
    partition: Ints
    node_of_partition: Ints
    node_of_change: Ints


def joined_unit(unit: Unit, brokers: Ints, fetchers: int, fetcher: int) -> tuple[Unit, Ints]:
    """(What fetcher number `fetcher` of `fetchers` reads; int64[nodes], for each of its nodes the first node of `unit`
    that went into it).

    unit: what the captured fetchers read, from `units_in_one`. brokers: int64[nodes], the number of each node's broker.
    """
    rows = rows_of_fetcher(unit, brokers, unit.partitions["dealt"] % fetchers == fetcher)
    is_in, place = rows.group != NONE, np.full(len(unit.partitions), NONE)
    place[rows.partition] = np.arange(len(rows.partition))
    partitions = pick_records(unit.partitions, rows.partition)
    partitions["previous"] = np.where(partitions["previous"] == NONE, NONE, place[partitions["previous"]])
    changes, node_of_change = joined_changes(unit, rows, place)
    first = np.flatnonzero(is_in)[np.unique(rows.group[is_in], return_index=True)[1]]
    nodes = joined_nodes(pick_records(unit.nodes, is_in), rows.group[is_in])
    of_rows = {"partition": rows.group[rows.node_of_partition[rows.partition]], "change": node_of_change}
    for name, node in of_rows.items():
        edges = np.searchsorted(node, np.arange(len(nodes) + 1))
        nodes[f"first_{name}"], nodes[f"end_{name}"] = edges[:-1], edges[1:]
    taking, sending = (joined_curves(unit, rows.group, nodes, name) for name in CURVES)
    return Unit(partitions, unit.batches, changes, nodes, taking, sending), first


class UnitSizes(NamedTuple):
    """How many rows of each kind a unit has, or the units before it have; and the bytes and records of the batches."""

    numbers: int
    partitions: int
    batches: int
    changes: int
    taking: int
    sending: int
    bytes: int
    records: int


def units_in_one(units: Sequence[Unit], numbers: Sequence[int]) -> Unit:
    """Units one after the other, as a single unit. numbers: how many partition numbers each unit has."""
    sizes = np.array([sizes_of_unit(*of) for of in zip(units, numbers, strict=True)], np.int64)
    before = np.cumsum(sizes, axis=0) - sizes
    parts = [moved_unit(unit, UnitSizes(*of)) for unit, of in zip(units, before.tolist(), strict=True)]
    return Unit(
        partitions=join_records(READ_PARTITION, [part.partitions for part in parts]),
        batches=join_records(LOG_BATCH, [*(part.batches[:-1] for part in parts), parts[-1].batches[-1:]]),
        changes=join_records(READING_CHANGE, [part.changes for part in parts]),
        nodes=join_records(NODE, [part.nodes for part in parts]),
        taking=join_records(POINT, [part.taking for part in parts]),
        sending=join_records(POINT, [part.sending for part in parts]),
    )


def sizes_of_unit(unit: Unit, numbers: int) -> UnitSizes:
    """The sizes of one unit. numbers: how many partition numbers it has."""
    end = unit.batches[-1]
    return UnitSizes(
        numbers=numbers,
        partitions=len(unit.partitions),
        batches=len(unit.batches) - 1,
        changes=len(unit.changes),
        taking=len(unit.taking),
        sending=len(unit.sending),
        bytes=int(end["bytes_before"]),
        records=int(end["records_before"]),
    )


def moved_unit(unit: Unit, before: UnitSizes) -> Unit:
    """A unit's rows, with all indices shifted by the sizes of the units before it."""
    partitions, batches, changes, nodes = (np.array(records) for records in unit[:4])
    partitions["number"] += before.numbers
    partitions["previous"] += np.where(partitions["previous"] == NONE, 0, before.partitions)
    for name in BATCHES_OF_PARTITION:
        partitions[name] += before.batches
    batches["segment_end"] += before.batches
    batches["bytes_before"] += before.bytes
    batches["records_before"] += before.records
    is_of_partition = changes["partition"] >= 0
    changes["to"] += np.where(is_of_partition & (changes["to"] >= 0), before.batches, 0)
    changes["captured_batch"] += np.where(changes["captured_batch"] == NONE, 0, before.batches)
    changes["partition"] += np.where(is_of_partition, before.partitions, 0)
    for name in ("partition", "change", "taking", "sending"):
        for end in ("first", "end"):
            nodes[f"{end}_{name}"] += getattr(before, name if name in CURVES else f"{name}s")
    return Unit(partitions, batches, changes, nodes, unit.taking, unit.sending)


def rows_of_fetcher(unit: Unit, brokers: Ints, is_own: Bools) -> Rows:
    """The rows of a fetcher. brokers: int64[nodes], each node's broker. is_own: bool[partitions], its partitions."""
    nodes = np.arange(len(unit.nodes))
    node_of_partition, node_of_change = (
        np.repeat(nodes, unit.nodes[f"end_{name}"] - unit.nodes[f"first_{name}"]) for name in ("partition", "change")
    )
    has_own, group = np.zeros(len(nodes), np.bool_), np.full(len(nodes), NONE)
    has_own[node_of_partition[is_own]] = True
    group[has_own] = groups_that_meet(brokers[has_own], pick_records(unit.nodes, has_own))
    own = np.flatnonzero(is_own)
    return Rows(group, own[np.argsort(group[node_of_partition[own]], kind="stable")], node_of_partition, node_of_change)


def groups_that_meet(brokers: Ints, nodes: Records) -> Ints:
    """A number for each node, the same for nodes of one broker whose times overlap: int64[nodes].

    Numbers rise in the order in which they first occur. brokers: int64[nodes]. nodes: NODE[nodes].
    """
    order = np.lexsort((nodes["begin"], brokers))
    begins, until, number, numbers = nodes["begin"].tolist(), -1, -1, np.zeros(len(nodes), np.int64)
    for before, node in zip([NONE, *order.tolist()], order.tolist(), strict=False):
        if before == NONE or brokers[before] != brokers[node] or begins[node] > until:
            number, until = number + 1, begins[node]
        until = max(until, int(nodes["horizon"][node]))
        numbers[node] = number
    _, first, which = np.unique(numbers, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[which]


def joined_nodes(nodes: Records, group: Ints) -> Records:
    """One node for each group: NODE[groups], still without the fields that say where its rows are.

    nodes: NODE[n]. group: int64[n].
    """
    count = np.bincount(group)
    joined = np.zeros(len(count), NODE)
    joined["begin"], joined["horizon"] = NEVER, 0
    np.minimum.at(joined["begin"], group, nodes["begin"])
    np.maximum.at(joined["horizon"], group, nodes["horizon"])
    np.add.at(joined["request_cap"], group, nodes["request_cap"])
    for name in MEANS:
        joined[name] = np.bincount(group, nodes[name]) / count
    return joined


def joined_changes(unit: Unit, rows: Rows, place: Ints) -> tuple[Records, Ints]:
    """(READING_CHANGE[n], the changes of a fetcher; int64[n], the node of each change).

    place: int64[partitions], the new index of each partition, NONE for a partition of another fetcher.
    """
    partition, group = unit.changes["partition"], rows.group[rows.node_of_change]
    is_of_partition = partition >= 0
    is_alone = np.bincount(rows.group[rows.group != NONE])[group] == 1
    kept = np.where(is_of_partition, place[np.maximum(partition, 0)] != NONE, is_alone & (group != NONE))
    changes, groups = [pick_records(unit.changes, kept)], [group[kept]]
    changes[0]["partition"] = np.where(is_of_partition, place[np.maximum(partition, 0)], partition)[kept]
    shared = np.flatnonzero(~is_of_partition & ~is_alone & (group != NONE))
    for of in np.unique(group[shared]).tolist():
        own = shared[group[shared] == of]
        changes += [*changes_of_all(pick_records(unit.changes, own), rows.node_of_change[own], rows.group == of)]
        groups += [np.full(len(added), of) for added in changes[len(groups) :]]
    joined, node = join_records(READING_CHANGE, changes), np.concatenate(groups)
    # At the same time, the reader's own changes come first, then partitions that leave, then those that come
    # (changes.py).
    rank = np.where(joined["partition"] < 0, 0, np.where(joined["to"] == LEAVE, 1, 2))
    order = np.lexsort((rank, joined["time"], node))
    return pick_records(joined, order), node[order]


def changes_of_all(changes: Records, node: Ints, is_in: Bools) -> Iterator[Records]:
    """The reader's own changes for a node that several nodes have become: READING_CHANGE[n] of each kind.

    changes: READING_CHANGE[n], those of the several nodes. node: int64[n], the node of each. is_in: bool[nodes], the
    several nodes.
    """
    first = int(np.flatnonzero(is_in)[0])
    yield pick_records(changes, (changes["partition"] == REOPEN) & (node == first))
    stops = (changes["partition"] == STOP) | (changes["partition"] == THROTTLED)
    begin, end = stops_of_all(changes["time"][stops], changes["to"][stops], node[stops], int(np.count_nonzero(is_in)))
    yield new_records(
        READING_CHANGE, len(begin), time=begin, partition=STOP, to=end, until=begin, since=NEVER, captured_batch=NONE
    )


def stops_of_all(begin: Ints, end: Ints, node: Ints, nodes: int) -> tuple[Ints, Ints]:
    """The times at which all of `nodes` nodes stand still: int64[n] from when, int64[n] until when (us).

    begin, end, node: int64[m], the times at which each single node stands still. Those of one node may overlap.

    >>> stops_of_all(np.array([5, 7]), np.array([20, 30]), np.array([0, 1]), 2)
    (array([7]), array([20]))
    """
    begin, end = without_overlaps(begin, end, node)
    time, change = np.concatenate([begin, end]), np.repeat([1, -1], len(begin))
    order = np.lexsort((change, time))
    stand = np.cumsum(change[order]) == nodes
    from_there = np.flatnonzero(stand[:-1])
    return time[order][from_there], time[order][from_there + 1]


def without_overlaps(begin: Ints, end: Ints, node: Ints) -> tuple[Ints, Ints]:
    """The times at which each node stands still, with those of a node that overlap or meet put together: int64[n] from
    when, int64[n] until when (us).

    begin, end, node: int64[m], as in `stops_of_all`.
    """
    order = np.lexsort((begin, node))
    begin, end, node = begin[order], end[order], node[order]
    ends, rank = np.unique(end, return_inverse=True)
    # The latest end so far of each node: the node comes first, so no end of another node counts.
    until = ends[np.maximum.accumulate(node * len(ends) + rank) - node * len(ends)]
    apart = (node[1:] != node[:-1]) | (begin[1:] > until[:-1])
    return begin[np.append(True, apart)[: len(begin)]], until[np.append(apart, True)[: len(begin)]]


def joined_curves(unit: Unit, group: Ints, nodes: Records, name: str) -> Records:
    """The curves of the joined nodes: POINT[points]. The place of each node's curve is written into `nodes`.

    group: int64[nodes of the unit]. nodes: NODE[groups], written in place. name: `taking` or `sending`.
    """
    first, end, points = unit.nodes[f"first_{name}"], unit.nodes[f"end_{name}"], getattr(unit, name)
    curves = [
        joined_curve([points[first[node] : end[node]] for node in np.flatnonzero(group == number).tolist()])
        for number in range(len(nodes))
    ]
    edges = stretch_edges([len(curve) for curve in curves])
    nodes[f"first_{name}"], nodes[f"end_{name}"] = edges[:-1], edges[1:]
    return join_records(POINT, curves)


def joined_curve(curves: Sequence[Records]) -> Records:
    """One curve that adds up some curves at equal shares of their amounts: POINT[points]."""
    if len(curves) == 1:
        return np.array(curves[0])
    whole = sum(int(curve["amount"][-1]) for curve in curves)
    shares = [curve["amount"] / max(int(curve["amount"][-1]), 1) for curve in curves]
    at = np.unique(np.concatenate(shares))
    amount, which = np.unique(np.rint(at * whole).astype(np.int64), return_index=True)
    time = sum(np.interp(at[which], share, curve["time"]) for share, curve in zip(shares, curves, strict=True))
    return new_records(POINT, len(amount), amount=amount, time=time)
