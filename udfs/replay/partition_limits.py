"""KIP-578 (a proposal) over the changes to a cluster's topics: what limits on partitions would have refused.

Beside it, what limits partitions in Kafka as it runs: kafka-semantics 4.1 and 4.2, ReplicationControlManager (4.3.1).
Partitions are counted as replicas, of all topics but the internal ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.replay.brokers import Brokers
from udfs.replay.java_random import java_random, reseed
from udfs.replay.limited_placer import DRAWN, UNLIMITED, Arranged, arranged_for, place_limited
from udfs.replay.striped_placer import Stripes, place_striped, stripes_for
from udfs.replay.topic_state import (
    APPEAR,
    AUTO,
    DELETE,
    GROW,
    MOVE,
    NO_CHUNK,
    NOTHING,
    UNPLACED,
    Changes,
    Topics,
    add_chunk,
    chunk_of,
    move_partition,
    remember,
    remove_topic,
)
from udfs.wire.arrays import Floats, Ints
from udfs.wire.kernel import kernel

UNKNOWN_SERVER_ERROR, UNKNOWN_TOPIC_OR_PARTITION, TOPIC_ALREADY_EXISTS, INVALID_PARTITIONS = -1, 3, 36, 37
INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT, POLICY_VIOLATION, THROTTLING_QUOTA_EXCEEDED = 38, 39, 44, 89
NO_LIMIT, MAX_BROKER_PARTITIONS, MAX_PARTITIONS, REQUEST_PARTITIONS, REQUEST_RECORDS, MUTATION_QUOTA = range(6)
REFUSED_BEFORE, AS_CAPTURED, NOT_TRIED = 6, 7, 8
"""What decided about a change; 0: Kafka's own checks alone."""

MOST_PER_REQUEST = 10_000
"""MAX_PARTITIONS_PER_BATCH and MAX_RECORDS_PER_USER_OP."""


class Limits(NamedTuple):
    """What a lane allows: the limits in force at each change, int64[changes], and numbers."""

    broker: Ints  # max.broker.partitions, UNLIMITED for none
    total: Ints  # max.partitions
    per_request: Ints  # int64[1] from here on. 1: today's limits on a request hold
    growth_checked: Ints  # 1: a CreatePartitions request is refused before it makes too many (4.4)
    striped: Ints  # 1: placed by StripedReplicaPlacer, unless max.broker.partitions is set
    mutation_rate: Floats  # float64[1]: controller_mutation_rate in partitions/s, 0 for none
    mutation_burst: Floats


class Outcomes(NamedTuple):
    """What became of each change in a lane, int64[changes]."""

    error: Ints  # Kafka's error code, 0: done
    reason: Ints  # what decided
    limit: Ints  # the limit's value
    present: Ints  # what there was of what it limits
    asked: Ints  # what the change asked for
    broker: Ints  # the broker that would be above the limit, -1 where it is no single one


class Workspace(NamedTuple):
    """Working memory of a lane."""

    stripes: Stripes
    arranged: Arranged
    rng: Ints
    added: Ints  # int64[brokers]
    request: Ints  # int64[3]: the request at hand, what refuses it as a whole, records made so far
    tokens: Floats  # by client: what is left of its controller mutation quota
    token_time: Ints


@kernel
def refuse(outcomes: Outcomes, change: int, error: int, reason: int, limit: int, present: int, asked: int) -> bool:
    """Note a refusal. Returns False."""
    outcomes.error[change], outcomes.reason[change], outcomes.limit[change] = error, reason, limit
    outcomes.present[change], outcomes.asked[change] = present, asked
    return False


@kernel
def invalid(changes: Changes, topics: Topics, brokers: Brokers, change: int) -> int:
    """The error of Kafka's own checks of a CreateTopics or CreatePartitions topic, 0 for none."""
    topic, kind = changes.topic[change], changes.kind[change]
    if kind == GROW:
        if topics.there[topic] == 0:
            return UNKNOWN_TOPIC_OR_PARTITION
        return INVALID_PARTITIONS if changes.partitions[change] <= topics.there[topic] else 0
    if topics.there[topic] > 0:
        return TOPIC_ALREADY_EXISTS
    if changes.factor[change] <= 0 or (len(brokers.rack) > 0 and changes.factor[change] > len(brokers.rack)):
        return INVALID_REPLICATION_FACTOR
    return INVALID_PARTITIONS if changes.partitions[change] <= 0 else 0


