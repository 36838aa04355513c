"""For every value of a limit of KIP-578 (a proposal) the first change that would be refused, without a lane for each.

Up to its first refusal a lane with a limit of N has what a lane without a limit has, apart from where replicas were put
once a broker was full. So the changes are done once without a limit. For max.partitions = N the first change that needs
more than N is the first refusal. For max.broker.partitions = N a pass of its own begins at the change by which a broker
would get its Nth replica (curve_passes).
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
    """The curves of both limits, by MAX_BROKER_PARTITIONS and MAX_PARTITIONS: FIRST_REFUSAL[steps], of which each holds
    up to below the limit of the next one.

    Replicas are placed as KIP-578 proposes, with the draws of every other lane. Where the brokers are not known there
    is no curve of the first limit, for nobody knows what it would refuse.
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
    """By change, the largest max.broker.partitions that could refuse it or a later one as the first: int64[changes].

    outcomes: CHANGE_OUTCOME[changes] without a limit, which up to its first refusal are those of every limit. Where
    Kafka places, a limit refuses when fewer brokers have room than replicas are wanted; the others then have `limit`
    replicas or more, and there are no more than all that were before and those requested.
    """
    changes, brokers = history.changes, history.brokers
    kind, factor, is_named = changes["kind"], changes["replication_factor"], changes["named"] != NONE
    factor = np.where(kind == GROW, factor.max(initial=1), factor)
    others = brokers.table["unfenced"].sum() - factor + 1
    replicas = outcomes["present"] + outcomes["requested"]
    by_room = np.where(others > 0, replicas // np.maximum(others, 1), UNLIMITED)
    is_placed = (outcomes["requested"] > 0) & ~is_named & (kind != MOVE)
    # A request that names brokers is refused by any of them, and where too few are up no count of replicas tells.
    by_chance = is_named & ~np.isin(kind, (APPEAR, VANISH)) | (outcomes["error"] == INVALID_REPLICATION_FACTOR)
    limits = np.where(by_chance, UNLIMITED, np.where(is_placed, by_room, 0))
    limits = np.where(are_exempt(changes), 0, limits)
    return np.maximum.accumulate(limits[::-1])[::-1]


def are_exempt(changes: Records) -> Bools:
    """Which changes no limit of KIP-578 refuses: bool[changes]. changes: CHANGE[changes]."""
    return (changes["is_internal"] == 1) | (changes["by_broker"] == 1)


def drop_repeated_steps(by_limit: Records) -> Records:
    """The curve with one step for each change that is refused first: FIRST_REFUSAL[steps].

    by_limit: FIRST_REFUSAL[limits], a row for each limit in ascending order. Of limits in a row that refuse the same
    change first, the first one is kept.
    """
    return by_limit[np.append(True, np.diff(by_limit["change"]) != 0)]


def cluster_curve(changes: Records, outcomes: Records) -> Records:
    """The curve of max.partitions: FIRST_REFUSAL[steps].

    Each change that needs more than all before it is the first refusal of the limits between. changes: CHANGE[changes].
    outcomes: CHANGE_OUTCOME[changes] without a limit.
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
