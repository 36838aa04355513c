"""Partitions whose leader comes back: each stay of a reader at a broker is a partition of its own.

In a rolling restart, the leader of a partition moves to another broker and later comes back, and a reader goes with it.
In every lane the reader has to go on from where it is in that lane, at the other broker as well as after its return. So
what the reader reads of the partition after its return is separated from what it read before. Then both moves are
handovers (by_node.py).

A stay ends if fetches leave the partition out, and the reader reads it only at another broker in the meantime. A
partition that is left out for any other reason stays what it is (changes.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Ints, Records, numbers_in_stretches
from udfs.columns.records import pick_records
from udfs.columns.searches import place_behind
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.replay.fetch_max_bytes.closed_loop.by_node import NodeReads, topics_of
from udfs.replay.fetch_max_bytes.closed_loop.changes import GIVEN_UP_US
from udfs.replay.fetch_max_bytes.closed_loop.nodes import Nodes

MOST_RETURNS = 32
"""A partition that comes back to a broker more often than this is not divided into stays, because each stay has its own
copy of the log."""


class Returns(NamedTuple):
    """Moves with which a stay begins, int64[n] each: the move, rising, and when the last response with its partition
    had come from the other broker (us).
    """

    move: Ints
    until: Ints


def with_stays(reads: NodeReads, nodes: Nodes, keys: Sequence[str]) -> NodeReads:
    """The same reads, where each stay is a partition. keys: broker, topic and partition, by the partition's number."""
    brokers = nodes.nodes["broker"]
    if not nodes.is_one_process or (brokers == brokers[0]).all():
        return reads
    returns = not_too_many(returns_of(reads, brokers, topics_of(keys)), reads)
    return divided(reads, returns) if len(returns.move) else reads


def returns_of(reads: NodeReads, brokers: Ints, topics: Ints) -> Returns:
    """The moves with which a partition comes back from another broker.

    brokers: int64[nodes]. topics: the number of each partition's topic and partition, by the number that the partition
    has at its broker.
    """
    moves, request, response = reads.moves, reads.fetches["request"], reads.fetches["response"]
    last = last_fetch_before_the_next_move(reads)
    begin, end, until = request[moves["fetch"]], request[last], response[last]
    topic = topics[reads.partitions["number"][moves["partition"]]]
    broker = brokers[reads.node[moves["partition"]]]
    rows = np.lexsort((begin, topic))
    row, other = rows[1:], rows[:-1]
    before = moves["before"][row]
    comes_back = (
        (before >= 0)
        & (topic[row] == topic[other])
        & (broker[row] != broker[other])
        & (begin[other] > request[np.maximum(before, 0)])
        & (end[other] < begin[row])
    )
    back, away = row[comes_back], other[comes_back]
    in_order = np.argsort(back)
    return Returns(back[in_order], until[away[in_order]])


def last_fetch_before_the_next_move(reads: NodeReads) -> Ints:
    """The last fetch that asks for a move's partition before the partition's next move: int64[moves]."""
    partition, before = reads.moves["partition"], reads.moves["before"]
    order = np.argsort(partition, kind="stable")
    fetches = reads.partitions["last_fetch"][partition]
    is_followed = partition[order][1:] == partition[order][:-1]
    fetches[order[:-1][is_followed]] = before[order[1:][is_followed]]
    return fetches


def not_too_many(returns: Returns, reads: NodeReads) -> Returns:
    """The returns without those of partitions that have more than MOST_RETURNS."""
    partition = reads.moves["partition"][returns.move]
    few = np.bincount(partition, minlength=1)[partition] <= MOST_RETURNS
    return Returns(returns.move[few], returns.until[few])