@kernel
def additional(changes: Changes, topics: Topics, change: int) -> int:
    """Partitions that the change would make, not below 0."""
    there = topics.there[changes.topic[change]] if changes.kind[change] == GROW else 0
    new: int = max(0, changes.partitions[change] - there)
    return new


@kernel
def start_request(changes: Changes, topics: Topics, brokers: Brokers, limits: Limits, work: Workspace, at: int) -> None:
    """Look at the request whose first change this is: does one of today's limits refuse it as a whole?"""
    kind, request = changes.kind[at], changes.request[at]
    partitions, records = 0, 0
    change = at
    while change < len(changes.request) and changes.request[change] == request:
        there = changes.error[change] == 0 and invalid(changes, topics, brokers, change) == 0
        new = additional(changes, topics, change)
        partitions += new if kind != GROW or there else 0
        records += new + 1 if there else 0
        change += 1
    work.request[0], work.request[1], work.request[2] = request, NO_LIMIT, 0
    if limits.per_request[0] and (kind != GROW or limits.growth_checked[0]):
        if partitions > MOST_PER_REQUEST:
            work.request[1], work.request[2] = REQUEST_PARTITIONS, partitions
        elif kind != GROW and records > MOST_PER_REQUEST:
            work.request[1], work.request[2] = REQUEST_RECORDS, records


@kernel
def within_quota(changes: Changes, limits: Limits, work: Workspace, change: int, cost: int) -> bool:
    """KIP-599's token bucket: a strict request is refused where the bucket is below 0 already, and else charged."""
    if limits.mutation_rate[0] <= 0:
        return True
    client = changes.client[change]
    since = max(0, changes.time[change] - work.token_time[client])
    work.tokens[client] = min(
        limits.mutation_burst[0], work.tokens[client] + since * limits.mutation_rate[0] / 1_000_000
    )
    work.token_time[client] = changes.time[change]
    if changes.strict[change] and work.tokens[client] < 0:
        return False
    work.tokens[client] -= cost
    return True


@kernel
def take_assigned(
    changes: Changes, topics: Topics, limits: Limits, work: Workspace, outcomes: Outcomes, change: int, size: int
) -> bool:
    """Put `size` replicas where the request says, unless that takes a broker it names above its limit."""
    if changes.assigned_size[change] != size:
        return refuse(outcomes, change, INVALID_REPLICA_ASSIGNMENT, NO_LIMIT, 0, 0, size)
    for broker in range(len(work.added)):
        work.added[broker] = 0
    for i in range(size):
        broker = changes.assigned[changes.assigned_at[change] + i]
        topics.slots[changes.slot[change] + i] = broker
        work.added[broker] += 1
    for broker in range(len(work.added)):
        there = topics.counts[broker]
        if work.added[broker] and not changes.exempt[change] and there + work.added[broker] > limits.broker[change]:
            outcomes.broker[change] = broker
            return refuse(
                outcomes, change, POLICY_VIOLATION, MAX_BROKER_PARTITIONS, limits.broker[change], there,
                work.added[broker],
            )  # fmt: skip
    return True


@kernel
def place(
    changes: Changes, topics: Topics, brokers: Brokers, limits: Limits, work: Workspace, outcomes: Outcomes,
    change: int, first: int, new: int, factor: int,
) -> bool:  # fmt: skip
    """Put the change's new partitions on brokers, into its slots. Returns whether that could be done."""
    at, limit = changes.slot[change], UNLIMITED if changes.exempt[change] else limits.broker[change]
    if changes.assigned_at[change] >= 0:
        return take_assigned(changes, topics, limits, work, outcomes, change, new * factor)
    reseed(work.rng, changes.seed[change])
    if len(brokers.rack) == 0:
        for slot in range(at, at + new * factor):
            topics.slots[slot] = UNPLACED
        return True
    if limit == UNLIMITED and limits.striped[0]:
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
def limited_by_request(
    changes: Changes, topics: Topics, limits: Limits, work: Workspace, outcomes: Outcomes, change: int, new: int
) -> int:
    """Today's limits: how many of the new partitions are made, noting a refusal; -1 for none at all."""
    if work.request[1]:
        refuse(outcomes, change, POLICY_VIOLATION, work.request[1], MOST_PER_REQUEST, 0, work.request[2])
        return -1
    if not within_quota(changes, limits, work, change, new):
        refuse(outcomes, change, THROTTLING_QUOTA_EXCEEDED, MUTATION_QUOTA, int(limits.mutation_rate[0]), 0, new)
        return -1
    if not limits.per_request[0] or changes.kind[change] != GROW:
        return new
    # Up to 4.3 the record too many ends the topic's part with an error, and those before it are committed.
    made: int = min(new, MOST_PER_REQUEST - work.request[2])
    work.request[2] += made
    if made < new:
        refuse(outcomes, change, UNKNOWN_SERVER_ERROR, REQUEST_RECORDS, MOST_PER_REQUEST, work.request[2] - made, new)
    return made


