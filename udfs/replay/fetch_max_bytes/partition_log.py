"""A partition's log as the capture shows it, and what was there to be read at a given fetch.

The log is pieced together from produced batches (their offsets come with the response) and fetched ones. A read
begins with the batch that holds the fetch offset and ends before the batch that holds its bound (LogSegment.read and
translateOffset): for a consumer the high watermark or last stable offset, which responses tell; for a follower the
log end, which only the times of appends bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Ints, edges
from udfs.columns.time_units import ALWAYS, NEVER

NO_BOUND = -1


@dataclass(frozen=True)
class PartitionLog:
    """The known batches by base offset, int64[n] each.

    base, last: offsets. size: bytes. after, before: the append lies between these times (us); both rise with the
    offset. run_end: index behind the last batch that follows without an offset missing. starts: int64[n + 1], bytes
    before it.
    """

    base: Ints
    last: Ints
    size: Ints
    after: Ints
    before: Ints
    run_end: Ints
    starts: Ints


def build_log(base: Ints, last: Ints, size: Ints, after: Ints, before: Ints) -> PartitionLog:
    """The log of batches in any order, with copies: each may have been seen when produced and at every fetch.

    after: time of the produce request, ALWAYS where it was not seen. before: time of the response that shows it.
    """
    base, at = np.unique(base, return_inverse=True)
    n = len(base)
    known_last, known_size = np.full(n, -1), np.zeros(n, np.int64)
    # A broker may recompress: what is fetched is what is in the log.
    for which in (after != ALWAYS, after == ALWAYS):
        known_last[at[which]], known_size[at[which]] = last[which], size[which]
    known_after, known_before = np.full(n, ALWAYS), np.full(n, NEVER)
    np.maximum.at(known_after, at, after)
    np.minimum.at(known_before, at, before)
    breaks = np.flatnonzero(base[1:] != known_last[:-1] + 1) + 1
    run_end = np.append(breaks, n)[np.searchsorted(breaks, np.arange(n), side="right")]
    return PartitionLog(
        base,
        known_last,
        known_size,
        np.maximum.accumulate(known_after),
        np.minimum.accumulate(known_before[::-1])[::-1],
        run_end,
        edges(known_size),
    )


class Witnesses(NamedTuple):
    """Answered reads of followers, int64[n] a column: what was asked and what came, in us and bytes."""

    time: Ints  # of the request
    fetch_offset: Ints
    returned: Ints
    partition_max_bytes: Ints
    max_bytes: Ints
    response_record_bytes: Ints


def with_witnesses(log: PartitionLog, seen: Witnesses) -> PartitionLog:
    """The log with appends dated by followers' reads as well.

    A follower reads to the log end. A read that ended at an offset where no limit stopped it shows that what is behind
    that offset was appended after the read was asked for; at a gap in what is known of the log only an empty response
    shows that. Appends that no produce request shows, such as those to __consumer_offsets, are dated by this alone.
    """
    n = len(log.base)
    if n == 0:
        return log
    first = np.searchsorted(log.last, seen.fetch_offset)
    begin = log.starts[first]
    behind = np.searchsorted(log.starts, begin + seen.returned, side="right") - 1
    run_end = np.where(first < n, log.run_end[np.minimum(first, n - 1)], n)
    is_whole = (log.starts[behind] == begin + seen.returned) & (behind <= run_end)
    following = np.where(behind < n, log.size[np.minimum(behind, n - 1)], 0)
    limited = (seen.returned + following > seen.partition_max_bytes) | (
        seen.response_record_bytes + following > seen.max_bytes
    )
    at = np.minimum(first, n - 1)
    begins = (seen.returned == 0) | ((first < n) & (log.base[at] <= seen.fetch_offset))
    at_gap = (behind < n) & (behind == log.run_end[at])  # how large the batch is that follows is not known
    counts = is_whole & begins & ((~limited & ~at_gap) | (seen.response_record_bytes == 0))
    end = np.where(seen.returned > 0, log.last[np.maximum(behind, 1) - 1] + 1, seen.fetch_offset)[counts]
    order = np.argsort(end, kind="stable")
    latest = np.concatenate([np.full(1, ALWAYS), np.maximum.accumulate(seen.time[counts][order])])
    witnessed = latest[np.searchsorted(end[order], log.base, side="right")]
    return replace(log, after=np.maximum.accumulate(np.maximum(log.after, witnessed)))


@dataclass(frozen=True)
class Readable:
    """What was there for n reads: see the columns of the same names in schemas.tables.steps.READS.

    first_batch: index of the batch at the fetch offset; known_batches: how many from there on are known without a gap.
    """

    first_batch: Ints
    known_batches: Ints
    log_known: Bools
    available_low: Ints
    available_high: Ints
    first_append: Ints
    available_first: Ints


def readable(
    log: PartitionLog, fetch_offset: Ints, bound_low: Ints, bound_high: Ints, read_after: Ints, read_before: Ints
) -> Readable:
    """What was there for reads from `fetch_offset` up to a bound that lies between two offsets.

    A bound of NO_BOUND is the log end at the time of the read, which is between read_after and read_before (us).
    """
    n = len(log.base)
    first = np.searchsorted(log.last, fetch_offset)
    has_first = first < n
    at = np.minimum(first, max(n - 1, 0))
    holds = has_first & (log.base[at] <= fetch_offset) if n else np.zeros(len(first), np.bool_)
    run_end = np.where(holds, log.run_end[at], first) if n else first
    by_time = bound_low == NO_BOUND
    surely, perhaps = (
        np.searchsorted(log.before, read_after, side="right"), np.searchsorted(log.after, read_before, side="right")
    )  # fmt: skip
    low = np.maximum(np.where(by_time, surely, np.searchsorted(log.last, bound_low)), first)
    high = np.maximum(np.where(by_time, perhaps, np.searchsorted(log.last, bound_high)), first)
    ends = np.concatenate([log.last + 1, np.zeros(1, np.int64)])
    held = holds & (ends[np.maximum(high, 1) - 1] >= bound_high) & (high > first)
    reaches = by_time | (bound_high <= fetch_offset) | held
    known_low, known_high = np.minimum(low, run_end), np.minimum(high, run_end)
    begin = log.starts[np.minimum(first, n)]
    uncertain = by_time & (known_low < known_high)
    through_first = np.minimum(known_low + 1, known_high)
    first_append = np.full(len(first), NEVER)
    if n:
        first_append = np.where(uncertain, log.after[np.minimum(known_low, n - 1)], NEVER)
    return Readable(
        first,
        np.maximum(known_high - first, 0),
        reaches & (high <= np.maximum(run_end, first)),
        log.starts[known_low] - begin,
        log.starts[known_high] - begin,
        first_append,
        log.starts[through_first] - begin,
    )
