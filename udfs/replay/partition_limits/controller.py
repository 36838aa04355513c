"""KIP-578 (a proposal) over the changes to a cluster's topics: what limits on partitions would have refused.

The rules are those of the KIP's text (Goals, Public Interfaces) and of its prototype, apache/kafka pull request 8499.
Partitions are counted as replicas, of all topics but the internal ones.
"""

from __future__ import annotations

from schemas.wire.errors import (
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR,
    POLICY_VIOLATION,
    THROTTLING_QUOTA_EXCEEDED,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from udfs.columns.arrays import Ints
from udfs.kernels.kernel import kernel
from udfs.replay.partition_limits.placement.brokers import are_known
from udfs.replay.partition_limits.placement.java_random import reseed
from udfs.replay.partition_limits.placement.limited import DRAWN, place_limited
from udfs.replay.partition_limits.placement.striped import place_striped
from udfs.replay.partition_limits.request_limits import (
    additional,
    invalid,
    limited_by_request,
    start_request,
    within_quota,
)
from udfs.replay.partition_limits.schedule import UNLIMITED
from udfs.replay.partition_limits.state import (
    AS_CAPTURED,
    MAX_BROKER_PARTITIONS,
    MAX_PARTITIONS,
    MUTATION_QUOTA,
    NO_LIMIT,
    NOT_TRIED,
    REFUSED_BEFORE,
    REQUEST_PARTITIONS,
    Lane,
    refuse,
)
from udfs.replay.partition_limits.topics import (
    APPEAR,
    AUTO,
    DELETE,
    GROW,
    MOVE,
    NO_CHUNK,
    NOTHING,
    UNPLACED,
    VANISH,
    Changes,
    Topics,
    add_chunk,
    chunk_of,
    copy_counts,
    move_partition,
    remember,
    remove_topic,
)


@kernel
def put(lane: Lane, change: int, first: int, size: int, limit: int) -> int:
    """Put the change's replicas on the brokers changes.assigned[first : first + size]; the first broker that this takes
    above the limit, -1 for none.
    """
    changes, topics, work = lane.changes, lane.topics, lane.work
    for broker in range(len(work.added)):
        work.added[broker] = 0
    for i in range(size):
        broker = changes.assigned[first + i]
        topics.slots[changes.slot[change] + i] = broker
        work.added[broker] += 1
    for broker in range(len(work.added)):
        if work.added[broker] and topics.counts[broker] + work.added[broker] > limit:
            return broker
    return -1


@kernel
def broker_limit(lane: Lane, change: int) -> int:
    """max.broker.partitions as the change meets it."""
    return UNLIMITED if lane.changes.exempt[change] else int(lane.limits.broker[change])


@kernel
def take_assigned(lane: Lane, change: int, size: int) -> bool:
    """Put `size` replicas where the request says, unless that takes a broker it names above its limit."""
    changes, outcomes = lane.changes, lane.outcomes
    if changes.assigned_size[change] != size:
        return refuse(outcomes, change, INVALID_REPLICA_ASSIGNMENT, NO_LIMIT, 0, 0, size)
    limit = broker_limit(lane, change)
    full = put(lane, change, changes.assigned_at[change], size, limit)
    if full >= 0:
        there, more = lane.topics.counts[full], lane.work.added[full]
        outcomes.broker[change] = full
        refuse(outcomes, change, POLICY_VIOLATION, MAX_BROKER_PARTITIONS, limit, there, more)
    return full < 0


@kernel
def is_shown(changes: Changes, change: int, first: int, new: int, factor: int) -> bool:
    """Whether Metadata shows where these partitions of the change's topic are."""
    return first + new <= changes.shown_partitions[change] and factor == changes.shown_width[change]


@kernel
def place(lane: Lane, change: int, first: int, new: int, factor: int) -> bool:
    """Put the change's new partitions on brokers, into its slots: where the request says, else where Metadata shows
    them, unless that is above the limit, else where they are drawn. Returns whether that could be done.
    """
    changes = lane.changes
    if changes.assigned_at[change] >= 0:
        return take_assigned(lane, change, new * factor)
    if is_shown(changes, change, first, new, factor):
        shown = changes.shown_at[change] + first * factor
        if put(lane, change, shown, new * factor, broker_limit(lane, change)) < 0:
            return True
    return draw(lane, change, first, new, factor)


@kernel
def draw(lane: Lane, change: int, first: int, new: int, factor: int) -> bool:
    """Put the change's new partitions where Kafka's placer, or the proposal's, draws them, if the brokers are known.
    Returns whether that could be done.
    """
    brokers, topics, work, outcomes = lane.brokers, lane.topics, lane.work, lane.outcomes
    at, limit = lane.changes.slot[change], broker_limit(lane, change)
    reseed(work.rng, lane.changes.seed[change])
    if not are_known(brokers):
        for slot in range(at, at + new * factor):
            topics.slots[slot] = UNPLACED
        return True
    if limit == UNLIMITED and lane.limits.striped[0]:
        error = place_striped(brokers, work.stripes, work.rng, new, factor, topics.slots, at)
        return error == 0 or refuse(outcomes, change, error, NO_LIMIT, 0, 0, new * factor)
    placed = place_limited(
        brokers, topics.counts, limit, work.arranged, work.rng, DRAWN, first, new, factor, topics.slots, at
    )
    if placed < new:
        if limit == UNLIMITED:  # fewer brokers are up than replicas are wanted
            return refuse(outcomes, change, INVALID_REPLICATION_FACTOR, NO_LIMIT, 0, 0, new * factor)
        refuse(outcomes, change, POLICY_VIOLATION, MAX_BROKER_PARTITIONS, limit, topics.total[0], new * factor)
    return placed == new


@kernel
def make_partitions(lane: Lane, change: int) -> None:
    """CreateTopics, CreatePartitions and auto-creation."""
    changes, topics, outcomes = lane.changes, lane.topics, lane.outcomes
    topic, kind = changes.topic[change], changes.kind[change]
    if kind == AUTO and topics.there[topic] > 0:
        outcomes.reason[change] = NOT_TRIED
        return
    error = invalid(lane, change)
    if error:
        gone = error == UNKNOWN_TOPIC_OR_PARTITION and topics.refused[topic] == 1
        refuse(outcomes, change, error, REFUSED_BEFORE if gone else NO_LIMIT, 0, topics.there[topic], 0)
        return
    first, new = topics.there[topic], additional(changes, topics, change)
    factor = topics.factor[topic] if kind == GROW else changes.factor[change]
    outcomes.asked[change], outcomes.present[change] = new * factor, topics.total[0]
    made = limited_by_request(lane, change, new)
    done = made > 0 and fits(lane, change, made * factor) and place(lane, change, first, made, factor)
    if changes.validate_only[change]:
        return
    if done:
        add_chunk(changes, topics, change, first, made, factor)
        topics.there[topic], topics.factor[topic] = first + made, factor
    if kind != GROW:
        topics.refused[topic] = 0 if done else 1


@kernel
def fits(lane: Lane, change: int, replicas: int) -> bool:
    """max.partitions: is there room for so many replicas in the cluster, and in the change's slots?"""
    changes, outcomes, limit, there = lane.changes, lane.outcomes, lane.limits.total[change], lane.topics.total[0]
    if not changes.exempt[change] and there + replicas > limit:
        return refuse(outcomes, change, POLICY_VIOLATION, MAX_PARTITIONS, limit, there, replicas)
    slots = changes.slot[change + 1] - changes.slot[change]
    return replicas <= slots or refuse(outcomes, change, POLICY_VIOLATION, REQUEST_PARTITIONS, slots, 0, replicas)


@kernel
def reassign(lane: Lane, change: int) -> None:
    """AlterPartitionReassignments of one partition: only the replicas it gets anew have to fit; those it loses are gone
    when it is done, which a replay takes to be at once.
    """
    changes, topics, outcomes = lane.changes, lane.topics, lane.outcomes
    topic, width, at = changes.topic[change], changes.factor[change], changes.assigned_at[change]
    chunk = chunk_of(changes, topics, topic, changes.partition[change])
    if topics.there[topic] == 0 or chunk == NO_CHUNK:
        refuse_absent(lane, change)
        return
    if at < 0:  # a move is cancelled
        return
    if changes.assigned_size[change] != width:
        refuse(outcomes, change, INVALID_REPLICA_ASSIGNMENT, NO_LIMIT, 0, 0, width)
        return
    if not take_moved(lane, change, chunk):
        return
    growth = width - topics.width[chunk]
    outcomes.asked[change] = max(growth, 0)
    if growth > 0 and not fits(lane, change, growth):
        return
    move_partition(changes, topics, change, chunk)


@kernel
def take_moved(lane: Lane, change: int, chunk: int) -> bool:
    """Put the replicas of a partition of this chunk into the slots of its move, unless that takes a broker above its
    limit which has none of them yet.
    """
    changes, topics, limit = lane.changes, lane.topics, broker_limit(lane, change)
    had = changes.slot[chunk] + (changes.partition[change] - topics.first[chunk]) * topics.width[chunk]
    for i in range(changes.factor[change]):
        broker = changes.assigned[changes.assigned_at[change] + i]
        topics.slots[changes.slot[change] + i] = broker
        is_new = True
        for slot in range(had, had + topics.width[chunk]):
            is_new = is_new and topics.slots[slot] != broker
        there = topics.counts[broker]
        if is_new and there + 1 > limit:
            lane.outcomes.broker[change] = broker
            return refuse(lane.outcomes, change, POLICY_VIOLATION, MAX_BROKER_PARTITIONS, limit, there, 1)
    return True


@kernel
def refuse_absent(lane: Lane, change: int) -> None:
    """Note a refusal of what is about a topic that is not there, maybe because its creation was refused."""
    refused = lane.topics.refused[lane.changes.topic[change]] == 1
    refuse(lane.outcomes, change, UNKNOWN_TOPIC_OR_PARTITION, REFUSED_BEFORE if refused else NO_LIMIT, 0, 0, 0)


@kernel
def appear(changes: Changes, topics: Topics, change: int) -> None:
    """Have partitions that no captured request makes, where Metadata shows them."""
    topic, partitions, width = changes.topic[change], changes.partitions[change], changes.factor[change]
    for i in range(partitions * width):
        topics.slots[changes.slot[change] + i] = changes.assigned[changes.assigned_at[change] + i]
    add_chunk(changes, topics, change, changes.partition[change], partitions, width)
    topics.there[topic] += partitions
    topics.factor[topic] = width


@kernel
def delete_topic(lane: Lane, change: int) -> None:
    """DeleteTopics of one topic."""
    there = lane.topics.there[lane.changes.topic[change]]
    if there == 0:
        refuse_absent(lane, change)
    elif within_quota(lane, change, there):
        remove_topic(lane.changes, lane.topics, change)
    else:
        rate = int(lane.limits.mutation_rate[0])
        refuse(lane.outcomes, change, THROTTLING_QUOTA_EXCEEDED, MUTATION_QUOTA, rate, 0, there)


@kernel
def apply_change(lane: Lane, change: int) -> None:
    """Do one change in a lane, or refuse it."""
    changes, topics, outcomes = lane.changes, lane.topics, lane.outcomes
    topic, kind = changes.topic[change], changes.kind[change]
    outcomes.error[change], outcomes.reason[change], outcomes.broker[change] = 0, NO_LIMIT, -1
    outcomes.limit[change], outcomes.present[change], outcomes.asked[change] = 0, topics.total[0], 0
    remember(changes, topics, change)
    if kind == NOTHING:
        outcomes.reason[change] = NOT_TRIED
    elif changes.error[change]:
        refuse(outcomes, change, changes.error[change], AS_CAPTURED, 0, topics.total[0], 0)
    elif kind == APPEAR:
        appear(changes, topics, change)
    elif kind == VANISH:
        remove_topic(changes, topics, change)
    elif kind == MOVE:
        reassign(lane, change)
    elif kind == DELETE:
        delete_topic(lane, change)
    else:
        if changes.request[change] != lane.work.request[0]:
            start_request(lane, change)
        make_partitions(lane, change)
    outcomes.absent[change] = 1 if topics.refused[topic] == 1 and topics.there[topic] == 0 else 0


@kernel
def replay_lane(lane: Lane, sample_times: Ints, samples: Ints) -> None:
    """Every change in one lane. samples: int64[times, brokers], replicas by broker when each time has come."""
    taken, time = 0, lane.changes.time
    for change in range(len(time)):
        while taken < len(sample_times) and sample_times[taken] < time[change]:
            copy_counts(lane.topics.counts, samples[taken])
            taken += 1
        apply_change(lane, change)
    for left in range(taken, len(sample_times)):
        copy_counts(lane.topics.counts, samples[left])