@kernel
def make_partitions(
    changes: Changes, topics: Topics, brokers: Brokers, limits: Limits, work: Workspace, outcomes: Outcomes, change: int
) -> None:
    """CreateTopics, CreatePartitions and auto-creation."""
    topic, kind = changes.topic[change], changes.kind[change]
    if kind == AUTO and topics.there[topic] > 0:
        outcomes.reason[change] = NOT_TRIED
        return
    error = invalid(changes, topics, brokers, change)
    if error:
        gone = error == UNKNOWN_TOPIC_OR_PARTITION and topics.refused[topic] == 1
        refuse(outcomes, change, error, REFUSED_BEFORE if gone else NO_LIMIT, 0, topics.there[topic], 0)
        return
    first, new = topics.there[topic], additional(changes, topics, change)
    factor = topics.factor[topic] if kind == GROW else changes.factor[change]
    outcomes.asked[change], outcomes.present[change] = new * factor, topics.total[0]
    made = limited_by_request(changes, topics, limits, work, outcomes, change, new)
    done = (
        made > 0
        and fits(changes, topics, limits, outcomes, change, made * factor)
        and place(changes, topics, brokers, limits, work, outcomes, change, first, made, factor)
    )
    if changes.validate_only[change]:
        return
    if done:
        add_chunk(changes, topics, change, first, made, factor)
        topics.there[topic], topics.factor[topic] = first + made, factor
    if kind != GROW:
        topics.refused[topic] = 0 if done else 1


@kernel
def fits(changes: Changes, topics: Topics, limits: Limits, outcomes: Outcomes, change: int, replicas: int) -> bool:
    """max.partitions: is there room for so many replicas in the cluster, and in the change's slots?"""
    if not changes.exempt[change] and topics.total[0] + replicas > limits.total[change]:
        return refuse(
            outcomes, change, POLICY_VIOLATION, MAX_PARTITIONS, limits.total[change], topics.total[0], replicas
        )
    slots = changes.slot[change + 1] - changes.slot[change]
    return replicas <= slots or refuse(outcomes, change, POLICY_VIOLATION, REQUEST_PARTITIONS, slots, 0, replicas)


@kernel
def reassign(changes: Changes, topics: Topics, limits: Limits, outcomes: Outcomes, change: int) -> None:
    """AlterPartitionReassignments of one partition: only the replicas it gets anew have to fit; those it loses are gone
    when it is done, which a replay takes to be at once.
    """
    topic, width, at = changes.topic[change], changes.factor[change], changes.assigned_at[change]
    chunk = chunk_of(changes, topics, topic, changes.partition[change])
    if topics.there[topic] == 0 or chunk == NO_CHUNK:
        refused = topics.refused[topic] == 1
        refuse(outcomes, change, UNKNOWN_TOPIC_OR_PARTITION, REFUSED_BEFORE if refused else NO_LIMIT, 0, 0, 0)
        return
    if at < 0:  # a move is cancelled
        return
    if changes.assigned_size[change] != width:
        refuse(outcomes, change, INVALID_REPLICA_ASSIGNMENT, NO_LIMIT, 0, 0, width)
        return
    had = changes.slot[chunk] + (changes.partition[change] - topics.first[chunk]) * topics.width[chunk]
    for i in range(width):
        broker = changes.assigned[at + i]
        topics.slots[changes.slot[change] + i] = broker
        is_new = True
        for slot in range(had, had + topics.width[chunk]):
            is_new = is_new and topics.slots[slot] != broker
        if is_new and not changes.exempt[change] and topics.counts[broker] + 1 > limits.broker[change]:
            outcomes.broker[change] = broker
            refuse(
                outcomes, change, POLICY_VIOLATION, MAX_BROKER_PARTITIONS, limits.broker[change],
                topics.counts[broker], 1,
            )  # fmt: skip
            return
    growth = width - topics.width[chunk]
    outcomes.asked[change] = max(growth, 0)
    if growth > 0 and not fits(changes, topics, limits, outcomes, change, growth):
        return
    move_partition(changes, topics, change, chunk)


