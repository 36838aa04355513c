"""What a consumer has buffered of a partition that it gives up for good, and when that is dropped.

- Who closes a fetch session closes its consumer (AbstractFetch.maybeCloseFetchSessions), which drops all that it has
  (FetchBuffer.close).
- Who leaves its group has unsubscribed, which drops all (ClassicKafkaConsumer.unsubscribe), or is closed, or did not
  poll in time: then it has lost all when it fetches again (ConsumerCoordinator.onJoinPrepare).
- Who has a new assignment (SyncGroup) and fetches a partition no more, has lost it, and drops what is buffered in its
  turn (FetchCollector.fetchRecords), all being buffered in the order in which it came.

All of kafka-clients 4.3. A fetch without the partition tells nothing of itself: it may be paused, and then what is
buffered stays (FetchCollector.collectFetch). One that is paused for good while its group rebalances is taken for lost,
and a consumer that leaves its group and fetches no more for closed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schemas.wire.apis import API_KEYS
from udfs.columns.arrays import Ints
from udfs.columns.time_units import NEVER
from udfs.replay.consumer_memory.draining import FETCH, UNKNOWN, Exchanges, Partitions
from udfs.replay.consumer_memory.state import NONE
from udfs.replay.consumer_memory.takeovers import first_from

LEAVE_GROUP, SYNC_GROUP = API_KEYS["LEAVE_GROUP"], API_KEYS["SYNC_GROUP"]
FINAL_EPOCH = -1
"""The epoch of a fetch that closes its session (FetchMetadata)."""


class TakenOver(NamedTuple):
    """Partitions by number, when another member of the group fetched each, and when it was lost: int64[n] each (us)."""

    partition: Ints
    time: Ints
    lost: Ints


class GivenUp(NamedTuple):
    """What came of partitions in closed loop and is given up before it is taken, int64[n] each.

    response: its number. partition: its number, NONE for one that the capture never had. connection: of the response,
    and when that came. since, until, turn: as of udfs.replay.fetch_max_bytes.closed_responses.GivenUp.
    """

    response: Ints
    partition: Ints
    connection: Ints
    came: Ints
    since: Ints
    until: Ints
    turn: Ints


def first_after(times: Ints, since: Ints) -> Ints:
    """The first of the times, which rise, at or after each of `since`; NEVER for none."""
    return first_from(times, times, since)


def gone_with_client(connection: Ints, asked: Ints, rows: Exchanges) -> Ints:
    """When what came on these connections is gone with the client, after each was asked for; NEVER where it stays.

    rows: all of the client's exchanges, in the order of their requests.
    """
    closes = np.flatnonzero(rows.closes == 1)[::-1]
    closed, last = np.unique(rows.connection[closes], return_index=True)
    place = np.minimum(np.searchsorted(closed, connection), max(len(closed) - 1, 0))
    at = np.append(rows.asked[closes][last], NEVER)[np.where(np.isin(connection, closed), place, -1)]
    close = np.where(at >= asked, at, NEVER)
    leave = first_after(rows.asked[rows.api_key == LEAVE_GROUP], asked)
    fetched = first_after(rows.asked[rows.api_key == FETCH], leave)
    return np.minimum(close, np.where(fetched == NEVER, leave, fetched))


def assigned_anew(asked: Ints, rows: Exchanges) -> Ints:
    """When the client got its next assignment from its group after each of these fetches; NEVER for none."""
    syncs = (rows.api_key == SYNC_GROUP) & (rows.came != UNKNOWN)
    return first_from(rows.asked[syncs], rows.came[syncs], asked)


def not_taken(partitions: Partitions) -> Ints:
    """The partitions that were neither fetched again nor taken over."""
    return np.flatnonzero((partitions.holder != NONE) & (partitions.taken_over == UNKNOWN))


def when_dropped(rows: Exchanges, partitions: Partitions) -> Ints:
    """When what is buffered of each of these (`not_taken`) was dropped at the latest; NEVER where nothing tells that.

    rows: all of the client's exchanges, in the order of their requests. What was lost in a rebalance is dropped once a
    response is drained that was asked for after it.
    """
    holder = partitions.holder[not_taken(partitions)]
    asked, came = rows.asked[holder], rows.came[holder]
    gone = gone_with_client(rows.connection[holder], asked, rows)
    is_drained = (rows.api_key == FETCH) & (rows.drained != UNKNOWN) & (rows.undrained == 0)
    is_drained &= rows.taken_over == UNKNOWN
    lost = np.maximum(assigned_anew(asked, rows), came)
    by_order = first_from(rows.asked[is_drained], rows.drained[is_drained], lost)
    return np.where(np.minimum(gone, by_order) == NEVER, NEVER, np.maximum(np.minimum(gone, by_order), came))


def after_giving_up(rows: Exchanges, partitions: Partitions, dropped: Ints) -> Exchanges:
    """The exchanges, with what was given up drained when it was dropped. dropped: as `when_dropped` has it."""
    is_known = dropped != NEVER
    holder, undrained, drained = partitions.holder[not_taken(partitions)], rows.undrained.copy(), rows.drained.copy()
    np.subtract.at(undrained, holder[is_known], 1)
    np.maximum.at(drained, holder[is_known], dropped[is_known])
    return rows._replace(undrained=undrained, drained=drained)


def next_takeover(partition: Ints, since: Ints, takeovers: TakenOver) -> Ints:
    """The first takeover of each partition after a time: its place among `takeovers`, NONE for none."""
    parts, times = np.append(partition, takeovers.partition), np.append(since, takeovers.time)
    is_query = np.arange(len(parts)) < len(partition)
    order = np.lexsort((~is_query, times, parts))
    behind = np.where(is_query[order], len(order), np.arange(len(order)))
    following = np.minimum.accumulate(behind[::-1])[::-1]
    found = np.full(len(order), NONE)
    found[order] = np.append(order, NONE)[following] - len(partition)
    at = np.maximum(found[: len(partition)], NONE)
    same = (at != NONE) & (np.append(takeovers.partition, NONE)[at] == partition)
    return np.where(same, at, NONE)


def when_gone(given: GivenUp, takeovers: TakenOver, rows: Exchanges) -> Ints:
    """When what is given up in closed loop is gone: in its turn, once the capture shows that the client has lost it and
    polls, or when it is asked for again; NEVER where nothing tells.

    rows: all of the client's exchanges, in the order of their requests: what it lost, and when it left, it did in every
    lane when it did in the capture.
    """
    by = next_takeover(given.partition, given.since, takeovers)
    taken_over = np.append(takeovers.time, NEVER)[by]
    lost = np.where(taken_over < given.until, np.append(takeovers.lost, NEVER)[by], NEVER)
    for_good = given.until == NEVER
    lost = np.where(for_good, np.minimum(lost, assigned_anew(given.since, rows)), lost)
    in_turn = np.maximum(first_after(rows.asked[rows.api_key == FETCH], lost), given.turn)
    gone = np.where(for_good, gone_with_client(given.connection, given.since, rows), NEVER)
    return np.maximum(np.minimum(np.minimum(in_turn, gone), given.until), given.came)