def divided(reads: NodeReads, returns: Returns) -> NodeReads:
    """The same reads, where each stay is a partition."""
    moves, request = reads.moves.copy(), reads.fetches["request"]
    begins = moves["before"] < 0
    begins[returns.move] = True
    stay = stays_of_moves(moves["partition"], begins)
    first_row, of = np.flatnonzero(begins), moves["partition"][begins]
    partitions = pick_records(reads.partitions, of)
    in_order = np.lexsort((first_row, of))
    follows = np.append(False, of[in_order][1:] == of[in_order][:-1])
    later, earlier = in_order[follows], in_order[np.flatnonzero(follows) - 1]
    end_stays(partitions, earlier, pick_records(moves, first_row[later]))
    begin_stays(partitions, later, pick_records(moves, first_row[later]), reads, returns)
    begin_times = request[moves["fetch"][first_row]]
    servings = reads.servings.copy()
    place = place_behind(
        of[in_order], begin_times[in_order], servings["partition"], request[servings["fetch"]]
    )  # fmt: skip
    servings["partition"] = in_order[np.maximum(place - 1, 0)]
    moves["partition"] = stay
    for name, value in (("before", NONE), ("from_offset", NONE), ("returned", 0), ("refused_since", NEVER)):
        moves[name][returns.move] = value
    first_stay = np.empty_like(of)
    first_stay[in_order] = in_order[np.maximum.accumulate(np.where(follows, 0, np.arange(len(of))))]
    return NodeReads(
        partitions=partitions,
        node=reads.node[of],
        fetches=reads.fetches,
        servings=servings,
        moves=moves,
        bounds=bounds_of_stays(reads, of),
        first_stay=first_stay,
    )


def stays_of_moves(partition: Ints, begins: Bools) -> Ints:
    """The stay of each move: int64[moves]. Stays have the order of the moves with which they begin.

    partition: int64[moves]. begins: bool[moves], whether the move begins a stay, as the first of a partition does.

    >>> stays_of_moves(np.array([7, 8, 7, 8, 7]), np.array([True, True, False, False, True])).tolist()
    [0, 1, 0, 1, 2]
    """
    number, order = np.cumsum(begins) - 1, np.argsort(partition, kind="stable")
    latest = np.maximum.accumulate(np.where(begins[order], np.arange(len(order)), 0))
    stay = np.empty_like(number)
    stay[order] = number[order][latest]
    return stay


def end_stays(partitions: Records, stays: Ints, following: Records) -> None:
    """Write the last read of each stay that another one follows.

    partitions: FETCHED_PARTITION, written in place. stays: int64[n]. following: MOVE[n], the first of the next stay.
    """
    for name, of_move in (
        ("last_fetch", "before"), ("last_offset", "from_offset"), ("last_returned", "returned"),
        ("refused_since", "refused_since"),
    ):  # fmt: skip
        partitions[name][stays] = following[of_move]


def begin_stays(partitions: Records, stays: Ints, moves: Records, reads: NodeReads, returns: Returns) -> None:
    """Write the first read of each stay that follows another one: `moves`, MOVE[n].

    The reader can have begun to want the partition at this broker since just after the fetch before, and since the last
    response from the other broker. partitions: FETCHED_PARTITION, written in place. stays: int64[n], in the order of
    `moves`.
    """
    request, fetch = reads.fetches["request"], moves["fetch"]
    until = returns.until[np.argsort(np.argsort(stays))]  # stays and returns have the same order
    earliest = np.maximum(request[np.maximum(fetch - 1, 0)], until) + 1
    partitions["since"][stays] = np.minimum(earliest, request[fetch])
    partitions["first_request"][stays] = request[fetch]
    partitions["first_offset"][stays] = moves["fetch_offset"]


def bounds_of_stays(reads: NodeReads, partition: Ints) -> Records:
    """The bounds of each stay: those of its partition in all stays, BOUND[n]. partition: int64[stays]."""
    bounds = reads.bounds
    first = np.searchsorted(bounds["partition"], np.arange(len(reads.partitions) + 1))
    counts = (first[1:] - first[:-1])[partition]
    copied = pick_records(bounds, numbers_in_stretches(first[partition], counts))
    copied["partition"] = np.repeat(np.arange(len(partition)), counts)
    return copied


def refused_nodes(reads: NodeReads, count: int) -> Bools:
    """Whether a broker refused a partition that the reader went on reading there: bool[nodes].

    If a stay ends with refusals, the leader had moved, or the topic was deleted: in every lane the reader leaves the
    partition at the captured time, too. If they went on for GIVEN_UP_US, a lane could read meanwhile what the captured
    reader could not. count: how many nodes there are.
    """
    partitions, moves = reads.partitions, reads.moves
    last = reads.fetches["request"][partitions["last_fetch"]]
    since = partitions["refused_since"]
    is_long = (since != NEVER) & (last - np.where(since == NEVER, last, since) > GIVEN_UP_US)
    again = moves["partition"][moves["refused_since"] != NEVER]
    return np.isin(np.arange(count), np.append(reads.node[again], reads.node[is_long]))
