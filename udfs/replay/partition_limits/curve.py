"""For every value of a limit of KIP-578 (a proposal) the first change that would be refused, exactly, in one pass.

Up to its first refusal a lane with a limit of N has what a lane without a limit has, apart from where replicas were put
once a broker was full. So the changes are done once without a limit. For max.partitions = N the first change that needs
more than N is the first refusal. For max.broker.partitions = N a pass of its own begins at the change by which a broker
would get its Nth replica, ends with the first refusal, or where there can be none any more, and is taken back
(first_refusal).
"""

from __future__ import annotations

import numpy as np

from schemas.wire.errors import INVALID_REPLICATION_FACTOR
from udfs.columns.arrays import Ints, Records, read_only
from udfs.kernels.kernel import kernel
from udfs.replay.partition_limits.controller import apply_change, replay_lanes
from udfs.replay.partition_limits.first_refusal import FREE, NOT_PLACED, Passes, first_refusal, new_passes
from udfs.replay.partition_limits.placement.brokers import are_known
from udfs.replay.partition_limits.schedule import UNLIMITED
from udfs.replay.partition_limits.settings import unlimited
from udfs.replay.partition_limits.state import (
    APPEAR,
    GROW,
    MAX_BROKER_PARTITIONS,
    MAX_PARTITIONS,
    MOVE,
    NONE,
    VANISH,
    History,
    Simulation,
    new_simulation,
)
from udfs.replay.partition_limits.topics import copy_counts, count_replicas, empty_cluster, take_back

FIRST_REFUSAL = np.dtype([(name, np.int64) for name in ("limit_from", "change", "present", "requested")])
"""Limits from limit_from up to below the next row's first refuse the change, or none (NONE); what the change met."""


def limit_curves(history: History) -> dict[int, Records]:
    """The curves of both limits, by MAX_BROKER_PARTITIONS and MAX_PARTITIONS: FIRST_REFUSAL[steps], ascending.

    Replicas are placed as KIP-578 proposes, with the draws of every other lane. Where the brokers are not known there
    is no curve of the first limit, for nobody knows what it would refuse.
    """
    sim = new_simulation(history, unlimited())
    replay_lanes(sim, read_only(np.zeros(0, np.int64)), np.zeros((1, 1, len(sim.counts)), np.int64))
    outcomes = sim.outcomes[FREE].copy()
    of_cluster = cluster_curve(history.changes, outcomes)
    if not are_known(history.brokers):
        return {MAX_PARTITIONS: of_cluster}
    by_limit = np.zeros(int(history.changes["slots"].sum()) + 2, FIRST_REFUSAL)
    by_limit["limit_from"], by_limit["change"] = np.arange(len(by_limit)), NONE
    passes = new_passes(last_limits(history, outcomes), len(sim.counts))
    last = fill_broker_curve(sim, passes, np.zeros(len(sim.counts), np.int64), by_limit)
    return {MAX_BROKER_PARTITIONS: steps(by_limit[1 : last + 2]), MAX_PARTITIONS: of_cluster}


def last_limits(history: History, outcomes: Records) -> Ints:
    """By change, the largest max.broker.partitions that could refuse it or a later one as the first: int64[changes].

    outcomes: OUTCOME[changes] without a limit, which up to its first refusal are those of every limit. Where Kafka
    places, a limit refuses when fewer brokers have room than replicas are wanted; the others then have `limit`
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
    limits = np.where(changes["is_exempt"] == 1, 0, limits)
    return np.maximum.accumulate(limits[::-1])[::-1]


@kernel
def highest_count(sim: Simulation, change: int) -> int:
    """The most replicas on a broker when the change was done, also where it was only to be validated."""
    record, outcome = sim.changes[change], sim.outcomes[FREE, change]
    is_validated = record.validate_only and not record.is_exempt and outcome.error == 0
    replicas = outcome.requested if is_validated else 0
    count_replicas(sim, record.slot, replicas, 1)
    highest = 0
    for broker in range(len(sim.counts)):
        highest = max(highest, sim.counts[broker])
    count_replicas(sim, record.slot, replicas, -1)
    return highest


@kernel
def apply_unlimited(sim: Simulation, passes: Passes, change: int) -> int:
    """Do the change without a limit. Returns the most replicas that a broker then has."""
    sim.cluster[0].max_broker_partitions = UNLIMITED
    apply_change(sim, FREE, change)
    passes.full[change] = NOT_PLACED
    return highest_count(sim, change)


@kernel
def fill_broker_curve(sim: Simulation, passes: Passes, before: Ints, curve: Records) -> int:
    """Do all changes without a limit and fill the curve of max.broker.partitions; returns its last limit.

    before: int64[brokers], working memory. curve: FIRST_REFUSAL by limit.
    """
    cluster, done = sim.cluster[0], 0
    empty_cluster(sim, FREE)
    cluster.max_partitions = UNLIMITED
    for change in range(len(sim.changes)):
        copy_counts(sim.counts, before)
        replicas = cluster.replicas
        highest = min(apply_unlimited(sim, passes, change), len(curve) - 2)
        if highest <= done or sim.changes[change].kind == APPEAR:
            continue
        take_back(sim, change)
        copy_counts(before, sim.counts)
        cluster.replicas = replicas
        for limit in range(done + 1, highest + 1):
            refused = first_refusal(sim, passes, change, limit)
            curve[limit].change = refused
            if refused != NONE:
                outcome = sim.outcomes[FREE, refused]
                curve[limit].present, curve[limit].requested = outcome.present, outcome.requested
        done = highest
        apply_unlimited(sim, passes, change)
    return done


def steps(by_limit: Records) -> Records:
    """Only the first of limits in a row that refuse the same change first. by_limit: FIRST_REFUSAL, ascending."""
    return by_limit[np.append(True, np.diff(by_limit["change"]) != 0)]


def cluster_curve(changes: Records, outcomes: Records) -> Records:
    """The curve of max.partitions: each change that needs more than all before it is the first refusal of the limits
    between. outcomes: OUTCOME[changes] without a limit.
    """
    is_counted = (outcomes["requested"] > 0) & (outcomes["error"] == 0) & (changes["is_exempt"] == 0)
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
