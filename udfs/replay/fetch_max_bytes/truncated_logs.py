"""What a later leader's log lacks: batches that an earlier leader appended and that were truncated.

A leader that was behind begins its epoch at the end of its own log. Replicas that have more cut their logs there
(KIP-101, KIP-279: ReplicaFetcherThread and UnifiedLog.truncateTo of Kafka 4.3). So epochs rise with the offset in a
log, and what contradicts that was truncated: appends with acks=1 that not all followers had got.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Ints
from udfs.columns.time_units import ALWAYS
from udfs.replay.fetch_max_bytes.partition_log import NO_BOUND

UNTOLD = -1
"""Epoch of a produced batch, which the broker puts in when it appends it, and of formats 0 and 1."""


class Truncated(NamedTuple):
    """The batches that were truncated, int64[n] each. before: the response that shows one came at this time (us)."""

    base: Ints
    last: Ints
    before: Ints


def not_truncated(base: Ints, last: Ints, size: Ints, epoch: Ints) -> Bools:
    """The batches that no later leader replaced, bool[n].

    epoch: int64[n], partition_leader_epoch of fetched batches, else UNTOLD. A produced batch has that of the fetched
    one of its offsets and size; where there is none, it was truncated if another batch that was not has one of its
    offsets.
    """
    epochs = np.unique(epoch[epoch != UNTOLD])
    if len(epochs) < 2:
        return np.ones(len(base), np.bool_)
    epoch = told_by_equals(base, last, size, epoch)
    begins = np.array([base[epoch == each].min() for each in epochs[1:]])
    ends = np.append(np.minimum.accumulate(begins[::-1])[::-1], np.iinfo(np.int64).max)
    is_told = epoch != UNTOLD
    is_left = ~is_told | (last < ends[np.searchsorted(epochs, epoch)])
    at = np.flatnonzero(is_told & is_left)
    at = at[np.argsort(last[at], kind="stable")]
    first = np.append(at, -1)[np.searchsorted(last[at], base)]  # the first told one that does not end before
    is_other = (base[first] != base) | (last[first] != last)
    overlaps = (first >= 0) & (base[first] <= last) & is_other
    return is_left & (is_told | ~overlaps)


def told_by_equals(base: Ints, last: Ints, size: Ints, epoch: Ints) -> Ints:
    """The latest epoch that any of the batches with the same offsets and size tells, int64[n]."""
    _, which = np.unique(np.stack([base, last, size], axis=1), axis=0, return_inverse=True)
    latest = np.full(len(base), UNTOLD)
    np.maximum.at(latest, which, epoch)
    return latest[which]


def may_have_met(gone: Truncated, fetch_offset: Ints, bound: Ints, asked: Ints) -> Bools:
    """The reads that may have found what was truncated later, bool[n].

    bound: offset up to which each could read at most, or NO_BOUND. asked: when (us); what was truncated is there no
    more when all responses that show it have come.
    """
    if not len(gone.base):
        return np.zeros(len(fetch_offset), np.bool_)
    order = np.argsort(gone.last, kind="stable")
    until = np.append(np.maximum.accumulate(gone.before[order][::-1])[::-1], ALWAYS)
    reaches = (bound == NO_BOUND) | (bound > gone.base.min())
    return reaches & (asked <= until[np.searchsorted(gone.last[order], fetch_offset)])
