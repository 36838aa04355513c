"""The broker of the closed loop: what a fetch finds, and when it is answered.

What it finds follows kafka.server.ReplicaManager.readFromLog; when it is answered follows ReplicaManager.fetchMessages
and kafka.server.DelayedFetch.tryComplete (Kafka 4.3).
"""

from __future__ import annotations

from udfs.kernels.kernel import kernel
from udfs.replay.fetch_max_bytes.closed_unit import Rules, Unit, Work, in_segment, readable_to
from udfs.replay.fetch_max_bytes.fetch_read import read_partition
from udfs.replay.shared.lanes import AS_CAPTURED


@kernel
def most_of(unit: Unit, rules: Rules, lane: int, partition: int) -> int:
    """The partition's limit in the lane."""
    most: int = rules.partition_max_bytes[lane]
    captured: int = unit.partition_max_bytes[partition]
    return captured if most == AS_CAPTURED else most


@kernel
def read(unit: Unit, rules: Rules, lane: int, work: Work, asked: int, time: int) -> int:
    """ReplicaManager.readFromLog for the request at that time, into work.got; returns record bytes in all.

    A request without max_bytes (Fetch before 3) is under FetchParams.hardMaxBytesLimit: its first batch may be cut.
    """
    is_hard = rules.is_hard[lane] == 1
    limit, total, min_one = rules.limit[lane], 0, not is_hard
    for i in range(asked):
        p = work.request[i]
        begin, end = work.position[p], readable_to(unit, work, p, time)
        end = in_segment(unit, begin, end)
        available = unit.starts[end] - unit.starts[begin]
        first_batch = unit.starts[begin + 1] - unit.starts[begin] if end > begin else 0
        adjusted = min(most_of(unit, rules, lane, p), limit)
        got = min(available, adjusted) if is_hard else read_partition(adjusted, first_batch, available, min_one)
        work.got[i] = got
        total += got
        limit = max(0, limit - got)
        min_one = min_one and got == 0 and rules.only_first[lane] == 0
    return total


@kernel
def answered_at(unit: Unit, rules: Rules, lane: int, work: Work, asked: int, total: int, now: int) -> int:
    """When the broker answers a fetch that came now and found `total` bytes: DelayedFetch.tryComplete.

    A parked fetch counts what is there up to each partition's limit, without the request's; it is answered at once
    where a partition's bound is in a later segment than its offset.
    """
    least, deadline = min(rules.min_bytes[lane], rules.limit[lane]), now + rules.max_wait_us[lane]
    time = now
    while total < least and time < deadline:
        total, following = 0, deadline
        for i in range(asked):
            p = work.request[i]
            begin, end = work.position[p], readable_to(unit, work, p, time)
            if in_segment(unit, begin, end) < end:
                total = least
            total += min(unit.starts[end] - unit.starts[begin], most_of(unit, rules, lane, p))
            if end < unit.end[p]:
                following = min(following, unit.visible[end])
        if total < least:
            time = following
    return time
