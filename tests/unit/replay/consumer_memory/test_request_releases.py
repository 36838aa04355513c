"""When a broker is done with a request, as a request log, a fetch or the response shows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from schemas.tables.event_kinds import HandledBy, MemoryEvent
from schemas.tables.silver import EXCHANGES, RECORD_BATCHES
from schemas.tables.steps_memory import LOG_BATCHES, MEMORY_EVENTS
from tests.gate_rows import TIME, Row
from tests.silver_rows import TIME_US, in_turn, plain, row_of, silver_rows
from udfs.replay.consumer_memory.request_releases import (
    LOG_COLUMNS,
    PARTITIONS,
    first_fetches,
    log_batches,
    with_releases,
)
from udfs.replay.consumer_memory.silver_events import EXCHANGE_COLUMNS, UNITS, exchange_events
from udfs.replay.shared.process_addresses import ONE_ADDRESS_EACH
from udfs.replay.shared.silver_columns import ByConnection

SECOND = 1_000_000
ANSWERED = 9
"""Seconds until the broker answers."""


def after(seconds: float | None) -> Any:
    return None if seconds is None else TIME + timedelta(seconds=seconds)


def produce(number: int = 0, **columns: Any) -> Row:
    """A produce request, as an exchange."""
    times = {"request_time": TIME, "response_time": after(ANSWERED)}
    return {"exchange_no": number, "api_key": 0, "broker": "1", "status": "answered"} | times | columns


def brought(base_offset: int | None, exchange: int = 0, **columns: Any) -> Row:
    """A batch of a produce request with acks=all."""
    batch = {"source": "produce", "acks": -1, "broker": "1", "topic": "t", "base_offset": base_offset}
    return batch | {"exchange_no": exchange, "request_time": TIME, "response_time": after(ANSWERED)} | columns


def returned(base_offset: int, second: float | None, **columns: Any) -> Row:
    """A batch of a fetch that was answered at this second."""
    batch = {"source": "fetch", "broker": "1", "topic": "t", "base_offset": base_offset, "connection_id": 7}
    return batch | {"response_time": after(second)} | columns


def cut(batches: list[pa.RecordBatch], batch_rows: int) -> list[pa.RecordBatch]:
    return [batch.slice(first, batch_rows) for batch in batches for first in range(0, batch.num_rows, batch_rows)]


def releases(
    exchanges: list[Row], batches: list[Row], batch_rows: int = 10_000
) -> dict[int, tuple[float | None, HandledBy]]:
    """By request (seconds until its release, what shows it)."""
    in_logs = in_turn(log_batches(silver_rows(RECORD_BATCHES, LOG_COLUMNS, batches, batch_rows)), PARTITIONS)
    nobody = ByConnection(np.zeros(0, np.int64), np.zeros(0, np.int64))
    there = silver_rows(EXCHANGES, EXCHANGE_COLUMNS, exchanges, batch_rows)
    requests = exchange_events(there, nobody, nobody, ONE_ADDRESS_EACH)
    fetched = first_fetches(cut(in_logs, batch_rows))
    t = MEMORY_EVENTS
    rows = plain(with_releases(cut(in_turn([*requests, *fetched], UNITS), batch_rows)))
    assert all(row[t.kind] != MemoryEvent.FETCHED for row in rows)
    of_broker = [row for row in rows if row[t.side] == "broker"]
    return {
        row[t.exchange_no]: (
            None if row[t.released] is None else (row[t.released] - TIME_US) / SECOND, HandledBy(row[t.released_by])
        )
        for row in of_broker
    }  # fmt: skip


def release(exchange: Row, *batches: Row) -> tuple[float | None, HandledBy]:
    return releases([exchange], list(batches))[0]


@pytest.mark.parametrize(
    ("local_ms", "by"), [(-1.5, HandledBy.REQUEST_LOG), (1e300, HandledBy.RESPONSE), (9.2233e15, HandledBy.RESPONSE)]
)
def test_a_time_in_a_request_log_that_is_too_large_does_not_count(local_ms: float, by: HandledBy) -> None:
    exchange = {"request_queue_time_ms": 1.0, "local_time_ms": local_ms, "status": "answered"}
    assert release(exchange) == (-0.0005 if by == HandledBy.REQUEST_LOG else 0, by)


@pytest.mark.parametrize("local_ms", [float("nan"), float("inf"), -float("inf"), -9.2233e15, None])
def test_without_a_valid_time_in_the_request_log_the_response_counts(local_ms: float | None) -> None:
    exchange = produce(request_queue_time_ms=1.0, local_time_ms=local_ms)
    assert release(exchange) == (ANSWERED, HandledBy.RESPONSE)


def test_a_request_log_goes_before_a_fetch_and_no_time_is_after_the_response() -> None:
    logged = produce(request_queue_time_ms=1000.0, local_time_ms=2000.0)
    assert release(logged, brought(5), returned(5, 1)) == (3, HandledBy.REQUEST_LOG)
    slow = produce(request_queue_time_ms=1000.0, local_time_ms=20_000.0)
    assert release(slow) == (ANSWERED, HandledBy.REQUEST_LOG)
    unanswered = logged | {"response_time": None, "status": "unanswered"}
    assert release(unanswered) == (3, HandledBy.REQUEST_LOG)


def test_a_request_is_handled_when_a_fetch_first_returned_the_last_of_its_batches() -> None:
    batches = [brought(5), brought(9, partition=1), returned(5, 2), returned(5, 4), returned(9, 3, partition=1)]
    assert release(produce(), *batches) == (3, HandledBy.FETCH)


def test_a_request_with_a_batch_that_no_fetch_returned_is_handled_with_its_response() -> None:
    others = [returned(9, 3), returned(5, 3, partition=1), returned(5, 3, broker="2"), returned(5, 3, topic="u")]
    assert release(produce(), brought(5), brought(9), returned(5, 2)) == (ANSWERED, HandledBy.REPLICAS)
    assert release(produce(), brought(5), *others) == (ANSWERED, HandledBy.REPLICAS)
    assert release(produce(), brought(None), returned(5, 2)) == (ANSWERED, HandledBy.REPLICAS)
    assert release(produce(), brought(5), returned(5, None)) == (ANSWERED, HandledBy.REPLICAS)


def test_a_fetch_answered_after_the_response_shows_nothing() -> None:
    assert release(produce(), brought(5), returned(5, ANSWERED + 1)) == (ANSWERED, HandledBy.REPLICAS)
    assert release(produce(), brought(5), returned(5, ANSWERED)) == (ANSWERED, HandledBy.REPLICAS)


@pytest.mark.parametrize("acks", [0, 1, None])
def test_a_fetch_shows_nothing_about_a_request_that_does_not_wait_for_replicas(acks: int | None) -> None:
    assert release(produce(), brought(5, acks=acks), returned(5, 2)) == (ANSWERED, HandledBy.RESPONSE)


def test_a_request_without_response_is_handled_when_a_fetch_shows_it_and_else_never() -> None:
    lost = produce(response_time=None, status="unanswered")
    assert release(lost)[0] is None
    assert release(lost, brought(5, response_time=None), returned(5, 2))[0] == 2


def test_batches_without_a_time_are_left_out() -> None:
    rows = [row_of(RECORD_BATCHES, source=source) for source in ("produce", "fetch")]
    rows += [returned(5, None), brought(5, request_time=None), brought(5), returned(5, 1)]
    made = plain(log_batches(silver_rows(RECORD_BATCHES, LOG_COLUMNS, rows)))
    assert [row[LOG_BATCHES.is_produced] for row in made] == [True, False]


@pytest.mark.parametrize("batch_rows", [1, 7])
def test_releases_are_the_same_however_rows_come(batch_rows: int) -> None:
    draw = np.random.default_rng(7)
    exchanges = [produce(number, request_time=after(number % 3)) for number in range(20)]
    batches = [
        brought(int(draw.integers(30)), number, partition=int(draw.integers(2)), request_time=after(number % 3))
        for number in range(20)
        for _ in range(2)
    ]
    batches += [
        returned(int(draw.integers(30)), float(draw.integers(12)), partition=int(draw.integers(2))) for _ in range(120)
    ]
    whole = releases(exchanges, batches)
    assert {by for _, by in whole.values()} == {HandledBy.FETCH, HandledBy.REPLICAS}
    assert releases(exchanges, batches, batch_rows) == whole
    assert releases(exchanges[::-1], batches[::-1], batch_rows) == whole
