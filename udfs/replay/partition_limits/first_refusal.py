"""From one change on, what becomes of the changes under max.broker.partitions (KIP-578, a proposal), up to a refusal.

Which brokers a change gets depends on its draws and on the brokers that are full. It does not depend on the limit
itself, unless the limit keeps partitions from where Metadata shows them. So a pass takes over what the pass before it
left in a change's slots, if the same brokers were full then and the change fills none. That is so nearly everywhere,
and only counting is left to do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, read_only
from udfs.kernels.kernel import kernel
from udfs.replay.partition_limits.controller import apply_change, is_shown
from udfs.replay.partition_limits.state import (
    AUTO_CREATE,
    CREATE,
    GROW,
    MAX_BROKER_PARTITIONS,
    NO_LIMIT,
    NONE,
    Simulation,
)
from udfs.replay.partition_limits.topics import add_chunk, copy_counts, count_replicas, remember, take_back

FREE = 0
"""The lane of the curve: it has no limits of its own."""
NOT_PLACED = -1


class Passes(NamedTuple):
    """What the passes under one limit after the other share.

    last_limit: int64[changes], the largest limit that could refuse the change, or a later one, as the first.
    keys: int64[brokers], such that two sets of brokers have the same sum of keys (by exclusive or) by a chance of one
    in 2^62. full: int64[changes], the sum of the brokers that were full when the replicas in the change's slots were
    placed; NOT_PLACED where the slots are not to be taken over. counts: int64[brokers], working memory.
    """

    last_limit: Ints
    keys: Ints
    full: Ints
    counts: Ints


def new_passes(last_limit: Ints, brokers: int) -> Passes:
    """Before the first pass. last_limit: int64[changes]."""
    keys = np.random.default_rng(578).integers(0, 1 << 62, brokers)
    return Passes(
        last_limit=read_only(last_limit),
        keys=read_only(keys),
        full=np.full(len(last_limit), NOT_PLACED),
        counts=np.zeros(brokers, np.int64),
    )


@kernel
def full_brokers(sim: Simulation, passes: Passes, limit: int) -> int:
    """The sum of the keys of brokers without room."""
    full = 0
    for broker in range(len(sim.counts)):
        if sim.counts[broker] >= limit:
            full ^= passes.keys[broker]
    return full


@kernel
def take_over(sim: Simulation, change: int, limit: int) -> bool:
    """Have the change make the partitions that are in its slots. Does nothing and returns False where that fills a
    broker: the replicas behind it would be elsewhere.
    """
    chunk, topic, slot = sim.chunks[change], sim.topics[sim.changes[change].topic], sim.changes[change].slot
    first, partitions, factor = chunk.first_partition, chunk.partitions, chunk.replication_factor
    remember(sim, change)
    add_chunk(sim, change, first, partitions, factor)
    for replica in range(slot, slot + partitions * factor):
        if sim.counts[sim.slots[replica]] >= limit:
            count_replicas(sim, slot, partitions * factor, -1)
            take_back(sim, change)
            return False
    topic.partitions, topic.replication_factor, topic.was_refused = first + partitions, factor, 0
    return True


@kernel
def is_where_shown(sim: Simulation, change: int) -> bool:
    """Whether the partitions that the change has made are where Metadata shows them, if it does. Where a limit keeps
    them from there, a higher one may not, whichever brokers are full.
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
def can_be_taken_over(sim: Simulation, change: int) -> bool:
    """Whether the change has just made partitions that count, where any limit puts them with the same brokers full."""
    record, outcome = sim.changes[change], sim.outcomes[FREE, change]
    is_placed = record.kind in (CREATE, AUTO_CREATE, GROW) and record.named == NONE
    counts = not record.is_exempt and not record.validate_only
    is_done = outcome.error == 0 and outcome.decided_by == NO_LIMIT
    return is_placed and counts and is_done and is_where_shown(sim, change)


@kernel
def apply_limited(sim: Simulation, passes: Passes, change: int, limit: int, full: int) -> int:
    """Do the change under max.broker.partitions = limit. full: the brokers that are full before it, as `full_brokers`
    tells them. Returns those that are full after it.
    """
    if passes.full[change] == full and take_over(sim, change, limit):
        return full
    sim.cluster[0].max_broker_partitions = limit
    apply_change(sim, FREE, change)
    full_after = full_brokers(sim, passes, limit)
    is_same = full_after == full and can_be_taken_over(sim, change)
    passes.full[change] = full_after if is_same else NOT_PLACED
    return full_after


@kernel
def first_refusal(sim: Simulation, passes: Passes, first: int, limit: int) -> int:
    """The first change from `first` on that max.broker.partitions = limit refuses, NONE if it refuses none. The cluster
    is left as it was; the outcome of the change that is refused is noted.
    """
    copy_counts(sim.counts, passes.counts)
    replicas, change, refused = sim.cluster[0].replicas, first, NONE
    full = full_brokers(sim, passes, limit)
    while change < len(sim.changes) and refused == NONE and limit <= passes.last_limit[change]:
        sim.outcomes[FREE, change].decided_by = NO_LIMIT
        full = apply_limited(sim, passes, change, limit, full)
        if sim.outcomes[FREE, change].decided_by == MAX_BROKER_PARTITIONS:
            refused = change
        change += 1
    for done in range(change - 1, first - 1, -1):
        take_back(sim, done)
    copy_counts(passes.counts, sim.counts)
    sim.cluster[0].replicas = replicas
    return refused
