"""What limits partitions in Kafka as it runs: createTopics and createPartitions of
org.apache.kafka.controller.ReplicationControlManager (4.3.1 and 4.4), and the controller mutation quota (KIP-599).
"""

from __future__ import annotations

from schemas.wire.errors import (
    INVALID_PARTITIONS,
    INVALID_REPLICATION_FACTOR,
    POLICY_VIOLATION,
    THROTTLING_QUOTA_EXCEEDED,
    TOPIC_ALREADY_EXISTS,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from udfs.kernels.kernel import kernel
from udfs.replay.partition_limits.placement.brokers import are_known
from udfs.replay.partition_limits.state import (
    MOST_PER_REQUEST,
    MUTATION_QUOTA,
    NO_LIMIT,
    REQUEST_PARTITIONS,
    REQUEST_RECORDS,
    Lane,
    Workspace,
    refuse,
)
from udfs.replay.partition_limits.topics import AUTO, GROW, Changes, Topics

TO_CONTROLLER_US = 1000
"""What a request takes at least to the controller, so that what a throttle is for is made up for when it comes."""


@kernel
def invalid(lane: Lane, change: int) -> int:
    """The error of Kafka's own checks of a CreateTopics or CreatePartitions topic, 0 for none."""
    changes, topics, brokers = lane.changes, lane.topics, lane.brokers
    topic, kind = changes.topic[change], changes.kind[change]
    if kind == GROW:
        if topics.there[topic] == 0:
            return UNKNOWN_TOPIC_OR_PARTITION
        return INVALID_PARTITIONS if changes.partitions[change] <= topics.there[topic] else 0
    if topics.there[topic] > 0:
        return TOPIC_ALREADY_EXISTS
    if changes.factor[change] <= 0 or (are_known(brokers) and changes.factor[change] > len(brokers.rack)):
        return INVALID_REPLICATION_FACTOR
    return INVALID_PARTITIONS if changes.partitions[change] <= 0 else 0


@kernel
def additional(changes: Changes, topics: Topics, change: int) -> int:
    """Partitions that the change would make, not below 0."""
    there = topics.there[changes.topic[change]] if changes.kind[change] == GROW else 0
    return max(0, changes.partitions[change] - there)


@kernel
def start_request(lane: Lane, at: int) -> None:
    """Look at the request whose first change this is: does one of today's limits refuse it as a whole?"""
    changes, limits, work = lane.changes, lane.limits, lane.work
    kind, request = changes.kind[at], changes.request[at]
    partitions, records = 0, 0
    change = at
    while change < len(changes.request) and changes.request[change] == request:
        there = changes.error[change] == 0 and invalid(lane, change) == 0
        new = additional(changes, lane.topics, change)
        partitions += new if kind != GROW or there else 0
        records += new + 1 + changes.configs[change] if there else 0
        change += 1
    work.request[0], work.request[1], work.request[2] = request, NO_LIMIT, 0
    if limits.per_request[0] and (kind != GROW or limits.growth_checked[0]):
        if partitions > MOST_PER_REQUEST:
            work.request[1], work.request[2] = REQUEST_PARTITIONS, partitions
        elif kind != GROW and records > MOST_PER_REQUEST:
            work.request[1], work.request[2] = REQUEST_RECORDS, records


@kernel
def time_read(changes: Changes, work: Workspace, change: int) -> int:
    """When the broker reads the change's request (us): a throttled connection has to wait."""
    if work.read[0] != changes.request[change]:
        work.read[0] = changes.request[change]
        work.read[1] = max(changes.time[change], work.muted[changes.connection[change]])
    return int(work.read[1])


@kernel
def within_quota(lane: Lane, change: int, cost: int) -> bool:
    """KIP-599's token bucket: a strict request is refused where the bucket is below 0 already, and else charged.

    Who finds it below 0, or with an old version leaves it so, is throttled until it would be 0 again: the broker does
    not read what comes behind on the connection (RequestHandlerHelper.sendForwardedResponse, 4.3.1). A Metadata request
    that makes a topic is not.
    """
    changes, limits, work = lane.changes, lane.limits, lane.work
    rate = limits.mutation_rate[0]
    if rate <= 0:
        return True
    client, now = changes.client[change], time_read(changes, work, change)
    since = max(0, now - work.token_time[client])
    work.tokens[client] = min(limits.mutation_burst[0], work.tokens[client] + since * rate / 1_000_000)
    work.token_time[client] = max(now, work.token_time[client])
    allowed = not changes.strict[change] or work.tokens[client] >= 0
    if allowed:
        work.tokens[client] -= cost
    if work.tokens[client] < 0 and not (allowed and changes.strict[change]) and changes.kind[change] != AUTO:
        throttle = int(-work.tokens[client] / rate * 1_000_000)
        work.muted[changes.connection[change]] = now + throttle + TO_CONTROLLER_US
    return allowed


@kernel
def limited_by_request(lane: Lane, change: int, new: int) -> int:
    """Today's limits: how many of the new partitions are made, noting a refusal; -1 for none at all."""
    limits, work, outcomes = lane.limits, lane.work, lane.outcomes
    if work.request[1]:
        refuse(outcomes, change, POLICY_VIOLATION, work.request[1], MOST_PER_REQUEST, 0, work.request[2])
        return -1
    if not within_quota(lane, change, new):
        refuse(outcomes, change, THROTTLING_QUOTA_EXCEEDED, MUTATION_QUOTA, int(limits.mutation_rate[0]), 0, new)
        return -1
    if not limits.per_request[0] or lane.changes.kind[change] != GROW:
        return new
    # Up to 4.3 the record too many ends the topic's part with an error, and those before it are committed.
    made: int = min(new, MOST_PER_REQUEST - work.request[2])
    work.request[2] += made
    if made < new:
        refuse(outcomes, change, UNKNOWN_SERVER_ERROR, REQUEST_RECORDS, MOST_PER_REQUEST, work.request[2] - made, new)
    return made
