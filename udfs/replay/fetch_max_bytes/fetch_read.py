"""KIP-74 as brokers run it: kafka.server.ReplicaManager.readFromLog (Kafka 4.3) over the partitions of one fetch, for
every lane at once.

Limits count record bytes. A read is a slice of bytes: it may cut a batch (LogSegment.read of kafka-storage 4.3).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, read_only
from udfs.kernels.kernel import kernel
from udfs.replay.shared.lanes import AS_CAPTURED


class Lanes(NamedTuple):
    """Settings by lane, int64[lanes]; AS_CAPTURED leaves what each request says."""

    max_bytes: Ints
    partition_max_bytes: Ints
    broker_max_bytes: Ints  # the broker's fetch.max.bytes, or what a consumer's quota allows
    only_first: Ints  # 1: KIP-74's text, by which only the partition named first may exceed the limits


class Reads(NamedTuple):
    """The partitions of fetches in read order, int64[reads] a column."""

    max_bytes: Ints
    partition_max_bytes: Ints
    available: Ints
    is_known: Ints  # 1: no more than `available` was there
    is_hard: Ints  # 1: the request has no max_bytes (Fetch before 3): no batch is returned beyond partition_max_bytes
    sizes_from: Ints  # the batches' sizes are sizes[sizes_from:sizes_to]
    sizes_to: Ints
    sizes: Ints


class Answers(NamedTuple):
    """What each read returns by lane, int64[reads, lanes] each."""

    returned: Ints
    cut_tail: Ints  # bytes of a batch cut at the end
    overrides: Ints  # 1: a first batch beyond the limits
    unknown: Ints  # 1: depends on batches that are not known


@kernel
def read_partition(adjusted: int, first_batch: int, available: int, min_one: bool) -> int:
    """Bytes read of one partition: steps 4 to 7.

    adjusted: min(partition_max_bytes, what is left of the limit). min_one: a first batch is returned whole, however
    large.
    """
    if available == 0:
        return 0
    effective = max(adjusted, first_batch) if min_one else adjusted
    return min(available, effective) if effective >= first_batch else 0


@kernel
def tail_bytes(reads: Reads, row: int, returned: int) -> int:
    """Bytes of the last batch in the slice when the slice ends within it."""
    whole = 0
    for i in range(reads.sizes_from[row], reads.sizes_to[row]):
        if whole + reads.sizes[i] > returned:
            return returned - whole
        whole += reads.sizes[i]
    return 0


@kernel
def read_fetch(reads: Reads, first: int, end: int, lanes: Lanes, lane: int, answers: Answers) -> None:
    """Answer the fetch whose partitions are rows [first, end) in one lane: the loop and step 8."""
    limit = reads.max_bytes[first] if lanes.max_bytes[lane] == AS_CAPTURED else lanes.max_bytes[lane]
    limit = min(limit, lanes.broker_max_bytes[lane])
    # FetchParams.hardMaxBytesLimit; a lane with max_bytes is a client that knows it.
    is_hard = reads.is_hard[first] == 1 and lanes.max_bytes[lane] == AS_CAPTURED
    min_one = not is_hard
    for row in range(first, end):
        most = lanes.partition_max_bytes[lane]
        adjusted = min(reads.partition_max_bytes[row] if most == AS_CAPTURED else most, limit)
        has_batch = reads.sizes_to[row] > reads.sizes_from[row]
        first_batch = reads.sizes[reads.sizes_from[row]] if has_batch else 0
        available = reads.available[row] if has_batch else 0
        # A hard limit may cut the first batch, too.
        returned = min(available, adjusted) if is_hard else read_partition(adjusted, first_batch, available, min_one)
        answers.returned[row, lane] = returned
        answers.overrides[row, lane] = 1 if returned > adjusted else 0
        answers.cut_tail[row, lane] = tail_bytes(reads, row, returned)
        could_get_more = returned == reads.available[row] and (adjusted > returned or (min_one and returned == 0))
        answers.unknown[row, lane] = 1 if reads.is_known[row] == 0 and could_get_more else 0
        limit = max(0, limit - returned)
        min_one = min_one and returned == 0 and lanes.only_first[lane] == 0


@kernel
def fill_answers(reads: Reads, fetch_from: Ints, lanes: Lanes, answers: Answers) -> None:
    """`read_fetches` into given answers."""
    for fetch in range(len(fetch_from) - 1):
        for lane in range(len(lanes.max_bytes)):
            read_fetch(reads, fetch_from[fetch], fetch_from[fetch + 1], lanes, lane, answers)


def read_fetches(reads: Reads, fetch_from: Ints, lanes: Lanes) -> Answers:
    """Answer every fetch in every lane. fetch_from: int64[fetches + 1], rows of each fetch."""
    shape = (len(reads.max_bytes), len(lanes.max_bytes))
    answers = Answers(*(np.zeros(shape, np.int64) for _ in Answers._fields))
    fill_answers(Reads(*map(read_only, reads)), read_only(fetch_from), Lanes(*map(read_only, lanes)), answers)
    return answers
