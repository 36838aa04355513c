"""The buffered records of a partition that is revoked from a consumer, and when they are dropped.

A partition that another member of its group fetches next was revoked: no two members have a partition at the same time.
Its buffered records are dropped when their turn comes in a poll (FetchCollector.collectFetch leaves out partitions that
are not assigned). Records are buffered in the order in which they came (FetchBuffer). So they are gone once the
consumer has drained a response that it requested after it had lost the partition. They are also gone once the consumer
fetches anything after the other member did, because it then polls. The consumer lost the partition

- before it joined the same generation as the other member. A coordinator answers all members that join at the same
  time, so their JoinGroup requests overlap, and a member that joins has given up the partitions that it does not keep
  (ConsumerCoordinator.onJoinPrepare, KIP-429);
- before its last ConsumerGroupHeartbeat. A coordinator gives no partition away before its member has acknowledged that
  it no longer has it (KIP-848);
- otherwise, as a member that was expelled, at the latest when the other member fetches the partition.

If the consumer later fetches on from where the response ended, it had taken all of the response, whoever fetched
meanwhile. A session that forgets a partition shows nothing: a client also forgets a partition that it pauses
(FetchSessionHandler), and keeps its buffered records.
"""

from __future__ import annotations

import numpy as np

from schemas.wire.consumer_group_heartbeat import CONSUMER_GROUP_HEARTBEAT_REQUEST
from schemas.wire.fetch import FETCH_REQUEST
from schemas.wire.join_group import JOIN_GROUP_REQUEST
from udfs.columns.arrays import Ints, Records
from udfs.columns.picking import pick_values
from udfs.columns.records import pick_fields
from udfs.columns.searches import earliest_from, place_of_last_before
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS, NEVER

FETCH, JOIN_GROUP = FETCH_REQUEST.api_key, JOIN_GROUP_REQUEST.api_key
CONSUMER_GROUP_HEARTBEAT = CONSUMER_GROUP_HEARTBEAT_REQUEST.api_key


def when_lost(takeovers: Records, exchanges: Records) -> Ints:
    """The latest time at which each partition that is taken over was lost (us): int64[n].

    takeovers: TAKEOVER[n]. exchanges: EXCHANGE[m], those of the same clients, at least until the takeovers.
    """
    unit, joined_at = takeovers["unit"], takeovers["joined_at"]
    joins = exchanges[(exchanges["api_key"] == JOIN_GROUP) & (exchanges["complete_at"] != NEVER)]
    join = place_of_last_before(joins["unit"], joins["requested_at"], unit, joined_at)
    overlaps = (join != NONE) & (pick_values(joins["complete_at"], join, ALWAYS) > takeovers["joins_at"])
    beats = exchanges[exchanges["api_key"] == CONSUMER_GROUP_HEARTBEAT]
    beat = place_of_last_before(beats["unit"], beats["requested_at"], unit, takeovers["taken_over_at"] + 1)
    without_join = np.where(beat == NONE, takeovers["taken_over_at"], pick_values(beats["requested_at"], beat, NEVER))
    return np.where(overlaps & (joined_at != NEVER), pick_values(joins["requested_at"], join, NEVER), without_join)


def first_request(exchanges: Records, api_key: int, unit: Ints, since: Ints) -> Ints:
    """When each unit first sends a request of this API at or after a time (us), NEVER if it does not: int64[n].

    exchanges: EXCHANGE[m], those of a unit in the order of their requests. unit, since: int64[n].
    """
    units, requested_at = pick_fields(exchanges, exchanges["api_key"] == api_key, "unit", "requested_at")
    return earliest_from(units, requested_at, requested_at, unit, since)


def partitions_taken_over(partitions: Records) -> Records:
    """The partitions that were taken over and not fetched again. partitions: DRAINED_PARTITION[n]."""
    return partitions[(partitions["holder"] != NONE) & (partitions["taken_over_at"] != NEVER)]


def first_drained(exchanges: Records, unit: Ints, since: Ints) -> Ints:
    """When each unit has drained a response that it requested at or after a time (us), NEVER if it has not: int64[n].

    Responses of which the unit lost a part to others do not count. exchanges: EXCHANGE[m], those of a unit in the order
    of their requests. unit, since: int64[n], units and times (us).
    """
    is_drained = (exchanges["api_key"] == FETCH) & (exchanges["drained_at"] != ALWAYS)
    is_drained &= (exchanges["undrained"] == 0) & (exchanges["taken_over_at"] == ALWAYS)
    units, requested_at, drained_at = pick_fields(exchanges, is_drained, "unit", "requested_at", "drained_at")
    return earliest_from(units, requested_at, drained_at, unit, since)


def drop_lost(exchanges: Records, partitions: Records) -> None:
    """Count records that were lost to other members of the group as drained at the latest time at which they were
    dropped. Records stay `undrained` if nothing shows that they were dropped.

    exchanges: EXCHANGE[n], all exchanges of the clients in the order of their requests, written in place. partitions:
    DRAINED_PARTITION[m].
    """
    lost = partitions_taken_over(partitions)
    np.subtract.at(exchanges["undrained"], lost["holder"], 1)
    np.maximum.at(exchanges["lost_at"], lost["holder"], lost["lost_at"])
    np.maximum.at(exchanges["taken_over_at"], lost["holder"], lost["taken_over_at"])
    place = np.flatnonzero(exchanges["taken_over_at"] != ALWAYS)
    if not len(place):
        return
    holders = exchanges[place]
    unit, complete_at, drained_at = holders["unit"], holders["complete_at"], holders["drained_at"]
    in_turn = first_drained(exchanges, unit, np.maximum(holders["lost_at"], complete_at))
    fetched_at = first_request(exchanges, FETCH, unit, np.maximum(holders["taken_over_at"], complete_at))
    dropped_at = np.minimum(in_turn, fetched_at)
    exchanges["undrained"][place] += dropped_at == NEVER
    exchanges["drained_at"][place] = np.where(dropped_at == NEVER, drained_at, np.maximum(drained_at, dropped_at))
