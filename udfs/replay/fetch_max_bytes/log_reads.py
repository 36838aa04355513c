"""The pass over partitions: batches of one, then the reads of it, become rows that say what was there to be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.steps import LOG_EVENTS, READS
from schemas.tables.values import FOLLOWER
from udfs.columns.arrays import Bools, Ints, edges
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.facts.arrow_tables import rows_of
from udfs.replay.fetch_max_bytes.holes import Slices, begins_in_hole, slices_of
from udfs.replay.fetch_max_bytes.known_logs import ReadBy, log_rows, no_logs, note_readers
from udfs.replay.fetch_max_bytes.partition_log import (
    NO_BOUND,
    PartitionLog,
    Readable,
    Witnesses,
    build_log,
    readable,
    with_witnesses,
)
from udfs.replay.fetch_max_bytes.segment_ends import SegmentEnds, bytes_to_end, segment_ends
from udfs.replay.fetch_max_bytes.truncated_logs import UNTOLD, Truncated, may_have_met, not_truncated
from udfs.replay.shared.columns import int_column

BATCH, WITNESS, READ = 0, 1, 2
FIRST_UNCONVERTED = 4
"""The version of Fetch from which on a broker answers in the format of its log (KafkaApis.maybeConvertFetchedData)."""
PASSED_ON = tuple(str(column) for column in READS.columns if column in LOG_EVENTS.columns)


@dataclass
class Partition:
    """The partition at hand: its batches so far, and the log once the first read has come.

    converts: the log has record batches, so that message sets of the formats before are what the broker made of those,
    or made those of, for clients that know no others. They are not in the log, but for those shown by a fetch that is
    answered in the format of the log.
    slices: what the responses show of the log.
    compacts: batches were seen that the log cleaner had been at, or holes between them; what was captured of others may
    be gone since.
    truncated: batches that a later leader's log does not have, and that are not in the log.
    """

    topic_key: str | None = None
    number: int = -1
    batches: list[tuple[Ints, ...]] = field(default_factory=list)
    witnesses: list[tuple[Ints, ...]] = field(default_factory=list)
    log: PartitionLog | None = None
    ends: SegmentEnds = field(default_factory=lambda: SegmentEnds(*joined([], 2)))
    slices: Slices = field(default_factory=lambda: slices_of(*joined([], 4)))
    converts: bool = False
    compacts: bool = False
    truncated: Truncated = field(default_factory=lambda: Truncated(*joined([], 3)))
    read_by: ReadBy = field(default_factory=ReadBy)

    def known_log(self) -> PartitionLog:
        """The log of all batches, dated by all witnesses."""
        if self.log is None:
            *columns, is_old, is_sparse, connection, exchange, version, epoch = joined(self.batches, 11)
            base, last, size, after, before = columns
            is_fetched = after == ALWAYS
            is_shown = (is_old == 0) & is_fetched
            self.slices = slices_of(*(column[is_shown] for column in (connection, exchange, base, last)))
            self.compacts = bool(is_sparse.any()) or self.slices.has_holes
            is_kept_old = (is_old == 1) & is_fetched & (version >= FIRST_UNCONVERTED)
            is_new = (is_old == 0) & ~made_old(base, last, is_old == 0, is_fetched, is_kept_old)
            self.converts = bool(is_new.any())
            in_log = is_new | is_kept_old | ((is_old == 1) & (not self.converts))
            is_left = not_truncated(base, last, size, epoch)
            self.truncated = Truncated(*(column[~is_left] for column in (base, last, before)))
            log = build_log(*(column[in_log & is_left] for column in columns))
            *columns, bound, of_follower = self.kept_witnesses()
            self.log = with_witnesses(log, Witnesses(*(column[of_follower == 1] for column in columns)))
            self.ends = segment_ends(self.log, Witnesses(*columns), bound)
            self.batches, self.witnesses = [], []
        return self.log

    def kept_witnesses(self) -> list[Ints]:
        """The columns of the witnesses that cannot have met what was truncated: bound and kind of reader come last."""
        columns = joined(self.witnesses, len(Witnesses._fields) + 2)
        time, fetch_offset, *_, bound, of_follower = columns
        met = may_have_met(self.truncated, fetch_offset, np.where(of_follower == 1, NO_BOUND, bound), time)
        return [column[~met] for column in columns]

    def is_compacted(self, batch: pa.RecordBatch) -> Bools:
        """The reads since it is known that the log is compacted, bool[reads]; they come in the order of their times."""
        t = LOG_EVENTS
        connection, exchange = (int_column(batch, name, 0) for name in (t.connection_id, t.exchange_no))
        in_hole = begins_in_hole(self.slices, connection, exchange, int_column(batch, t.fetch_offset, NEVER))
        sure = in_hole & (int_column(batch, t.session_known, 0) == 1)  # else the offset may be an earlier fetch's
        found = np.logical_or.accumulate(np.append(self.compacts, sure))
        self.compacts = bool(found[-1])
        return found[1:]


def made_old(base: Ints, last: Ints, is_new: Bools, is_fetched: Bools, is_kept_old: Bools) -> Bools:
    """The produced record batches of which the broker made message sets before it kept them, bool[batches].

    It does so for a topic whose message.format.version is below 0.11. The format may change, with which what was there
    before stays as it is; where no record batch was fetched, all the log is taken to be of the format that was.
    """
    if not is_kept_old.any() or not (is_new & is_fetched).any():
        return is_new & ~is_fetched & is_kept_old.any()
    kept = np.sort(base[is_kept_old])
    is_there: Bools = np.searchsorted(kept, last, side="right") > np.searchsorted(kept, base)
    return is_new & ~is_fetched & is_there


def joined(parts: Sequence[tuple[Ints, ...]], columns: int) -> list[Ints]:
    """The columns of all parts, one behind the other."""
    empty = tuple(np.zeros(0, np.int64) for _ in range(columns))
    return [np.concatenate(pieces) for pieces in zip(empty, *parts, strict=True)]


def reads(batches: Iterable[pa.RecordBatch], most_bytes: int) -> Iterator[pa.RecordBatch]:
    """Rows of READS from rows of LOG_EVENTS, which come sorted by partition, batches first.

    most_bytes: no lane reads more of a partition at once, and so no more batch sizes are handed on.
    """
    partition = Partition()
    for batch in batches:
        keys, numbers = batch[LOG_EVENTS.topic_key], batch[LOG_EVENTS.partition].to_numpy()
        kinds = batch[LOG_EVENTS.kind].to_numpy()
        codes = keys.dictionary_encode().indices.to_numpy()
        changes = (np.diff(codes) != 0) | (np.diff(numbers) != 0) | (np.diff(kinds) != 0)
        starts = np.concatenate([[0], np.flatnonzero(changes) + 1, [batch.num_rows]])
        for first, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            if end == first:
                continue
            key, number = keys[first].as_py(), int(numbers[first])
            if (key, number) != (partition.topic_key, partition.number):
                yield from log_rows(partition.known_log(), partition.read_by)
                partition = Partition(key, number)
            part = batch.slice(first, end - first)
            if kinds[first] == BATCH:
                partition.batches.append(batch_columns(part))
            elif kinds[first] == WITNESS:
                partition.witnesses.append(witnesses_of(part))
            else:
                note_readers(partition.read_by, part)
                yield read_rows(part, partition, most_bytes)
    yield from log_rows(partition.known_log(), partition.read_by)


def batch_columns(batch: pa.RecordBatch) -> tuple[Ints, ...]:
    """The arguments of `build_log` for these batches; whether each is of an old format and is sparse; its exchange, the
    version of that, and its leader epoch.
    """
    t = LOG_EVENTS
    return (
        int_column(batch, t.position, 0),
        int_column(batch, t.last_offset, 0),
        int_column(batch, t.size_bytes, 0),
        int_column(batch, t.append_after, ALWAYS),
        int_column(batch, t.append_before, NEVER),
        int_column(batch, t.is_old_format, 0),
        int_column(batch, t.is_sparse, 0),
        int_column(batch, t.connection_id, 0),
        int_column(batch, t.exchange_no, 0),
        int_column(batch, t.api_version, 0),
        int_column(batch, t.leader_epoch, UNTOLD),
    )


def witnesses_of(batch: pa.RecordBatch) -> tuple[Ints, ...]:
    """The rows as witnesses of the log end and of segments' ends; up to where each could read; whether a follower's."""
    t = LOG_EVENTS
    columns = (
        t.request_time, t.fetch_offset, t.returned_bytes, t.partition_max_bytes, t.max_bytes, t.response_record_bytes
    )  # fmt: skip
    bound = int_column(batch, t.bound_low, NO_BOUND)
    readers: Any = batch[t.reader].dictionary_encode()  # a DictionaryArray
    is_follower = np.array([name == FOLLOWER for name in readers.dictionary.to_pylist()])[readers.indices]
    return *(int_column(batch, name, 0) for name in columns), bound, is_follower.astype(np.int64)


def read_rows(batch: pa.RecordBatch, partition: Partition, most_bytes: int) -> pa.RecordBatch:
    """Rows of READS for reads of one partition."""
    t, log = LOG_EVENTS, partition.known_log()
    is_old = int_column(batch, t.api_version, FIRST_UNCONVERTED) < FIRST_UNCONVERTED
    fetch_offset, asked = int_column(batch, t.fetch_offset, 0), int_column(batch, t.request_time, 0)
    bound_low, bound_high = int_column(batch, t.bound_low, NO_BOUND), int_column(batch, t.bound_high, NO_BOUND)
    found = readable(log, fetch_offset, bound_low, bound_high, asked, int_column(batch, t.response_time, NEVER))
    low = bytes_to_end(log, found.first_batch, partition.ends.shown, found.available_low)
    high = bytes_to_end(log, found.first_batch, partition.ends.sure, found.available_high)
    passed = {name: batch[name] for name in PASSED_ON}
    columns: dict[str, pa.Array[Any] | Ints | Bools] = {
        **passed,
        **no_logs(batch.num_rows),
        READS.log_known: found.log_known,
        READS.is_converted: partition.converts & is_old,
        READS.is_compacted: partition.is_compacted(batch),
        READS.is_truncated: may_have_met(partition.truncated, fetch_offset, bound_high, asked),
        READS.batch_sizes: batch_sizes(log, found, most_bytes),
        READS.ends_perhaps: bytes_to_end(log, found.first_batch, partition.ends.shown, high) < high,
        READS.available_low: low,
        READS.available_high: high,
        READS.first_append: pa.array(found.first_append, mask=found.first_append == NEVER),
        READS.available_first: np.minimum(found.available_first, high),
    }
    return rows_of(READS, columns)


def batch_sizes(log: PartitionLog, found: Readable, most_bytes: int) -> pa.Array[Any]:
    """Sizes of the batches that each read could return in any lane: those that begin within `most_bytes`, or one."""
    n = len(log.base)
    begin = log.starts[np.minimum(found.first_batch, n)]
    within = np.searchsorted(log.starts[:-1], begin + most_bytes) - found.first_batch
    counts = np.minimum(found.known_batches, np.maximum(within, 1))
    offsets = edges(counts)
    index = np.repeat(found.first_batch - offsets[:-1], counts) + np.arange(offsets[-1])
    sizes: pa.Array[Any] = pa.array(log.size[index], pa.int32())
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), sizes)
