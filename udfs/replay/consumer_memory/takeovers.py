"""What a consumer has buffered of a partition that is revoked, and when that is dropped.

A partition that another member of its group fetches next was revoked: no two members have a partition at the same time.
What is buffered of it is dropped when its turn comes in a poll (FetchCollector.collectFetch leaves out what is not
assigned), and all is buffered in the order in which it came (FetchBuffer). So it is gone once the consumer has drained
a response that it asked for after it had lost the partition, or, since it polls, fetches anything after the other did.
It lost the partition

- before it joined the other's generation: a coordinator answers all who join at the same time, so that their JoinGroup
  requests overlap; who joins has given up what it does not keep (ConsumerCoordinator.onJoinPrepare, KIP-429);
- before its last ConsumerGroupHeartbeat: a coordinator gives no partition away that its member has not acknowledged to
  be without (KIP-848);
- else, as one that was expelled, when the other fetches it, at the latest.

Where it goes on later where the response ended, it had taken all of it, whoever fetched meanwhile. That a session
forgets a partition tells nothing: a client forgets what it pauses, too (FetchSessionHandler), and keeps what it has of
that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schemas.wire.consumer_group_heartbeat import CONSUMER_GROUP_HEARTBEAT_REQUEST
from schemas.wire.join_group import JOIN_GROUP_REQUEST
from udfs.columns.arrays import Ints
from udfs.columns.time_units import NEVER
from udfs.replay.consumer_memory.draining import FETCH, UNKNOWN, Exchanges, Partitions
from udfs.replay.consumer_memory.state import NONE

JOIN_GROUP, CONSUMER_GROUP_HEARTBEAT = JOIN_GROUP_REQUEST.api_key, CONSUMER_GROUP_HEARTBEAT_REQUEST.api_key


class Takeovers(NamedTuple):
    """Rows of kind TAKEN_OVER, int64[rows] a column."""

    time: Ints
    joins: Ints  # when the other last joined the group by then, or UNKNOWN
    joined: Ints  # ... and was answered


def lost_by(takeovers: Takeovers, exchanges: Exchanges) -> Ints:
    """When each partition was lost, at the latest (us): int64[rows]. exchanges: the client's until then, or longer."""
    joins = np.flatnonzero((exchanges.api_key == JOIN_GROUP) & (exchanges.came != UNKNOWN))
    before = np.searchsorted(exchanges.asked[joins], takeovers.joined) - 1
    asked, came = (np.append(column[joins], UNKNOWN)[before] for column in (exchanges.asked, exchanges.came))
    same_generation = (takeovers.joined != UNKNOWN) & (before >= 0) & (came > takeovers.joins)
    beats = exchanges.asked[exchanges.api_key == CONSUMER_GROUP_HEARTBEAT]
    beat = np.append(beats, UNKNOWN)[np.searchsorted(beats, takeovers.time, side="right") - 1]
    return np.where(same_generation, asked, np.where(beat != UNKNOWN, beat, takeovers.time))


def only_taken_over(partitions: Partitions) -> Ints:
    """The partitions that were taken over and not fetched again."""
    return np.flatnonzero((partitions.holder != NONE) & (partitions.taken_over != UNKNOWN))


def first_from(time: Ints, event: Ints, since: Ints) -> Ints:
    """The first of the events at or after each time of `since`, NEVER for none. time: int64[events], rising, of what an
    event follows; event: when it is.
    """
    earliest = np.append(np.minimum.accumulate(event[::-1])[::-1], NEVER)
    return earliest[np.searchsorted(time, since)]


def after_takeovers(rows: Exchanges, partitions: Partitions) -> Exchanges:
    """The exchanges, with what was lost to other members drained when it was dropped at the latest; `undrained` where
    nothing tells that. rows: all of the client's, in the order of their requests.
    """
    left = only_taken_over(partitions)
    holder, columns = partitions.holder[left], ("undrained", "lost", "taken_over", "drained")
    undrained, lost, taken_over, drained = (getattr(rows, name).copy() for name in columns)
    np.subtract.at(undrained, holder, 1)
    np.maximum.at(lost, holder, partitions.lost[left])
    np.maximum.at(taken_over, holder, partitions.taken_over[left])
    which, is_fetch = np.flatnonzero(taken_over != UNKNOWN), rows.api_key == FETCH
    is_drained = is_fetch & (rows.drained != UNKNOWN) & (undrained == 0) & (taken_over == UNKNOWN)
    by_order = first_from(rows.asked[is_drained], rows.drained[is_drained], np.maximum(lost, rows.came)[which])
    asked = rows.asked[is_fetch]
    dropped = np.minimum(by_order, first_from(asked, asked, np.maximum(taken_over, rows.came)[which]))
    undrained[which] += dropped == NEVER
    drained[which] = np.where(dropped == NEVER, drained[which], np.maximum(drained[which], dropped))
    return rows._replace(undrained=undrained, lost=lost, taken_over=taken_over, drained=drained)
