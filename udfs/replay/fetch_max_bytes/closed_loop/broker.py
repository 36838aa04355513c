"""The broker of the closed loop: what a fetch finds, when it is answered, and whether a quota holds its records back.

What a fetch finds follows kafka.server.ReplicaManager.readFromLog. When it is answered follows
ReplicaManager.fetchMessages and kafka.server.DelayedFetch.tryComplete (Kafka 4.3).
"""

from __future__ import annotations

from udfs.columns.arrays import Record
from udfs.columns.time_units import US_PER_MS
from udfs.kernels.kernel import kernel
from udfs.replay.fetch_max_bytes.closed_loop.state import ReaderSim, bytes_of_batches, readable_to
from udfs.replay.fetch_max_bytes.quota_meter import PARTITION_BYTES, RESPONSE_BYTES, TOPIC_BYTES, throttle_ms
from udfs.replay.fetch_max_bytes.read_from_log import bytes_read
from udfs.replay.shared.lanes import AS_CAPTURED


@kernel
def partition_limit(partition: Record, rules: Record) -> int:
    """The most bytes that a fetch gets of a partition: its partition_max_bytes in the lane. rules: a row of RULES."""
    limit: int = rules.partition_max_bytes
    captured: int = partition.partition_max_bytes
    return captured if limit == AS_CAPTURED else limit


@kernel
def end_of_read(sim: ReaderSim, begin: int, end: int) -> int:
    """Where a read from batch `begin` towards `end` ends: at the latest with the segment (LogSegment.read)."""
    return min(end, sim.unit.batches[begin].segment_end) if begin < end else end


@kernel
def read_from_log(sim: ReaderSim, lane: int, node: int, time: int) -> int:
    """ReplicaManager.readFromLog for the node's request at `time` (us); writes `returned` of the answers.

    Returns the record bytes of all partitions. A request without max_bytes (Fetch before version 3) falls under
    FetchParams.hardMaxBytesLimit: its first batch may be cut.
    """
    rules, state = sim.rules[node, lane], sim.state
    first = sim.unit.nodes[node].first_partition
    is_hard = rules.is_hard == 1
    limit, total, min_one = rules.limit, 0, not is_hard
    for i in range(first, first + state.nodes[node].requested):
        p = state.orders.requested[i]
        begin = state.partitions[p].position
        end = end_of_read(sim, begin, readable_to(sim, p, time))
        available = bytes_of_batches(sim, begin, end)
        first_batch = bytes_of_batches(sim, begin, begin + 1) if end > begin else 0
        adjusted = min(partition_limit(sim.unit.partitions[p], rules), limit)
        returned = min(available, adjusted) if is_hard else bytes_read(adjusted, first_batch, available, min_one)
        state.answers[i].returned = returned
        total += returned
        limit = max(0, limit - returned)
        min_one = min_one and returned == 0 and rules.only_first == 0
    return total


@kernel
def answered_at(sim: ReaderSim, lane: int, node: int, returned: int, earliest: int) -> int:
    """When the broker answers a fetch that is sent now (us): DelayedFetch.tryComplete.

    earliest: the earliest time of an answer (us). returned: the bytes that an answer would have then. A parked fetch
    counts the available bytes up to each partition's limit, and ignores the request's limit. It is answered at once if
    a partition's bound is in a later segment than its fetch_offset, or before its fetch_offset (BEYOND_BOUND).
    """
    rules, state = sim.rules[node, lane], sim.state
    if state.nodes[node].now < state.nodes[node].beyond_until:
        return earliest
    first, time, total = sim.unit.nodes[node].first_partition, earliest, returned
    needed, deadline = min(rules.min_bytes, rules.limit), state.nodes[node].now + rules.max_wait_us
    while total < needed and time < deadline:
        total, next_append = 0, deadline
        for i in range(first, first + state.nodes[node].requested):
            p = state.orders.requested[i]
            begin, end = state.partitions[p].position, readable_to(sim, p, time)
            if end_of_read(sim, begin, end) < end:
                total = needed
            total += min(bytes_of_batches(sim, begin, end), partition_limit(sim.unit.partitions[p], rules))
            if end < sim.unit.partitions[p].end_batch:
                next_append = min(next_append, sim.unit.batches[end].visible_at)
        if total < needed:
            time = next_append
    return time


@kernel
def throttle_response(sim: ReaderSim, lane: int, node: int, returned: int) -> bool:
    """Count the response that was read against the client's quota; returns whether it exceeds the quota.

    If it does, the response is sent without its partitions, and the client waits (FetchContext.getThrottledResponse).
    The quota is measured by the clients' clock.
    """
    rules, state, first = sim.rules[node, lane], sim.state.nodes[node], sim.unit.nodes[node].first_partition
    names_all, named = rules.in_session == 0 or state.opens_session == 1, 0
    for i in range(first, first + state.requested):
        named += 1 if names_all or sim.state.answers[i].returned > 0 else 0
    size = RESPONSE_BYTES + min(named, 1) * TOPIC_BYTES + named * PARTITION_BYTES + returned
    waits = throttle_ms(sim.state.meters, rules.meter, rules, size, int(state.read_at / rules.speed) // US_PER_MS)
    if waits == 0:
        return False
    sim.outcome.lanes[lane].throttle_ms += waits
    state.throttle_us = round(rules.speed * waits * US_PER_MS)
    for i in range(first, first + state.requested):
        sim.state.answers[i].returned = 0
    return True
