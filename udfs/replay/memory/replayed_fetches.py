"""Responses that consumers would get under other fetch limits: the closed loop of KIP-74, as rows of MEMORY_EVENTS."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from schemas.tables.steps import READS
from udfs.replay.fetch.closed_reader import ClosedReader, ready
from udfs.replay.fetch.fetch_lanes import FetchLanes
from udfs.replay.fetch.fetch_replay import FETCH, READER, boundaries, whole_fetches
from udfs.replay.fetch.fidelity import NO_RECORDS_KNOWN
from udfs.replay.fetch.log_reads import numbers_of
from udfs.replay.key_numbers import key_numbers
from udfs.replay.memory.response_events import response_events


@dataclass
class Reading:
    """The reader at hand: its names, its partitions by key, and what its connections showed."""

    reader: tuple[str, str, str]
    index: dict[str, int] = field(default_factory=dict)
    closed: ClosedReader = field(default_factory=ClosedReader)

    def note(self, part: pa.RecordBatch) -> None:
        """Take some of its rows: logs come before the reads."""
        logs = int(np.count_nonzero(part[READS.exchange_no].to_numpy() < 0))
        self.closed.note_logs(part.slice(0, logs))
        if logs < part.num_rows:
            self._note_reads(part.slice(logs))

    def _note_reads(self, part: pa.RecordBatch) -> None:
        """Take whole fetches; those that were answered count."""
        fetch_from = boundaries(part, FETCH)
        answered = numbers_of(part, READS.returned_bytes, NO_RECORDS_KNOWN)[fetch_from[:-1]] != NO_RECORDS_KNOWN
        lengths = np.diff(fetch_from)
        found = part.filter(pa.array(np.repeat(answered, lengths)))
        names = found[READS.broker], found[READS.topic], found[READS.partition].cast(pa.string())
        kept = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths[answered])])
        self.closed.note_reads(found, key_numbers(self.index, *names), kept)


def replayed_fetches(batches: Iterable[pa.RecordBatch], limits: FetchLanes) -> Iterator[pa.RecordBatch]:
    """Rows of MEMORY_EVENTS from rows of READS, sorted by reader, request time, fetch and read position."""
    now: Reading | None = None
    for batch in whole_fetches(batches):
        starts = boundaries(batch, READER)
        for first, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            client_id, address, kind = (batch[name][first].as_py() for name in READER)
            if now is None or now.reader != (client_id, address, kind):
                if now is not None:
                    yield from rows_of_reader(now, limits)
                now = Reading((client_id, address, kind))
            now.note(batch.slice(first, end - first))
    if now is not None:
        yield from rows_of_reader(now, limits)


def rows_of_reader(done: Reading, limits: FetchLanes) -> Iterator[pa.RecordBatch]:
    """The rows of a reader all of whose fetches have come."""
    most = int(limits.of(done.reader[-1]).broker_max_bytes[0])
    reader = ready(done.closed, done.reader, list(done.index), most)
    if reader is not None:
        yield from response_events(reader, limits)
