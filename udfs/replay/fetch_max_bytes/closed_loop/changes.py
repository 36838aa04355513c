"""What changes while a reader is captured: partitions that join, leave and come back, seeks, full fetches.

The fetches alone show it, and it happens in every lane at the captured time:

- a partition that is asked for the first time joins; it may have been wanted since just after the fetch before;
- one that is left out leaves with the first fetch that does not have it, and what is under way of it is dropped. It
  comes back like one that joins, and goes on from where the lane had read to, if that is where the capture went on.
  A Java client from 4.0 on leaves nothing out that it wants. Others do, while records are buffered or for a backoff:
  of them it takes GIVEN_UP_US;
- where a partition is read on from elsewhere than where the read before had ended, the reader has sought that, from
  the response before on, in every lane to the same batch: a consumer that starts over, or goes on from what another
  had committed. Where that batch is not known, it is left out from then on, and counted as `position_moved`;
- a full fetch in a session opens it anew, in the client's order (FetchSessionHandler: it was evicted, or the
  connection broke);
- where any of these follows on a silence of GIVEN_UP_US, such as a rebalance, the reader stands still as long;
- a response that is empty for a quota stands for nothing read (FetchContext.getThrottledResponse, Kafka 4.3): from
  the response before until the client asks again, having waited for throttle_time_ms (KIP-219), the reader stands
  still. Where a lane's quota is known (quota.py), that alone says when it waits.

A connection that is opened anew goes on as the one before (nodes.py). Partitions that go from one broker to another go
on there (handovers.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Ints, Records
from udfs.columns.records import joined, picked, records_of
from udfs.columns.time_units import NEVER
from udfs.replay.fetch_max_bytes.closed_loop.by_node import NodeReads
from udfs.replay.fetch_max_bytes.closed_loop.state import CHANGE, GO_ON, LEAVE, NONE, REOPEN, STOP, THROTTLED

GIVEN_UP_US = 1_000_000
"""A partition that is not asked for in so long was given up, unless the client would never leave it out."""
BATCH_UNKNOWN = -3
"""In place of the batch that a move leads to."""


class Fetches(NamedTuple):
    """A reader's fetches, int64[fetches] each, those of a node in the order of their times (us).

    node: of each. first, last: of its node. opens_session: bool[fetches]. is_throttled: bool[fetches], the response is
    empty for a quota. horizon: int64[nodes], the capture's end.
    """

    request: Ints
    response: Ints
    node: Ints
    first: Ints
    last: Ints
    opens_session: Bools
    is_throttled: Bools
    horizon: Ints

    def just_after(self, times: Ints, fetches: Ints) -> Ints:
        """Just after the time of the fetch before each of these, which is `request` or `response`, and not after its
        own request.
        """
        before = np.maximum(fetches - 1, self.first[fetches])
        return np.minimum(times[before] + 1, self.request[fetches])


class Destinations(NamedTuple):
    """Where moves lead to, int64[moves] each: the batch read from, or BATCH_UNKNOWN, and the one expected."""

    batch: Ints
    expected: Ints


class Changes(NamedTuple):
    """CHANGE[n], those of a node together and in the order of their times; node: int64[n].

    lost: int64[nodes], how often a seek could not be followed. stopped: fetches before which the reader stood still.
    """

    changes: Records
    node: Ints
    lost: Ints
    stopped: Ints


class Group(NamedTuple):
    """Changes of one kind: CHANGE[n], and the node of each."""

    node: Ints
    changes: Records


def group(node: Ints, time: Ints, partition: Ints | int, to: Ints | int, **others: Ints | int) -> Group:
    """Changes of one kind; what was buffered is gone at their time, where nothing else is given."""
    columns: dict[str, Ints | int] = {"until": time, "since": NEVER, "captured_batch": NONE}
    return Group(node, records_of(CHANGE, len(time), time=time, partition=partition, to=to, **{**columns, **others}))


def changes_of(
    reads: NodeReads, fetches: Fetches, destinations: Destinations, left_at: Ints, leaves_nothing_out: Bools
) -> Changes:
    """The changes of all nodes.

    left_at: int64[partitions], when each is asked for at another broker (us), or NEVER. leaves_nothing_out:
    bool[nodes], the client leaves nothing out that it wants.
    """
    moves, request, response = reads.moves, fetches.request, fetches.response
    p, fetch, (batch, expected) = moves["partition"], moves["fetch"], destinations
    node, joins = reads.node[p], moves["before"] < 0
    before = np.maximum(moves["before"], 0)
    lost = ~joins & (batch == BATCH_UNKNOWN)
    left = np.minimum(before + 1, fetches.last[fetch])
    absent = ~joins & (fetch - before > 1)
    absent &= leaves_nothing_out[node] | (request[fetch] - request[left] > GIVEN_UP_US)
    sought = ~joins & ~lost & (batch != expected)
    jumps = sought & ~absent
    gone = given_up(reads, fetches, leaves_nothing_out)
    without = reads.partitions["last_fetch"][gone] + 1
    opened = np.flatnonzero(fetches.opens_session)
    stops = silences(fetches, [fetch[absent | sought | joins], left[absent], without, opened])
    throttled = np.flatnonzero(fetches.is_throttled & (fetches.last != np.arange(len(request))))
    moved = np.flatnonzero(left_at != NEVER)
    again, had = request[fetch], request[before]
    requested, answered = (fetches.just_after(times, fetch) for times in (request, response))
    last_request = request[reads.partitions["last_fetch"][gone]]
    groups = [
        # At one time: the reader's own, then what leaves, then what comes, in the order in which it was read.
        group(fetches.node[stops], fetches.just_after(response, stops), STOP, request[stops]),
        group(fetches.node[throttled], fetches.just_after(response, throttled), THROTTLED, request[throttled + 1]),
        group(fetches.node[opened], fetches.just_after(response, opened), REOPEN, 0),
        group(
            node[absent], request[left[absent]], p[absent], LEAVE,
            captured_batch=expected[absent], until=again[absent], since=had[absent],
        ),
        group(reads.node[gone], request[without], gone, LEAVE, until=NEVER, since=last_request),
        group(reads.node[moved], left_at[moved], moved, LEAVE),
        group(node[lost], answered[lost], p[lost], LEAVE, until=again[lost], since=had[lost]),
        group(node[joins], reads.partitions["since"][p[joins]], p[joins], batch[joins]),
        group(node[absent], requested[absent], p[absent], np.where(sought, batch, GO_ON)[absent]),
        group(
            node[jumps], answered[jumps], p[jumps], batch[jumps],
            captured_batch=expected[jumps], until=again[jumps], since=had[jumps],
        ),
    ]  # fmt: skip
    at_node, changes = np.concatenate([of.node for of in groups]), joined(CHANGE, [of.changes for of in groups])
    order = np.lexsort((changes["time"], at_node))
    return Changes(
        changes=picked(changes, order),
        node=at_node[order],
        lost=np.bincount(node[lost], minlength=len(leaves_nothing_out)),
        stopped=np.append(stops, throttled + 1),
    )


def given_up(reads: NodeReads, fetches: Fetches, leaves_nothing_out: Bools) -> Ints:
    """The partitions that are not asked for any more when the capture ends."""
    last = reads.partitions["last_fetch"]
    silent = fetches.horizon[reads.node] - fetches.request[last]
    return np.flatnonzero((last < fetches.last[last]) & (leaves_nothing_out[reads.node] | (silent > GIVEN_UP_US)))


def silences(fetches: Fetches, among: Sequence[Ints]) -> Ints:
    """Those of the fetches that came GIVEN_UP_US or more after the response before."""
    lengths = np.unique(np.concatenate(among))
    later = lengths[lengths > fetches.first[lengths]]
    return later[fetches.request[later] - fetches.response[later - 1] >= GIVEN_UP_US]
