"""The buffered records of a partition that a consumer gives up for good, and when they are dropped.

- A client that closes a fetch session closes its consumer (AbstractFetch.maybeCloseFetchSessions). That drops all of
  its records (FetchBuffer.close).
- A consumer that leaves its group has unsubscribed, which drops all records (ClassicKafkaConsumer.unsubscribe), or is
  closed, or did not poll in time. In the last case it has lost all records when it fetches again
  (ConsumerCoordinator.onJoinPrepare).
- A consumer that has a new assignment (SyncGroup) and no longer fetches a partition has lost the partition. It drops
  the buffered records when their turn comes (FetchCollector.fetchRecords): records are buffered in the order in which
  they came.

These are rules of kafka-clients 4.3. A fetch without the partition shows nothing: the partition may be paused, and then
its buffered records stay (FetchCollector.collectFetch). A partition that is paused for good while its group rebalances
counts as lost. A consumer that leaves its group and fetches no more counts as closed.
"""

from __future__ import annotations

import numpy as np

from schemas.wire.apis import API_KEYS
from udfs.columns.arrays import Ints, Records
from udfs.columns.groups import group_numbers
from udfs.columns.picking import pick_values
from udfs.columns.records import int_fields, pick_fields
from udfs.columns.searches import earliest_from, place_of_first
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.replay.consumer_memory.takeovers import FETCH, first_drained, first_request

LEAVE_GROUP, SYNC_GROUP = API_KEYS["LEAVE_GROUP"], API_KEYS["SYNC_GROUP"]

GIVEN_UP = int_fields(
    "unit",
    "fetch_number",  # which of the fetch limits
    "response",  # its number among the unit's responses under these limits
    "partition_key",
    "last_requested_at",  # us: when the captured client last requests the partition before it gives it up
    "requested_again_at",  # us: when the captured client requests it again; NEVER: it does not
    "turn_at",  # us: when the application begins with the records, and drops them if the partition is lost
)
"""Records of a partition in a response of the closed loop that the client gives up, or seeks away from, before it takes
them."""


def partitions_not_taken(partitions: Records) -> Records:
    """The partitions that were neither fetched again nor taken over. partitions: DRAINED_PARTITION[n]."""
    return partitions[(partitions["holder"] != NONE) & (partitions["taken_over_at"] == NEVER)]


def when_dropped(exchanges: Records, holder: Ints) -> Ints:
    """The latest time at which the records of partitions that were not taken were dropped (us), int64[n]; NEVER if
    nothing shows that they were. Records lost in a rebalance are dropped once a response is drained that was requested
    after it.

    exchanges: EXCHANGE[m], all exchanges of the clients in the order of their requests. holder: int64[n], for each of
    `partitions_not_taken` the exchange whose response has its records.
    """
    names = ("unit", "connection", "requested_at", "complete_at")
    unit, connection, requested_at, complete_at = pick_fields(exchanges, holder, *names)
    gone = gone_with_client(unit, connection, requested_at, exchanges)
    lost = np.maximum(assigned_anew(unit, requested_at, exchanges), complete_at)
    dropped_at = np.minimum(gone, first_drained(exchanges, unit, lost))
    return np.where(dropped_at == NEVER, NEVER, np.maximum(dropped_at, complete_at))


def drop_given_up(exchanges: Records, holder: Ints, dropped_at: Ints) -> None:
    """Count records that were given up as drained when they were dropped.

    exchanges: EXCHANGE[m], written in place. holder, dropped_at: int64[n], argument and result of `when_dropped`.
    """
    is_known = dropped_at != NEVER
    np.subtract.at(exchanges["undrained"], holder[is_known], 1)
    np.maximum.at(exchanges["drained_at"], holder[is_known], dropped_at[is_known])


def gone_with_client(unit: Ints, connection: Ints, since: Ints, exchanges: Records) -> Ints:
    """When the client of each of these connections closes or leaves its group at or after a time (us), so that its
    records are gone; NEVER if it does not: int64[n].

    unit, connection, since: int64[n]. exchanges: EXCHANGE[m], all exchanges of the clients in the order of their
    requests.
    """
    closes = exchanges[exchanges["closes_session"] == 1]
    numbers, firsts = group_numbers(np.append(closes["unit"], unit), np.append(closes["connection"], connection))
    closed, wanted = np.split(numbers, [len(closes)])
    last_closed_at = np.full(len(firsts), ALWAYS)
    np.maximum.at(last_closed_at, closed, closes["requested_at"])
    closed_at = np.where(last_closed_at[wanted] >= since, last_closed_at[wanted], NEVER)
    left_at = first_request(exchanges, LEAVE_GROUP, unit, since)
    fetched_at = first_request(exchanges, FETCH, unit, left_at)
    return np.minimum(closed_at, np.where(fetched_at == NEVER, left_at, fetched_at))


def assigned_anew(unit: Ints, since: Ints, exchanges: Records) -> Ints:
    """When each client got its next assignment that it requested from its group at or after a time (us), NEVER if it
    got none: int64[n].

    unit, since: int64[n], clients and times (us). exchanges: EXCHANGE[m].
    """
    syncs = exchanges[(exchanges["api_key"] == SYNC_GROUP) & (exchanges["complete_at"] != NEVER)]
    return earliest_from(syncs["unit"], syncs["requested_at"], syncs["complete_at"], unit, since)


def next_takeover(given_up: Records, takeovers: Records) -> Ints:
    """The index of the first takeover of each partition at or after it was given up, NONE if there is none: int64[n].

    given_up: GIVEN_UP[n]. takeovers: TAKEOVER[m], each unit's in time order.
    """
    numbers, _ = group_numbers(*(np.append(takeovers[name], given_up[name]) for name in ("unit", "partition_key")))
    known, wanted = np.split(numbers, [len(takeovers)])
    order = np.argsort(known, kind="stable")
    place = place_of_first(known[order], takeovers["taken_over_at"][order], wanted, given_up["last_requested_at"])
    return pick_values(order, place, NONE)


def when_gone(given_up: Records, connection: Ints, takeovers: Records, exchanges: Records) -> Ints:
    """When records that are given up in closed loop are gone (us), int64[n]: in their turn, once the capture shows that
    the client has lost the partition and polls, or when the partition is requested again; NEVER if nothing shows it.

    In every lane, a client loses partitions and leaves its group at the captured times.

    given_up: GIVEN_UP[n]. connection: int64[n], on which the records came. takeovers: TAKEOVER[m]. exchanges:
    EXCHANGE[k], all exchanges of the clients in the order of their requests.
    """
    unit, since, again_at = (given_up[name] for name in ("unit", "last_requested_at", "requested_again_at"))
    takeover = next_takeover(given_up, takeovers)
    taken_over_at, lost_at = (pick_values(takeovers[name], takeover, NEVER) for name in ("taken_over_at", "lost_at"))
    is_for_good = again_at == NEVER
    lost_at = np.where(taken_over_at < again_at, lost_at, NEVER)
    lost_at = np.where(is_for_good, np.minimum(lost_at, assigned_anew(unit, since, exchanges)), lost_at)
    in_turn = np.maximum(first_request(exchanges, FETCH, unit, lost_at), given_up["turn_at"])
    gone_at = np.where(is_for_good, gone_with_client(unit, connection, since, exchanges), NEVER)
    return np.minimum(np.minimum(in_turn, gone_at), again_at)
