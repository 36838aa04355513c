"""The events that the replay of producers' quotas makes from silver tables: requests, and when records were made."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from schemas.tables.silver import EXCHANGES, RECORD_BATCHES
from schemas.tables.steps import PRODUCE_EVENTS
from schemas.wire.apis import API_KEYS
from tests.gate_rows import TIME, Row
from tests.silver_rows import TIME_US, plain, row_of, silver_rows
from udfs.replay.fetch_max_bytes.producer_quota.silver_events import (
    MADE_COLUMNS,
    PRODUCE_COLUMNS,
    made_events,
    produce_events,
)
from udfs.replay.shared.process_addresses import ONE_ADDRESS_EACH, ProcessAddresses
from udfs.replay.shared.silver_columns import DELIVERY_TIMEOUT_MS, ByConnection

NOW_MS = TIME_US // 1000
BEGAN_BEFORE = ByConnection(np.array([4]), np.array([1]))
GROUPS = {("app", "10.0.0.1"): "all of ann"}


def produced(**columns: Any) -> Row:
    """A Produce request of 100 bytes after its size, answered 2 ms later."""
    usual: dict[str, Any] = {
        "connection_id": 4, "exchange_no": 9, "broker": "1", "client_address": "10.0.0.1", "client_id": "app",
        "api_key": API_KEYS["PRODUCE"], "api_version": 9, "request_time": TIME, "request_bytes": 104,
        "missing_bytes": 0, "unsent_bytes": 0, "status": "decoded", "throttle_time_ms": 0,
        "response_time": TIME + timedelta(milliseconds=3), "response_first_time": TIME + timedelta(milliseconds=2),
    }  # fmt: skip
    return row_of(EXCHANGES, **usual | columns)


def events(*rows: Row, processes: ProcessAddresses = ONE_ADDRESS_EACH) -> list[Row]:
    return plain(produce_events(silver_rows(EXCHANGES, PRODUCE_COLUMNS, rows), BEGAN_BEFORE, GROUPS, processes))


def test_each_of_several_producers_with_one_client_id_and_address_is_replayed_by_itself() -> None:
    """Both kinds of rows have the same unit: that of the producer whose connection it is."""
    of = ProcessAddresses(ByConnection(np.array([5]), np.array([0])), ("10.0.0.2:40005",), BEGAN_BEFORE)
    there = {"client_id": "app", "client_address": "10.0.0.2"}
    found = events(*(produced(connection_id=number, **there) for number in (5, 6)), processes=of)
    t = PRODUCE_EVENTS
    assert [(row[t.unit], row[t.client_address]) for row in found] == [
        ("app at 10.0.0.2:40005", "10.0.0.2:40005"), ("app at 10.0.0.2", "10.0.0.2")
    ]  # fmt: skip
    of_batch = {"source": "produce", "timestamp_type": "CreateTime", "max_timestamp": NOW_MS, "request_time": TIME}
    rows = [row_of(RECORD_BATCHES, connection_id=number, **there, **of_batch) for number in (5, 6)]
    batches = plain(made_events(silver_rows(RECORD_BATCHES, MADE_COLUMNS, rows), GROUPS, of))
    assert [row[t.unit] for row in batches] == [row[t.unit] for row in found]


def test_a_request_has_its_time_its_bytes_and_what_its_response_says() -> None:
    (event,) = events(produced(throttle_time_ms=7))
    t = PRODUCE_EVENTS
    expected = {
        t.unit: "all of ann", t.time: TIME_US, t.connection_id: 4, t.exchange_no: 9, t.client_id: "app",
        t.client_address: "10.0.0.1", t.broker: "1", t.api_version: 9, t.response_time: TIME_US + 2000, t.size: 100,
        t.throttle_time_ms: 7, t.is_answered: True, t.began_before: True,
    }  # fmt: skip
    assert {name: event[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("columns", "changed"),
    [
        ({"missing_bytes": 50}, {"size": 150}),
        ({"response_first_time": None}, {"response_time": TIME_US + 3000}),
        ({"client_id": None}, {"client_id": "", "unit": " at 10.0.0.1"}),
        ({"client_id": "other"}, {"unit": "other at 10.0.0.1"}),
        ({"connection_id": 5}, {"began_before": False}),
        ({"status": "no_response"}, {"is_answered": False}),
    ],
    ids=["bytes that the capture lacks", "whole responses", "no client id", "no group", "begun since", "no response"],
)  # fmt: skip
def test_a_request_is_as_the_exchange_shows(columns: Row, changed: Row) -> None:
    (event,) = events(produced(**columns))
    assert {name: event[name] for name in changed} == changed


def test_only_produce_requests_that_came_whole_count() -> None:
    for columns in ({"api_key": API_KEYS["FETCH"]}, {"request_bytes": 0}, {"unsent_bytes": 1}, {"request_time": None}):
        assert events(produced(**columns)) == []


def made(*last_ms: int | None, **columns: Any) -> list[int]:
    """When the last records of batches with these timestamps were made, us since the request."""
    rows = [
        row_of(RECORD_BATCHES, **{
            "connection_id": 4, "exchange_no": 9, "source": "produce", "client_id": "app", "client_address": "10.0.0.1",
            "request_time": TIME, "timestamp_type": "CreateTime", "max_timestamp": last,
        } | columns)
        for last in last_ms
    ]  # fmt: skip
    found = plain(made_events(silver_rows(RECORD_BATCHES, MADE_COLUMNS, rows), GROUPS))
    assert all((row["unit"], row["time"], row["exchange_no"]) == ("all of ann", TIME_US, 9) for row in found)
    return [row["made_time"] - TIME_US for row in found]


def test_the_last_record_of_a_batch_is_made_at_its_timestamp_within_the_time_to_deliver_it() -> None:
    oldest = NOW_MS - DELIVERY_TIMEOUT_MS
    assert made(NOW_MS, NOW_MS - 5, NOW_MS + 1) == [0, -5000]
    assert made(oldest, oldest - 1) == [-1000 * DELIVERY_TIMEOUT_MS]


@pytest.mark.parametrize("last_ms", [(1 << 63) - 1, -(1 << 63), (1 << 62) // 1000, -1, None])
def test_a_timestamp_that_is_no_time_says_nothing(last_ms: int | None) -> None:
    assert made(last_ms, NOW_MS) == [0]


def test_only_batches_with_the_producers_times_say_when_they_were_made() -> None:
    assert made(NOW_MS, timestamp_type="LogAppendTime") == made(NOW_MS, source="fetch") == []
    assert made(NOW_MS, request_time=None) == []
