"""For every value of a limit of KIP-578 (a proposal) the first change that would be refused, exactly, in one pass.

Up to its first refusal a lane with a limit of N has what the lane without a limit has, but for where replicas were put
once a broker was full. So the changes are done once without a limit; for max.partitions = N the first change that needs
more than N is the first refusal, and for max.broker.partitions = N a side pass begins at the change by which a broker
would get its Nth replica, ends with the first refusal, or where there can be none any more, and is undone
(limit_side_pass).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schemas.wire.errors import INVALID_REPLICATION_FACTOR
from udfs.columns.arrays import Ints, read_only
from udfs.kernels.kernel import kernel
from udfs.replay.partition_limits.controller import apply_change, replay_lane
from udfs.replay.partition_limits.first_refusal import NONE_FAILS, NOT_PLACED, Placed, first_refusal, nothing_placed
from udfs.replay.partition_limits.placement.brokers import Brokers, are_known
from udfs.replay.partition_limits.schedule import UNLIMITED
from udfs.replay.partition_limits.state import (
    MAX_BROKER_PARTITIONS,
    MAX_PARTITIONS,
    Lane,
    Limits,
    Outcomes,
    no_outcomes,
    unlimited,
    workspace,
)
from udfs.replay.partition_limits.topics import (
    APPEAR,
    GROW,
    MOVE,
    VANISH,
    Changes,
    copy_counts,
    count,
    no_topics,
    undo,
)


class Steps(NamedTuple):
    """A limit of limit_from up to below the next row's has its first refusal at the change; NONE_FAILS: never."""

    limit_from: Ints
    change: Ints
    present: Ints
    asked: Ints


class Curve(NamedTuple):
    """Results by limit, int64[largest limit + 2]: the change first refused, and what it met."""

    change: Ints
    present: Ints
    asked: Ints


