"""Responses that consumers would get under other fetch limits: the closed loop of KIP-74, as rows of MEMORY_EVENTS."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.steps import MEMORY_EVENTS, READS
from udfs.facts.arrow_tables import nulls_besides, rows_of
from udfs.replay.fetch.closed_fidelity import UNCHECKED
from udfs.replay.fetch.closed_reader import ClosedReader, closed_totals
from udfs.replay.fetch.closed_responses import Kept
from udfs.replay.fetch.fetch_lanes import FetchLanes
from udfs.replay.fetch.fetch_replay import FETCH, READER, boundaries, whole_fetches
from udfs.replay.fetch.fidelity import NO_RECORDS_KNOWN
from udfs.replay.fetch.log_reads import numbers_of
from udfs.replay.fetch.partition_log import NEVER
from udfs.replay.key_numbers import key_numbers
from udfs.replay.memory.closed_traces import MOST_RESPONSES
from udfs.replay.memory.memory_trace import CONSUMER, RESPONSE
from udfs.wire.arrays import Ints


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


def replayed_fetches(batches: Iterable[pa.RecordBatch], lanes: FetchLanes) -> Iterator[pa.RecordBatch]:
    """Rows of MEMORY_EVENTS from rows of READS, sorted by reader, request time, fetch and read position."""
    now: Reading | None = None
    for batch in whole_fetches(batches):
        starts = boundaries(batch, READER)
        for first, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            client_id, address, kind = (batch[name][first].as_py() for name in READER)
            if now is None or now.reader != (client_id, address, kind):
                if now is not None:
                    yield from rows_of_reader(now, lanes)
                now = Reading((client_id, address, kind))
            now.note(batch.slice(first, end - first))
    if now is not None:
        yield from rows_of_reader(now, lanes)


def rows_of_reader(done: Reading, lanes: FetchLanes) -> Iterator[pa.RecordBatch]:
    """Every response of a reader, one lane after the other.

    A response with records completes a batch at least; of the others there are as many as captured, or little more.
    """
    nodes = done.closed.nodes()
    needed = sum(of.batches + 2 * of.count + 16 for of in nodes.values())
    room = min(needed, MOST_RESPONSES // len(lanes.names))
    totals = closed_totals(done.closed, list(done.index), done.reader[2], lanes, "/".join(done.reader), room)
    if totals is not None:
        unchecked = sorted({drift for _, _, drift in totals.verdicts if drift in UNCHECKED})
        for lane in range(len(lanes.names)):
            yield response_rows(done.reader, np.array(list(nodes)), lane, totals.kept, next(iter(unchecked), None))


def response_rows(
    reader: tuple[str, str, str], connections: Ints, lane: int, kept: Kept, unchecked: str | None
) -> pa.RecordBatch:
    """Rows of MEMORY_EVENTS, for Spark as they are; the first one tells how many responses there was no room for.

    connections: int64[connections], their ids by number. unchecked: why the closed loop cannot be checked, if so.
    """
    t, total = MEMORY_EVENTS, int(kept.total[lane])
    n = min(total, kept.asked.shape[1])
    connection, asked, came, drained, size, records, partitions = (column[lane, :n] for column in kept[:7])
    left_out = np.zeros(n, np.int64)
    left_out[:1] = total - n
    columns: dict[str, pa.Array[Any] | Ints] = {
        t.shard: np.zeros(n, np.int64),
        t.side: pa.repeat(CONSUMER, n),
        t.unit: pa.repeat(reader[0], n),
        t.unit_address: pa.repeat(reader[1], n),
        t.connection_id: connections[connection],
        t.exchange_no: np.arange(n),
        t.kind: np.full(n, RESPONSE),
        t.lane: np.full(n, lane),
        t.time: asked,
        t.came: came,
        t.held: pa.array(drained - came, mask=drained == NEVER),
        t.returned_bytes: size,
        t.records: records,
        t.partitions: partitions,
        t.unchecked: pa.array([unchecked] * n, pa.string()),
        t.left_out: left_out,
    }
    return rows_of(t, {**columns, **nulls_besides(t, columns, n)})
