"""Batches that a log has lost: batches that were truncated under a later leader, and batches that compaction removed.

A new leader begins its epoch at the end of its own log. Replicas that have more cut their logs there (KIP-101, KIP-279:
ReplicaFetcherThread and UnifiedLog.truncateTo of Kafka 4.3). So in a log, epochs rise with the offset. A batch that
contradicts this was truncated: an append with acks=1 that not all followers had got.

A batch keeps its offsets when the log cleaner removes some of its records. A batch that loses all of its records is
gone (LogCleaner.cleanInto). Brokers answer with a slice of the log. So offsets that are missing between two batches of
a response, or between the fetch offset and the first batch, are a hole in the log. Only record batches (format 2) show
holes: in earlier formats, messages that compaction removed leave holes within wrappers, too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Ints, Records
from udfs.columns.time_units import ALWAYS
from udfs.replay.fetch_max_bytes.partition_log.events import EPOCH_UNKNOWN, NO_BOUND


def is_left(batches: Records) -> Bools:
    """The batches that no later leader replaced, bool[n] of LOG_EVENT[n].

    A produced batch has the epoch of the fetched batch with the same offsets and size. A produced batch that was not
    fetched was truncated if a fetched batch that is left has one of its offsets.
    """
    base, last, epoch = batches["position"], batches["last_offset"], batches["leader_epoch"]
    epochs = np.unique(epoch[epoch != EPOCH_UNKNOWN])
    if len(epochs) < 2:
        return np.ones(len(base), np.bool_)
    epoch = epochs_of_equals(batches)
    begins = np.array([base[epoch == each].min() for each in epochs[1:]])
    ends = np.append(np.minimum.accumulate(begins[::-1])[::-1], np.iinfo(np.int64).max)
    is_dated = epoch != EPOCH_UNKNOWN
    stays = ~is_dated | (last < ends[np.searchsorted(epochs, epoch)])
    rows = np.flatnonzero(is_dated & stays)
    rows = rows[np.argsort(last[rows], kind="stable")]
    first = np.append(rows, -1)[np.searchsorted(last[rows], base)]  # the first dated batch that does not end before it
    is_other = (base[first] != base) | (last[first] != last)
    overlaps = (first >= 0) & (base[first] <= last) & is_other
    return stays & (is_dated | ~overlaps)


def epochs_of_equals(batches: Records) -> Ints:
    """The epoch of each batch; for a produced one the latest of fetched batches with the same offsets and size:
    int64[n]. A fetched batch keeps its own: a follower that became leader before it had appended the batch gets it from
    the producer once more, under its own epoch.
    """
    equal = np.stack([batches[name] for name in ("position", "last_offset", "size_bytes")], axis=1)
    _, which = np.unique(equal, axis=0, return_inverse=True)
    latest = np.full(len(batches), EPOCH_UNKNOWN)
    np.maximum.at(latest, which, batches["leader_epoch"])
    return np.where(batches["leader_epoch"] == EPOCH_UNKNOWN, latest[which], batches["leader_epoch"])


def may_have_met(truncated: Records, reads: Records, bound: Ints) -> Bools:
    """The reads that may have found batches that were truncated later, bool[n] of LOG_EVENT[n].

    A truncated batch counts as gone once all responses that show it have come. truncated: LOG_EVENT[m], the batches.
    bound: the highest offset up to which each read could go, or NO_BOUND.
    """
    if not len(truncated):
        return np.zeros(len(reads), np.bool_)
    order = np.argsort(truncated["last_offset"], kind="stable")
    last, before = truncated["last_offset"][order], truncated["append_before"][order]
    until = np.append(np.maximum.accumulate(before[::-1])[::-1], ALWAYS)
    reaches = (bound == NO_BOUND) | (bound > truncated["position"].min())
    return reaches & (reads["request_time"] <= until[np.searchsorted(last, reads["fetch_offset"])])


class Slices(NamedTuple):
    """What responses show of a partition's log.

    connections: int64[n], rising. exchanges: above the number of any exchange. responses: int64[m], rising: for each
    response the index of its connection times `exchanges`, plus the number of its exchange. first_offset: int64[m], the
    first offset of each response. has_holes: in some response, offsets are missing between two batches.
    """

    connections: Ints
    exchanges: int
    responses: Ints
    first_offset: Ints
    has_holes: bool


def slices_of(batches: Records) -> Slices:
    """The slices to which fetched batches belong. batches: LOG_EVENT[n]."""
    connections, which = np.unique(batches["connection_id"], return_inverse=True)
    exchanges = int(batches["exchange_no"].max(initial=0)) + 1
    response = which * exchanges + batches["exchange_no"]
    order = np.lexsort((batches["position"], response))
    response, base, last = response[order], batches["position"][order], batches["last_offset"][order]
    follows = response[1:] == response[:-1]
    begins = np.append(np.ones(min(len(response), 1), np.bool_), ~follows)
    return Slices(
        connections=connections,
        exchanges=exchanges,
        responses=response[begins],
        first_offset=base[begins],
        has_holes=bool((follows & (base[1:] > last[:-1] + 1)).any()),
    )


def begins_in_hole(slices: Slices, reads: Records) -> Bools:
    """The reads whose response begins above the fetch offset: bool[n] of LOG_EVENT[n]."""
    if len(slices.responses) == 0:
        return np.zeros(len(reads), np.bool_)
    connection, exchange = reads["connection_id"], reads["exchange_no"]
    place = np.minimum(np.searchsorted(slices.connections, connection), len(slices.connections) - 1)
    response = place * slices.exchanges + exchange
    row = np.minimum(np.searchsorted(slices.responses, response), len(slices.responses) - 1)
    is_shown = (slices.connections[place] == connection) & (slices.responses[row] == response)
    in_hole = slices.first_offset[row] > reads["fetch_offset"]
    return is_shown & (exchange < slices.exchanges) & in_hole
