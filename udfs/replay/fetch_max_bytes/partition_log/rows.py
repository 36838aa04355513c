"""Rows of READS: the reads of a partition with what they could read, and its log for each connection that reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.steps import READS
from udfs.columns.arrays import Bools, Ints, Records, numbers_in_stretches, stretch_edges
from udfs.columns.arrow_columns import arrow_array, concatenate_batches
from udfs.columns.records import join_records, pick_records
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.replay.fetch_max_bytes.events import KEYS, rows_of_logs
from udfs.replay.fetch_max_bytes.partition_log.events import PASSED_ON
from udfs.replay.fetch_max_bytes.partition_log.known import KnownLog, is_converted
from udfs.replay.fetch_max_bytes.partition_log.log import PartitionLog, Readable, readable_at_reads
from udfs.replay.fetch_max_bytes.partition_log.lost_batches import may_have_met
from udfs.replay.fetch_max_bytes.partition_log.segment_ends import SegmentEnds, bytes_to_end
from udfs.replay.fetch_max_bytes.partition_log.versions import Versions, log_after, passed_at, places_after
from udfs.replay.fetch_max_bytes.state import CARRIED, READABLE_BATCH

CONNECTION_COLUMNS = (
    READS.topic, READS.broker, READS.client_address, READS.client_id, READS.reader, READS.connection_id
)  # fmt: skip
"""The columns that all rows of a connection and partition have in common."""
MOST_VERSIONS = 256
"""In how many versions a compacted log is read, at most."""
BATCH_CAP = 1 << 16
"""The most batches of a log in one row. All rows of an Arrow batch together have fewer than twice as many."""


class ReadPart(NamedTuple):
    """Reads of a partition: CARRIED[n], and the sizes of the batches that each could return, counts[i] for read i."""

    reads: Records
    sizes: Ints
    counts: Ints


def read_part(known: KnownLog, reads: Records, is_compacted: Bools, byte_cap: int) -> ReadPart:
    """Reads of one partition with what they could read.

    reads: LOG_EVENT[n]. is_compacted: bool[n], the log is known to be compacted at the time of the read. byte_cap: as
    in `read_rows` of replay.py.
    """
    versions = known.versions
    if versions is None:
        return read_part_of_log(known, reads, is_compacted, byte_cap)
    rows, parts = list[Ints](), list[ReadPart]()
    for changes, of_version in reads_by_version(versions, reads):
        applies = np.arange(len(versions.changes)) < changes
        ends = SegmentEnds(*(places_after(versions, applies, places) for places in known.ends))
        at_that_time = known._replace(log=log_after(known.log, versions, applies), ends=ends)
        rows.append(of_version)
        parts.append(
            read_part_of_log(at_that_time, pick_records(reads, of_version), is_compacted[of_version], byte_cap)
        )
    return in_order(np.concatenate(rows), parts)


def reads_by_version(versions: Versions, reads: Records) -> Iterator[tuple[int, Ints]]:
    """(how many changes a log has had, the rows of the reads of that version), for at most MOST_VERSIONS versions: of a
    log that changed more often, some changes come early. So a read finds the same version in any company.

    reads: LOG_EVENT[n].
    """
    time = np.where(reads["response_time"] == NEVER, reads["request_time"], reads["response_time"])
    changes = np.searchsorted(versions.changes["time"], time, side="right")
    steps = np.unique(np.linspace(0, len(versions.changes), MOST_VERSIONS).astype(np.int64))
    step = np.searchsorted(steps, changes)
    for place in np.unique(step).tolist():
        yield int(steps[place]), np.flatnonzero(step == place)


def in_order(rows: Ints, parts: Sequence[ReadPart]) -> ReadPart:
    """The parts together, in the order of their reads. rows: int64[n], the place of each read of each part."""
    order, counts = np.argsort(rows), np.concatenate([part.counts for part in parts])
    sizes, first = np.concatenate([part.sizes for part in parts]), stretch_edges(counts)
    reads = pick_records(join_records(CARRIED, [part.reads for part in parts]), order)
    return ReadPart(reads, sizes[numbers_in_stretches(first[order], counts[order])], counts[order])


def read_part_of_log(known: KnownLog, reads: Records, is_compacted: Bools, byte_cap: int) -> ReadPart:
    """As `read_part`, for reads of one and the same log."""
    log, read = known.log, readable_at_reads(known.log, reads)
    low = bytes_to_end(log, read.first_batch, known.ends.shown, read.available_low)
    high = bytes_to_end(log, read.first_batch, known.ends.sure, read.available_high)
    carried = np.zeros(len(reads), CARRIED)
    for name in PASSED_ON:
        carried[name] = reads[name]
    carried["log_known"] = read.log_known
    carried["is_converted"] = is_converted(known, reads)
    carried["is_compacted"] = is_compacted
    carried["is_truncated"] = may_have_met(known.truncated, reads, reads["bound_high"])
    carried["segment_may_end"] = bytes_to_end(log, read.first_batch, known.ends.shown, high) < high
    carried["available_low"], carried["available_high"] = low, high
    carried["first_append"], carried["available_first"] = read.first_append, np.minimum(read.available_first, high)
    counts = count_readable_batches(log, read, byte_cap)
    return ReadPart(carried, log.size[numbers_in_stretches(read.first_batch, counts)], counts)


def count_readable_batches(log: PartitionLog, read: Readable, byte_cap: int) -> Ints:
    """How many batches each read could return in any lane: int64[reads]. These are the batches that begin within
    `byte_cap` bytes, and at least one.
    """
    begin = log.starts[np.minimum(read.first_batch, len(log.base))]
    within = np.searchsorted(log.starts[:-1], begin + byte_cap) - read.first_batch
    return np.minimum(read.known_batches, np.maximum(within, 1))


@dataclass
class ReadingConnections:
    """The connections that read a partition, indexed in the order in which `note` met them.

    place: the index of each connection, by its connection_id. lowest: int64[connections], the lowest fetch offset of
    each. committed: bool[connections], whether each reads committed records only. named: the columns CONNECTION_COLUMNS
    of each connection's first read, a row for each connection. passed: of a compacted log, the connection, fetch offset
    and time of each read, int64[3, n].
    """

    place: dict[int, int] = field(default_factory=dict)
    lowest: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    committed: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))
    named: list[pa.RecordBatch] = field(default_factory=list)
    passed: list[Ints] = field(default_factory=list)

    def note(self, reads: Records, rows: pa.RecordBatch, *, keeps_times: bool) -> None:
        """Add the connections of reads of the partition, LOG_EVENT[n]. rows: their rows, with CONNECTION_COLUMNS.
        keeps_times: the log is compacted.
        """
        distinct, first, which = np.unique(reads["connection_id"], return_index=True, return_inverse=True)
        before = len(self.place)
        places = np.array([self.place.setdefault(id_, len(self.place)) for id_ in distinct.tolist()], np.int64)
        added = len(self.place) - before
        self.lowest = np.append(self.lowest, np.full(added, NEVER))
        np.minimum.at(self.lowest, places[which], reads["fetch_offset"])
        self.committed = np.append(self.committed, reads["reads_committed"][first[places >= before]])
        if added:
            self.named.append(rows.select([*map(str, CONNECTION_COLUMNS)]).take(arrow_array(first[places >= before])))
        if keeps_times:
            self.passed.append(np.stack([places[which], reads["fetch_offset"], reads["request_time"]]))

    def each(self) -> Iterator[tuple[ReadingConnections, Ints, Ints]]:
        """Each connection by itself, with the fetch offsets and times of its reads, which have to be kept."""
        named, reads = concatenate_batches(self.named), np.concatenate(self.passed, axis=1)
        for place in range(len(self.lowest)):
            of, own = slice(place, place + 1), reads[:, reads[0] == place]
            alone = ReadingConnections({}, self.lowest[of], self.committed[of], [named.slice(place, 1)])
            yield alone, own[1], own[2]


def parts_of_log(known: KnownLog, partition: int, readers: ReadingConnections) -> Iterator[LogPart]:
    """The log, once for each connection that reads it; of a compacted log, each batch as it was when the connection
    passed it.
    """
    versions = known.versions
    if versions is None or not readers.named:
        yield from log_parts(known.log, partition, readers)
        return
    for reader, offset, time in readers.each():
        passed = passed_at(known.log, offset, time)
        log = log_after(known.log, versions, versions.changes["time"] <= passed[versions.changes["batch"]])
        yield from log_parts(log, partition, reader)


class LogPart(NamedTuple):
    """A log's batches for some connections: READABLE_BATCH; row i has counts[i] of them, from batch first[i] on.

    named: CONNECTION_COLUMNS of each row.
    """

    named: pa.RecordBatch
    partition: int
    batches: Records
    first: Ints
    counts: Ints


def log_parts(
    log: PartitionLog, partition: int, readers: ReadingConnections, batch_cap: int = BATCH_CAP
) -> Iterator[LogPart]:
    """The log, once for each connection that reads it, from the connection's lowest fetch offset on.

    A row has at most `batch_cap` batches, and all rows of a part together have fewer than twice as many.
    """
    if not len(log.base) or not readers.named:
        return
    named = concatenate_batches(readers.named)
    first = np.searchsorted(log.last, readers.lowest)
    pieces = -(-(len(log.base) - first) // batch_cap)
    reader = np.repeat(np.arange(len(first)), pieces)
    begin = first[reader] + (np.arange(len(reader)) - stretch_edges(pieces)[reader]) * batch_cap
    counts = np.minimum(batch_cap, len(log.base) - begin)
    together = np.cumsum(counts) // batch_cap
    for a, b in pairwise([0, *(np.flatnonzero(np.diff(together)) + 1).tolist(), len(reader)]):
        if a < b:  # no row if all of them read beyond the known log
            committed = np.repeat(readers.committed[reader[a:b]], counts[a:b])
            batches = log.batches(numbers_in_stretches(begin[a:b], counts[a:b]), committed)
            yield LogPart(named.take(arrow_array(reader[a:b])), partition, batches, begin[a:b], counts[a:b])


def log_rows(parts: Sequence[LogPart]) -> pa.RecordBatch:
    """Rows of READS. Their request_time is ALWAYS, before all reads. Their exchange_no is below 0, and differs between
    the rows of a connection and partition.
    """
    named, first = concatenate_batches([part.named for part in parts]), np.concatenate([part.first for part in parts])
    rows = [len(part.first) for part in parts]
    columns: dict[str, pa.Array[Any]] = {name: named[name] for name in named.schema.names}
    columns[READS.exchange_no] = arrow_array(-1 - first)
    columns[READS.request_time] = arrow_array(np.full(len(first), ALWAYS))
    columns[READS.read_position] = arrow_array(np.zeros(len(first), np.int32))
    keys = pa.RecordBatch.from_arrays([columns[str(name)] for name in KEYS], names=[*map(str, KEYS)])
    return rows_of_logs(
        keys,
        np.repeat(np.array([part.partition for part in parts]), rows),
        join_records(READABLE_BATCH, [part.batches for part in parts]),
        np.concatenate([part.counts for part in parts]),
    )
