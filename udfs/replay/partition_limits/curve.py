"""For every value of a limit of KIP-578 (a proposal): the first change that it would refuse, without a lane for each.

Up to its first refusal, a lane with a limit of N is the same as a lane without a limit, except for the placement of
replicas once a broker was full. So the changes are done once without a limit. For max.partitions = N, the first change
that needs more than N is the first refusal. For max.broker.partitions = N, a pass of its own begins at the change that
would give a broker its Nth replica (curve_passes).
"""

from __future__ import annotations

import numpy as np

from schemas.wire.errors import INVALID_REPLICATION_FACTOR
from udfs.columns.arrays import Bools, Ints, Records, read_only
from udfs.columns.sentinels import NONE
from udfs.replay.partition_limits.controller import replay_lanes
from udfs.replay.partition_limits.curve_passes import FIRST_REFUSAL, FREE, fill_curve, new_passes
from udfs.replay.partition_limits.placement.brokers import are_known
from udfs.replay.partition_limits.schedule import UNLIMITED
from udfs.replay.partition_limits.settings import unlimited_lane
from udfs.replay.partition_limits.state import (
    APPEAR,
    GROW,
    MAX_BROKER_PARTITIONS,
    MAX_PARTITIONS,
    MOVE,
    VANISH,
    History,
    new_sim,
)


def limit_curves(history: History) -> dict[int, Records]:
    """The curves of both limits, by MAX_BROKER_PARTITIONS and MAX_PARTITIONS: FIRST_REFUSAL[steps]. Each step holds for
    all limits below that of the next step.

    Replicas are placed as KIP-578 proposes, with the draws of every other lane. If the brokers are not known, there is
    no curve of the first limit, because it is not known what it would refuse.
    """
    sim = new_sim(history, unlimited_lane())
    replay_lanes(sim, read_only(np.zeros(0, np.int64)), np.zeros((1, 1, len(sim.broker_replicas)), np.int64))
    outcomes = sim.outcomes[FREE].copy()
    curves = {MAX_PARTITIONS: cluster_curve(history.changes, outcomes)}
    if not are_known(history.brokers):
        return curves
    passes = new_passes(
        last_limits(history, outcomes), len(sim.broker_replicas), int(history.changes["slots"].sum()) + 2
    )
    fill_curve(sim, passes)
    tried = int(passes.state["tried"][0])
    return {MAX_BROKER_PARTITIONS: drop_repeated_steps(passes.curve[1 : tried + 2]), **curves}


def last_limits(history: History, outcomes: Records) -> Ints:
    """For each change, the largest max.broker.partitions whose first refusal can be this change or a later one:
    int64[changes].

    outcomes: CHANGE_OUTCOME[changes] without a limit; up to its first refusal, every limit has the same outcomes. If
    Kafka places the replicas, a limit refuses when fewer brokers have room than a partition has replicas. All other
    brokers then have at least `limit` replicas, and together they have at most the replicas before the change and those
    that it requests.
    """
    changes, brokers = history.changes, history.brokers
    kind, factor, is_named = changes["kind"], changes["replication_factor"], changes["named"] != NONE
    factor = np.where(kind == GROW, factor.max(initial=1), factor)
    others = brokers.table["unfenced"].sum() - factor + 1
    replicas = outcomes["present"] + outcomes["requested"]
    by_room = np.where(others > 0, replicas // np.maximum(others, 1), UNLIMITED)
    is_placed = (outcomes["requested"] > 0) & ~is_named & (kind != MOVE)
    # A request that names brokers is refused if any of them is full. If too few brokers are up, counts tell nothing.
    by_chance = is_named & ~np.isin(kind, (APPEAR, VANISH)) | (outcomes["error"] == INVALID_REPLICATION_FACTOR)
    limits = np.where(by_chance, UNLIMITED, np.where(is_placed, by_room, 0))
    limits = np.where(are_exempt(changes), 0, limits)
    return np.maximum.accumulate(limits[::-1])[::-1]


def are_exempt(changes: Records) -> Bools:
    """Which changes are exempt from the limits of KIP-578: bool[changes]. changes: CHANGE[changes]."""
    return (changes["is_internal"] == 1) | (changes["by_broker"] == 1)


def drop_repeated_steps(by_limit: Records) -> Records:
    """The curve with one step for each change that is refused first: FIRST_REFUSAL[steps].

    by_limit: FIRST_REFUSAL[limits], a row for each limit in ascending order. Of successive limits that first refuse the
    same change, the lowest is kept.
    """
    return by_limit[np.append(True, np.diff(by_limit["change"]) != 0)]


def cluster_curve(changes: Records, outcomes: Records) -> Records:
    """The curve of max.partitions: FIRST_REFUSAL[steps].

    A change that needs more than every earlier change is the first refusal of all limits in between. changes:
    CHANGE[changes]. outcomes: CHANGE_OUTCOME[changes] without a limit.
    """
    is_counted = (outcomes["requested"] > 0) & (outcomes["error"] == 0) & ~are_exempt(changes)
    rows = np.flatnonzero(is_counted)
    needed = (outcomes["present"] + outcomes["requested"])[rows]
    before = np.maximum.accumulate(np.append(1, needed))[:-1]
    is_higher = needed > before
    refused = rows[is_higher]
    curve = np.zeros(len(refused) + 1, FIRST_REFUSAL)
    curve["limit_from"] = np.append(before[is_higher], needed.max(initial=1))
    curve["change"] = np.append(refused, NONE)
    curve["present"][:-1], curve["requested"][:-1] = outcomes["present"][refused], outcomes["requested"][refused]
    return curve