def refusable_from(changes: Changes, brokers: Brokers, outcomes: Outcomes) -> Ints:
    """By change, the largest max.broker.partitions that could refuse it or a later one as the first: int64[changes].

    outcomes: of the changes without a limit, which up to its first refusal are those of every limit. Where Kafka
    places, a limit refuses when fewer brokers have room than replicas are wanted; the others then have `limit`
    replicas or more, and no more are there than all that were before and those asked for.
    """
    places = (outcomes.asked > 0) & (changes.assigned_at < 0) & (changes.kind != MOVE)
    factor = np.where(changes.kind == GROW, changes.factor.max(initial=1), changes.factor)
    full = brokers.unfenced.sum() - factor + 1
    by_room = np.where(full > 0, (outcomes.present + outcomes.asked) // np.maximum(full, 1), UNLIMITED)
    # What names brokers itself is refused by any of them, and where too few are up no count of replicas is told.
    names_brokers = (changes.assigned_at >= 0) & ~np.isin(changes.kind, (APPEAR, VANISH))
    by_chance = names_brokers | (outcomes.error == INVALID_REPLICATION_FACTOR)
    most = np.where(changes.exempt == 1, 0, np.where(by_chance, UNLIMITED, np.where(places, by_room, 0)))
    return np.maximum.accumulate(most[::-1])[::-1]


@kernel
def highest(counts: Ints) -> int:
    """The largest count, 0 for none."""
    most = 0
    for broker in range(len(counts)):
        most = max(most, counts[broker])
    return most


@kernel
def highest_with(lane: Lane, change: int) -> int:
    """The largest count when the change was done, also where it was only to be validated."""
    changes, topics, outcomes = lane.changes, lane.topics, lane.outcomes
    is_checked = changes.validate_only[change] and not changes.exempt[change] and outcomes.error[change] == 0
    replicas = outcomes.asked[change] if is_checked else 0
    count(topics, changes.slot[change], replicas, 1)
    most = highest(topics.counts)
    count(topics, changes.slot[change], replicas, -1)
    return most


@kernel
def fill_broker_curve(
    free: Lane, limits: Limits, met: Outcomes, refusable: Ints, before: Ints, held: Ints, placed: Placed, curve: Curve
) -> int:
    """Do all changes without a limit (free) and fill the curve of max.broker.partitions; returns its last limit.

    limits, met: of the passes that `first_refusal` makes, both overwritten. before, held: int64[brokers], working
    memory.
    """
    changes, topics, done = free.changes, free.topics, 0
    # Made here, so that the compiler sees that it has the same arrays.
    limited = Lane(changes, free.brokers, limits, topics, free.work, met)
    for change in range(len(changes.time)):
        copy_counts(topics.counts, before)
        total = topics.total[0]
        apply_change(free, change)
        placed.full[change] = NOT_PLACED
        most = min(highest_with(free, change), len(curve.change) - 1)
        if most <= done or changes.kind[change] == APPEAR:
            continue
        undo(changes, topics, change)
        copy_counts(before, topics.counts)
        topics.total[0] = total
        for limit in range(done + 1, most + 1):
            found = first_refusal(limited, change, limit, refusable, held, placed)
            curve.change[limit] = found
            if found != NONE_FAILS:
                curve.present[limit], curve.asked[limit] = met.present[found], met.asked[found]
        done = most
        apply_change(free, change)
    return done


def limit_curves(changes: Changes, brokers: Brokers, topics: int) -> dict[int, Steps]:
    """The steps of both limits, by MAX_BROKER_PARTITIONS and MAX_PARTITIONS; `topics` is how many there are.

    Replicas are placed as KIP-578 proposes, with the draws of every other lane. Where the brokers are not known there
    are no steps of the first limit, for nobody knows what it would refuse.
    """
    n, nodes = len(changes.time), len(brokers.rack)
    outcomes = unlimited_outcomes(changes, brokers, topics)
    if not are_known(brokers):
        return {MAX_PARTITIONS: cluster_steps(changes, outcomes)}
    most = int(changes.slot[-1]) + 1
    curve = Curve(np.full(most + 1, NONE_FAILS), np.zeros(most + 1, np.int64), np.zeros(most + 1, np.int64))
    held, free = np.zeros((2, nodes), np.int64), unlimited_lane(changes, brokers, topics)
    last = fill_broker_curve(
        free, unlimited(n), no_outcomes(changes), refusable_from(changes, brokers, outcomes), held[0], held[1],
        nothing_placed(n, nodes), curve,
    )  # fmt: skip
    broker = steps(curve.change[1 : last + 1], curve.present[1 : last + 1], curve.asked[1 : last + 1])
    return {MAX_BROKER_PARTITIONS: broker, MAX_PARTITIONS: cluster_steps(changes, outcomes)}


def unlimited_outcomes(changes: Changes, brokers: Brokers, topics: int) -> Outcomes:
    """What becomes of the changes without a limit."""
    lane = unlimited_lane(changes, brokers, topics)
    replay_lane(lane, read_only(np.zeros(0, np.int64)), np.zeros((0, len(brokers.rack)), np.int64))
    return lane.outcomes


def unlimited_lane(changes: Changes, brokers: Brokers, topics: int) -> Lane:
    """A lane without a limit before the first change."""
    return Lane(
        changes, brokers, unlimited(len(changes.time)), no_topics(changes, len(brokers.rack), topics),
        workspace(brokers, changes), no_outcomes(changes),
    )  # fmt: skip


def steps(change: Ints, present: Ints, asked: Ints) -> Steps:
    """One row for limits in a row that have the same first refusal, from a limit of 1 on, and one for all above."""
    change = np.append(change, NONE_FAILS)
    starts = np.flatnonzero(np.append(True, np.diff(change) != 0))
    padded = (np.append(present, 0), np.append(asked, 0))
    return Steps(starts + 1, change[starts], padded[0][starts], padded[1][starts])


def cluster_steps(changes: Changes, outcomes: Outcomes) -> Steps:
    """Of max.partitions: each change that needs more than all before it is the first refusal of the limits between."""
    counted = (outcomes.asked > 0) & (outcomes.error == 0) & (changes.exempt == 0)
    rows = np.flatnonzero(counted)
    needed = (outcomes.present + outcomes.asked)[rows]
    before = np.maximum.accumulate(np.append(1, needed))[:-1]
    sets = needed > before
    found = rows[sets]
    start = np.append(before[sets], needed.max(initial=1))
    return Steps(
        start, np.append(found, NONE_FAILS), np.append(outcomes.present[found], 0), np.append(outcomes.asked[found], 0)
    )
