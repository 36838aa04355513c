"""Rows of MEMORY_EVENTS for the responses that a consumer would get under other fetch limits: KIP-74 in closed loop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.event_kinds import MemoryEvent
from schemas.tables.steps import CLOSED_RESPONSES, MEMORY_EVENTS
from schemas.tables.table import Table
from schemas.tables.values import CONSUMER
from udfs.columns.arrays import Ints
from udfs.columns.arrow_columns import array_of
from udfs.columns.time_units import NEVER
from udfs.facts.arrow_tables import nulls_besides, rows_of, stream_of
from udfs.replay.fetch_max_bytes.closed_fidelity import UNCHECKED
from udfs.replay.fetch_max_bytes.closed_reader import ClosedTotals, Ready
from udfs.replay.fetch_max_bytes.closed_responses import Kept
from udfs.replay.fetch_max_bytes.fetch_lanes import FetchLanes
from udfs.replay.shared.caps import MOST_RESPONSES
from udfs.replay.shared.key_numbers import partition_of

RESPONSES_A_ROW = 1 << 12
"""Most responses in a row: of one client's rows, which lie together, those of few lanes are in an Arrow batch."""


def room_for(reader: Ready, limits: FetchLanes) -> int:
    """The most responses of a consumer in a lane that are kept; none of a follower.

    A response with records completes a batch at least; of the others there are as many as captured, or little more.
    """
    if reader.name[-1] != CONSUMER:
        return 0
    needed = sum(of.batches + 2 * of.count + 16 for of in reader.seen)
    return min(needed, MOST_RESPONSES // len(limits.names))


def response_events(reader: Ready, totals: ClosedTotals) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """Every response of a consumer, one lane after the other."""
    yield from ((MEMORY_EVENTS, rows) for rows in rows_by_lane(reader, totals))


def rows_by_lane(reader: Ready, totals: ClosedTotals) -> Iterator[pa.RecordBatch]:
    """The same without their table."""
    unchecked = sorted({drift for _, _, drift in totals.verdicts if drift in UNCHECKED})
    for lane in range(len(totals.sent)):
        if totals.kept.total[lane]:
            yield lane_rows(reader, lane, totals.kept, next(iter(unchecked), None))
        if totals.kept.given_up.total[lane]:
            yield given_up_rows(reader, lane, totals.kept)


def of_client(reader: Ready, lane: int, rows: int) -> dict[str, pa.Array[Any] | Ints]:
    """Whose rows these are, and of which lane."""
    t = MEMORY_EVENTS
    client_id, client_address, _ = reader.name
    return {
        t.shard: np.zeros(rows, np.int64),
        t.side: pa.repeat(CONSUMER, rows),
        t.unit: pa.repeat(client_id, rows),
        t.unit_address: pa.repeat(client_address, rows),
        t.lane: np.full(rows, lane),
    }


def given_up_rows(reader: Ready, lane: int, kept: Kept) -> pa.RecordBatch:
    """Rows of MEMORY_EVENTS for what is given up of a lane's responses."""
    t, n = MEMORY_EVENTS, int(kept.given_up.total[lane])
    response, partition, since, until, turn = (column[lane, :n] for column in kept.given_up[:5])
    parts = [partition_of(reader.keys[number]) for number in partition.tolist()]
    columns: dict[str, pa.Array[Any] | Ints] = {
        **of_client(reader, lane, n),
        t.connection_id: reader.connections[kept.connection[lane, response]],
        t.exchange_no: response,
        t.time: kept.asked[lane, response],
        t.kind: np.full(n, MemoryEvent.GIVEN_UP),
        t.started: pa.array(since, mask=since == NEVER),
        t.came: turn,
        t.released: pa.array(until, mask=until == NEVER),
        t.topic: pa.array([topic for _, topic, _ in parts], pa.string()),
        t.partition: np.array([int(number) for *_, number in parts], np.int32),
    }
    return rows_of(t, {**columns, **nulls_besides(t, columns, n)})


def lane_rows(reader: Ready, lane: int, kept: Kept, unchecked: str | None) -> pa.RecordBatch:
    """Rows of MEMORY_EVENTS with responses; the first one tells how many there was no room for.

    unchecked: why the closed loop cannot be checked, if so.
    """
    t, responses = MEMORY_EVENTS, responses_of(reader, lane, kept)
    first = np.arange(0, responses.num_rows, RESPONSES_A_ROW)
    left_out = np.zeros_like(first)
    left_out[:1] = kept.total[lane] - responses.num_rows
    streams = [stream_of(responses.slice(at, RESPONSES_A_ROW)) for at in first.tolist()]
    columns: dict[str, pa.Array[Any] | Ints] = {
        **of_client(reader, lane, len(first)),
        t.connection_id: np.zeros_like(first),
        t.exchange_no: first,
        t.time: responses[CLOSED_RESPONSES.time].to_numpy()[first],
        t.kind: np.full(len(first), MemoryEvent.RESPONSES),
        t.responses: pa.array(streams, pa.binary()),
        t.unchecked: pa.array([unchecked] * len(first), pa.string()),
        t.left_out: left_out,
    }
    return rows_of(t, {**columns, **nulls_besides(t, columns, len(first))})


def responses_of(reader: Ready, lane: int, kept: Kept) -> pa.RecordBatch:
    """Rows of CLOSED_RESPONSES: those of a lane that there was room for, in the order of their requests."""
    t, n = CLOSED_RESPONSES, min(int(kept.total[lane]), kept.asked.shape[1])
    connection = reader.connections[kept.connection[lane, :n]]
    order = np.lexsort((connection, kept.asked[lane, :n]))
    asked, came, drained, size, records, partitions = (column[lane, order] for column in kept[1:7])
    columns: dict[str, pa.Array[Any] | Ints] = {
        t.number: order,
        t.connection_id: connection[order],
        t.time: asked,
        t.came: came,
        t.held: array_of(drained - came, drained != NEVER),
        t.returned_bytes: size,
        t.records: records,
        t.partitions: partitions,
    }
    return rows_of(t, columns)