@kernel
def apply_change(
    changes: Changes, topics: Topics, brokers: Brokers, limits: Limits, work: Workspace, outcomes: Outcomes, change: int
) -> None:
    """Do one change in a lane, or refuse it."""
    topic, kind = changes.topic[change], changes.kind[change]
    outcomes.error[change], outcomes.reason[change], outcomes.broker[change] = 0, NO_LIMIT, -1
    outcomes.limit[change], outcomes.present[change], outcomes.asked[change] = 0, topics.total[0], 0
    remember(changes, topics, change)
    if kind == NOTHING:
        outcomes.reason[change] = NOT_TRIED
    elif changes.error[change]:
        refuse(outcomes, change, changes.error[change], AS_CAPTURED, 0, topics.total[0], 0)
    elif kind == APPEAR:
        for i in range(changes.partitions[change] * changes.factor[change]):
            topics.slots[changes.slot[change] + i] = changes.assigned[changes.assigned_at[change] + i]
        add_chunk(
            changes, topics, change, changes.partition[change], changes.partitions[change], changes.factor[change]
        )
        topics.there[topic] += changes.partitions[change]
        topics.factor[topic] = changes.factor[change]
    elif kind == MOVE:
        reassign(changes, topics, limits, outcomes, change)
    elif kind == DELETE:
        if topics.there[topic] == 0:
            refused = topics.refused[topic] == 1
            refuse(outcomes, change, UNKNOWN_TOPIC_OR_PARTITION, REFUSED_BEFORE if refused else NO_LIMIT, 0, 0, 0)
        elif within_quota(changes, limits, work, change, topics.there[topic]):
            remove_topic(changes, topics, change)
        else:
            rate = int(limits.mutation_rate[0])
            refuse(outcomes, change, THROTTLING_QUOTA_EXCEEDED, MUTATION_QUOTA, rate, 0, topics.there[topic])
    else:
        if changes.request[change] != work.request[0]:
            start_request(changes, topics, brokers, limits, work, change)
        make_partitions(changes, topics, brokers, limits, work, outcomes, change)


@kernel
def replay_lane(
    changes: Changes, topics: Topics, brokers: Brokers, limits: Limits, work: Workspace, outcomes: Outcomes,
    sample_times: Ints, samples: Ints,
) -> None:  # fmt: skip
    """Every change in one lane. samples: int64[times, brokers], replicas by broker when each time has come."""
    taken = 0
    for change in range(len(changes.time)):
        while taken < len(sample_times) and sample_times[taken] < changes.time[change]:
            for broker in range(len(topics.counts)):
                samples[taken, broker] = topics.counts[broker]
            taken += 1
        apply_change(changes, topics, brokers, limits, work, outcomes, change)
    for left in range(taken, len(sample_times)):
        for broker in range(len(topics.counts)):
            samples[left, broker] = topics.counts[broker]


def no_outcomes(changes: Changes) -> Outcomes:
    """Room for what becomes of the changes."""
    return Outcomes(*(np.zeros(len(changes.time), np.int64) for _ in Outcomes._fields))


def unlimited(changes: int) -> Limits:
    """No limit on so many changes, placement as the proposal has it."""
    none = np.zeros(1, np.int64)
    free = (np.full(changes, UNLIMITED), np.full(changes, UNLIMITED))
    return Limits(*free, none, none, none, np.zeros(1), np.zeros(1))


def workspace(brokers: Brokers, changes: Changes, burst: float = 0.0) -> Workspace:
    """Working memory; every client's bucket is full with `burst` partitions at first."""
    clients = int(changes.client.max(initial=0)) + 1
    first = int(changes.time.min(initial=0))
    return Workspace(
        stripes_for(brokers), arranged_for(brokers), java_random(0), np.zeros(len(brokers.rack), np.int64),
        np.array([-1, 0, 0], np.int64), np.full(clients, burst), np.full(clients, first),
    )  # fmt: skip
