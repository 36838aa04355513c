"""From one change on, what becomes of the changes under max.broker.partitions (KIP-578, a proposal), up to a refusal.

Which brokers a change gets depends on its draws and on the brokers that are full, not on the limit itself. So a pass
takes over what the pass before left in a change's slots, if the same brokers were full then and the change fills none.
That is so nearly everywhere, and then only counting is left to do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.replay.limits.brokers import Brokers
from udfs.replay.limits.limit_lane import MAX_BROKER_PARTITIONS, NO_LIMIT, Limits, Outcomes, Workspace
from udfs.replay.limits.partition_limits import apply_change
from udfs.replay.limits.topic_state import (
    AUTO,
    CREATE,
    GROW,
    Changes,
    Topics,
    add_chunk,
    count,
    remember,
    undo,
)
from udfs.wire.arrays import Ints, read_only
from udfs.wire.kernel import kernel

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
def is_placed_by_kafka(changes: Changes, outcomes: Outcomes, change: int) -> bool:
    """Whether the change has just made partitions that count, where Kafka put them."""
    kind = changes.kind[change]
    makes = kind in (CREATE, AUTO, GROW) and changes.assigned_at[change] < 0
    counts = not changes.exempt[change] and not changes.validate_only[change]
    found: bool = makes and counts and outcomes.error[change] == 0 and outcomes.reason[change] == NO_LIMIT
    return found


@kernel
def first_refusal(
    changes: Changes, topics: Topics, brokers: Brokers, limits: Limits, work: Workspace, outcomes: Outcomes,
    first: int, limit: int, refusable: Ints, held: Ints, placed: Placed,
) -> int:  # fmt: skip
    """The first change from `first` on that max.broker.partitions = limit refuses; the state is left as it was.

    refusable: as `refusable_from` of limit_curve has it. held: int64[brokers], working memory.
    """
    for broker in range(len(held)):
        held[broker] = topics.counts[broker]
    total, found, change = topics.total[0], NONE_FAILS, first
    full = full_brokers(topics, placed, limit)
    while change < len(changes.time) and found == NONE_FAILS and limit <= refusable[change]:
        if placed.full[change] != full or not take_over(changes, topics, change, limit):
            limits.broker[change] = limit
            apply_change(changes, topics, brokers, limits, work, outcomes, change)
            before, full = full, full_brokers(topics, placed, limit)
            is_same = full == before and is_placed_by_kafka(changes, outcomes, change)
            placed.full[change] = full if is_same else NOT_PLACED
            if outcomes.reason[change] == MAX_BROKER_PARTITIONS:
                found = change
        change += 1
    for done in range(change - 1, first - 1, -1):
        undo(changes, topics, done)
    for broker in range(len(held)):
        topics.counts[broker] = held[broker]
    topics.total[0] = total
    return found
