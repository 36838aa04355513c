"""What a consumer has buffered of a partition that it gives up for good, and when that is dropped.

- Who closes a fetch session closes its consumer (AbstractFetch.maybeCloseFetchSessions), which drops all that it has
  (FetchBuffer.close).
- Who leaves its group has unsubscribed, which drops all (ClassicKafkaConsumer.unsubscribe), or is closed, or did not
  poll in time: then it has lost all when it fetches again (ConsumerCoordinator.onJoinPrepare).
- Who has a new assignment (SyncGroup) and fetches a partition no more, has lost it, and drops what is buffered in its
  turn (FetchCollector.fetchRecords), all being buffered in the order in which it came.

All of kafka-clients 4.3. A fetch without the partition shows nothing: it may be paused, and then what is buffered stays
(FetchCollector.collectFetch). One that is paused for good while its group rebalances is taken for lost, and a consumer
that leaves its group and fetches no more for closed.
"""

from __future__ import annotations

import numpy as np

from schemas.wire.apis import API_KEYS
from udfs.columns.arrays import Ints, Records
from udfs.columns.groups import group_numbers
from udfs.columns.picking import pick
from udfs.columns.records import fields, int_fields
from udfs.columns.searches import first_at, first_from
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.replay.consumer_memory.state import NONE
from udfs.replay.consumer_memory.takeovers import FETCH, first_drained, first_request

LEAVE_GROUP, SYNC_GROUP = API_KEYS["LEAVE_GROUP"], API_KEYS["SYNC_GROUP"]
FINAL_EPOCH = -1
"""The epoch of a fetch that closes its session (FetchMetadata)."""

GIVEN_UP = int_fields(
    "unit",
    "fetch_number",  # which of the fetch limits
    "response",  # its number among those of the unit under these limits
    "partition_key",
    "since",  # us: the capture last asked for the partition before it gave it up
    "until",  # us: the capture asks for it again; NEVER: it does not
    "turn_at",  # us: the application comes to what it got of it, to drop it if it has lost the partition
)
"""What came of a partition in closed loop and is given up, or sought elsewhere, before it is taken."""


def not_taken(partitions: Records) -> Records:
    """Those of PARTITION[n] that were neither fetched again nor taken over."""
    return partitions[(partitions["holder"] != NONE) & (partitions["taken_over_at"] == NEVER)]


def when_dropped(exchanges: Records, holder: Ints) -> Ints:
    """When what is buffered of partitions that were `not_taken` was dropped, at the latest (us); NEVER where nothing
    shows that it was: int64[n]. What was lost in a rebalance is dropped once a response is drained that was asked for
    after it.

    exchanges: EXCHANGE, all of the clients' in the order of their requests. holder: int64[n], which of them brought it.
    """
    names = ("unit", "connection", "requested_at", "complete_at")
    unit, connection, requested_at, complete_at = fields(exchanges, holder, *names)
    gone = gone_with_client(unit, connection, requested_at, exchanges)
    lost = np.maximum(assigned_anew(unit, requested_at, exchanges), complete_at)
    dropped_at = np.minimum(gone, first_drained(exchanges, unit, lost))
    return np.where(dropped_at == NEVER, NEVER, np.maximum(dropped_at, complete_at))


def drop_given_up(exchanges: Records, holder: Ints, dropped_at: Ints) -> None:
    """Have what was given up be drained when it was dropped. Arguments as of `when_dropped`, whose result dropped_at
    is; the exchanges are rewritten.
    """
    is_known = dropped_at != NEVER
    np.subtract.at(exchanges["undrained"], holder[is_known], 1)
    np.maximum.at(exchanges["drained_at"], holder[is_known], dropped_at[is_known])


def gone_with_client(unit: Ints, connection: Ints, since: Ints, exchanges: Records) -> Ints:
    """When what came on these connections is gone with its client, at or after a time (us); NEVER where it stays:
    int64[n].

    unit, connection, since: int64[n]. exchanges: EXCHANGE, all of the clients' in the order of their requests.
    """
    closes = exchanges[exchanges["closes_session"] == 1]
    known = len(closes)
    numbers, firsts = group_numbers(
        np.append(closes["unit"], unit), np.append(closes["connection"], connection)
    )  # of connections
    closed_at = np.full(len(firsts), ALWAYS)
    np.maximum.at(closed_at, numbers[:known], closes["requested_at"])
    closed = np.where(closed_at[numbers[known:]] >= since, closed_at[numbers[known:]], NEVER)
    left = first_request(exchanges, LEAVE_GROUP, unit, since)
    fetched = first_request(exchanges, FETCH, unit, left)
    return np.minimum(closed, np.where(fetched == NEVER, left, fetched))


def assigned_anew(unit: Ints, since: Ints, exchanges: Records) -> Ints:
    """When each client got its next assignment from its group that it asked for at or after a time (us), NEVER for
    none: int64[n].
    """
    syncs = exchanges[(exchanges["api_key"] == SYNC_GROUP) & (exchanges["complete_at"] != NEVER)]
    return first_from(syncs["unit"], syncs["requested_at"], syncs["complete_at"], unit, since)


def next_takeover(given_up: Records, takeovers: Records) -> Ints:
    """The first takeover of each partition at or after it was given up: its place among the takeovers, NONE for none.

    given_up: GIVEN_UP[n]. takeovers: TAKEOVER, each unit's in the order of time.
    """
    known = len(takeovers)
    numbers, _ = group_numbers(*(np.append(takeovers[name], given_up[name]) for name in ("unit", "partition_key")))
    order = np.argsort(numbers[:known], kind="stable")
    place = first_at(
        numbers[:known][order], takeovers["taken_over_at"][order], numbers[known:], given_up["since"]
    )  # fmt: skip
    return pick(order, place, NONE)


def when_gone(given_up: Records, connection: Ints, takeovers: Records, exchanges: Records) -> Ints:
    """When what is given up in closed loop is gone (us): in its turn, once the capture shows that the client has lost
    it and polls, or when it is asked for again; NEVER where nothing shows it. int64[n].

    What a client lost, and when it left, it did in every lane when it did in the capture.

    given_up: GIVEN_UP[n]. connection: int64[n], on which it came. takeovers: TAKEOVER. exchanges: EXCHANGE, all of the
    clients' in the order of their requests.
    """
    unit, since, until = given_up["unit"], given_up["since"], given_up["until"]
    takeover = next_takeover(given_up, takeovers)
    taken_over_at, lost_at = (pick(takeovers[name], takeover, NEVER) for name in ("taken_over_at", "lost_at"))
    is_for_good = until == NEVER
    lost = np.where(taken_over_at < until, lost_at, NEVER)
    lost = np.where(is_for_good, np.minimum(lost, assigned_anew(unit, since, exchanges)), lost)
    in_turn = np.maximum(first_request(exchanges, FETCH, unit, lost), given_up["turn_at"])
    gone = np.where(is_for_good, gone_with_client(unit, connection, since, exchanges), NEVER)
    return np.minimum(np.minimum(in_turn, gone), until)
