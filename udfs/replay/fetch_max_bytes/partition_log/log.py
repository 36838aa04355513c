"""A partition's log as the capture shows it, and what a given fetch could read of it.

The log is pieced together from produced batches (their offsets come with the response) and fetched batches. A read
begins with the batch that holds the fetch offset, and ends before the batch that holds its bound (LogSegment.read and
translateOffset). A consumer's bound is the high watermark or last stable offset, which responses have. A follower's
bound is the log end, which is known only from the times of appends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Ints, Records, stretch_edges
from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS, NEVER, US_PER_MS
from udfs.replay.fetch_max_bytes.partition_log.events import NO_BOUND
from udfs.replay.fetch_max_bytes.state import READABLE_BATCH
from udfs.replay.shared.silver_columns import DELIVERY_TIMEOUT_MS

DELIVERY_TIMEOUT_US = DELIVERY_TIMEOUT_MS * US_PER_MS
END, BEGIN, DATA = range(3)
"""Events of a producer, in their order at the same offset: a transaction ends, a transaction begins, records."""


class PartitionLog(NamedTuple):
    """The known batches by base offset, int64[n] each. They are separate arrays, because most are searched by
    themselves.

    base, last: offsets. size: bytes. records, committed_records: how many records a consumer can be given, if it reads
    uncommitted or committed records. after, before: the append came between these times (us); both rise with the
    offset. run_end: index behind the last batch up to which no offset is missing. starts: int64[n + 1], bytes before
    each batch.
    """

    base: Ints
    last: Ints
    size: Ints
    records: Ints
    committed_records: Ints
    after: Ints
    before: Ints
    run_end: Ints
    starts: Ints

    def batches(self, rows: Ints, committed: Bools) -> Records:
        """The batches as READABLE_BATCH[rows]. committed: bool[rows], for a reader of committed records only."""
        return new_records(
            READABLE_BATCH,
            len(rows),
            base_offset=self.base[rows],
            last_offset=self.last[rows],
            size=self.size[rows],
            records=np.where(committed, self.committed_records[rows], self.records[rows]),
            appended_after=self.after[rows],
            appended_before=self.before[rows],
        )


def build_log(batches: Records, aborted: Records) -> PartitionLog:
    """The log of LOG_EVENT[n], batches in any order and with duplicates: one when produced, and one for every fetch.

    aborted: LOG_EVENT[n], the transactions that were aborted, also with duplicates.
    """
    base, which = np.unique(batches["position"], return_inverse=True)
    n = len(base)
    last, size, records = np.full(n, -1), np.zeros(n, np.int64), np.zeros(n, np.int64)
    is_left_out = np.zeros(n, np.bool_)
    is_fetched = batches["append_after"] == ALWAYS
    given = np.where(batches["records"] == NONE, batches["last_offset"] - batches["position"] + 1, batches["records"])
    is_aborted = in_aborted_transaction(batches, aborted)
    # A broker may recompress: the fetched size is the size in the log.
    for rows in (~is_fetched, is_fetched):
        last[which[rows]], size[which[rows]] = batches["last_offset"][rows], batches["size_bytes"][rows]
        records[which[rows]], is_left_out[which[rows]] = given[rows], is_aborted[rows]
    after, before = np.full(n, ALWAYS), np.full(n, NEVER)
    np.maximum.at(after, which, batches["append_after"])
    np.minimum.at(before, which, batches["append_before"])
    before = np.minimum.accumulate(before[::-1])[::-1]
    # A batch that was there before its produce request was sent again: the earlier request had an error as its answer.
    # A producer sends nothing again after delivery.timeout.ms; later requests append other records at equal offsets.
    after[(after > before) & (after - DELIVERY_TIMEOUT_US <= before)] = ALWAYS
    return PartitionLog(
        base=base,
        last=last,
        size=size,
        records=records,
        committed_records=np.where(is_left_out, 0, records),
        after=np.maximum.accumulate(after),
        before=before,
        run_end=run_ends(base, last),
        starts=stretch_edges(size),
    )


def run_ends(base: Ints, last: Ints) -> Ints:
    """For each batch, the index behind the last one up to which no offset is missing: int64[n]. base, last: int64[n],
    the first and the last offset of each batch.
    """
    breaks = np.flatnonzero(base[1:] != last[:-1] + 1) + 1
    return np.append(breaks, len(base))[np.searchsorted(breaks, np.arange(len(base)), side="right")]


def dated_by_followers(log: PartitionLog, reads: Records) -> PartitionLog:
    """The log with appends also dated by answered reads of followers. reads: LOG_EVENT[n].

    A follower reads to the log end. If a read ended at an offset although no limit stopped it, the batches behind that
    offset were appended after the request was sent. Where the known log has a gap at that offset, only an empty
    response shows that. Appends that no produce request shows, such as those to __consumer_offsets, are dated in no
    other way. If the batch behind that offset was there before the request, a replication throttle left it out, and
    the read says nothing.
    """
    n = len(log.base)
    if n == 0:
        return log
    returned, offset = reads["returned_bytes"], reads["fetch_offset"]
    first = np.searchsorted(log.last, offset)
    batch = np.minimum(first, n - 1)
    reached = log.starts[first] + returned
    behind = np.searchsorted(log.starts, reached, side="right") - 1
    run_end = np.where(first < n, log.run_end[batch], n)
    is_whole = (log.starts[behind] == reached) & (behind <= run_end)
    following = np.where(behind < n, log.size[np.minimum(behind, n - 1)], 0)
    is_limited = (returned + following > reads["partition_max_bytes"]) | (
        reads["response_record_bytes"] + following > reads["max_bytes"]
    )
    begins = (returned == 0) | ((first < n) & (log.base[batch] <= offset))
    at_gap = (behind < n) & (behind == log.run_end[batch])  # the size of the next batch is not known
    counts = is_whole & begins & ((~is_limited & ~at_gap) | (reads["response_record_bytes"] == 0))
    end = np.where(returned > 0, log.last[np.maximum(behind, 1) - 1] + 1, offset)
    counts &= reads["request_time"] <= np.append(log.before, NEVER)[np.searchsorted(log.base, end)]
    end = end[counts]
    order = np.argsort(end, kind="stable")
    latest = np.append(ALWAYS, np.maximum.accumulate(reads["request_time"][counts][order]))
    shown = latest[np.searchsorted(end[order], log.base, side="right")]
    return log._replace(after=np.maximum.accumulate(np.maximum(log.after, shown)))


def dated_by_parked_fetches(log: PartitionLog, reads: Records) -> PartitionLog:
    """The log with appends also dated by fetches of followers that had to wait for records. reads: LOG_EVENT[n].

    The batch at the offset of such a fetch had not been appended when the fetch was sent: otherwise the broker would
    have answered at once (ReplicaManager.fetchMessages). That the fetch waited is known from the high watermark of its
    response, not from the records in it. The fetch shows where the log ended for the reads before it, not for itself.
    So a read is compared with the log end that another fetch shows. If a limit had cut that read short, the rest would
    have been available to the next fetch, which then would not have waited. If a response shows a batch earlier than
    that, as with a replication throttle, the fetch says nothing about that batch.
    """
    n = len(log.base)
    if n == 0 or not len(reads):
        return log
    latest = np.full(n + 1, ALWAYS)
    np.maximum.at(latest, np.searchsorted(log.base, reads["fetch_offset"]), reads["request_time"])
    fetched_before = np.maximum.accumulate(latest[:n])
    shown = np.where(fetched_before < log.before, fetched_before, ALWAYS)
    return log._replace(after=np.maximum.accumulate(np.maximum(log.after, shown)))


class Readable(NamedTuple):
    """What n reads could read: the fields of the same names in state.CARRIED, and two more.

    first_batch: index of the batch at the fetch offset. known_batches: how many batches from there on are known without
    a gap.
    """

    first_batch: Ints
    known_batches: Ints
    log_known: Bools
    available_low: Ints
    available_high: Ints
    first_append: Ints
    available_first: Ints


def readable_at_reads(log: PartitionLog, reads: Records) -> Readable:
    """What reads, LOG_EVENT[n], could read from their fetch offset up to their bound, which lies between two offsets.

    NO_BOUND means the log end at the time of the read, which is between its request and its response. A broker takes
    the bound for its response before it reads (Partition.readRecords, Kafka 4.3), and the bound may rise until then: a
    read that returned records beyond its bound could read them.
    """
    n, offset, bound_high = len(log.base), reads["fetch_offset"], reads["bound_high"]
    first = np.searchsorted(log.last, offset)
    batch = np.minimum(first, max(n - 1, 0))
    holds = (first < n) & (log.base[batch] <= offset) if n else np.zeros(len(first), np.bool_)
    run_end = np.where(holds, log.run_end[batch], first) if n else first
    by_time = reads["bound_low"] == NO_BOUND
    surely = np.searchsorted(log.before, reads["request_time"], side="right")
    perhaps = np.searchsorted(log.after, reads["response_time"], side="right")
    begin = log.starts[np.minimum(first, n)]
    returned = np.where(holds & ~by_time, np.searchsorted(log.starts, begin + reads["returned_bytes"]), first)
    at_least = np.maximum(first, np.minimum(returned, run_end))
    low = np.maximum(np.where(by_time, surely, np.searchsorted(log.last, reads["bound_low"])), at_least)
    high = np.maximum(np.where(by_time, perhaps, np.searchsorted(log.last, bound_high)), at_least)
    ends = np.append(log.last + 1, 0)
    is_held = holds & (ends[np.maximum(high, 1) - 1] >= bound_high) & (high > first)
    reaches = by_time | (bound_high <= offset) | is_held
    known_low, known_high = np.minimum(low, run_end), np.minimum(high, run_end)
    first_append = np.full(len(first), NEVER)
    if n:
        is_uncertain = by_time & (known_low < known_high)
        first_append = np.where(is_uncertain, log.after[np.minimum(known_low, n - 1)], NEVER)
    return Readable(
        first_batch=first,
        known_batches=np.maximum(known_high - first, 0),
        log_known=reaches & (high <= np.maximum(run_end, first)),
        available_low=log.starts[known_low] - begin,
        available_high=log.starts[known_high] - begin,
        first_append=first_append,
        available_first=log.starts[np.minimum(known_low + 1, known_high)] - begin,
    )


def in_aborted_transaction(batches: Records, aborted: Records) -> Bools:
    """Which batches belong to aborted transactions: bool[n] of LOG_EVENT[n], batches in any order.

    A consumer of committed records gets none of them. The rules are those of CompletedFetch.nextFetchedRecord of
    kafka-clients 4.3: a producer's batches are left out from the first offset of its aborted transaction, which a
    response names, to the transaction's end marker. aborted: LOG_EVENT[m], the transactions that were aborted.
    """
    n = len(batches)
    in_aborted = np.zeros(n, np.bool_)
    if not len(aborted):
        return in_aborted
    producer = np.concatenate([batches["producer_id"], aborted["producer_id"]])
    offset = np.concatenate([batches["position"], aborted["position"]])
    what = np.concatenate([np.where(batches["is_control"], END, DATA), np.full(len(aborted), BEGIN)])
    order = np.lexsort((what, offset, producer))
    what, producer = what[order], producer[order]
    place = np.arange(len(order))
    latest = np.maximum.accumulate(np.where(what == DATA, -1, place))
    marks = np.maximum(latest, 0)
    is_aborted = (latest >= 0) & (what[marks] == BEGIN) & (producer[marks] == producer) & (producer != NONE)
    is_batch = order < n
    in_aborted[order[is_batch]] = (is_aborted & (what == DATA))[is_batch]
    return in_aborted
