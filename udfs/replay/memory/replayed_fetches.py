"""Responses that consumers would get under other fetch limits: the closed loop of KIP-74, as rows of MEMORY_EVENTS."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.steps import MEMORY_EVENTS, READS
from udfs.facts.arrow_tables import nulls_besides, rows_of
from udfs.replay.fetch import fairness
from udfs.replay.fetch.closed_fidelity import captured_lane, why_unchecked
from udfs.replay.fetch.closed_intent import Intent, intent_of, rules_of
from udfs.replay.fetch.closed_loop import NO_BACKLOG, Outcome, simulate
from udfs.replay.fetch.closed_reader import ClosedReader
from udfs.replay.fetch.closed_responses import Kept, no_responses
from udfs.replay.fetch.closed_unit import Rules
from udfs.replay.fetch.fetch_lanes import FetchLanes
from udfs.replay.fetch.fetch_replay import FETCH, READER, boundaries, whole_fetches
from udfs.replay.fetch.fidelity import NO_RECORDS_KNOWN
from udfs.replay.fetch.log_reads import numbers_of
from udfs.replay.fetch.partition_log import NEVER
from udfs.replay.fetch.timeline import new_timeline
from udfs.replay.key_numbers import key_numbers
from udfs.replay.memory.memory_trace import CONSUMER, MOST_EXCHANGES, RESPONSE
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
    """Every response of a reader in every lane, one connection and lane after the other."""
    keys, kind, n = list(done.index), done.reader[2], len(lanes.names)
    for connection, seen in done.closed.connections.items():
        if not seen.fetches:
            continue
        intent = intent_of(seen, keys, kind)
        rules = rules_of(intent, lanes.of(kind), lanes.client_of(kind), np.zeros(n, np.int64))
        for lane in range(n):
            kept = responses_of(intent, Rules._make(column[lane : lane + 1] for column in rules), len(keys))
            yield response_rows(done.reader, connection, lane, kept, why_unchecked(intent))


def responses_of(intent: Intent, rules: Rules, partitions: int) -> Kept:
    """The responses of one connection in one lane.

    One with records completes a batch at least; the others are what the capture has, or little more.
    """
    unit, course = intent.unit, intent.course
    kept = no_responses(1, min(len(unit.visible) + 2 * intent.seen.count + 16, MOST_EXCHANGES))
    sums = fairness.no_sums(1)
    out = Outcome(
        fairness.with_room(sums.partitions, partitions), sums.responses,
        new_timeline(1, partitions, course.begin, course.horizon), np.zeros(1, np.int64), np.ones(1, np.int64),
        np.full((partitions, 1), NO_BACKLOG), captured_lane(len(intent.servings.partition), len(unit.joins)), kept,
    )  # fmt: skip
    simulate(unit, rules, intent.pace, course, out)
    return kept


def response_rows(
    reader: tuple[str, str, str], connection: int, lane: int, kept: Kept, unchecked: str | None
) -> pa.RecordBatch:
    """Rows of MEMORY_EVENTS; the first one tells how many responses there was no room for."""
    t, count = MEMORY_EVENTS, int(kept.total[0])
    n = min(count, kept.asked.shape[1])
    asked, came, drained, size, records, partitions = (column[0, :n] for column in kept[:6])
    left_out = np.zeros(n, np.int64)
    left_out[:1] = count - n
    columns: dict[str, pa.Array[Any] | Ints] = {
        t.shard: np.zeros(n, np.int64),
        t.side: pa.repeat(CONSUMER, n),
        t.unit: pa.repeat(reader[0], n),
        t.unit_address: pa.repeat(reader[1], n),
        t.connection_id: np.full(n, connection),
        t.exchange_no: np.arange(n),
        t.kind: np.full(n, RESPONSE),
        t.lane: np.full(n, lane),
        t.time: asked,
        t.came: came,
        t.held: pa.array(drained - came, mask=drained == NEVER),
        t.returned_bytes: size,
        t.records: records,
        t.partitions: partitions,
        t.unchecked: pa.array([None if unchecked is None else str(unchecked)] * n, pa.string()),
        t.left_out: left_out,
    }
    return rows_of(t, {**columns, **nulls_besides(t, columns, n)})
