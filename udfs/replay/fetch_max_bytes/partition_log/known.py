"""What a capture shows of a partition's log: which batches are in it, and which facts are not sure."""

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
from udfs.replay.fetch_max_bytes.partition_log.versions import (
    Versions,
    joined_over_holes,
    shown_holes,
    versions_of,
)

FIRST_UNCONVERTED = 4
"""From this version of Fetch on, a broker answers in the format of its log (KafkaApis.maybeConvertFetchedData)."""


class KnownLog(NamedTuple):
    """A partition's log, once all of its batches and witnesses have come.

    converts: the log has record batches. Captured message sets, which are of earlier formats, are then not in the log:
    clients that know no other format sent or got them, and the broker converted them. But message sets that a fetch got
    in the format of the log are in it. compacts: the capture shows batches that the log cleaner has changed, or holes
    between batches; other captured batches may have gone since. slices: what the responses show about holes. truncated:
    LOG_EVENT[n], batches that a later leader's log does not have; they are not in the log. versions: how a compacted
    log changed; None for any other log.
    """

    log: PartitionLog
    ends: SegmentEnds
    slices: Slices
    converts: bool
    compacts: bool
    truncated: Records
    versions: Versions | None


def known_log(batches: Records, witnesses: Records, aborted: Records) -> KnownLog:
    """The log of all batches, dated by all witnesses. aborted: the aborted transactions. LOG_EVENT[n] each."""
    is_old, is_fetched = batches["is_old_format"], batches["append_after"] == ALWAYS
    slices = slices_of(pick_records(batches, ~is_old & is_fetched))
    is_kept_old = is_old & is_fetched & (batches["api_version"] >= FIRST_UNCONVERTED)
    is_new = ~is_old & ~made_old(batches, is_kept_old)
    converts, left = bool(is_new.any()), is_left(batches)
    truncated = pick_records(batches, ~left)
    bound = np.where(witnesses["is_follower"], NO_BOUND, witnesses["bound_low"])
    reads = pick_records(witnesses, ~may_have_met(truncated, witnesses, bound))
    in_log = (is_new & ~has_other_size(batches)) | is_kept_old | (is_old & (not converts))
    of_followers, kept = pick_records(reads, reads["is_follower"]), pick_records(batches, in_log & left)
    log = dated_by_followers(build_log(kept, aborted), of_followers)
    log = dated_by_parked_fetches(log, pick_records(of_followers, of_followers["found_nothing"]))
    compacts = bool(batches["is_sparse"].any()) or slices.has_holes
    changes = len(log.base) > 0 and (
        compacts or bool((begins_in_hole(slices, witnesses) & witnesses["readable_known"]).any())
    )
    versions = None
    if changes:
        holes = shown_holes(kept, witnesses)
        versions, log = versions_of(log, kept, holes), joined_over_holes(log, holes)
    return KnownLog(
        log=log,
        ends=segment_ends(log, reads),
        slices=slices,
        converts=converts,
        compacts=compacts,
        truncated=truncated,
        versions=versions,
    )


def made_old(batches: Records, is_kept_old: Bools) -> Bools:
    """The produced record batches that the broker converted to message sets before it kept them, bool[n] of
    LOG_EVENT[n].

    A broker does so for a topic whose message.format.version is below 0.11. When that setting changes, the log keeps
    its earlier batches as they are. If no record batch was fetched, the whole log is taken to have the old format.
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
    """The reads that a broker answered in a format other than that of its log: bool[n] of LOG_EVENT[n]."""
    version = reads["api_version"]
    return known.converts & (version > NONE) & (version < FIRST_UNCONVERTED)


def shows_hole(known: KnownLog, reads: Records) -> Bools:
    """The reads whose response shows that offsets are missing: bool[n] of LOG_EVENT[n]."""
    # If not all partitions that a fetch wanted are known, its offset may be that of an earlier fetch.
    return begins_in_hole(known.slices, reads) & reads["readable_known"]


def has_other_size(batches: Records) -> Bools:
    """The produced record batches whose size in the log is not known, bool[n] of LOG_EVENT[n].

    A topic whose compression.type is not `producer` has its batches in that codec: the broker builds each batch that
    comes in another codec anew, with the same offsets (LogValidator.buildRecordsAndAssignOffsets of Kafka 4.4). If some
    batch was fetched in a size in which nobody produced it, the broker recompresses, and batches that were not fetched
    may have any size. Only batches with all of their records count, because the log cleaner changes sizes, too.
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

    batches: LOG_EVENT[n]. rows, others: int64[m], int64[k], indices of rows. names: the fields that are compared.
    """
    values = np.stack([batches[name] for name in names], axis=1)
    _, which = np.unique(values[np.concatenate([rows, others])], axis=0, return_inverse=True)
    return np.isin(which[: len(rows)], which[len(rows) :])
