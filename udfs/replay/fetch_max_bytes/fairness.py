"""Who is served and who waits: sums over a reader's requests, by partition and lane."""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Floats, Ints, Record, Records, all_read_only, read_only
from udfs.columns.time_units import NEVER
from udfs.kernels.kernel import kernel
from udfs.replay.fetch_max_bytes.events import Reads
from udfs.replay.fetch_max_bytes.state import Sums, new_sums
from udfs.replay.shared.histogram import bucket_of_value


def with_partitions(sums: Sums, partitions: int) -> Sums:
    """The sums with room for at least `partitions` partitions."""
    more = partitions - len(sums.partitions)
    if more <= 0:
        return sums
    added = new_sums(max(more, len(sums.partitions)), sums.partitions.shape[1])
    return sums._replace(partitions=np.concatenate([sums.partitions, added]))


@kernel
def add_wait(total: Record, time: int) -> None:
    """Add a request that got nothing of the partition although there were records. total: a row of PARTITION_SUMS."""
    total.empty += 1
    total.waiting += 1
    if total.waiting_since == NEVER:
        total.waiting_since = time
    total.longest_requests = max(total.longest_requests, total.waiting)


@kernel
def add_read(total: Record, time: int, available: int, answer: Record) -> None:
    """Add what a request got of a partition that had `available` bytes. total: a row of PARTITION_SUMS. answer: a row
    of ANSWER.
    """
    total.requests += 1
    total.available += available
    total.returned += answer.returned
    total.overrides += answer.overrides
    total.cut_tail += answer.cut_tail
    total.unknown += answer.unknown
    if total.waiting_since != NEVER:
        total.longest_us = max(total.longest_us, time - total.waiting_since)
    if answer.returned > 0 or available == 0:
        total.waiting, total.waiting_since = 0, NEVER
    else:
        add_wait(total, time)


@kernel
def add_response(sums: Sums, lane: int, size: int, overrides: int, unknown: int) -> None:
    """Add a response. size: record bytes. overrides, unknown: how many of its reads are beyond a limit, or unknown."""
    responses = sums.responses[lane]
    if size > 0:
        sums.sizes[lane, bucket_of_value(size)] += 1
        responses.largest = max(responses.largest, size)
    responses.overrides += min(overrides, 1)
    responses.unknown += min(unknown, 1)


@kernel
def add_fetches(sums: Sums, fetches: Reads, available: Ints, answers: Records) -> None:
    """Add answers to whole fetches, which come in time order.

    available: int64[reads], bytes. answers: ANSWER[lanes, reads].
    """
    for fetch in range(len(fetches.first_read) - 1):
        for lane in range(len(answers)):
            size = overrides = unknown = 0
            for row in range(fetches.first_read[fetch], fetches.first_read[fetch + 1]):
                read, answer = fetches.reads[row], answers[lane, row]
                add_read(sums.partitions[read.number, lane], read.request_time, available[row], answer)
                size += answer.returned
                overrides += answer.overrides
                unknown += answer.unknown
            add_response(sums, lane, size, overrides, unknown)


def sums_with_fetches(sums: Sums, fetches: Reads, available: Ints, answers: Records) -> Sums:
    """The sums with whole fetches of the reader added, which come in time order.

    available: int64[reads], bytes. answers: ANSWER[lanes, reads].
    """
    grown = with_partitions(sums, int(fetches.reads["number"].max(initial=-1)) + 1)
    add_fetches(grown, Reads(*all_read_only(fetches)), read_only(available), read_only(answers))
    return grown


def jain_index(shares: Floats) -> float | None:
    """Jain's fairness index of shares, float64[n]: 1 if all are equal, 1/n if one has everything; None if all are 0.

    R. Jain, D. Chiu, W. Hawe: A quantitative measure of fairness and discrimination (DEC-TR-301, 1984).
    """
    squares = float(np.square(shares).sum())
    return float(shares.sum()) ** 2 / (len(shares) * squares) if squares > 0 else None
