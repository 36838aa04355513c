"""The passes that find the first refusal of each max.broker.partitions (KIP-578, a proposal).

The changes are done one by one without a limit. When a change would give a broker more replicas than any broker had
before, a pass for each of the limits in between begins at that change instead. The pass goes on to its first refusal,
or until none is possible any more, and is then undone.

The brokers of a change depend on its draws and on the brokers that are full. They do not depend on the limit itself,
unless the limit prevents the placement that Metadata shows. So a pass takes over the content of a change's slots from
the pass before, if the same brokers were full then and the change fills none. Nearly all changes are so, and only the
counting is left to do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Records, read_only
from udfs.columns.records import int_fields
from udfs.columns.sentinels import NONE
from udfs.kernels.kernel import kernel
from udfs.replay.partition_limits.controller import apply_change, is_shown
from udfs.replay.partition_limits.schedule import UNLIMITED
from udfs.replay.partition_limits.state import (
    APPEAR,
    AUTO_CREATE,
    CREATE,
    GROW,
    MAX_BROKER_PARTITIONS,
    NO_LIMIT,
    ClusterSim,
)
from udfs.replay.partition_limits.topics import (
    add_chunk,
    copy_counts,
    count_replicas,
    empty_cluster,
    note_before_change,
    take_back_change,
)

FREE = 0
"""The lane of the passes, which has no limits of its own."""
NOT_PLACED = -1
"""In Passes.full: the content of the change's slots must not be taken over."""

FIRST_REFUSAL = int_fields("limit_from", "change", "present", "requested")
"""The first refusal of a limit, and the counts at that change; NONE if it refuses no change."""

PASS = int_fields(
    "limit",  # of the pass, UNLIMITED while changes are done without a limit
    "full",  # the brokers that are full, from `full_brokers`
    "first",  # the change at which passes begin
    "last_limit",  # the limit of the last pass that begins there
    "tried",  # the first refusals of all limits up to this one are known
    "replicas",  # in the cluster before that change
)
"""The progress of the passes."""


class Passes(NamedTuple):
    """What the passes share.

    last_limits: int64[changes], the largest limit whose first refusal can be this change or a later one. keys:
    int64[brokers], random numbers. The exclusive or of its brokers' keys identifies a set of brokers; two sets have the
    same one with a probability of 1 in 2^62. full: int64[changes], this value for the brokers that were full when the
    replicas in the change's slots were placed, or NOT_PLACED. before: int64[brokers], the replicas of each broker
    before the first change of a pass. state: PASS[1]. curve: FIRST_REFUSAL[limits].
    """

    last_limits: Ints
    keys: Ints
    full: Ints
    before: Ints
    state: Records
    curve: Records


def new_passes(last_limits: Ints, brokers: int, limits: int) -> Passes:
    """The Passes before the first pass. last_limits: int64[changes]. limits: how many limits there are to try, from 0
    on.
    """
    curve = np.zeros(limits, FIRST_REFUSAL)
    curve["limit_from"], curve["change"] = np.arange(limits), NONE
    return Passes(
        last_limits=read_only(last_limits),
        keys=read_only(np.random.default_rng(578).integers(0, 1 << 62, brokers)),
        full=np.full(len(last_limits), NOT_PLACED),
        before=np.zeros(brokers, np.int64),
        state=np.zeros(1, PASS),
        curve=curve,
    )


@kernel
def full_brokers(sim: ClusterSim, passes: Passes) -> int:
    """The exclusive or of the keys of the brokers that have no room for another replica."""
    full, limit = 0, passes.state[0].limit
    for broker in range(len(sim.broker_replicas)):
        if sim.broker_replicas[broker] >= limit:
            full ^= passes.keys[broker]
    return full


@kernel
def is_taken_over(sim: ClusterSim, passes: Passes, change: int) -> bool:
    """Let the change make the partitions that are in its slots, if these are the same in this pass; returns whether
    they are. They are not if other brokers are full, or if the change fills one: the replicas after that would be
    elsewhere.
    """
    state, slot = passes.state[0], sim.changes[change].slot
    if state.limit == UNLIMITED or passes.full[change] != state.full:
        return False
    chunk, topic = sim.chunks[change], sim.topics[sim.changes[change].topic]
    first, partitions, factor = chunk.first_partition, chunk.partitions, chunk.replication_factor
    note_before_change(sim, change)
    add_chunk(sim, change, first, partitions, factor)
    for replica in range(slot, slot + partitions * factor):
        if sim.broker_replicas[sim.slots[replica]] >= state.limit:
            count_replicas(sim, slot, partitions * factor, -1)
            take_back_change(sim, change)
            return False
    topic.partitions, topic.replication_factor, topic.was_refused = first + partitions, factor, 0
    sim.outcomes[FREE, change].decided_by = NO_LIMIT
    return True


