"""The query behind the memory table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from jobs.lake.delta_tables import table_without_rows
from jobs.replays.consumer_memory.answers import lanes
from schemas.tables.gold_memory import (
    BROKER_MEMORY,
    BROKER_MEMORY_RANGES,
    CONSUMER_MEMORY,
    CONSUMER_MEMORY_RANGES,
    PRODUCER_MEMORY,
    PRODUCER_MEMORY_RANGES,
)
from schemas.tables.table import Column, Table
from schemas.tables.values import BY_CAPTURE, BY_CLOSED_LOOP
from tests.gate_rows import frame

TABLES = (
    CONSUMER_MEMORY, BROKER_MEMORY, PRODUCER_MEMORY, CONSUMER_MEMORY_RANGES, BROKER_MEMORY_RANGES,
    PRODUCER_MEMORY_RANGES,
)  # fmt: skip


def lanes_of(spark: SparkSession, rows: Mapping[Table, list[dict[str, Any]]]) -> list[Row]:
    """The query's rows. rows: of these tables; the others have none."""
    frames = {
        table: frame(spark, table, rows[table]) if table in rows else table_without_rows(spark, table)
        for table in TABLES
    }
    return lanes(frames.__getitem__).collect()


@pytest.mark.parametrize(
    ("table", "by"), [(CONSUMER_MEMORY, CONSUMER_MEMORY.responses_of), (PRODUCER_MEMORY, PRODUCER_MEMORY.times_of)]
)
def test_what_is_held_by_times_of_the_capture_and_of_the_closed_loop_is_kept_apart(
    spark: SparkSession, table: Table, by: Column
) -> None:
    """One of two processes in a lane may be in closed loop, and the other not."""
    rows: list[dict[str, Any]] = [
        {"scenario": lane, "client_id": client, "used_bytes_p99": held, "used_bytes_max": 10 * held, by: times}
        for lane, client, held, times in (
            ("captured", "a", 7, BY_CAPTURE), ("captured", "b", 5, BY_CAPTURE),
            ("other", "a", 3, BY_CLOSED_LOOP), ("other", "b", 4, BY_CAPTURE),
        )
    ]  # fmt: skip
    found = lanes_of(spark, {table: rows})
    columns = ("p99", "p99_in_loop", "most", "most_in_loop")
    assert {row["scenario"]: tuple(row[column] for column in columns) for row in found} == {
        "captured": (7, None, 70, None),
        "other": (4, 3, 40, 30),
    }


@pytest.mark.parametrize(
    ("table", "of_ranges", "name"),
    [
        (CONSUMER_MEMORY, CONSUMER_MEMORY_RANGES, "client_id"),
        (BROKER_MEMORY, BROKER_MEMORY_RANGES, "broker"),
        (PRODUCER_MEMORY, PRODUCER_MEMORY_RANGES, "client_id"),
    ],
)
def test_ranges_of_waits_are_added_up_over_units_and_of_the_longest_wait_the_longest_counts(
    spark: SparkSession, table: Table, of_ranges: Table, name: str
) -> None:
    units = [{"scenario": "captured", name: unit, "waits": waits} for unit, waits in (("a", 3), ("b", 4))]
    ranges = [
        {"scenario": "captured", name: client, "metric": metric, "p10": p10, "p90": p90}
        for client, metric, p10, p90 in (
            ("a", "waits", 0, 10), ("b", "waits", 2, 20), ("a", "wait_ms_max", 5, 70), ("b", "wait_ms_max", 6, 60),
        )
    ]  # fmt: skip
    (row,) = lanes_of(spark, {table: units, of_ranges: ranges})
    assert (row["waits"], tuple(row["waits_range"]), tuple(row["wait_ms_max_range"])) == (7, (2, 30), (6, 70))
