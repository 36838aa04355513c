"""From one change on, what becomes of the changes under max.broker.partitions (KIP-578, a proposal), up to a refusal.

Which brokers a change gets depends on its draws and on the brokers that are full, not on the limit itself, but where
the limit keeps it from where Metadata shows it. So a pass takes over what the pass before left in a change's slots, if
the same brokers were full then and the change fills none. That is so nearly everywhere, and then only counting is left
to do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, read_only
from udfs.kernels.kernel import kernel
from udfs.replay.partition_limits.controller import apply_change, is_shown
from udfs.replay.partition_limits.state import MAX_BROKER_PARTITIONS, NO_LIMIT, Lane
from udfs.replay.partition_limits.topics import (
    AUTO,
    CREATE,
    GROW,
    Changes,
    Topics,
    add_chunk,
    copy_counts,
    count,
    remember,
    undo,
)

NONE_FAILS = -1
NOT_PLACED = -1


class Placed(NamedTuple):
    """Which brokers were full when the replicas in a change's slots were placed.

    full: int64[changes], the sum of the full brokers' keys; NOT_PLACED where the slots are not to be taken over. key:
    int64[brokers], such that two sets of brokers have the same sum by a chance of one in 2^62.
    """

    full: Ints
    key: Ints


def nothing_placed(changes: int, brokers: int) -> Placed:
    """No slots to take over."""
    keys = np.random.default_rng(578).integers(0, 1 << 62, brokers)
    return Placed(np.full(changes, NOT_PLACED), read_only(keys))


@kernel
def full_brokers(topics: Topics, placed: Placed, limit: int) -> int:
    """The sum of the keys of brokers without room."""
    full = 0
    for broker in range(len(topics.counts)):
        if topics.counts[broker] >= limit:
            full ^= placed.key[broker]
    return full


@kernel
def take_over(changes: Changes, topics: Topics, change: int, limit: int) -> bool:
    """Have the change make the partitions that are in its slots. Returns False, and does not, where a broker gets full:
    the replicas behind that would be elsewhere.
    """
    topic, first, size, width = changes.topic[change], topics.first[change], topics.size[change], topics.width[change]
    remember(changes, topics, change)
    add_chunk(changes, topics, change, first, size, width)
    at = changes.slot[change]
    for slot in range(at, at + size * width):
        if topics.counts[topics.slots[slot]] >= limit:
            count(topics, at, size * width, -1)
            undo(changes, topics, change)
            return False
    topics.there[topic], topics.factor[topic], topics.refused[topic] = first + size, width, 0
    return True


@kernel
def is_where_shown(changes: Changes, topics: Topics, change: int) -> bool:
    """Whether the partitions that the change has made are where Metadata shows them, if it does. Where a limit keeps
    them from there, a higher one may not, whichever brokers are full.
    """
    first, size, width = topics.first[change], topics.size[change], topics.width[change]
    if not is_shown(changes, change, first, size, width):
        return True
    shown, at = changes.shown_at[change] + first * width, changes.slot[change]
    same = True
    for i in range(size * width):
        same = same and topics.slots[at + i] == changes.assigned[shown + i]
    return same


@kernel
def can_be_taken_over(lane: Lane, change: int) -> bool:
    """Whether the change has just made partitions that count, where any limit puts them with the same brokers full."""
    changes, outcomes = lane.changes, lane.outcomes
    kind = changes.kind[change]
    makes = kind in (CREATE, AUTO, GROW) and changes.assigned_at[change] < 0
    counts = not changes.exempt[change] and not changes.validate_only[change]
    done = outcomes.error[change] == 0 and outcomes.reason[change] == NO_LIMIT
    return makes and counts and done and is_where_shown(changes, lane.topics, change)


@kernel
def first_refusal(lane: Lane, first: int, limit: int, refusable: Ints, held: Ints, placed: Placed) -> int:
    """The first change from `first` on that max.broker.partitions = limit refuses; the topics are left as they were.

    lane: its broker limits are overwritten. refusable: as `refusable_from` of limit_curve has it. held: int64[brokers],
    working memory.
    """
    changes, topics = lane.changes, lane.topics
    copy_counts(topics.counts, held)
    total, found, change = topics.total[0], NONE_FAILS, first
    full = full_brokers(topics, placed, limit)
    while change < len(changes.time) and found == NONE_FAILS and limit <= refusable[change]:
        if placed.full[change] != full or not take_over(changes, topics, change, limit):
            lane.limits.broker[change] = limit
            apply_change(lane, change)
            before, full = full, full_brokers(topics, placed, limit)
            is_same = full == before and can_be_taken_over(lane, change)
            placed.full[change] = full if is_same else NOT_PLACED
            if lane.outcomes.reason[change] == MAX_BROKER_PARTITIONS:
                found = change
        change += 1
    for done in range(change - 1, first - 1, -1):
        undo(changes, topics, done)
    copy_counts(held, topics.counts)
    topics.total[0] = total
    return found
