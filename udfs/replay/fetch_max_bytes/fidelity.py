"""Does the replay of the captured settings agree with the capture? One verdict for each fetch, by OPEN_FETCHES.

A response also shows how much there was to read, where the times of appends leave that open.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from schemas.tables.fetch_reasons import OPEN_FETCHES
from schemas.tables.values import FOLLOWER
from udfs.columns.arrays import Bools, Ints, Records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.replay.fetch_max_bytes.events import Reads
from udfs.replay.fetch_max_bytes.read_from_log import answers_to
from udfs.replay.shared.fidelity_rows import AGREED

_R = OPEN_FETCHES


class ShownOfFetches(NamedTuple):
    """What the capture shows of fetches.

    verdicts: int64[fetches], AGREED or a code of OPEN_FETCHES. available: int64[reads], the bytes that each read could
    get: those that it got if no limit ended it and the fetch can be explained, otherwise the most that there can be.
    """

    verdicts: Ints
    available: Ints


def judge_fetches(fetches: Reads, captured: Records, reader: str) -> ShownOfFetches:
    """What the capture shows of the fetches.

    captured: FETCH_LIMITS[rows, 1], or FETCH_LIMITS[1]. reader: the kind of reader that sent the fetches.
    """
    fetch, count = fetch_of_reads(fetches), len(fetches.first_read) - 1
    reads, returned = fetches.reads, fetches.reads["returned_bytes"]
    at_least, _ = captured_bytes(fetches, reads["available_low"], captured)
    lowest = lowest_available(reads, fetch, at_least)
    low_bytes, low_unknown = captured_bytes(fetches, lowest, captured)
    high_bytes, high_unknown = captured_bytes(fetches, reads["available_high"], captured)
    # As if batches were appended when the capture suggests: returned bytes were available, as far as that is possible.
    there = np.clip(returned, lowest, reads["available_high"])
    (suggested,) = answers_to(fetches, there, captured)
    as_suggested = suggested["returned"] == returned

    def any_of(flags: Bools) -> Bools:
        return np.bincount(fetch, flags, count) > 0

    undecided = any_of(~reads["log_known"] & (low_unknown | high_unknown))
    has_no_time = any_of((reads["first_append"] < 0) & (reads["available_low"] != reads["available_high"]))
    equal = ~any_of(returned != high_bytes)
    possible = any_of(low_bytes != high_bytes) & ~any_of(~as_suggested)
    explained = equal | (possible & ~undecided)
    is_held_back = (
        any_of(reads_held_back(fetches, low_bytes, there, captured))
        if reader == FOLLOWER
        else np.zeros(count, np.bool_)
    )
    first_that_applies = (
        (any_of(returned == NONE), _R.no_response),
        (any_of(reads["refused"]), _R.response_error),
        (any_of(reads["throttled"]), _R.throttled),
        (any_of(~reads["readable_known"]), _R.session_unknown),
        (any_of(reads["redirected"] & reads["may_be_remote"]) & ~equal, _R.remote_read),
        (any_of(reads["redirected"] & ~reads["sent_to_replica"]) & ~equal, _R.partition_refused),
        (any_of(reads["sent_to_replica"]) & ~equal, _R.sent_to_replica),
        (any_of(reads["is_converted"]) & ~equal, _R.converted_format),
        (any_of(reads["is_compacted"]) & ~explained, _R.compacted),
        (any_of(reads["may_be_remote"]) & ~explained, _R.remote_read),
        (any_of(reads["is_truncated"]) & ~explained, _R.truncated),
        (any_of(~reads["bound_known"]), _R.high_watermark_unknown),
        (undecided, _R.log_content_unknown),
        (possible & any_of(reads["segment_may_end"]), _R.segment_end),
        (possible & has_no_time, _R.append_time_unknown),
        (possible, _R.append_read_order),
        (equal, None),
        (is_held_back, _R.replication_throttled),
        (any_of(returned < high_bytes), _R.fewer_bytes),
    )
    conditions, words = zip(*first_that_applies, strict=True)
    codes = [AGREED if word is None else _R.codes[word] for word in words]
    verdicts = np.select([*conditions], codes, default=_R.codes[_R.more_bytes])
    took_all = (suggested["took_all"] == 1) & ~(undecided | any_of(~as_suggested))[fetch]
    available = np.where(took_all, there, reads["available_high"])
    is_compacted = (verdicts == _R.codes[_R.compacted])[fetch]
    if is_compacted.any():
        available = np.where(is_compacted, left_by_compaction(fetches, captured), available)
    return ShownOfFetches(verdicts, available)


def left_by_compaction(fetches: Reads, captured: Records) -> Ints:
    """The bytes that each read could get, if what the response lacks was gone: int64[reads]. That is so if no limit
    ended the reads; otherwise it is the most that there can be.
    """
    reads, fetch, count = fetches.reads, fetch_of_reads(fetches), len(fetches.first_read) - 1
    returned, high = reads["returned_bytes"], reads["available_high"]
    left = np.minimum(np.maximum(returned, 0), high)
    (answers,) = answers_to(fetches, left, captured)
    differs = np.bincount(fetch, answers["returned"] != returned, count) > 0
    return np.where((answers["took_all"] == 1) & ~differs[fetch], left, high)


def reads_held_back(fetches: Reads, low_bytes: Ints, there: Ints, captured: Records) -> Bools:
    """The reads that a leader's replication quota left empty (KIP-73), bool[reads].

    Such a partition uses up nothing of the limits (ReplicaManager.readFromLog), so all others come as if it had
    nothing. And no limit can have left it empty if it comes before a partition with records, or if no partition has
    records. low_bytes: int64[reads], bytes that each read returns under the captured limits if only those bytes could
    be read that were available for sure. there: int64[reads], bytes that could be read, judged by those that were
    returned.
    """
    reads, fetch, count = fetches.reads, fetch_of_reads(fetches), len(fetches.first_read) - 1
    returned = reads["returned_bytes"]
    is_empty = (returned == 0) & (low_bytes > 0)
    if not is_empty.any():
        return is_empty
    without, _ = captured_bytes(fetches, np.where(is_empty, 0, there), captured)
    differs = np.bincount(fetch, without != returned, count) > 0
    place, last_with_records = np.arange(len(reads)), np.full(count, len(reads))
    has_any = np.bincount(fetch, returned > 0, count) > 0
    last_with_records[has_any] = -1
    np.maximum.at(last_with_records, fetch, np.where(returned > 0, place, -1))
    return is_empty & ~differs[fetch] & (place < last_with_records[fetch])


def fetch_of_reads(fetches: Reads) -> Ints:
    """The index of each read's fetch: int64[reads]."""
    return np.repeat(np.arange(len(fetches.first_read) - 1), np.diff(fetches.first_read))


