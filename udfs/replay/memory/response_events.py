"""Rows of MEMORY_EVENTS for the responses that a consumer would get under other fetch limits: KIP-74 in closed loop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.steps import MEMORY_EVENTS
from schemas.tables.table import Table
from udfs.facts.arrow_tables import nulls_besides, rows_of
from udfs.replay.fetch.closed_fidelity import UNCHECKED
from udfs.replay.fetch.closed_reader import Ready, closed_totals
from udfs.replay.fetch.closed_responses import Kept
from udfs.replay.fetch.fetch_lanes import FetchLanes
from udfs.replay.key_numbers import partition_of
from udfs.replay.memory.closed_traces import MOST_RESPONSES
from udfs.replay.memory.drained import GIVEN_UP, RESPONSE
from udfs.replay.memory.memory_trace import CONSUMER
from udfs.time_units import NEVER
from udfs.wire.arrays import Ints


def response_events(reader: Ready, limits: FetchLanes) -> Iterator[pa.RecordBatch]:
    """Every response of a consumer, one lane after the other.

    A response with records completes a batch at least; of the others there are as many as captured, or little more.
    """
    needed = sum(of.batches + 2 * of.count + 16 for of in reader.seen)
    totals = closed_totals(reader, limits, min(needed, MOST_RESPONSES // len(limits.names)))
    unchecked = sorted({drift for _, _, drift in totals.verdicts if drift in UNCHECKED})
    for lane in range(len(limits.names)):
        yield lane_rows(reader, lane, totals.kept, next(iter(unchecked), None))
        if totals.kept.given_up.total[lane]:
            yield given_up_rows(reader, lane, totals.kept)


def consumers_response_events(reader: Ready, limits: FetchLanes) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """The same with their table; none of a follower."""
    if reader.name[-1] == CONSUMER:
        yield from ((MEMORY_EVENTS, rows) for rows in response_events(reader, limits))


def of_responses(reader: Ready, lane: int, kept: Kept, number: Ints) -> dict[str, pa.Array[Any] | Ints]:
    """The key of rows on these responses, int64[n], but for their kind."""
    t, n = MEMORY_EVENTS, len(number)
    client_id, client_address, _ = reader.name
    return {
        t.shard: np.zeros(n, np.int64),
        t.side: pa.repeat(CONSUMER, n),
        t.unit: pa.repeat(client_id, n),
        t.unit_address: pa.repeat(client_address, n),
        t.connection_id: reader.connections[kept.connection[lane, number]],
        t.exchange_no: number,
        t.lane: np.full(n, lane),
        t.time: kept.asked[lane, number],
    }


def given_up_rows(reader: Ready, lane: int, kept: Kept) -> pa.RecordBatch:
    """Rows of MEMORY_EVENTS for what is given up of a lane's responses."""
    t, n = MEMORY_EVENTS, int(kept.given_up.total[lane])
    response, partition, since, until, turn = (column[lane, :n] for column in kept.given_up[:5])
    parts = [partition_of(reader.keys[number]) for number in partition.tolist()]
    columns: dict[str, pa.Array[Any] | Ints] = {
        **of_responses(reader, lane, kept, response),
        t.kind: np.full(n, GIVEN_UP),
        t.started: pa.array(since, mask=since == NEVER),
        t.came: turn,
        t.released: pa.array(until, mask=until == NEVER),
        t.topic: pa.array([topic for _, topic, _ in parts], pa.string()),
        t.partition: np.array([int(number) for *_, number in parts], np.int32),
    }
    return rows_of(t, {**columns, **nulls_besides(t, columns, n)})


def lane_rows(reader: Ready, lane: int, kept: Kept, unchecked: str | None) -> pa.RecordBatch:
    """Rows of MEMORY_EVENTS, for Spark as they are; the first one tells how many responses there was no room for.

    unchecked: why the closed loop cannot be checked, if so.
    """
    t, total = MEMORY_EVENTS, int(kept.total[lane])
    n = min(total, kept.asked.shape[1])
    came, drained, size, records, partitions = (column[lane, :n] for column in kept[2:7])
    left_out = np.zeros(n, np.int64)
    left_out[:1] = total - n
    columns: dict[str, pa.Array[Any] | Ints] = {
        **of_responses(reader, lane, kept, np.arange(n)),
        t.kind: np.full(n, RESPONSE),
        t.came: came,
        t.held: pa.array(drained - came, mask=drained == NEVER),
        t.returned_bytes: size,
        t.records: records,
        t.partitions: partitions,
        t.unchecked: pa.array([unchecked] * n, pa.string()),
        t.left_out: left_out,
    }
    return rows_of(t, {**columns, **nulls_besides(t, columns, n)})
