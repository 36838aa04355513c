"""What a capture shows of a partition's log: which batches are in it, and what is not known for sure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Ints, Records
from udfs.columns.records import pick_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS
from udfs.replay.fetch_max_bytes.partition_log.events import NO_BOUND
from udfs.replay.fetch_max_bytes.partition_log.log import (
    PartitionLog,
    build_log,
    dated_by_followers,
    dated_by_parked_fetches,
)
from udfs.replay.fetch_max_bytes.partition_log.lost_batches import (
    Slices,
    begins_in_hole,
    is_left,
    may_have_met,
    slices_of,
)
from udfs.replay.fetch_max_bytes.partition_log.segment_ends import SegmentEnds, segment_ends

FIRST_UNCONVERTED = 4
"""The version of Fetch from which on a broker answers in the format of its log (KafkaApis.maybeConvertFetchedData)."""


class KnownLog(NamedTuple):
    """A partition's log, once all of its batches and witnesses have come.

    converts: the log has record batches. So captured message sets, which are of earlier formats, are not in it: clients
    that know no other format sent them, or got them, and the broker converted them. Those that a fetch got in the
    format of the log are in it all the same.
    compacts: batches were captured that the log cleaner had changed, or holes between them; what was captured of others
    may be gone since. slices: what the responses show of that.
    truncated: LOG_EVENT, batches that a later leader's log does not have, and that are not in the log.
    """

    log: PartitionLog
    ends: SegmentEnds
    slices: Slices
    converts: bool
    compacts: bool
    truncated: Records


def known_log(batches: Records, witnesses: Records, aborted: Records) -> KnownLog:
    """The log of all batches, dated by all witnesses; and the transactions that were aborted: LOG_EVENT[n] each."""
    is_old, is_fetched = batches["is_old_format"], batches["append_after"] == ALWAYS
    slices = slices_of(pick_records(batches, ~is_old & is_fetched))
    is_kept_old = is_old & is_fetched & (batches["api_version"] >= FIRST_UNCONVERTED)
    is_new = ~is_old & ~made_old(batches, is_kept_old)
    converts, left = bool(is_new.any()), is_left(batches)
    truncated = pick_records(batches, ~left)
    bound = np.where(witnesses["is_follower"], NO_BOUND, witnesses["bound_low"])
    reads = pick_records(witnesses, ~may_have_met(truncated, witnesses, bound))
    in_log = (is_new & ~has_other_size(batches)) | is_kept_old | (is_old & (not converts))
    of_followers = pick_records(reads, reads["is_follower"])
    log = dated_by_followers(build_log(pick_records(batches, in_log & left), aborted), of_followers)
    log = dated_by_parked_fetches(log, pick_records(of_followers, of_followers["found_nothing"]))
    return KnownLog(
        log=log,
        ends=segment_ends(log, reads),
        slices=slices,
        converts=converts,
        compacts=bool(batches["is_sparse"].any()) or slices.has_holes,
        truncated=truncated,
    )


def made_old(batches: Records, is_kept_old: Bools) -> Bools:
    """The produced record batches of which the broker made message sets before it kept them, bool[n] of LOG_EVENT[n].

    It does so for a topic whose message.format.version is below 0.11. The format may change, with which what was there
    before stays as it is; where no record batch was fetched, all the log is taken to be of the format that was.
    is_kept_old: bool[n], the message sets that the broker kept as they were.
    """
    is_new, is_fetched = ~batches["is_old_format"], batches["append_after"] == ALWAYS
    if not is_kept_old.any() or not (is_new & is_fetched).any():
        return is_new & ~is_fetched & is_kept_old.any()
    base, last = batches["position"], batches["last_offset"]
    kept = np.sort(base[is_kept_old])
    is_there: Bools = np.searchsorted(kept, last, side="right") > np.searchsorted(kept, base)
    return is_new & ~is_fetched & is_there


def is_converted(known: KnownLog, reads: Records) -> Bools:
    """The reads that a broker answered in another format than that of its log: bool[n] of LOG_EVENT[n]."""
    version = reads["api_version"]
    return known.converts & (version > NONE) & (version < FIRST_UNCONVERTED)


def shows_hole(known: KnownLog, reads: Records) -> Bools:
    """The reads whose response shows that offsets are missing: bool[n] of LOG_EVENT[n]."""
    # Where not all is known that a fetch wanted, its offset may be an earlier fetch's.
    return begins_in_hole(known.slices, reads) & reads["readable_known"]


def has_other_size(batches: Records) -> Bools:
    """The produced record batches whose size in the log is not known, bool[n] of LOG_EVENT[n].

    A topic whose compression.type is not `producer` has its batches in that codec: the broker makes each batch that
    comes in another one anew, of the same offsets (LogValidator.buildRecordsAndAssignOffsets of Kafka 4.4). Where some
    batch was fetched in a size in which nobody produced it, the broker compresses anew, and what was not fetched may
    have any size. A log that the cleaner has been at shows that by whole batches alone.
    """
    is_new, is_fetched = ~batches["is_old_format"], batches["append_after"] == ALWAYS
    produced, fetched = np.flatnonzero(is_new & ~is_fetched), np.flatnonzero(is_new & is_fetched)
    is_other = np.zeros(len(batches), np.bool_)
    if not len(produced) or not len(fetched):
        return is_other
    whole = fetched[~batches["is_sparse"][fetched]]
    was_produced = are_among(batches, whole, produced, ("position", "last_offset"))
    as_produced = are_among(batches, whole, produced, ("position", "last_offset", "size_bytes"))
    if (was_produced & ~as_produced).any():
        is_other[produced] = ~np.isin(batches["position"][produced], batches["position"][fetched])
    return is_other


def are_among(batches: Records, rows: Ints, others: Ints, names: Sequence[str]) -> Bools:
    """Which of the rows have the same values as any of the other rows: bool[rows].

    batches: LOG_EVENT[n]. rows, others: int64[m], int64[k], numbers of rows. names: the columns that are compared.
    """
    values = np.stack([batches[name] for name in names], axis=1)
    _, which = np.unique(values[np.concatenate([rows, others])], axis=0, return_inverse=True)
    return np.isin(which[: len(rows)], which[len(rows) :])
