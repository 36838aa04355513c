"""What changes while a connection is captured: partitions that join, leave and come back, seeks, full fetches.

Told by the fetches alone, in every lane at the captured time:

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
  still.

A connection that is opened anew goes on as the one before (see `reconnects`). Partitions that go from one broker to
another go on there (see `moved_partitions`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Ints
from udfs.columns.time_units import NEVER

GIVEN_UP_US = 1_000_000
"""A partition that is not asked for in so long was given up, unless the client would never leave it out."""
REOPEN, STOP = -1, -2
"""What changes, where it is no partition."""
GO_ON, LEAVE = -1, -2
"""What it changes to, where that is no batch."""
UNCHECKED = -1
UNKNOWN = -3


class Moves(NamedTuple):
    """Reads of partitions that do not merely repeat the read before, int64[n] each.

    partition: its number. fetch: that of the fetch; before: of the partition's read before, below 0 for none.
    fetch_offset: where it reads. from_offset, returned: where the read before did, and the bytes it got.
    """

    partition: Ints
    fetch: Ints
    before: Ints
    fetch_offset: Ints
    from_offset: Ints
    returned: Ints


class Changes(NamedTuple):
    """In time order, int64[n] each, as Unit has them; `read_to`: the batch that the capture had read to then, where
    that can be compared, else UNCHECKED; `lost`: how often a seek could not be followed.
    """

    time: Ints
    what: Ints
    to: Ints
    until: Ints
    since: Ints
    read_to: Ints
    lost: int


class Placed(NamedTuple):
    """Moves in a unit, int64[n] each: partition, and the batches read from and expected, UNKNOWN where not known."""

    partition: Ints
    begin: Ints
    expected: Ints


class Times(NamedTuple):
    """Of a connection's fetches, int64[fetches] each; bool[fetches] of those that ask for a session, being full, and of
    those whose response is empty for a quota.
    """

    request: Ints
    response: Ints
    opens: Bools
    throttled: Bools


class Group(NamedTuple):
    """Changes of one kind, int64[n] each, as of Changes."""

    time: Ints
    what: Ints
    to: Ints
    until: Ints
    since: Ints
    read_to: Ints


def changes_of(
    times: Times, moves: Moves, placed: Placed, last: Sequence[int], since: Ints, away: Ints, names_all: bool
) -> Changes:  # fmt: skip
    """The changes of one connection.

    last: each partition's last fetch. since, away: int64[partitions], when it may join, and when it is asked for at
    another broker, or NEVER. names_all: the client leaves nothing out that it wants.
    """
    joins, lost = moves.before < 0, (moves.before >= 0) & (placed.begin == UNKNOWN)
    left = np.minimum(moves.before + 1, len(times.request) - 1)
    absent = ~joins & (moves.fetch - moves.before > 1)
    absent &= names_all | (times.request[moves.fetch] - times.request[left] > GIVEN_UP_US)
    sought = ~joins & ~lost & (placed.begin != placed.expected)
    p, jumps = placed.partition, sought & ~absent
    gone = given_up(times, np.asarray(last, np.int64), names_all)
    opened, again = np.flatnonzero(times.opens), times.request[moves.fetch]
    last_asked, had = times.request[np.asarray(last, np.int64)], times.request[np.maximum(moves.before, 0)]
    since_before = just_after(times.request, times, moves.fetch)
    answered = just_after(times.response, times, moves.fetch)
    stops = silences(times, np.concatenate([moves.fetch[absent | sought | joins], left[absent], gone[1], opened]))
    held, moved = np.flatnonzero(times.throttled[:-1]), np.flatnonzero(away != NEVER)
    groups = (
        # At one time: the reader's own, then what leaves, then what comes, in the order in which it was read.
        group(just_after(times.response, times, stops), STOP, times.request[stops]),
        group(just_after(times.response, times, held), STOP, times.request[held + 1]),
        group(just_after(times.response, times, opened), REOPEN, 0),
        group(times.request[left[absent]], p[absent], LEAVE, placed.expected[absent], again[absent], had[absent]),
        group(times.request[gone[1]], gone[0], LEAVE, until=NEVER, since=last_asked[gone[0]]),
        group(away[moved], moved, LEAVE),
        group(answered[lost], p[lost], LEAVE, until=again[lost], since=had[lost]),
        group(since[p[joins]], p[joins], placed.begin[joins]),
        group(since_before[absent], p[absent], np.where(sought, placed.begin, GO_ON)[absent]),
        group(answered[jumps], p[jumps], placed.begin[jumps], placed.expected[jumps], again[jumps], had[jumps]),
    )
    columns = [np.concatenate(parts) for parts in zip(*groups, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    time, what, to, until, since, read_to = (column[order] for column in columns)
    return Changes(time, what, to, until, since, read_to, int(lost.sum()))


def group(
    time: Ints, what: Ints | int, to: Ints | int, read_to: Ints | int = UNCHECKED, until: Ints | int | None = None,
    since: Ints | int = NEVER,
) -> Group:  # fmt: skip
    """Changes whose columns may be one value for all. until: by default their time."""
    columns = (what, to, time if until is None else until, since, read_to)
    return Group(time, *(c if isinstance(c, np.ndarray) else np.full(len(time), c) for c in columns))


def just_after(column: Ints, times: Times, fetches: Ints) -> Ints:
    """Just after the request or response before each of these fetches, and not after its own request."""
    return np.minimum(column[np.maximum(fetches, 1) - 1] + 1, times.request[fetches])


def given_up(times: Times, last: Ints, names_all: bool) -> tuple[Ints, Ints]:
    """The partitions that are not asked for any more when the capture ends, and the first fetch without each."""
    silent = max(int(times.response.max()), int(times.request[0])) - times.request[last]
    found: Ints = np.flatnonzero((last + 1 < len(times.request)) & (names_all | (silent > GIVEN_UP_US)))
    return found, last[found] + 1


def silences(times: Times, fetches: Ints) -> Ints:
    """Those of the fetches that came GIVEN_UP_US or more after the response before."""
    later = np.unique(fetches[fetches > 0])
    return later[times.request[later] - times.response[later - 1] >= GIVEN_UP_US]
