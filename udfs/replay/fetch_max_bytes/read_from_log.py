"""KIP-74 as brokers run it: kafka.server.ReplicaManager.readFromLog (Kafka 4.3) over the partitions of a fetch.

Limits count record bytes. A read is a slice of bytes: it may cut a batch (LogSegment.read of kafka-storage 4.3).
"""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Ints, Record, Records, all_read_only, read_only
from udfs.columns.sentinels import NONE
from udfs.kernels.kernel import kernel
from udfs.replay.fetch_max_bytes.events import Reads
from udfs.replay.fetch_max_bytes.state import ANSWER
from udfs.replay.shared.lanes import AS_CAPTURED

FIRST_WITH_MAX_BYTES = 3
"""The version of Fetch that brought max_bytes (KIP-74, Kafka 0.10.1)."""


@kernel
def bytes_read(adjusted: int, first_batch: int, available: int, min_one: bool) -> int:
    """Bytes read of one partition.

    adjusted: min(partition_max_bytes, what is left of the limit). min_one: the first batch is returned whole, however
    large it is (minOneMessage).
    """
    if available == 0:
        return 0
    effective = max(adjusted, first_batch) if min_one else adjusted
    return min(available, effective) if effective >= first_batch else 0


@kernel
def tail_bytes(sizes: Ints, first: int, end: int, returned: int) -> int:
    """Bytes of a batch that is cut at the end of a slice, or 0. The slice begins with the batch sizes[first]."""
    whole = 0
    for i in range(first, end):
        if whole + sizes[i] > returned:
            return returned - whole
        whole += sizes[i]
    return 0


@kernel
def is_hard_limit(read: Record) -> bool:
    """FetchParams.hardMaxBytesLimit: the request has no max_bytes, and no batch goes beyond its partition_max_bytes."""
    return bool(NONE < read.api_version < FIRST_WITH_MAX_BYTES)


@kernel
def answer_fetch(fetches: Reads, available: Ints, fetch: int, limits: Record, answers: Records) -> None:
    """Answer one fetch under the limits of one lane.

    available: int64[reads], bytes that the log held for each read. limits: the lane's row of FETCH_LIMITS. answers:
    ANSWER[reads], the lane's answers, written in place.
    """
    first, end = fetches.first_read[fetch], fetches.first_read[fetch + 1]
    request = fetches.reads[first]  # fields about the whole fetch are the same in each of its reads
    limit = min(request.max_bytes if limits.max_bytes == AS_CAPTURED else limits.max_bytes, limits.broker_max_bytes)
    # In a lane that sets max_bytes, the client's Fetch version has max_bytes.
    is_hard = is_hard_limit(request) and limits.max_bytes == AS_CAPTURED
    min_one = not is_hard
    for row in range(first, end):
        read, answer, available_bytes = fetches.reads[row], answers[row], available[row]
        partition_max = limits.partition_max_bytes
        adjusted = min(read.partition_max_bytes if partition_max == AS_CAPTURED else partition_max, limit)
        has_batch = read.end_size > read.first_size
        first_batch = fetches.sizes[read.first_size] if has_batch else 0
        known_bytes = available_bytes if has_batch else 0
        # A hard limit may cut the first batch, too.
        returned = min(known_bytes, adjusted) if is_hard else bytes_read(adjusted, first_batch, known_bytes, min_one)
        could_get_more = returned == available_bytes and (adjusted > returned or (min_one and returned == 0))
        answer.returned = returned
        answer.overrides = 1 if returned > adjusted else 0
        answer.cut_tail = tail_bytes(fetches.sizes, read.first_size, read.end_size, returned)
        answer.unknown = 1 if not read.log_known and could_get_more else 0
        # A batch that is larger than what is left of the limits is not returned at all, unless it is the first.
        fits = adjusted > returned if returned > 0 else min_one or adjusted >= first_batch
        answer.took_all = 1 if returned == known_bytes and fits else 0
        limit = max(0, limit - returned)
        min_one = min_one and returned == 0 and limits.only_first == 0


@kernel
def answer_all(fetches: Reads, available: Ints, limits: Records, answers: Records) -> None:
    """Answer every fetch in every lane.

    available: int64[reads], bytes that the log held for each read. limits: FETCH_LIMITS[rows, lanes]. answers:
    ANSWER[lanes, reads], written in place.
    """
    for fetch in range(len(fetches.first_read) - 1):
        if fetches.first_read[fetch] == fetches.first_read[fetch + 1]:
            continue  # there is no read that names a row
        row = fetches.reads[fetches.first_read[fetch]].limits_row
        for lane in range(len(answers)):
            answer_fetch(fetches, available, fetch, limits[row, lane], answers[lane])


def answers_to(fetches: Reads, available: Ints, limits: Records) -> Records:
    """What every fetch returns in every lane: ANSWER[lanes, reads].

    available: int64[reads], bytes that the log held for each read. limits: FETCH_LIMITS[rows, lanes], of which each
    read names a row; FETCH_LIMITS[lanes] if there is only one row.
    """
    by_row = np.atleast_2d(limits)
    answers = np.zeros((by_row.shape[1], len(fetches.reads)), ANSWER)
    answer_all(Reads(*all_read_only(fetches)), read_only(available), read_only(by_row), answers)
    return answers
