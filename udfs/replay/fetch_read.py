"""KIP-74 as brokers run it: ReplicaManager.readFromLog over the partitions of one fetch, for every lane at once.

Limits count record bytes. A read is a slice of bytes: it may cut a batch. The steps are those of kafka-semantics 1.2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from udfs.wire.kernel import kernel

AS_CAPTURED = -1


class Lanes(NamedTuple):
    """Settings by lane, int64[lanes]; AS_CAPTURED leaves what each request says."""

    max_bytes: npt.NDArray[np.int64]
    partition_max_bytes: npt.NDArray[np.int64]
    broker_max_bytes: npt.NDArray[np.int64]  # the broker's fetch.max.bytes
    only_first: npt.NDArray[np.int64]  # 1: KIP-74's text, by which only the partition named first may exceed the limits


class Reads(NamedTuple):
    """The partitions of fetches in read order, int64[reads] a column."""

    max_bytes: npt.NDArray[np.int64]
    partition_max_bytes: npt.NDArray[np.int64]
    available: npt.NDArray[np.int64]
    is_known: npt.NDArray[np.int64]  # 1: no more than `available` was there
    sizes_from: npt.NDArray[np.int64]  # the batches' sizes are sizes[sizes_from:sizes_to]
    sizes_to: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]


class Answers(NamedTuple):
    """What each read returns by lane, int64[reads, lanes] each."""

    returned: npt.NDArray[np.int64]
    cut_tail: npt.NDArray[np.int64]  # bytes of a batch cut at the end
    overrides: npt.NDArray[np.int64]  # 1: a first batch beyond the limits
    unknown: npt.NDArray[np.int64]  # 1: depends on batches that are not known


@kernel
def read_partition(adjusted, first_batch, available, min_one):  # type: ignore[no-untyped-def]
    """Bytes read of one partition: steps 4 to 7.

    adjusted: min(partition_max_bytes, what is left of the limit). min_one: a first batch is returned whole however large.
    """
    if available == 0:
        return 0
    effective = max(adjusted, first_batch) if min_one else adjusted
    return min(available, effective) if effective >= first_batch else 0


@kernel
def tail_bytes(reads, row, returned):  # type: ignore[no-untyped-def]
    """Bytes of the last batch in the slice when the slice ends within it."""
    whole = 0
    for i in range(reads.sizes_from[row], reads.sizes_to[row]):
        if whole + reads.sizes[i] > returned:
            return returned - whole
        whole += reads.sizes[i]
    return 0


@kernel
def read_fetch(reads, first, end, lanes, lane, answers):  # type: ignore[no-untyped-def]
    """Answer the fetch whose partitions are rows [first, end) in one lane: the loop and step 8."""
    limit = reads.max_bytes[first] if lanes.max_bytes[lane] == AS_CAPTURED else lanes.max_bytes[lane]
    limit = min(limit, lanes.broker_max_bytes[lane])
    min_one = True
    for row in range(first, end):
        most = lanes.partition_max_bytes[lane]
        adjusted = min(reads.partition_max_bytes[row] if most == AS_CAPTURED else most, limit)
        has_batch = reads.sizes_to[row] > reads.sizes_from[row]
        first_batch = reads.sizes[reads.sizes_from[row]] if has_batch else 0
        returned = read_partition(adjusted, first_batch, reads.available[row] if has_batch else 0, min_one)
        answers.returned[row, lane] = returned
        answers.overrides[row, lane] = 1 if returned > adjusted else 0
        answers.cut_tail[row, lane] = tail_bytes(reads, row, returned)
        could_get_more = returned == reads.available[row] and (adjusted > returned or (min_one and returned == 0))
        answers.unknown[row, lane] = 1 if reads.is_known[row] == 0 and could_get_more else 0
        limit = max(0, limit - returned)
        min_one = min_one and returned == 0 and lanes.only_first[lane] == 0


@njit(cache=True, nogil=True)
def read_fetches(reads, fetch_from, lanes):  # type: ignore[no-untyped-def]
    """Answer every fetch in every lane. reads: Reads; fetch_from: int64[fetches + 1], rows of each; lanes: Lanes."""
    shape = (len(reads.max_bytes), len(lanes.max_bytes))
    answers = Answers(
        np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    )
    for fetch in range(len(fetch_from) - 1):
        for lane in range(len(lanes.max_bytes)):
            read_fetch(reads, fetch_from[fetch], fetch_from[fetch + 1], lanes, lane, answers)
    return answers
