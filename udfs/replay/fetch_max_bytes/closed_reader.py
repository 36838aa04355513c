"""The closed loop of one reader: each of its connections in every lane, summed up and compared with the capture."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.steps import READS
from udfs.columns.arrays import Ints, edges
from udfs.replay.fetch_max_bytes import fairness
from udfs.replay.fetch_max_bytes.client_order import LIBRDKAFKA
from udfs.replay.fetch_max_bytes.client_pace import Pace, measured_pace
from udfs.replay.fetch_max_bytes.closed_fidelity import Verdicts, captured_lane, judge, lane_of_node
from udfs.replay.fetch_max_bytes.closed_intent import Intent, intent_of, rules_of
from udfs.replay.fetch_max_bytes.closed_loop import Outcome, simulate
from udfs.replay.fetch_max_bytes.closed_responses import Kept, no_responses
from udfs.replay.fetch_max_bytes.closed_unit import NO_BACKLOG, Course, Rules, Unit
from udfs.replay.fetch_max_bytes.fetch_lanes import FetchLanes
from udfs.replay.fetch_max_bytes.moved_partitions import follow, moves_between, with_moves
from udfs.replay.fetch_max_bytes.observed import Observed, columns_of, log_pieces, note_log, note_reads
from udfs.replay.fetch_max_bytes.reconnects import is_one_process, nodes_of
from udfs.replay.fetch_max_bytes.timeline import Timeline, align, new_timeline
from udfs.replay.shared.key_numbers import key_numbers


@dataclass
class ClosedReader:
    """What a reader's connections showed so far, by connection id.

    index: the number of each partition, by broker, topic and partition.
    """

    connections: dict[int, Observed] = field(default_factory=dict)
    index: dict[str, int] = field(default_factory=dict)

    def observed(self, connection: int, broker: str) -> Observed:
        """What was seen of a connection, which is to this broker."""
        if connection not in self.connections:
            self.connections[connection] = Observed(broker)
        return self.connections[connection]

    def note_logs(self, rows: pa.RecordBatch) -> None:
        """Keep rows of READS that have logs."""
        connections: list[Any] = rows[READS.connection_id].to_pylist()
        brokers: list[Any] = rows[READS.broker].to_pylist()
        for connection, broker, (key, piece) in zip(connections, brokers, log_pieces(rows), strict=True):
            note_log(self.observed(connection, broker), key, piece)

    def note_reads(self, reads: pa.RecordBatch, fetch_from: Ints) -> Ints:
        """Keep what matters of whole, answered fetches, in time order. Returns the number of each read's partition."""
        parts = reads[READS.broker], reads[READS.topic], reads[READS.partition].cast(pa.string())
        numbers = key_numbers(self.index, *parts)
        if reads.num_rows == 0:
            return numbers
        of_read, lengths = reads[READS.connection_id].to_numpy(), np.diff(fetch_from)
        connections, counts = np.unique(of_read, return_counts=True)
        order, of_fetch = np.argsort(of_read, kind="stable"), of_read[fetch_from[:-1]]
        columns = {name: column[order] for name, column in columns_of(reads, numbers).items()}
        for connection, (first, end) in zip(connections.tolist(), pairwise(edges(counts).tolist()), strict=True):
            seen = self.observed(connection, reads[READS.broker][int(order[first])].as_py())
            mine = {name: column[first:end] for name, column in columns.items()}
            note_reads(seen, mine, edges(lengths[of_fetch == connection]))
        return numbers

    def nodes(self) -> dict[int, Observed]:
        """What was seen of each node: a connection, with those opened anew in its place; by the first one's id.

        If there are several processes, it is not known which connection replaces which: each is a node of its own.
        """
        seen = {connection: of for connection, of in self.connections.items() if of.fetches}
        return nodes_of(seen) if is_one_process(seen.values()) else seen


@dataclass(frozen=True)
class ClosedTotals:
    """The totals of all connections of a reader.

    sent: int64[lanes] requests. finished: int64[lanes], 1 where all was read. catch_up: int64[partitions, lanes] in us,
    NO_BACKLOG or NEVER. given_up: int64[partitions], 1 where the reader left a backlog that lane 0 had not read, for
    good or to go on behind it. backlog: int64[partitions] bytes. kept: the responses, as far as there was room.
    left_out: captured fetches behind those that were kept of their connections.
    """

    sums: fairness.ReaderSums
    timeline: Timeline
    sent: Ints
    finished: Ints
    catch_up: Ints
    given_up: Ints
    backlog: Ints
    verdicts: Verdicts
    kept: Kept
    left_out: int


@dataclass(frozen=True)
class Ready:
    """A reader with answered fetches, ready to be replayed in any lanes.

    name: client id, address, and whether a consumer or a follower. keys: broker, topic and partition of each partition
    that its fetches name, by number. intents: of its nodes. unit: of all nodes. first_batch: int64[nodes], where the
    batches of each begin in it. pace: how fast the capture shows client and brokers to be. connections: int64[nodes],
    the id of the first connection of each.
    """

    name: tuple[str, str, str]
    keys: list[str]
    intents: list[Intent]
    unit: Unit
    first_batch: Ints
    pace: Pace
    course: Course
    connections: Ints

    @property
    def seen(self) -> list[Observed]:
        """What was seen of each node."""
        return [intent.seen for intent in self.intents]


