"""The outcomes of librdkafka consumers' queues, as rows of the gold table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from schemas.tables.gold_memory import LIBRDKAFKA_QUEUE
from udfs.columns.arrow_columns import repeated_text_column
from udfs.facts.arrow_tables import TYPES, make_rows
from udfs.replay.consumer_memory.consumers import Consumers
from udfs.replay.consumer_memory.fetch_queue.replay import QueueLane, ReplayedQueue, spans_of
from udfs.replay.consumer_memory.settings import MemoryLanes
from udfs.replay.consumer_memory.units import Units
from udfs.replay.shared.lanes import CAPTURED

if TYPE_CHECKING:
    from udfs.replay.consumer_memory.rows import Rows


def queue_rows(units: Units, consumers: Consumers, replayed: list[ReplayedQueue], lanes: MemoryLanes) -> Rows:
    """A row for each librdkafka consumer and lane."""
    t = LIBRDKAFKA_QUEUE
    rows = [
        consumer_columns(units, consumers, queue) | {t.scenario: name} | lane_columns(queue, lane, number == CAPTURED)
        for queue in replayed
        for number, (name, lane) in enumerate(zip(lanes.names, queue.lanes, strict=True))
    ]
    if rows:
        columns: dict[str, pa.Array[Any]] = {
            str(c): pa.array([row[c] for row in rows], TYPES[c.type]) for c in t.columns if c != t.run_id
        }
        yield t, make_rows(t, {t.run_id: repeated_text_column(units.run_id, len(rows)), **columns})


def consumer_columns(units: Units, consumers: Consumers, queue: ReplayedQueue) -> dict[str, Any]:
    """The columns that all lanes of a consumer have in common."""
    t, fetched = LIBRDKAFKA_QUEUE, consumers.fetched[queue.unit]
    return {
        t.client_id: units.names[queue.unit],
        t.client_address: units.addresses[queue.unit],
        t.librdkafka: f"{queue.release // 1000}.{queue.release % 1000}" if queue.release else None,
        t.brokers: int(fetched["brokers"]),
        t.partitions: int(fetched["partitions"]),
        t.responses: queue.responses,
        t.messages: queue.messages,
        t.value_bytes: None if queue.unmeasured else queue.value_bytes,
        t.unmeasured_batches: queue.unmeasured,
    }


def lane_columns(queue: ReplayedQueue, lane: QueueLane, is_captured: bool) -> dict[str, Any]:
    """The columns of one lane of a consumer."""
    t, bound = LIBRDKAFKA_QUEUE, lane.bound
    columns = {
        t.max_queued_bytes: int(lane.thresholds["max_bytes"][0]),
        t.min_queued_messages: int(lane.thresholds["min_messages"][0]),
        t.backoff_ms: int(lane.thresholds["backoff_us"][0]) / 1000,
        t.threshold_bytes: None if bound is None else bound.threshold,
        t.overshoot_bytes: None if bound is None else bound.overshoot,
        t.bound_bytes: None if bound is None else bound.queued,
        t.bound_messages: None if bound is None else bound.messages,
        t.memory_bound_bytes: None if bound is None else bound.memory,
        t.queued_bytes_at_most: queue.at_most if is_captured else None,
        t.pace_of: lane.pace_of,
        t.unknown_for: lane.unknown_for,
    }
    return {str(name): value for name, value in columns.items()} | replayed_columns(lane)


def replayed_columns(lane: QueueLane) -> dict[str, Any]:
    """The columns with the outcome of a lane's replay; null if it is not known."""
    t = LIBRDKAFKA_QUEUE
    names = (t.queued_bytes_max, t.queued_messages_max, t.full_share, t.idle_ms, t.held_back)
    if lane.outcome is None:
        return dict.fromkeys(map(str, names))
    outcome, span = lane.outcome[0], int(spans_of(lane.outcome)[0])
    values = (
        int(outcome["most_bytes"]), int(outcome["most_messages"]), int(outcome["full_us"]) / span,
        int(outcome["idle_us"]) / 1000, int(outcome["held_back"]),
    )  # fmt: skip
    return dict(zip(map(str, names), values, strict=True))
