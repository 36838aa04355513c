"""Who is served and who starves: running sums over one reader's fetches, by partition and lane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Floats, Ints, read_only
from udfs.kernels.kernel import kernel
from udfs.replay.fetch_max_bytes.fetch_read import Answers
from udfs.replay.shared.histogram import BUCKETS, bucket_of

SERVED = -1


class Sums(NamedTuple):
    """int64[partitions, lanes] each."""

    requests: Ints
    available: Ints
    returned: Ints
    empty: Ints
    waiting: Ints  # fetches in a row without anything, so far
    waiting_since: Ints  # time of the first of these (us), or SERVED
    longest_requests: Ints
    longest_us: Ints
    overrides: Ints
    cut_tail: Ints
    unknown: Ints


class Responses(NamedTuple):
    """By lane: int64[lanes, BUCKETS] sizes of responses with records, and int64[lanes] the largest, and counts."""

    sizes: Ints
    largest: Ints
    overrides: Ints
    unknown: Ints


@dataclass(frozen=True)
class ReaderSums:
    """All running sums of one reader."""

    partitions: Sums
    responses: Responses


def no_sums(lanes: int) -> ReaderSums:
    """Sums of a reader that has not fetched yet."""
    square = (np.zeros((0, lanes), np.int64) for _ in Sums._fields)
    by_lane = (np.zeros(lanes, np.int64) for _ in range(3))
    return ReaderSums(Sums(*square), Responses(np.zeros((lanes, BUCKETS), np.int64), *by_lane))


def with_room(sums: Sums, partitions: int) -> Sums:
    """The sums with rows for at least so many partitions."""
    more = partitions - len(sums.requests)
    if more <= 0:
        return sums
    more = max(more, len(sums.requests))
    grown = [np.concatenate([a, np.zeros((more, a.shape[1]), np.int64)]) for a in sums]
    grown[Sums._fields.index("waiting_since")][-more:] = SERVED
    return Sums(*grown)


@kernel
def wait(sums: Sums, partition: int, lane: int, time: int) -> None:
    """Note a fetch that got nothing of the partition although there were records."""
    sums.empty[partition, lane] += 1
    sums.waiting[partition, lane] += 1
    if sums.waiting_since[partition, lane] == SERVED:
        sums.waiting_since[partition, lane] = time
    waited = sums.waiting[partition, lane]
    sums.longest_requests[partition, lane] = max(sums.longest_requests[partition, lane], waited)


@kernel
def end_wait(sums: Sums, partition: int, lane: int, time: int) -> None:
    """Note when a partition that had to wait is served, or is still waiting at that time."""
    if sums.waiting_since[partition, lane] != SERVED:
        waited = time - sums.waiting_since[partition, lane]
        sums.longest_us[partition, lane] = max(sums.longest_us[partition, lane], waited)


@kernel
def add_read(
    sums: Sums, partition: int, lane: int, time: int, available: int, returned: int,
    override: int, cut_tail: int, unknown: int,
) -> None:  # fmt: skip
    """Add what one fetch got of one partition in one lane."""
    sums.requests[partition, lane] += 1
    sums.available[partition, lane] += available
    sums.returned[partition, lane] += returned
    sums.overrides[partition, lane] += override
    sums.cut_tail[partition, lane] += cut_tail
    sums.unknown[partition, lane] += unknown
    end_wait(sums, partition, lane, time)
    if returned > 0 or available == 0:
        sums.waiting[partition, lane], sums.waiting_since[partition, lane] = 0, SERVED
    else:
        wait(sums, partition, lane, time)


@kernel
def add_reads(sums: Sums, partitions: Ints, times: Ints, available: Ints, answers: Answers) -> None:
    """Add reads in time order. partitions, times (us), available: int64[reads]."""
    for row in range(len(partitions)):
        for lane in range(answers.returned.shape[1]):
            add_read(
                sums, partitions[row], lane, times[row], available[row], answers.returned[row, lane],
                answers.overrides[row, lane], answers.cut_tail[row, lane], answers.unknown[row, lane],
            )  # fmt: skip


@kernel
def add_response(responses: Responses, lane: int, size: int, overrides: int, unknown: int) -> None:
    """Add one fetch's response in one lane: its bytes, and reads beyond the limits or not known."""
    if size > 0:
        responses.sizes[lane, bucket_of(size)] += 1
        responses.largest[lane] = max(responses.largest[lane], size)
    responses.overrides[lane] += min(overrides, 1)
    responses.unknown[lane] += min(unknown, 1)


@kernel
def add_responses(responses: Responses, fetch_from: Ints, answers: Answers) -> None:
    """Add whole fetches. fetch_from: int64[fetches + 1], rows of each."""
    for fetch in range(len(fetch_from) - 1):
        for lane in range(answers.returned.shape[1]):
            size = overrides = unknown = 0
            for row in range(fetch_from[fetch], fetch_from[fetch + 1]):
                size += answers.returned[row, lane]
                overrides += answers.overrides[row, lane]
                unknown += answers.unknown[row, lane]
            add_response(responses, lane, size, overrides, unknown)


def add(
    sums: ReaderSums, partitions: Ints, times: Ints, available: Ints, fetch_from: Ints, answers: Answers
) -> ReaderSums:
    """The sums with whole fetches of the reader added, which come in time order."""
    room = with_room(sums.partitions, int(partitions.max(initial=-1)) + 1)
    add_reads(room, read_only(partitions), read_only(times), read_only(available), answers)
    add_responses(sums.responses, read_only(fetch_from), answers)
    return ReaderSums(room, sums.responses)


def jain_index(served: Floats) -> float | None:
    """Jain's fairness index of how well each was served: 1 when all alike, 1/n when one alone; None for nobody.

    R. Jain, D. Chiu, W. Hawe: A quantitative measure of fairness and discrimination (DEC-TR-301, 1984).
    """
    squares = float(np.square(served).sum())
    return float(served.sum()) ** 2 / (len(served) * squares) if squares > 0 else None
