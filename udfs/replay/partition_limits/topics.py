"""The topics and brokers of a lane: how they gain, move and lose replicas, and how a change is undone."""

from __future__ import annotations

from udfs.columns.arrays import Ints, Record
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS
from udfs.kernels.kernel import kernel
from udfs.replay.partition_limits.state import NO_LIMIT, ClusterSim

UNPLACED = -1
"""In a slot: the replica's broker is not known."""
MOVED = 1 << 20
"""In the slots of a partition that was moved: its replicas are in the slots of the move."""


@kernel
def empty_cluster(sim: ClusterSim, lane: int) -> None:
    """Begin a lane: no topics, full buckets of the mutation quota."""
    cluster, settings = sim.cluster[0], sim.settings[lane]
    cluster.replicas, cluster.step = 0, settings.first_step
    cluster.checked_request = cluster.read_request = NONE
    cluster.request_refused_by, cluster.request_records, cluster.read_time = NO_LIMIT, 0, 0
    for broker in range(len(sim.broker_replicas)):
        sim.broker_replicas[broker] = 0
    for i in range(len(sim.topics)):
        topic = sim.topics[i]
        topic.partitions, topic.replication_factor, topic.newest_chunk, topic.was_refused = 0, 0, NONE, 0
    for change in range(len(sim.chunks)):
        sim.chunks[change].partitions = 0
    for client in range(len(sim.clients)):
        sim.clients[client].tokens, sim.clients[client].token_time = settings.mutation_burst, ALWAYS
    for connection in range(len(sim.connections)):
        sim.connections[connection].muted_until = ALWAYS


@kernel
def copy_counts(counts: Ints, target: Ints) -> None:
    """Copy counts of replicas by broker from `counts` to `target`, int64[brokers] both."""
    for broker in range(len(counts)):
        target[broker] = counts[broker]


@kernel
def count_replicas(sim: ClusterSim, first: int, size: int, sign: int) -> None:
    """Add the replicas in slots[first : first + size] to the counts, or subtract them; replicas moved elsewhere are
    left out.
    """
    counted = 0
    for slot in range(first, first + size):
        broker = sim.slots[slot]
        counted += 1 if broker >= UNPLACED else 0
        if broker >= 0:
            sim.broker_replicas[broker] += sign
    sim.cluster[0].replicas += sign * counted


@kernel
def add_chunk(sim: ClusterSim, change: int, first: int, partitions: int, factor: int) -> None:
    """Add `partitions` partitions from number `first` on to the change's topic; its slots have their replicas."""
    record, chunk = sim.changes[change], sim.chunks[change]
    topic = sim.topics[record.topic]
    chunk.first_partition, chunk.partitions, chunk.replication_factor = first, partitions, factor
    chunk.older_chunk = topic.newest_chunk
    topic.newest_chunk = change
    if not record.is_internal:
        count_replicas(sim, record.slot, partitions * factor, 1)


@kernel
def remove_topic(sim: ClusterSim, change: int) -> None:
    """Delete the change's topic."""
    record = sim.changes[change]
    topic = sim.topics[record.topic]
    number = topic.newest_chunk
    while number != NONE:
        chunk = sim.chunks[number]
        if not record.is_internal:
            count_replicas(sim, sim.changes[number].slot, chunk.partitions * chunk.replication_factor, -1)
        number = chunk.older_chunk
    topic.partitions, topic.replication_factor, topic.newest_chunk = 0, 0, NONE


@kernel
def slot_in_chunk(sim: ClusterSim, number: int, partition: int) -> int:
    """Where the replicas of a partition of the chunk begin, if they are not moved elsewhere; NONE otherwise."""
    chunk = sim.chunks[number]
    nth = partition - chunk.first_partition
    if nth < 0 or nth >= chunk.partitions or chunk.replication_factor <= 0:
        return NONE
    slot: int = sim.changes[number].slot + nth * chunk.replication_factor
    return slot if sim.slots[slot] >= UNPLACED else NONE


@kernel
def chunk_of(sim: ClusterSim, topic: Record, partition: int) -> int:
    """The change in whose slots the partition's replicas are, NONE where there is none."""
    number: int = topic.newest_chunk
    while number != NONE and slot_in_chunk(sim, number, partition) == NONE:
        number = sim.chunks[number].older_chunk
    return number


@kernel
def move_partition(sim: ClusterSim, change: int, number: int) -> None:
    """Give a partition of a chunk the replicas in the change's slots, in the place of those it had."""
    record, undo, factor = sim.changes[change], sim.undo[change], sim.chunks[number].replication_factor
    slot = slot_in_chunk(sim, number, record.partition)
    if not record.is_internal:
        count_replicas(sim, slot, factor, -1)
    for moved in range(slot, slot + factor):
        sim.slots[moved] -= MOVED
    undo.moved_slot, undo.moved_factor = slot, factor
    add_chunk(sim, change, record.partition, 1, record.replication_factor)


@kernel
def note_before_change(sim: ClusterSim, change: int) -> None:
    """Note what the change is about to alter, for `take_back_change`."""
    topic, undo = sim.topics[sim.changes[change].topic], sim.undo[change]
    undo.partitions, undo.replication_factor = topic.partitions, topic.replication_factor
    undo.newest_chunk, undo.was_refused = topic.newest_chunk, topic.was_refused
    undo.moved_slot = NONE


@kernel
def take_back_change(sim: ClusterSim, change: int) -> None:
    """Undo what the change did to its topic; the counts of replicas are the caller's to restore."""
    topic, undo = sim.topics[sim.changes[change].topic], sim.undo[change]
    topic.partitions, topic.replication_factor = undo.partitions, undo.replication_factor
    topic.newest_chunk, topic.was_refused = undo.newest_chunk, undo.was_refused
    if undo.moved_slot != NONE:
        for slot in range(undo.moved_slot, undo.moved_slot + undo.moved_factor):
            sim.slots[slot] += MOVED