def captured_bytes(fetches: Reads, available: Ints, captured: Records) -> tuple[Ints, Bools]:
    """(bytes, depends on unknown batches) of each read under the captured limits: int64[reads] and bool[reads].

    available: int64[reads], the bytes that could be read. captured: FETCH_LIMITS[rows, 1], or FETCH_LIMITS[1].
    """
    (answers,) = answers_to(fetches, available, captured)
    return answers["returned"], answers["unknown"] == 1


def lowest_available(reads: Records, fetch: Ints, at_least: npt.ArrayLike) -> Ints:
    """The fewest bytes that were available for each read, given that a fetch waits until there are some.

    A fetch that finds nothing is parked (DelayedFetch) and read again on the first append that gives it enough. So if
    it returned records although none were available for sure, an append to one of its partitions woke it. If only one
    of them may have had an append, it was that one. Among several the capture does not tell: first_append is the
    earliest time at which an append could come, not the time at which it came.

    reads: READ[reads]. fetch: int64[reads], the fetch of each read. at_least: int64[reads], the bytes that each read
    returns of those that were available for sure.
    """
    nothing = np.bincount(fetch, at_least)[fetch] == 0
    is_answered = np.bincount(fetch, reads["returned_bytes"])[fetch] > 0
    may_have_come = reads["first_append"] < NEVER
    alone = np.bincount(fetch, may_have_come)[fetch] == 1
    woke = nothing & is_answered & may_have_come & alone
    return np.where(woke, reads["available_first"], reads["available_low"])
