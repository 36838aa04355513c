"""Where a partition's segments end, as far as reads show it: a read never crosses into the next segment.

If a read ended with a whole batch and below its limits although the next batch was there, the segment ends at that
batch (LogSegment.read of kafka-storage 4.3). One such read is no proof; two are. A read that goes beyond refutes it,
because the log cleaner joins segments.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Ints, Records
from udfs.replay.fetch_max_bytes.partition_log.events import NO_BOUND
from udfs.replay.fetch_max_bytes.partition_log.log import PartitionLog

SURE = 2
"""How many reads have to end at an offset before a segment end there counts as known."""


class SegmentEnds(NamedTuple):
    """Indices of batches that begin a segment, rising, int64[n] each: those that any read shows, and those that are
    sure.
    """

    shown: Ints
    sure: Ints


def segment_ends(log: PartitionLog, reads: Records) -> SegmentEnds:
    """The segment ends that answered reads show. reads: LOG_EVENT[n]."""
    n = len(log.base)
    if n == 0:
        return SegmentEnds(np.zeros(0, np.int64), np.zeros(0, np.int64))
    returned, offset, bound = reads["returned_bytes"], reads["fetch_offset"], reads["bound_low"]
    first = np.searchsorted(log.last, offset)
    batch, reached = np.minimum(first, n - 1), log.starts[first] + returned
    end = np.searchsorted(log.starts, reached, side="right") - 1
    known = (first < n) & (log.base[batch] <= offset) & (returned > 0) & (end <= log.run_end[batch])
    is_whole = log.starts[end] == reached
    within = (returned < reads["partition_max_bytes"]) & (reads["response_record_bytes"] < reads["max_bytes"])
    # The first batch of a response comes whole even above the limit, and the broker's limit is not known here.
    alone = is_whole & (end == first + 1) & (reads["response_record_bytes"] == returned)
    alone &= returned >= limits_shown(reads, (reads["response_record_bytes"] > returned) | (known & ~alone))
    following = np.minimum(end, n - 1)
    by_time = log.before[following] <= reads["request_time"]
    is_there = (end < log.run_end[batch]) & np.where(bound == NO_BOUND, by_time, log.last[following] < bound)
    shown, counts = np.unique(end[known & is_whole & within & ~alone & is_there], return_counts=True)
    stands = ~is_crossed(shown, first[known], end[known] + ~is_whole[known], n)
    return SegmentEnds(shown[stands], shown[stands & (counts >= SURE)])


def limits_shown(reads: Records, holds_several: Bools) -> Ints:
    """What the limit of each read's responses is at least: int64[reads]. A response that holds more than a single first
    batch is no larger than its limit, and the limit is the same for all of a connection.

    reads: LOG_EVENT[reads]. holds_several: bool[reads], whether the read's response is known to hold more than that.
    """
    connections, which = np.unique(reads["connection_id"], return_inverse=True)
    limits = np.zeros(len(connections), np.int64)
    np.maximum.at(limits, which[holds_several], reads["response_record_bytes"][holds_several])
    return limits[which]


def is_crossed(batch: Ints, first: Ints, end: Ints, n: int) -> Bools:
    """Which of the batches some read returned together with the batch before: bool[len(batch)].

    first, end: int64[reads]; a read has the batches [first, end). n: how many batches the log has.
    """
    changes = np.zeros(n + 2, np.int64)
    np.add.at(changes, first + 1, 1)
    np.add.at(changes, np.maximum(end, first + 1), -1)
    return np.cumsum(changes)[batch] > 0


def bytes_to_end(log: PartitionLog, first: Ints, ends: Ints, available: Ints) -> Ints:
    """The bytes from batch `first` to the next of the ends, at most `available`: int64[reads].

    first, available: int64[reads]. ends: int64[n], batches that begin a segment, rising.
    """
    if len(ends) == 0:
        return available
    following = np.searchsorted(ends, first, side="right")
    until = log.starts[ends[np.minimum(following, len(ends) - 1)]] - log.starts[np.minimum(first, len(log.base))]
    return np.where(following < len(ends), np.minimum(available, until), available)
