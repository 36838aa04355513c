"""What changes while a reader is captured: partitions that join, leave and come back, seeks, full fetches.

The changes are taken from the fetches alone. They happen in every lane at the captured time:

- A partition joins when it is asked for the first time. The reader may have wanted it since just after the fetch
  before.
- A partition that fetches leave out has left with the first fetch that does not name it. Its records that are under way
  are dropped. It comes back in the way in which a partition joins. If the captured reader went on at the offset that it
  had read to, the reader of each lane goes on at the offset that it had read to in that lane. A Java client from 4.0 on
  never leaves out a partition that it wants. Other clients leave out a partition while they have records of it
  buffered, or while they back off. With those clients, a partition has left only if it is missing for GIVEN_UP_US.
- If a read does not begin at the offset at which the partition's read before had ended, the reader has sought: for
  example, a consumer starts over, or goes on from the offset that another one had committed. Every lane seeks the same
  batch, as soon as the response before has come. If that batch is not known, the partition is left out from then on,
  and counted as `position_moved`.
- A full fetch in a session opens a new session, in the client's order (FetchSessionHandler: the session was evicted,
  or the connection broke).
- If any of these changes comes after a silence of GIVEN_UP_US, such as a rebalance, the reader stands still for as
  long.
- A reader that leaves a broker before it has read everything (leaving.py) gives up all of its partitions there, just
  after its last response.
- A consumer may ask for records beyond the bound of a partition: a new leader at first has a lower high watermark than
  the one before. The broker does not let such a fetch wait (DelayedFetch, case F). So until the high watermark has come
  up again, the consumer sends one fetch after the other, and gets nothing.
- A response that a quota emptied counts as nothing read (FetchContext.getThrottledResponse, Kafka 4.3). Then the
  reader stands still until the broker reads its next request, throttle_time_ms later (KIP-219). A lane's reader does
  so, too, as soon as it has got as many bytes as the captured one had by then; if it has not got them when the captured
  one went on, it was not held back. Where a lane's quota is known (quota_meter.py), the quota alone says when the
  client waits.

A connection that is opened anew goes on as the one before (nodes.py). A partition that moves from one broker to another
goes on there (by_node.py), and so does one that comes back (stays.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Ints, Records, stretch_edges
from udfs.columns.records import join_records, new_records, pick_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.replay.fetch_max_bytes.closed_loop.by_node import NodeReads, has_later_stay
from udfs.replay.fetch_max_bytes.closed_loop.state import (
    BEYOND_BOUND,
    GO_ON,
    LEAVE,
    READING_CHANGE,
    REOPEN,
    STOP,
    THROTTLED,
)

GIVEN_UP_US = 1_000_000
"""A partition that is not asked for in this time was given up. A client that leaves nothing out has given up a
partition with the first fetch that does not ask for it."""
BATCH_UNKNOWN = -3
"""Stands for the batch that a move leads to, where that batch is not known."""


class ReaderFetches(NamedTuple):
    """A reader's fetches, int64[fetches] each; those of a node are in time order.

    request, response: us. returned: record bytes. node: the node of each fetch. first, last: the first and the last
    fetch of that node. opens_session: bool[fetches]. is_throttled: bool[fetches], a quota emptied the response.
    is_beyond_bound: bool[fetches], a consumer asked for records beyond the bound of a partition, and got nothing
    without a wait. horizon: int64[nodes], when the node's captured time ends (us).
    """

    request: Ints
    response: Ints
    returned: Ints
    node: Ints
    first: Ints
    last: Ints
    opens_session: Bools
    is_throttled: Bools
    is_beyond_bound: Bools
    horizon: Ints

    @property
    def got(self) -> Ints:
        """The record bytes that the node of each fetch had got before it: int64[fetches]."""
        got = stretch_edges(self.returned)[:-1]
        return got - got[self.first]

    def just_after(self, times: Ints, fetches: Ints) -> Ints:
        """1 us after the fetch before each of these, but no later than the request of the fetch itself: int64[n], us.

        times: int64[fetches], `request` or `response`: the time of the fetch before that counts. fetches: int64[n],
        indices.
        """
        before = np.maximum(fetches - 1, self.first[fetches])
        return np.minimum(times[before] + 1, self.request[fetches])


class Destinations(NamedTuple):
    """Where moves lead to, int64[moves] each: the batch that is read, or BATCH_UNKNOWN, and the batch that was
    expected.
    """

    batch: Ints
    expected: Ints


class Changes(NamedTuple):
    """READING_CHANGE[n], those of a node next to each other and in time order; node: int64[n], the node of each.

    lost: int64[nodes], how often a seek could not be followed. gaps: int64[nodes], how often a partition was read on
    behind batches that were not read, or the reader was silent, as where the capture lacks fetches. stopped: int64[m],
    the fetches before which the reader stood still.
    """

    changes: Records
    node: Ints
    lost: Ints
    gaps: Ints
    stopped: Ints


class NodeChanges(NamedTuple):
    """Changes of one kind, READING_CHANGE[n], and the node of each, int64[n]."""

    node: Ints
    changes: Records


def group_changes(node: Ints, time: Ints, partition: Ints | int, to: Ints | int, **others: Ints | int) -> NodeChanges:
    """Changes of one kind. Without `until` among `others`, buffered records are dropped at the time of the change.

    node, time: int64[n], time in us. partition, to: int64[n], or one value for all. others: further fields of
    READING_CHANGE, int64[n] or one value for all.
    """
    columns: dict[str, Ints | int] = {"until": time, "since": NEVER, "captured_batch": NONE, "every_us": 0, "bytes": 0}
    return NodeChanges(
        node, new_records(READING_CHANGE, len(time), time=time, partition=partition, to=to, **{**columns, **others})
    )


class MoveKinds(NamedTuple):
    """The kind of each move, bool[moves] each.

    joins: the partition is asked for the first time. absent: it was left out before. sought: it is not read from where
    its read before had ended. lost: it is not known which batch it is read from. left: int64[moves], the first fetch
    that may have left the partition out.
    """

    joins: Bools
    absent: Bools
    sought: Bools
    lost: Bools
    left: Ints


def changes_of_nodes(
    reads: NodeReads, fetches: ReaderFetches, destinations: Destinations, left_at: Ints, leaves_nothing_out: Bools,
    abandoned: Ints,
) -> Changes:  # fmt: skip
    """The changes of all nodes.

    left_at: int64[partitions], when each is asked for at another broker (us), or NEVER. leaves_nothing_out:
    bool[nodes], the client never leaves out a partition that it wants. abandoned: int64[n], the partitions that it
    still asks for when it leaves their node.
    """
    kinds = kinds_of_moves(reads, fetches, destinations, leaves_nothing_out)
    gone = partitions_given_up(reads, fetches, leaves_nothing_out)
    fetch, first_without = reads.moves["fetch"], reads.partitions["last_fetch"][gone] + 1
    opened = np.flatnonzero(fetches.opens_session)
    begins = fetch[kinds.absent | kinds.sought | kinds.joins]
    stops = silences(fetches, [begins, kinds.left[kinds.absent], first_without, opened])
    throttled = np.flatnonzero(fetches.is_throttled & (fetches.last != np.arange(len(fetches.request))))
    # Changes at the same time keep this order: the reader's own, then partitions that leave, then those that come.
    groups = [
        *changes_of_reader(fetches, stops, throttled, opened),
        *leaving_partitions(reads, fetches, destinations, kinds, left_at, gone),
        group_changes(reads.node[abandoned], fetches.horizon[reads.node[abandoned]] + 1, abandoned, LEAVE),
        *coming_partitions(reads, fetches, destinations, kinds),
    ]
    node, changes = np.concatenate([g.node for g in groups]), join_records(READING_CHANGE, [g.changes for g in groups])
    order = np.lexsort((changes["time"], node))
    of_move, count = reads.node[reads.moves["partition"]], len(leaves_nothing_out)
    silent = fetches.node[silences(fetches, [np.arange(len(fetches.request))])]
    return Changes(
        changes=pick_records(changes, order),
        node=node[order],
        lost=np.bincount(of_move[kinds.lost], minlength=count),
        gaps=np.bincount(np.concatenate([of_move[skips_records(reads, destinations)], silent]), minlength=count),
        stopped=np.append(stops, throttled + 1),
    )


def kinds_of_moves(
    reads: NodeReads, fetches: ReaderFetches, destinations: Destinations, leaves_nothing_out: Bools
) -> MoveKinds:
    """The kind of each move. leaves_nothing_out: bool[nodes], as in `changes_of_nodes`."""
    node, fetch = reads.node[reads.moves["partition"]], reads.moves["fetch"]
    joins, before = reads.moves["before"] < 0, np.maximum(reads.moves["before"], 0)
    left = np.minimum(before + 1, fetches.last[fetch])
    has_left = leaves_nothing_out[node] | (fetches.request[fetch] - fetches.request[left] > GIVEN_UP_US)
    lost = ~joins & (destinations.batch == BATCH_UNKNOWN)
    return MoveKinds(
        joins=joins,
        absent=~joins & (fetch - before > 1) & has_left,
        sought=~joins & ~lost & (destinations.batch != destinations.expected),
        lost=lost,
        left=left,
    )


def skips_records(reads: NodeReads, destinations: Destinations) -> Bools:
    """Whether each move goes on behind records that the partition's read before did not get: bool[moves].

    Batches that the capture lacks are not in the log. There the offset shows it, if the read before got nothing.
    """
    moves, has_before = reads.moves, reads.moves["before"] >= 0
    is_ahead = (moves["returned"] <= 0) & (moves["fetch_offset"] > moves["from_offset"])
    return has_before & (is_ahead | (destinations.batch > destinations.expected))


def changes_of_reader(fetches: ReaderFetches, stops: Ints, throttled: Ints, opened: Ints) -> list[NodeChanges]:
    """Where the reader stands still, where it opens a session, and where it asks for records beyond a bound.

    stops: the fetches before which it stands still. throttled: the fetches after which it does. opened: the fetches
    that open a session. int64[n] each, indices of fetches.
    """
    node, request = fetches.node, fetches.request
    beyond, beyond_until, every_us = stretches_beyond_bound(fetches)
    beyond_from = fetches.just_after(fetches.response, beyond)
    # A replay may be ahead by one fetch, and then it has its bytes before the captured reader has.
    throttle = fetches.just_after(request, np.maximum(throttled - 1, fetches.first[throttled]))
    stop, opening = (fetches.just_after(fetches.response, of) for of in (stops, opened))
    return [
        group_changes(node[stops], stop, STOP, request[stops]),
        group_changes(node[throttled], throttle, THROTTLED, request[throttled + 1], bytes=fetches.got[throttled]),
        group_changes(node[opened], opening, REOPEN, 0),
        group_changes(node[beyond], beyond_from, BEYOND_BOUND, beyond_until, every_us=every_us),
    ]


def stretches_beyond_bound(fetches: ReaderFetches) -> tuple[Ints, Ints, Ints]:
    """The stretches of a node's fetches beyond a bound, without silences of GIVEN_UP_US: int64[n] each.

    (The first fetch of each, as an index; when the next fetch that is in no stretch comes, or just after the last
    response where the node is silent then, us; the average time from one fetch of the stretch to the next, us).
    """
    is_beyond, number = fetches.is_beyond_bound, np.arange(len(fetches.request))
    following = fetches.request[np.minimum(number + 1, fetches.last)]
    pauses = (number == fetches.last) | (following - fetches.response >= GIVEN_UP_US)
    goes_on = is_beyond[:-1] & is_beyond[1:] & ~pauses[:-1]
    first = np.flatnonzero(is_beyond & ~np.append(False, goes_on))
    last = np.flatnonzero(is_beyond & ~np.append(goes_on, False))
    until = np.where(pauses[last], fetches.response[last] + 1, following[last])
    return first, until, (until - fetches.request[first]) // (last - first + 1)


def leaving_partitions(
    reads: NodeReads, fetches: ReaderFetches, destinations: Destinations, kinds: MoveKinds, left_at: Ints, gone: Ints
) -> list[NodeChanges]:
    """Partitions that are left out for a while, given up, asked for at another broker, or lost by a seek.

    left_at: int64[partitions], when each is asked for at another broker (us), or NEVER. gone: int64[n], those given up.
    """
    request, moves, absent, lost = fetches.request, reads.moves, kinds.absent, kinds.lost
    p, asked_again, asked_before = moves["partition"], request[moves["fetch"]], request[np.maximum(moves["before"], 0)]
    node, answered = reads.node[p], fetches.just_after(fetches.response, moves["fetch"])
    last, moved = reads.partitions["last_fetch"][gone], np.flatnonzero(left_at != NEVER)
    return [
        group_changes(
            node[absent], request[kinds.left[absent]], p[absent], LEAVE,
            captured_batch=destinations.expected[absent], until=asked_again[absent], since=asked_before[absent],
        ),
        group_changes(reads.node[gone], request[last + 1], gone, LEAVE, until=NEVER, since=request[last]),
        group_changes(reads.node[moved], left_at[moved], moved, LEAVE),
        group_changes(node[lost], answered[lost], p[lost], LEAVE, until=asked_again[lost], since=asked_before[lost]),
    ]  # fmt: skip


def coming_partitions(
    reads: NodeReads, fetches: ReaderFetches, destinations: Destinations, kinds: MoveKinds
) -> list[NodeChanges]:
    """Partitions that join, come back, or are read on from another place. Those that join and those that come back keep
    the order in which the fetch names them.
    """
    request, moves, joins, absent = fetches.request, reads.moves, kinds.joins, kinds.absent
    p, batch, jumps = moves["partition"], destinations.batch, kinds.sought & ~absent
    node, asked_again, asked_before = reads.node[p], request[moves["fetch"]], request[np.maximum(moves["before"], 0)]
    requested, answered = (fetches.just_after(of, moves["fetch"]) for of in (request, fetches.response))
    comes, to = joins | absent, np.where(absent & ~kinds.sought, GO_ON, batch)
    since = np.where(joins, reads.partitions["since"][p], requested)
    return [
        group_changes(node[comes], since[comes], p[comes], to[comes]),
        group_changes(
            node[jumps], answered[jumps], p[jumps], batch[jumps],
            captured_batch=destinations.expected[jumps], until=asked_again[jumps], since=asked_before[jumps],
        ),
    ]  # fmt: skip


def partitions_given_up(reads: NodeReads, fetches: ReaderFetches, leaves_nothing_out: Bools) -> Ints:
    """The partitions that are no longer asked for when the capture ends, or until their next stay: int64[n].

    leaves_nothing_out: bool[nodes], as in `changes_of_nodes`.
    """
    last = reads.partitions["last_fetch"]
    silent = fetches.horizon[reads.node] - fetches.request[last]
    is_over = leaves_nothing_out[reads.node] | (silent > GIVEN_UP_US) | has_later_stay(reads.first_stay)
    return np.flatnonzero((last < fetches.last[last]) & is_over)


def silences(fetches: ReaderFetches, among: Sequence[Ints]) -> Ints:
    """The fetches that came GIVEN_UP_US or more after the response before them, in ascending order: int64[n].

    among: the fetches to look at, int64[m] indices each.
    """
    candidates = np.unique(np.concatenate(among))
    later = candidates[candidates > fetches.first[candidates]]
    return later[fetches.request[later] - fetches.response[later - 1] >= GIVEN_UP_US]
