"""The closed loop of one reader: each of its connections in every lane, summed up, and held against the capture."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from schemas.tables.steps import READS
from udfs.replay.fetch import fairness
from udfs.replay.fetch.closed_fidelity import Verdicts, captured_lane, judge
from udfs.replay.fetch.closed_intent import Intent, intent_of, rules_of
from udfs.replay.fetch.closed_loop import NO_BACKLOG, Outcome, simulate
from udfs.replay.fetch.closed_responses import Kept, no_responses
from udfs.replay.fetch.closed_unit import Rules
from udfs.replay.fetch.fetch_lanes import FetchLanes
from udfs.replay.fetch.observed import Observed, columns_of, note_log, note_reads
from udfs.replay.fetch.timeline import Timeline, align, new_timeline
from udfs.wire.arrays import Ints


@dataclass
class ClosedReader:
    """What a reader's connections showed so far, by connection id."""

    connections: dict[int, Observed] = field(default_factory=dict)

    def observed(self, batch: pa.RecordBatch, row: int) -> Observed:
        """The connection of a row of READS."""
        connection = batch[READS.connection_id][row].as_py()
        if connection not in self.connections:
            self.connections[connection] = Observed(batch[READS.broker][row].as_py())
        return self.connections[connection]

    def note_logs(self, rows: pa.RecordBatch) -> None:
        """Keep rows of READS that have logs."""
        for row in range(rows.num_rows):
            note_log(self.observed(rows, row), rows.slice(row, 1))

    def note_reads(self, reads: pa.RecordBatch, numbers: Ints, fetch_from: Ints) -> None:
        """Keep what matters of whole, answered fetches, in time order. numbers: the partition of each read."""
        if reads.num_rows == 0:
            return
        columns, lengths = columns_of(reads, numbers), np.diff(fetch_from)
        of_fetch = reads[READS.connection_id].to_numpy()[fetch_from[:-1]]
        for connection in np.unique(of_fetch).tolist():
            mine = of_fetch == connection
            rows = np.repeat(mine, lengths)
            kept = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths[mine])])
            first = int(np.flatnonzero(rows)[0])
            note_reads(self.observed(reads, first), {k: v[rows] for k, v in columns.items()}, kept)


@dataclass(frozen=True)
class ClosedTotals:
    """What all connections of a reader come to.

    sent: int64[lanes] requests. finished: int64[lanes], 1 where all was read. catch_up: int64[partitions, lanes] in us,
    NO_BACKLOG or NEVER. backlog: int64[partitions] bytes. kept: the responses, as far as there was room.
    """

    sums: fairness.ReaderSums
    timeline: Timeline
    sent: Ints
    finished: Ints
    catch_up: Ints
    backlog: Ints
    verdicts: Verdicts
    kept: Kept


def closed_totals(
    reader: ClosedReader, keys: list[str], kind: str, lanes: FetchLanes, seed: str, room: int = 0
) -> ClosedTotals | None:
    """Replay every connection of a reader; None where none of its fetches was answered. keys: partitions by number.

    room: so many responses are kept in each lane.
    """
    seen = [observed for observed in reader.connections.values() if observed.fetches]
    if not seen:
        return None
    intents = [intent_of(observed, keys, kind) for observed in seen]
    begin = min(intent.course.begin for intent in intents)
    end = max(intent.course.horizon for intent in intents)
    n, m = len(lanes.names), len(keys)
    sums = fairness.no_sums(n)
    totals = ClosedTotals(
        fairness.ReaderSums(fairness.with_room(sums.partitions, m), sums.responses),
        new_timeline(n, m, begin, end), np.zeros(n, np.int64), np.ones(n, np.int64), np.full((m, n), NO_BACKLOG),
        np.zeros(m, np.int64), Counter(), no_responses(n, room),
    )  # fmt: skip
    for number, intent in enumerate(intents):
        seeds = np.array([zlib.crc32(f"{name}/{seed}/{number}".encode()) for name in lanes.names], np.int64)
        rules = rules_of(intent, lanes.of(kind), lanes.client_of(kind), seeds)
        totals.kept.at_hand[0] = number
        replay_connection(intent, rules, totals)
    align(totals.timeline)
    return totals


def replay_connection(intent: Intent, rules: Rules, totals: ClosedTotals) -> None:
    """Add one connection to the totals."""
    unit = intent.unit
    captured = captured_lane(len(intent.servings.partition), len(unit.joins))
    out = Outcome(
        totals.sums.partitions, totals.sums.responses, totals.timeline, totals.sent, totals.finished, totals.catch_up,
        captured, totals.kept,
    )  # fmt: skip
    simulate(unit, rules, intent.pace, intent.course, out)
    np.add.at(totals.backlog, unit.number, unit.starts[unit.backlog_end] - unit.starts[unit.first])
    totals.verdicts.update(judge(intent, captured))