@kernel
def is_where_shown(sim: ClusterSim, change: int) -> bool:
    """Whether the partitions that the change has made are where Metadata shows them, if it does. If a limit prevents
    that, a higher limit may not, whichever brokers are full.
    """
    chunk, record = sim.chunks[change], sim.changes[change]
    first, factor = chunk.first_partition, chunk.replication_factor
    if not is_shown(sim, change, first, chunk.partitions, factor):
        return True
    shown, same = record.shown + first * factor, True
    for i in range(chunk.partitions * factor):
        same = same and sim.slots[record.slot + i] == sim.named_brokers[shown + i]
    return same


@kernel
def can_be_taken_over(sim: ClusterSim, change: int) -> bool:
    """Whether the change has just made partitions that count, and that any limit places there with the same full
    brokers.
    """
    record, outcome = sim.changes[change], sim.outcomes[FREE, change]
    is_placed = record.kind in (CREATE, AUTO_CREATE, GROW) and record.named == NONE
    counts = not record.is_internal and not record.validate_only
    is_done = outcome.error == 0 and outcome.decided_by == NO_LIMIT
    return is_placed and counts and is_done and is_where_shown(sim, change)


@kernel
def note_full(sim: ClusterSim, passes: Passes, change: int) -> None:
    """Note the brokers that are full after a change that was not taken over."""
    state, full = passes.state[0], full_brokers(sim, passes)
    is_same = full == state.full and can_be_taken_over(sim, change)
    passes.full[change] = full if is_same else NOT_PLACED
    state.full = full


@kernel
def highest_count(sim: ClusterSim, change: int) -> int:
    """The most replicas on a broker when the change was done, even if it was only validated."""
    record, outcome = sim.changes[change], sim.outcomes[FREE, change]
    is_validated = record.validate_only and not record.is_internal and outcome.error == 0
    replicas = outcome.requested if is_validated else 0
    count_replicas(sim, record.slot, replicas, 1)
    highest = 0
    for broker in range(len(sim.broker_replicas)):
        highest = max(highest, sim.broker_replicas[broker])
    count_replicas(sim, record.slot, replicas, -1)
    return highest


@kernel
def return_to_first(sim: ClusterSim, passes: Passes, change: int) -> int:
    """Undo the changes from the first of the pass to this one. Returns the first."""
    state = passes.state[0]
    for done in range(change, state.first - 1, -1):
        take_back_change(sim, done)
    copy_counts(passes.before, sim.broker_replicas)
    sim.cluster[0].replicas = state.replicas
    return state.first


@kernel
def begin_pass(sim: ClusterSim, passes: Passes, limit: int) -> None:
    """Begin a pass under a limit."""
    passes.state[0].limit = limit
    passes.state[0].full = full_brokers(sim, passes)


@kernel
def after_unlimited(sim: ClusterSim, passes: Passes, change: int) -> int:
    """Go on after a change that was done without a limit.

    Returns the next change; or the same change, if the pass of the first limit not yet tried begins there.
    """
    state, highest = passes.state[0], highest_count(sim, change)
    last_limit = min(highest, passes.last_limits[change])
    passes.full[change] = NOT_PLACED
    if sim.changes[change].kind != APPEAR:
        if last_limit > state.tried:
            state.first, state.last_limit = change, last_limit
            return_to_first(sim, passes, change)
            begin_pass(sim, passes, state.tried + 1)
            return change
        state.tried = max(state.tried, highest)
    copy_counts(sim.broker_replicas, passes.before)
    state.replicas = sim.cluster[0].replicas
    return change + 1


@kernel
def after_limited(sim: ClusterSim, passes: Passes, change: int) -> int:
    """Go on after a change that was done, or refused, in a pass under a limit.

    Returns the pass's next change. If the pass is over, it is undone, and its first change is returned: there the next
    pass begins or, after the last pass, the changes go on without a limit.
    """
    state, outcome = passes.state[0], sim.outcomes[FREE, change]
    first_refusal, is_refused = passes.curve[state.limit], outcome.decided_by == MAX_BROKER_PARTITIONS
    if not is_refused and change + 1 < len(sim.changes) and state.limit <= passes.last_limits[change + 1]:
        return change + 1
    if is_refused:
        first_refusal.change = change
        first_refusal.present, first_refusal.requested = outcome.present, outcome.requested
    return_to_first(sim, passes, change)
    begin_pass(sim, passes, state.limit + 1 if state.limit < state.last_limit else UNLIMITED)
    if state.limit == UNLIMITED:
        state.tried = state.last_limit
    return state.first


@kernel
def fill_curve(sim: ClusterSim, passes: Passes) -> None:
    """Do all changes without a limit, and in passes under each limit."""
    cluster, state, change = sim.cluster[0], passes.state[0], 0
    empty_cluster(sim, FREE)
    cluster.max_partitions, state.limit = UNLIMITED, UNLIMITED
    while change < len(sim.changes):
        if not is_taken_over(sim, passes, change):
            cluster.max_broker_partitions = state.limit
            apply_change(sim, FREE, change)  # called only here, because its machine code is copied to every call
            if state.limit != UNLIMITED:
                note_full(sim, passes, change)
        is_limited = state.limit != UNLIMITED
        change = after_limited(sim, passes, change) if is_limited else after_unlimited(sim, passes, change)
