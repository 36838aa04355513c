"""A reader's captured fetches by node, as if each node had been one connection; and partitions that change nodes.

When a partition has a new leader, or a reader turns to another replica, the reader keeps its position and its buffered
records (SubscriptionState); records under way are dropped. So in every lane the reader goes on at the new broker from
its position at the old one. As with connections that are opened anew, the capture cannot tell such a reader from one
that left and came back. So the reads at both brokers have to agree in everything that nodes.py compares for
connections.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Ints, Records
from udfs.columns.records import join_records, pick_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS, NEVER, US_PER_MS
from udfs.replay.fetch_max_bytes.closed_loop.events import (
    ANSWERED_FETCH,
    BOUND,
    MOVE,
    NUMBER_BITS,
    SERVING,
    CapturedFetches,
)
from udfs.replay.fetch_max_bytes.closed_loop.nodes import GONE_US, Nodes, limits_by_connection


class NodeReads(NamedTuple):
    """What the capture shows of each node, the rows of a node next to each other. Partitions and fetches are indices
    here.

    partitions: FETCHED_PARTITION, those of a node in the order in which it first asked for them. node:
    int64[partitions]. fetches: ANSWERED_FETCH, servings: SERVING, moves: MOVE; those of a node in time order, and
    those of a fetch in the order in which it names partitions. bounds: BOUND, those of a partition in
    time order. The fetch of a serving is the first fetch that was sent at the same time. first_stay:
    int64[partitions], the first stay of the same partition at its node (stays.py).
    """

    partitions: Records
    node: Ints
    fetches: Records
    servings: Records
    moves: Records
    bounds: Records
    first_stay: Ints


class Places(NamedTuple):
    """Where each row of `fetched` is in NodeReads, int64[rows] each.

    partition: index of its partition. first_fetch: index of its connection's first fetch. last_fetch: index of the
    fetch of its last read. before: the row of the same partition in the node's last earlier connection that reads it,
    or NONE.
    """

    partition: Ints
    first_fetch: Ints
    last_fetch: Ints
    before: Ints


def node_reads(captured: CapturedFetches, nodes: Nodes) -> NodeReads:
    """The captured fetches of all connections, put together by node."""
    fetched = captured.fetched.records
    connection = fetched["connection"]
    places, first_row, last_row = places_by_node(fetched, nodes)
    partitions = pick_records(fetched, first_row)
    partitions["last_fetch"] = places.last_fetch[last_row]
    for name in ("last_offset", "last_returned", "refused_since"):
        partitions[name] = fetched[name][last_row]
    fetches, servings, moves, bounds = (
        join_records(kind, parts)
        for kind, parts in (
            (ANSWERED_FETCH, captured.fetches), (SERVING, captured.servings), (MOVE, captured.moves),
            (BOUND, captured.bounds),
        )
    )  # fmt: skip
    servings, moves, bounds = (
        pick_records(records, rows_by_node(nodes, connection[records["partition"]]))
        for records in (servings, moves, bounds)
    )
    join_moves(moves, fetched, places)
    fetches = pick_records(fetches, rows_by_node(nodes, fetches["connection"]))
    fetches["request"] = requests_when_read(fetches)
    servings["fetch"] = first_at_their_time(fetches, nodes)[
        servings["fetch"] + places.first_fetch[servings["partition"]]
    ]
    for records in (servings, moves, bounds):
        records["partition"] = places.partition[records["partition"]]
    return NodeReads(
        partitions=partitions,
        node=nodes.node[partitions["connection"]],
        fetches=fetches,
        servings=servings,
        moves=moves,
        bounds=pick_records(bounds, np.argsort(bounds["partition"], kind="stable")),
        first_stay=np.arange(len(partitions)),
    )


def requests_when_read(fetches: Records) -> Ints:
    """When the broker could read each request: int64[fetches], us.

    A response that a quota emptied mutes its connection for throttle_time_ms. A client that sends its next request
    sooner, as librdkafka does, waits for the broker to read it (KIP-219; ClientQuotaManager.throttle). A response that
    came all the same shows that the request was read before.

    fetches: ANSWERED_FETCH[fetches], those of a connection next to each other and in time order.
    """
    request, response, connection = fetches["request"], fetches["response"], fetches["connection"]
    is_emptied = (fetches["throttled"] == 1) & (fetches["returned"] == 0)
    muted_until = np.where(is_emptied, response + fetches["throttle_ms"] * US_PER_MS, ALWAYS)[:-1]
    muted_until[connection[1:] != connection[:-1]] = ALWAYS
    return np.append(request[:1], np.maximum(request[1:], np.minimum(muted_until, response[1:])))


def rows_by_node(nodes: Nodes, connection: Ints) -> Ints:
    """The rows sorted by node, then by connection, otherwise in their own order: int64[rows].

    connection: int64[rows], the index of each row's connection.
    """
    return np.lexsort((nodes.place[connection], nodes.node[connection]))


def places_by_node(fetched: Records, nodes: Nodes) -> tuple[Places, Ints, Ints]:
    """(the places of the rows; each partition's row of its first connection; that of its last, int64[partitions] both).

    fetched: FETCHED_PARTITION[rows].
    """
    connection = fetched["connection"]
    order = rows_by_node(nodes, connection)
    key = (nodes.node[connection] << NUMBER_BITS | fetched["number"])[order]
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    partition, last, before = np.empty_like(order), np.empty_like(first), np.full_like(order, NONE)
    partition[order] = np.argsort(np.argsort(first))[which]
    last[partition[order]] = order  # of several values the last one stays
    together = order[np.argsort(partition[order], kind="stable")]
    again = partition[together][1:] == partition[together][:-1]
    before[together[1:][again]] = together[:-1][again]
    first_fetch = nodes.first_fetch[nodes.node[connection]] + nodes.fetches_before[connection]
    places = Places(partition, first_fetch, first_fetch + fetched["last_fetch"], before)
    return places, order[np.sort(first)], last


def join_moves(moves: Records, fetched: Records, places: Places) -> None:
    """Turn the fetch numbers of moves into indices. If a move is its connection's first read of a partition, its read
    before is the last read by the node's earlier connection.

    moves: MOVE[moves], written in place. fetched: FETCHED_PARTITION[rows].
    """
    row = moves["partition"]
    before, is_first = places.before[row], moves["before"] < 0
    goes_on = is_first & (before != NONE)
    moves["fetch"] += places.first_fetch[row]
    moves["before"] = np.where(
        is_first, np.where(goes_on, places.last_fetch[before], NONE), moves["before"] + places.first_fetch[row]
    )
    moves["from_offset"] = np.where(goes_on, fetched["last_offset"][before], moves["from_offset"])
    moves["returned"] = np.where(goes_on, fetched["last_returned"][before], moves["returned"])
    moves["refused_since"] = np.where(goes_on, fetched["refused_since"][before], moves["refused_since"])


def first_at_their_time(fetches: Records, nodes: Nodes) -> Ints:
    """For each fetch, the first fetch of its node that was sent at the same time: int64[fetches]."""
    request, node = fetches["request"], nodes.node[fetches["connection"]]
    begins = np.append(True, (request[1:] != request[:-1]) | (node[1:] != node[:-1]))
    return np.maximum.accumulate(np.where(begins, np.arange(len(fetches)), 0))


def has_later_stay(first_stay: Ints) -> Bools:
    """Whether the reader comes back to the broker for each partition: bool[partitions]. first_stay: of NodeReads."""
    last = np.zeros_like(first_stay)
    np.maximum.at(last, first_stay, np.arange(len(last)))
    return np.arange(len(last)) < last[first_stay]


class Handovers(NamedTuple):
    """Partitions that move from one broker to another, as indices at both, int64[n] each. The moves of one partition
    are in time order.
    """

    before: Ints
    after: Ints


def topics_of(keys: Sequence[str]) -> Ints:
    """The number of each partition, the same at all brokers: int64[numbers]. keys: broker, topic and partition, by the
    number that the partition has at its broker.
    """
    known = dict[str, int]()
    return np.array([known.setdefault(key.partition("\0")[2], len(known)) for key in keys], np.int64)


def handovers_of(reads: NodeReads, nodes: Nodes, keys: Sequence[str]) -> Handovers:
    """The handovers of a reader. keys: broker, topic and partition, by the partition's number."""
    brokers = nodes.nodes["broker"]
    if not nodes.is_one_process or (brokers == brokers[0]).all():
        return Handovers(*np.zeros((2, 0), np.int64))
    partitions, node = reads.partitions, reads.node
    topic, begin = topics_of(keys)[partitions["number"]], partitions["first_request"]
    end = reads.fetches["request"][partitions["last_fetch"]]
    order = np.lexsort((partitions["number"], node, end, begin, topic))
    before, after = order[:-1], order[1:]
    limits = limits_by_connection(nodes.nodes)
    goes_on = (
        (topic[before] == topic[after])
        & (end[before] < begin[after])
        & (begin[after] <= end[before] + GONE_US)
        & (partitions["first_offset"][after] >= partitions["last_offset"][before])
        & (brokers[node[before]] != brokers[node[after]])
        & (limits[node[before]] == limits[node[after]]).all(axis=1)
    )
    return Handovers(before[goes_on], after[goes_on])


def wanted_since(handovers: Handovers, reads: NodeReads) -> Ints:
    """`since` of each partition (us), no earlier than the last response from the broker that it comes from:
    int64[partitions]. A client that learns of a new leader still takes the response that is under way.
    """
    partitions, before = reads.partitions, handovers.before
    since, first_request = partitions["since"].copy(), partitions["first_request"]
    answered = reads.fetches["response"][partitions["last_fetch"][before]] + 1
    since[handovers.after] = np.maximum(since[handovers.after], answered)
    return np.minimum(since, first_request)


def when_left(handovers: Handovers, reads: NodeReads) -> Ints:
    """When each partition is asked for at another broker (us), NEVER if it is not: int64[partitions]."""
    times = np.full(len(reads.partitions), NEVER)
    times[handovers.before] = reads.partitions["since"][handovers.after]
    return times


def earlier_offsets(handovers: Handovers, reads: NodeReads) -> tuple[Ints, Ints]:
    """(partitions that come from another broker; for each, the offset of its first fetch at its first broker): int64[n]
    both.
    """
    offsets, earlier = reads.partitions["first_offset"], dict[int, int]()
    for before, after in zip(handovers.before.tolist(), handovers.after.tolist(), strict=True):
        earlier[after] = earlier.get(before, int(offsets[before]))
    return np.array(list(earlier), np.int64), np.array(list(earlier.values()), np.int64)
