"""The pass over partitions: it turns a partition's batches and then its reads into rows that say what could be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from schemas.tables.event_kinds import LogEvent
from udfs.columns.arrays import Bools, Records
from udfs.columns.records import join_records
from udfs.replay.fetch_max_bytes.events import KEYS, rows_of_reads, with_groups
from udfs.replay.fetch_max_bytes.partition_log.events import LOG_EVENT, log_events, stretches_of_events
from udfs.replay.fetch_max_bytes.partition_log.known import KnownLog, known_log, shows_hole
from udfs.replay.fetch_max_bytes.partition_log.rows import (
    BATCH_CAP,
    LogPart,
    ReadingConnections,
    ReadPart,
    log_rows,
    parts_of_log,
    read_part,
)
from udfs.replay.fetch_max_bytes.state import CARRIED
from udfs.replay.fetch_max_bytes.who_has_quotas import Client

KNOWN_BYTES_CAP = 64 << 20
"""Sizes of the batches that a read could return are passed on up to this many bytes. Batches beyond are unknown."""


@dataclass
class PartitionInProgress:
    """The current partition: its batches and witnesses until its first read comes, and from then on its log.

    compacts: the log is already known to be compacted.
    """

    topic_key: str | None = None
    number: int = -1
    batches: list[Records] = field(default_factory=list)
    witnesses: list[Records] = field(default_factory=list)
    aborted: list[Records] = field(default_factory=list)
    known: KnownLog | None = None
    compacts: bool = False
    readers: ReadingConnections = field(default_factory=ReadingConnections)

    def known_log(self) -> KnownLog:
        """The log of all batches, dated by all witnesses."""
        if self.known is None:
            of_kinds = (self.batches, self.witnesses, self.aborted)
            self.known = known_log(*(join_records(LOG_EVENT, parts) for parts in of_kinds))
            self.compacts = self.known.compacts
            self.batches, self.witnesses, self.aborted = [], [], []
        return self.known

    def is_compacted(self, reads: Records) -> Bools:
        """The reads from when the log is known to be compacted, bool[reads]. Reads come in time order."""
        shown = np.logical_or.accumulate(np.append(self.compacts, shows_hole(self.known_log(), reads)))
        self.compacts = bool(shown[-1])
        return shown[1:]


@dataclass
class HeldLogs:
    """Logs on their way to rows, held until they have enough batches together for an Arrow batch."""

    parts: list[LogPart] = field(default_factory=list)
    batches: int = 0

    def rows(self, partition: PartitionInProgress) -> Iterator[pa.RecordBatch]:
        """Take the log of a partition whose reads have all come; yields the rows that are complete."""
        for part in parts_of_log(partition.known_log(), partition.number, partition.readers):
            self.parts.append(part)
            self.batches += len(part.batches)
            if self.batches >= BATCH_CAP:
                yield from self.rest()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """The rows of all logs that are still held."""
        if self.parts:
            yield log_rows(self.parts)
        self.parts, self.batches = [], 0


def grouped_read_rows(
    batches: Iterable[pa.RecordBatch], groups: Mapping[Client, str], joins_fetchers: bool
) -> Iterator[pa.RecordBatch]:
    """Rows of READS from rows of LOG_EVENTS, with the groups of readers that are replayed together."""
    rows = read_rows(batches, byte_cap=KNOWN_BYTES_CAP)
    return with_groups(rows, groups, joins_fetchers) if groups or joins_fetchers else rows


def read_rows(batches: Iterable[pa.RecordBatch], byte_cap: int) -> Iterator[pa.RecordBatch]:
    """Rows of READS from rows of LOG_EVENTS, which come sorted by partition and kind.

    byte_cap: the most bytes of a partition that a lane reads at once. Batch sizes beyond it are not passed on.
    """
    partition, logs = PartitionInProgress(), HeldLogs()
    for batch in batches:
        events, parts = log_events(batch), list[ReadPart]()
        for key, number, kind, first, end in stretches_of_events(batch):
            if (key, number) != (partition.topic_key, partition.number):
                yield from logs.rows(partition)
                partition = PartitionInProgress(key, number)
            some = events[first:end]
            if kind == LogEvent.ABORTED:
                partition.aborted.append(some)
            elif kind == LogEvent.BATCH:
                partition.batches.append(some)
            elif kind == LogEvent.WITNESS:
                partition.witnesses.append(some)
            else:
                known = partition.known_log()
                partition.readers.note(some, batch.slice(first, end - first), keeps_times=known.versions is not None)
                parts.append(read_part(known, some, partition.is_compacted(some), byte_cap))
        if parts:
            yield joined_reads(batch, events, parts)
    yield from logs.rows(partition)
    yield from logs.rest()


def joined_reads(batch: pa.RecordBatch, events: Records, parts: list[ReadPart]) -> pa.RecordBatch:
    """Rows of READS for the reads of a batch of LOG_EVENTS.

    events: LOG_EVENT[rows], those of the batch. parts: the parts of its reads, one after the other.
    """
    keys = batch.select([*map(str, KEYS)]).filter(pa.array(events["kind"] == LogEvent.READ))
    return rows_of_reads(
        keys,
        join_records(CARRIED, [part.reads for part in parts]),
        np.concatenate([part.sizes for part in parts]),
        np.concatenate([part.counts for part in parts]),
    )
