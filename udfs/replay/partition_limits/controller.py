"""How the controller decides about a change to a topic, under the limits of KIP-578 (a proposal) and of Kafka as it
runs.

The proposal's rules are those of the KIP's text (Goals, Public Interfaces) and of its prototype, apache/kafka pull
request 8499. Partitions are counted as replicas, of all topics except the internal ones.
"""

from __future__ import annotations

from schemas.wire.errors import (
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR,
    POLICY_VIOLATION,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from udfs.columns.arrays import Ints
from udfs.columns.sentinels import NONE
from udfs.kernels.kernel import kernel
from udfs.replay.partition_limits.placement.brokers import DRAWN, are_known
from udfs.replay.partition_limits.placement.java_random import reseed
from udfs.replay.partition_limits.placement.limited import place_limited
from udfs.replay.partition_limits.placement.striped import place_striped
from udfs.replay.partition_limits.request_limits import (
    check_request,
    count_new_partitions,
    error_of_checks,
    is_within_quota,
    note_refusal,
    partitions_allowed,
    refuse_by_quota,
)
from udfs.replay.partition_limits.schedule import UNLIMITED
from udfs.replay.partition_limits.state import (
    APPEAR,
    AUTO_CREATE,
    CAPTURED_ERROR,
    DELETE,
    GROW,
    MAX_BROKER_PARTITIONS,
    MAX_PARTITIONS,
    MOVE,
    NO_LIMIT,
    NOT_TRIED,
    NOTHING,
    REFUSED_BEFORE,
    REQUEST_PARTITIONS,
    VANISH,
    ClusterSim,
)
from udfs.replay.partition_limits.topics import (
    UNPLACED,
    add_chunk,
    chunk_of,
    copy_counts,
    empty_cluster,
    move_partition,
    note_before_change,
    remove_topic,
    slot_in_chunk,
)


@kernel
def is_exempt(sim: ClusterSim, change: int) -> bool:
    """Whether the change is exempt from the limits of KIP-578."""
    record = sim.changes[change]
    return bool(record.is_internal or record.by_broker)


@kernel
def broker_limit(sim: ClusterSim, change: int) -> int:
    """The max.broker.partitions that applies to the change, UNLIMITED if it is exempt."""
    return UNLIMITED if is_exempt(sim, change) else int(sim.cluster[0].max_broker_partitions)


@kernel
def add_replicas(sim: ClusterSim, change: int, first: int, size: int) -> int:
    """Put the change's replicas on named_brokers[first : first + size]. Returns the first broker that exceeds its limit
    by this, NONE if there is none.
    """
    slot, limit = sim.changes[change].slot, broker_limit(sim, change)
    for broker in range(len(sim.added)):
        sim.added[broker] = 0
    for i in range(size):
        broker = sim.named_brokers[first + i]
        sim.slots[slot + i] = broker
        sim.added[broker] += 1
    for broker in range(len(sim.added)):
        if sim.added[broker] and sim.broker_replicas[broker] + sim.added[broker] > limit:
            return broker
    return NONE


@kernel
def place_as_named(sim: ClusterSim, lane: int, change: int, size: int) -> bool:
    """Put `size` replicas where the request says, unless a broker that it names would exceed its limit."""
    record, outcome = sim.changes[change], sim.outcomes[lane, change]
    if record.named_size != size:
        return note_refusal(outcome, INVALID_REPLICA_ASSIGNMENT, NO_LIMIT, requested=size)
    full = add_replicas(sim, change, record.named, size)
    if full != NONE:
        limit, present, added = broker_limit(sim, change), sim.broker_replicas[full], sim.added[full]
        outcome.broker = full
        note_refusal(outcome, POLICY_VIOLATION, MAX_BROKER_PARTITIONS, limit=limit, present=present, requested=added)
    return full == NONE


@kernel
def is_shown(sim: ClusterSim, change: int, first: int, new: int, factor: int) -> bool:
    """Whether Metadata shows where these partitions of the change's topic are."""
    record = sim.changes[change]
    return bool(first + new <= record.shown_partitions and factor == record.shown_factor)


@kernel
def place_partitions(sim: ClusterSim, lane: int, change: int, new: int, factor: int) -> bool:
    """Put the change's new partitions on brokers, into its slots. They go where the request says; if it says nothing,
    where Metadata shows them, unless that exceeds the limit; otherwise where they are drawn. Returns whether that could
    be done.
    """
    record = sim.changes[change]
    first = sim.topics[record.topic].partitions
    if record.named != NONE:
        return place_as_named(sim, lane, change, new * factor)
    shown, size = record.shown + first * factor, new * factor
    if is_shown(sim, change, first, new, factor) and add_replicas(sim, change, shown, size) == NONE:
        return True
    return draw_placement(sim, lane, change, new, factor)


@kernel
def draw_placement(sim: ClusterSim, lane: int, change: int, new: int, factor: int) -> bool:
    """Put the change's new partitions where the placer of Kafka, or of the proposal, draws them, if the brokers are
    known. Returns whether that could be done.
    """
    record, outcome, placement = sim.changes[change], sim.outcomes[lane, change], sim.placement[0]
    limit, replicas = broker_limit(sim, change), new * factor
    if not are_known(sim.brokers):
        for slot in range(record.slot, record.slot + replicas):
            sim.slots[slot] = UNPLACED
        return True
    reseed(sim.stripes.random[0], record.seed)
    placement.first_partition, placement.partitions = sim.topics[record.topic].partitions, new
    placement.replication_factor, placement.slot = factor, record.slot
    placement.start, placement.limit = DRAWN, limit
    if limit == UNLIMITED and sim.settings[lane].has_kraft:
        error = place_striped(sim.brokers, sim.stripes, placement, sim.slots)
        return error == 0 or note_refusal(outcome, error, NO_LIMIT, requested=replicas)
    if place_limited(sim.brokers, sim.arrangement, placement, sim.broker_replicas, sim.slots) == new:
        return True
    if limit == UNLIMITED:  # fewer brokers are up than a partition has replicas
        return note_refusal(outcome, INVALID_REPLICATION_FACTOR, NO_LIMIT, requested=replicas)
    present = sim.cluster[0].replicas
    return note_refusal(
        outcome, POLICY_VIOLATION, MAX_BROKER_PARTITIONS, limit=limit, present=present, requested=replicas
    )


@kernel
def fits_in_cluster(sim: ClusterSim, lane: int, change: int, replicas: int) -> bool:
    """Whether max.partitions leaves room for `replicas` more replicas in the cluster, and there are slots for them."""
    record, outcome, cluster = sim.changes[change], sim.outcomes[lane, change], sim.cluster[0]
    limit, present = cluster.max_partitions, cluster.replicas
    if not is_exempt(sim, change) and present + replicas > limit:
        return note_refusal(outcome, POLICY_VIOLATION, MAX_PARTITIONS, limit=limit, present=present, requested=replicas)
    if replicas > record.slots:
        return note_refusal(outcome, POLICY_VIOLATION, REQUEST_PARTITIONS, limit=record.slots, requested=replicas)
    return True


@kernel
def refuse_invalid(sim: ClusterSim, lane: int, change: int, error: int) -> None:
    """Note an error of Kafka's own checks. A topic may be absent because its creation was refused."""
    topic = sim.topics[sim.changes[change].topic]
    is_consequence = error == UNKNOWN_TOPIC_OR_PARTITION and topic.was_refused == 1
    decided_by = REFUSED_BEFORE if is_consequence else NO_LIMIT
    note_refusal(sim.outcomes[lane, change], error, decided_by, present=topic.partitions)


@kernel
def make_partitions(sim: ClusterSim, lane: int, change: int) -> None:
    """Make the partitions of a topic that CreateTopics, CreatePartitions or Metadata requests, or note the refusal."""
    record, outcome = sim.changes[change], sim.outcomes[lane, change]
    topic = sim.topics[record.topic]
    if record.kind == AUTO_CREATE and topic.partitions > 0:
        outcome.decided_by = NOT_TRIED
        return
    error = error_of_checks(sim, change)
    if error:
        refuse_invalid(sim, lane, change, error)
        return
    factor = topic.replication_factor if record.kind == GROW else record.replication_factor
    new = count_new_partitions(sim, change)
    outcome.requested, outcome.present = new * factor, sim.cluster[0].replicas
    made = partitions_allowed(sim, lane, change, new)
    done = (
        made > 0
        and fits_in_cluster(sim, lane, change, made * factor)
        and place_partitions(sim, lane, change, made, factor)
    )
    if record.validate_only:
        return
    if done:
        add_chunk(sim, change, topic.partitions, made, factor)
        topic.partitions, topic.replication_factor = topic.partitions + made, factor
    if record.kind != GROW:
        topic.was_refused = 0 if done else 1


@kernel
def refuse_absent(sim: ClusterSim, lane: int, change: int) -> None:
    """Note that the topic of the change does not exist."""
    was_refused = sim.topics[sim.changes[change].topic].was_refused == 1
    note_refusal(sim.outcomes[lane, change], UNKNOWN_TOPIC_OR_PARTITION, REFUSED_BEFORE if was_refused else NO_LIMIT)


@kernel
def reassign_partition(sim: ClusterSim, lane: int, change: int) -> None:
    """AlterPartitionReassignments of one partition: only its new replicas need room. The replicas that it loses are
    gone when the move is done; in a replay, that is at once.
    """
    record, outcome = sim.changes[change], sim.outcomes[lane, change]
    topic, factor = sim.topics[record.topic], record.replication_factor
    number = chunk_of(sim, topic, record.partition)
    if topic.partitions == 0 or number == NONE:
        refuse_absent(sim, lane, change)
    elif record.named != NONE:  # otherwise a move is cancelled
        if record.named_size != factor:
            note_refusal(outcome, INVALID_REPLICA_ASSIGNMENT, NO_LIMIT, requested=factor)
        elif put_moved(sim, lane, change, number):
            growth = max(factor - sim.chunks[number].replication_factor, 0)
            outcome.requested = growth
            if growth == 0 or fits_in_cluster(sim, lane, change, growth):
                move_partition(sim, change, number)


@kernel
def put_moved(sim: ClusterSim, lane: int, change: int, number: int) -> bool:
    """Put the replicas of a partition of chunk `number` into the slots of its move. Returns whether that could be done:
    a broker that has none of them yet must not exceed its limit.
    """
    record, limit = sim.changes[change], broker_limit(sim, change)
    old, factor = slot_in_chunk(sim, number, record.partition), sim.chunks[number].replication_factor
    for i in range(record.replication_factor):
        broker = sim.named_brokers[record.named + i]
        sim.slots[record.slot + i] = broker
        is_new = True
        for slot in range(old, old + factor):
            is_new = is_new and sim.slots[slot] != broker
        present = sim.broker_replicas[broker]
        if is_new and present + 1 > limit:
            outcome = sim.outcomes[lane, change]
            outcome.broker = broker
            return note_refusal(
                outcome, POLICY_VIOLATION, MAX_BROKER_PARTITIONS, limit=limit, present=present, requested=1
            )
    return True


@kernel
def add_shown_partitions(sim: ClusterSim, change: int) -> None:
    """Add partitions that no captured request made, on the brokers where Metadata shows them."""
    record = sim.changes[change]
    topic, factor = sim.topics[record.topic], record.replication_factor
    for i in range(record.partitions * factor):
        sim.slots[record.slot + i] = sim.named_brokers[record.named + i]
    add_chunk(sim, change, record.partition, record.partitions, factor)
    topic.partitions += record.partitions
    topic.replication_factor = factor


@kernel
def delete_topic(sim: ClusterSim, lane: int, change: int) -> None:
    """Delete the topic of a DeleteTopics request, or note why the request is refused."""
    partitions = sim.topics[sim.changes[change].topic].partitions
    if partitions == 0:
        refuse_absent(sim, lane, change)
    elif is_within_quota(sim, lane, change, partitions):
        remove_topic(sim, change)
    else:
        refuse_by_quota(sim, lane, change, partitions)


@kernel
def apply_change(sim: ClusterSim, lane: int, change: int) -> None:
    """Do one change in a lane, or refuse it."""
    record, outcome, present = sim.changes[change], sim.outcomes[lane, change], sim.cluster[0].replicas
    topic, kind = sim.topics[record.topic], record.kind
    outcome.error, outcome.decided_by, outcome.broker = 0, NO_LIMIT, NONE
    outcome.limit, outcome.present, outcome.requested = 0, present, 0
    note_before_change(sim, change)
    if kind == NOTHING:
        outcome.decided_by = NOT_TRIED
    elif record.captured_error:
        note_refusal(outcome, record.captured_error, CAPTURED_ERROR, present=present)
    elif kind == APPEAR:
        add_shown_partitions(sim, change)
    elif kind == VANISH:
        remove_topic(sim, change)
    elif kind == MOVE:
        reassign_partition(sim, lane, change)
    elif kind == DELETE:
        delete_topic(sim, lane, change)
    else:
        if record.request != sim.cluster[0].checked_request:
            check_request(sim, lane, change)
        make_partitions(sim, lane, change)
    outcome.is_absent = 1 if topic.was_refused == 1 and topic.partitions == 0 else 0


@kernel
def follow_limits(sim: ClusterSim, lane: int, time: int) -> None:
    """Put the lane's limits at this time (us) in force."""
    cluster, end = sim.cluster[0], sim.settings[lane].end_step
    while cluster.step + 1 < end and sim.steps[cluster.step + 1].time <= time:
        cluster.step += 1
    limits = sim.steps[cluster.step]
    cluster.max_broker_partitions, cluster.max_partitions = limits.max_broker_partitions, limits.max_partitions


@kernel
def replay_lanes(sim: ClusterSim, times: Ints, samples: Ints) -> None:
    """Do every change in every lane.

    times: int64[times], us. samples: int64[lanes, times + 1, brokers], written in place: the replicas on each broker at
    each of the times, and at the end.
    """
    for lane in range(len(sim.settings)):
        empty_cluster(sim, lane)
        sampled = 0
        for change in range(len(sim.changes)):
            time = sim.changes[change].time
            while sampled < len(times) and times[sampled] < time:
                copy_counts(sim.broker_replicas, samples[lane, sampled])
                sampled += 1
            follow_limits(sim, lane, time)
            apply_change(sim, lane, change)
        for left in range(sampled, len(times) + 1):
            copy_counts(sim.broker_replicas, samples[lane, left])
        sim.replicas[lane] = sim.cluster[0].replicas
