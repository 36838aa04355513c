"""The limits on partitions in Kafka as it runs: createTopics and createPartitions of
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
from udfs.columns.arrays import Record
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import US_PER_S
from udfs.kernels.kernel import kernel
from udfs.replay.partition_limits.placement.brokers import are_known
from udfs.replay.partition_limits.state import (
    AUTO_CREATE,
    GROW,
    MUTATION_QUOTA,
    NO_LIMIT,
    REQUEST_PARTITIONS,
    REQUEST_RECORDS,
    ClusterSim,
)

MAX_PER_REQUEST = 10_000
"""MAX_PARTITIONS_PER_BATCH and MAX_RECORDS_PER_USER_OP."""
TO_CONTROLLER_US = 1000
"""The shortest time of a request to the controller; in it, the quota recovers before a throttled request arrives."""


@kernel
def note_refusal(
    outcome: Record, error: int, decided_by: int, limit: int = 0, present: int = 0, requested: int = 0
) -> bool:
    """Note a refusal. Returns False."""
    outcome.error, outcome.decided_by, outcome.limit = error, decided_by, limit
    outcome.present, outcome.requested = present, requested
    return False


@kernel
def error_of_checks(sim: ClusterSim, change: int) -> int:
    """The error of Kafka's own checks of a topic in a CreateTopics or CreatePartitions request, 0 for none."""
    record = sim.changes[change]
    partitions = sim.topics[record.topic].partitions
    if record.kind == GROW:
        if partitions == 0:
            return UNKNOWN_TOPIC_OR_PARTITION
        return INVALID_PARTITIONS if record.partitions <= partitions else 0
    if partitions > 0:
        return TOPIC_ALREADY_EXISTS
    factor = record.replication_factor
    if factor <= 0 or (are_known(sim.brokers) and factor > len(sim.brokers.table)):
        return INVALID_REPLICATION_FACTOR
    return INVALID_PARTITIONS if record.partitions <= 0 else 0


@kernel
def count_new_partitions(sim: ClusterSim, change: int) -> int:
    """How many partitions the change would make; 0 if it would add none."""
    record = sim.changes[change]
    present = sim.topics[record.topic].partitions if record.kind == GROW else 0
    return max(0, record.partitions - present)


@kernel
def check_request(sim: ClusterSim, lane: int, first: int) -> None:
    """Check the request whose first change is `first`: does one of Kafka's current limits refuse it as a whole?"""
    settings, cluster, kind = sim.settings[lane], sim.cluster[0], sim.changes[first].kind
    cluster.checked_request = sim.changes[first].request
    partitions, records, change = 0, 0, first
    while change < len(sim.changes) and sim.changes[change].request == cluster.checked_request:
        is_valid = sim.changes[change].captured_error == 0 and error_of_checks(sim, change) == 0
        new = count_new_partitions(sim, change)
        partitions += new if kind != GROW or is_valid else 0
        records += new + 1 + sim.changes[change].configs if is_valid else 0
        change += 1
    cluster.request_refused_by, cluster.request_records = NO_LIMIT, 0
    if settings.has_kraft and (kind != GROW or settings.checks_growth):
        if partitions > MAX_PER_REQUEST:
            cluster.request_refused_by, cluster.request_records = REQUEST_PARTITIONS, partitions
        elif kind != GROW and records > MAX_PER_REQUEST:
            cluster.request_refused_by, cluster.request_records = REQUEST_RECORDS, records


@kernel
def time_read(sim: ClusterSim, change: int) -> int:
    """When the broker reads the change's request (us). A request on a throttled connection has to wait."""
    record, cluster = sim.changes[change], sim.cluster[0]
    if cluster.read_request != record.request:
        cluster.read_request = record.request
        cluster.read_time = max(record.time, sim.connections[record.connection].muted_until)
    return int(cluster.read_time)


@kernel
def is_within_quota(sim: ClusterSim, lane: int, change: int, cost: int) -> bool:
    """KIP-599's token bucket: a strict request is refused if the bucket is already below 0, and charged otherwise.

    A client that finds the bucket below 0, or brings it below 0 with an old version, is throttled until the bucket
    would be at 0 again: the broker does not read the next request of the connection
    (RequestHandlerHelper.sendForwardedResponse, 4.3.1). A client whose Metadata request makes a topic is not throttled.
    If a broker makes the topic without the controller, the quota does not apply.
    """
    settings, record = sim.settings[lane], sim.changes[change]
    rate = settings.mutation_rate
    if rate <= 0 or record.by_broker:
        return True
    bucket, time = sim.clients[record.client], time_read(sim, change)
    since = max(0, time - bucket.token_time)
    bucket.tokens = min(settings.mutation_burst, bucket.tokens + since * rate / US_PER_S)
    bucket.token_time = max(time, bucket.token_time)
    allowed = not record.is_strict or bucket.tokens >= 0
    if allowed:
        bucket.tokens -= cost
    if bucket.tokens < 0 and not (allowed and record.is_strict) and record.kind != AUTO_CREATE:
        throttle = int(-bucket.tokens / rate * US_PER_S)
        sim.connections[record.connection].muted_until = time + throttle + TO_CONTROLLER_US
    return allowed


@kernel
def refuse_by_quota(sim: ClusterSim, lane: int, change: int, cost: int) -> bool:
    """Note that the controller mutation quota refuses the change. Returns False."""
    rate = int(sim.settings[lane].mutation_rate)
    return note_refusal(
        sim.outcomes[lane, change], THROTTLING_QUOTA_EXCEEDED, MUTATION_QUOTA, limit=rate, requested=cost
    )


@kernel
def partitions_allowed(sim: ClusterSim, lane: int, change: int, new: int) -> int:
    """How many of the new partitions Kafka's current limits allow; NONE if they refuse the change, which is noted."""
    cluster, outcome = sim.cluster[0], sim.outcomes[lane, change]
    records = cluster.request_records
    if cluster.request_refused_by:
        note_refusal(outcome, POLICY_VIOLATION, cluster.request_refused_by, limit=MAX_PER_REQUEST, requested=records)
        return NONE
    if not is_within_quota(sim, lane, change, new):
        refuse_by_quota(sim, lane, change, new)
        return NONE
    if not sim.settings[lane].has_kraft or sim.changes[change].kind != GROW:
        return new
    # Up to 4.3, the first record above the limit ends the topic's part with an error; earlier ones are committed.
    made: int = min(new, MAX_PER_REQUEST - records)
    cluster.request_records += made
    if made < new:
        note_refusal(
            outcome, UNKNOWN_SERVER_ERROR, REQUEST_RECORDS, limit=MAX_PER_REQUEST, present=records, requested=new
        )
    return made
