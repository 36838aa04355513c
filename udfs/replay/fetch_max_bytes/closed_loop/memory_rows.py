"""Rows of MEMORY_EVENTS for the responses that a consumer would get under other fetch limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.event_kinds import MemoryEvent
from schemas.tables.fetch_reasons import CLOSED_FETCHES
from schemas.tables.steps_memory import CLOSED_RESPONSES, MEMORY_EVENTS
from schemas.tables.values import CONSUMER
from udfs.columns.arrays import Ints
from udfs.columns.arrow_columns import arrow_array
from udfs.columns.records import pick_records
from udfs.columns.time_units import NEVER
from udfs.facts.arrow_tables import arrow_stream, make_rows, nulls_besides
from udfs.replay.fetch_max_bytes.closed_loop.intent import Intent
from udfs.replay.fetch_max_bytes.closed_loop.replay import ReplayedReader
from udfs.replay.fetch_max_bytes.closed_loop.state import ReaderLanes
from udfs.replay.fetch_max_bytes.settings import FetchLanes, Reader
from udfs.replay.shared.caps import MOST_RESPONSES
from udfs.replay.shared.key_numbers import partition_of
from udfs.replay.shared.lanes import CAPTURED
from udfs.replay.shared.silver_columns import partition_key

RESPONSES_A_ROW = 1 << 12
"""The most responses in a row. It limits how many lanes of a client have their rows in one Arrow batch."""


def response_room(intent: Intent, reader: Reader, limits: FetchLanes) -> int:
    """How many responses of a consumer are kept in each lane, at most; 0 for a follower.

    A response with records completes at least one batch. Of responses without records there are as many as captured,
    or a few more; more if records are produced more slowly, because a fetch then waits for less of the capture's time.
    """
    if reader.kind != CONSUMER:
        return 0
    nodes, slowest = intent.nodes.nodes, min(float(limits.traffic_speed.min()), 1.0)
    needed = int((nodes["batches"] + 2 * nodes["fetches"] / slowest + 16).sum())
    return min(needed, MOST_RESPONSES // len(limits.names))


def memory_events(intent: Intent, reader: Reader, replayed: ReplayedReader) -> Iterator[pa.RecordBatch]:
    """Rows of MEMORY_EVENTS: the connections of a consumer that are in the closed loop; then every response, one lane
    after the other.
    """
    yield loop_rows(intent, reader)
    unknown = CLOSED_FETCHES.counted_as("unknown")
    unchecked = min((word for _, _, word in replayed.verdicts if word in unknown), default=None)
    outcome = replayed.outcome
    for lane in range(len(outcome.lanes)):
        if outcome.lanes["responses"][lane]:
            yield response_rows(intent, reader, outcome, lane, unchecked)
        if outcome.lanes["given_up"][lane]:
            yield given_up_rows(intent, reader, outcome, lane)


def client_columns(reader: Reader, lane: int, rows: int) -> dict[str, pa.Array[Any] | Ints]:
    """The columns that say whose rows these are: the client and the lane, int64[rows]."""
    t = MEMORY_EVENTS
    return {
        t.side: pa.repeat(CONSUMER, rows),
        t.unit: pa.repeat(reader.client_id, rows),
        t.unit_address: pa.repeat(reader.client_address, rows),
        t.lane: np.full(rows, lane),
    }


def loop_rows(intent: Intent, reader: Reader) -> pa.RecordBatch:
    """Rows for the connections whose captured fetches the closed loop replaces in every lane, even if it has no
    response on some of them.
    """
    t, ids = MEMORY_EVENTS, intent.nodes.ids
    columns: dict[str, pa.Array[Any] | Ints] = {
        **client_columns(reader, CAPTURED, len(ids)),
        t.connection_id: ids,
        t.exchange_no: np.zeros_like(ids),
        t.time: np.full(len(ids), intent.nodes.nodes["begin"].min()),
        t.kind: np.full(len(ids), MemoryEvent.IN_LOOP),
    }
    return make_rows(t, {**columns, **nulls_besides(t, columns, len(ids))})


def response_rows(
    intent: Intent, reader: Reader, outcome: ReaderLanes, lane: int, unchecked: str | None
) -> pa.RecordBatch:  # fmt: skip
    """Rows with a lane's responses. The first row says for how many responses there was no room.

    unchecked: why the closed loop cannot be checked; None if it can.
    """
    t, responses = MEMORY_EVENTS, closed_responses(intent, outcome, lane)
    first = np.arange(0, responses.num_rows, RESPONSES_A_ROW)
    left_out = np.zeros_like(first)
    left_out[:1] = outcome.lanes["responses"][lane] - responses.num_rows
    streams = [arrow_stream(responses.slice(row, RESPONSES_A_ROW)) for row in first.tolist()]
    columns: dict[str, pa.Array[Any] | Ints] = {
        **client_columns(reader, lane, len(first)),
        t.connection_id: np.zeros_like(first),
        t.exchange_no: first,
        t.time: responses[CLOSED_RESPONSES.time].to_numpy()[first],
        t.kind: np.full(len(first), MemoryEvent.RESPONSES),
        t.responses: pa.array(streams, pa.binary()),
        t.unchecked: pa.array([unchecked] * len(first), pa.string()),
        t.left_out: left_out,
    }
    return make_rows(t, {**columns, **nulls_besides(t, columns, len(first))})


def closed_responses(intent: Intent, outcome: ReaderLanes, lane: int) -> pa.RecordBatch:
    """Rows of CLOSED_RESPONSES: the responses of a lane that were kept, in the order of their requests."""
    t, responses = CLOSED_RESPONSES, outcome.responses[lane, : outcome.lanes["responses"][lane]]
    connection = intent.nodes.nodes["id"][responses["node"]]
    order = np.lexsort((connection, responses["requested_at"]))
    ordered = pick_records(responses, order)
    drained = ordered["drained_at"]
    columns: dict[str, pa.Array[Any] | Ints] = {
        t.number: order,
        t.connection_id: connection[order],
        t.time: ordered["requested_at"],
        t.came: ordered["arrived_at"],
        t.held: arrow_array(drained - ordered["arrived_at"], drained != NEVER),
        t.returned_bytes: ordered["size"],
        t.records: ordered["records"],
        t.partitions: ordered["partitions"],
    }
    return make_rows(t, columns)


def given_up_rows(intent: Intent, reader: Reader, outcome: ReaderLanes, lane: int) -> pa.RecordBatch:
    """Rows for the records that are given up from a lane's responses."""
    t, n = MEMORY_EVENTS, int(outcome.lanes["given_up"][lane])
    given_up = outcome.given_up[lane, :n]
    responses = pick_records(outcome.responses[lane], given_up["response"])
    parts = [partition_of(intent.keys[number]) for number in given_up["number"].tolist()]
    topics = pa.array([topic for _, topic, _ in parts], pa.string()).dictionary_encode()
    columns: dict[str, pa.Array[Any] | Ints] = {
        **client_columns(reader, lane, n),
        t.connection_id: intent.nodes.nodes["id"][responses["node"]],
        t.exchange_no: given_up["response"],
        t.time: responses["requested_at"],
        t.kind: np.full(n, MemoryEvent.GIVEN_UP),
        t.started: arrow_array(given_up["since"], given_up["since"] != NEVER),
        t.came: given_up["turn_at"],
        t.released: arrow_array(given_up["until"], given_up["until"] != NEVER),
        t.partition_key: partition_key(topics, pa.array([int(number) for *_, number in parts], pa.int32())),
    }
    return make_rows(t, {**columns, **nulls_besides(t, columns, n)})