def ready(reader: ClosedReader, name: tuple[str, str, str], lanes: FetchLanes) -> Ready | None:
    """The reader, all of whose fetches have come; None where none of them was answered. lanes: the captured first."""
    nodes, keys, most = reader.nodes(), list(reader.index), int(lanes.of(name[-1]).broker_max_bytes[0])
    if not nodes:
        return None
    seen = list(nodes.values())
    is_one = is_one_process(seen)
    moves = moves_between(seen, keys) if is_one else []
    intents = [intent_of(observed, keys, name[-1], most) for observed in with_moves(seen, moves, keys)]
    unit, first_batch = whole_unit(intents)
    polls_for_all = is_one and all(intent.profile < LIBRDKAFKA for intent in intents)
    return Ready(
        name, keys, intents, follow(unit, intents, moves), first_batch,
        measured_pace([intent.fetches for intent in intents], polls_for_all), course_of(intents, is_one),
        np.array(list(nodes), np.int64),
    )  # fmt: skip


def closed_totals(reader: Ready, lanes: FetchLanes, room: int = 0) -> ClosedTotals:
    """Replay every connection of a reader. room: so many responses are kept in each lane."""
    n, m, kind = len(lanes.names), len(reader.keys), reader.name[-1]
    sums = fairness.no_sums(n)
    totals = ClosedTotals(
        fairness.ReaderSums(fairness.with_room(sums.partitions, m), sums.responses),
        new_timeline(n, m, reader.course.begin, reader.course.horizon), np.zeros(n, np.int64), np.ones(n, np.int64),
        np.full((m, n), NO_BACKLOG), np.zeros(m, np.int64), np.zeros(m, np.int64), Counter(),
        no_responses(n, room, len(reader.unit.change_time)),
        sum(observed.left_out for observed in reader.seen),
    )  # fmt: skip
    seed = "/".join(reader.name)
    seeds = np.array([zlib.crc32(f"{name}/{seed}".encode()) for name in lanes.names], np.int64)
    by_node = [rules_of(intent, lanes.of(kind), lanes.client_of(kind), seeds) for intent in reader.intents]
    replay_reader(reader, Rules(*(np.stack(column) for column in zip(*by_node, strict=True))), totals)
    align(totals.timeline)
    return totals


def replay_reader(reader: Ready, rules: Rules, totals: ClosedTotals) -> None:
    """Replay the connections together, into the totals."""
    unit, captured = reader.unit, captured_lane(reader.intents)
    out = Outcome(
        totals.sums.partitions, totals.sums.responses, totals.timeline, totals.sent, totals.finished, totals.catch_up,
        totals.given_up, captured, totals.kept,
    )  # fmt: skip
    simulate(unit, rules, reader.pace, reader.course, out)
    np.add.at(totals.backlog, unit.number, np.maximum(unit.starts[unit.backlog_end] - unit.starts[unit.start], 0))
    for node, intent in enumerate(reader.intents):
        first_batch = int(reader.first_batch[node])
        totals.verdicts.update(judge(intent, lane_of_node(captured, reader.course, node, first_batch)))


def whole_unit(intents: list[Intent]) -> tuple[Unit, Ints]:
    """All connections' units as one, and where the batches of each begin: int64[nodes]."""
    counts = np.array([len(intent.unit.visible) for intent in intents], np.int64)
    before = np.cumsum(counts) - counts
    moved = [moved_behind(intent.unit, int(shift)) for intent, shift in zip(intents, before, strict=True)]
    unit = Unit(*(np.concatenate(columns) for columns in zip(*moved, strict=True)))
    sizes, records = (
        np.concatenate([np.zeros(1, np.int64), *(np.diff(totals) for totals in columns)])
        for columns in zip(*((intent.unit.starts, intent.unit.records) for intent in intents), strict=True)
    )
    return unit._replace(starts=np.cumsum(sizes), records=np.cumsum(records)), before


def moved_behind(unit: Unit, batches: int) -> Unit:
    """The unit behind so many batches of others."""
    return unit._replace(
        first=unit.first + batches, start=unit.start + batches, end=unit.end + batches,
        backlog_end=unit.backlog_end + batches, segment_end=unit.segment_end + batches,
        change_to=np.where((unit.change_what >= 0) & (unit.change_to >= 0), unit.change_to + batches, unit.change_to),
    )  # fmt: skip


def course_of(intents: list[Intent], is_one: bool) -> Course:
    """The courses of all connections."""
    return Course(
        np.array([intent.begin for intent in intents], np.int64),
        np.array([intent.horizon for intent in intents], np.int64),
        np.array([intent.most_requests for intent in intents], np.int64),
        edges([len(intent.unit.number) for intent in intents]),
        edges([len(intent.unit.change_time) for intent in intents]),
        np.full(1, int(is_one), np.int64),
    )
