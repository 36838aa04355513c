"""The query behind the memory table."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.lake.delta_tables import table_without_rows
from jobs.replays.consumer_memory.answers import lanes
from schemas.tables.gold_memory import BROKER_MEMORY, CONSUMER_MEMORY, PRODUCER_MEMORY
from schemas.tables.table import Column, Table
from schemas.tables.values import BY_CAPTURE, BY_CLOSED_LOOP
from tests.gate_rows import frame


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
    of = {other: table_without_rows(spark, other) for other in (CONSUMER_MEMORY, BROKER_MEMORY, PRODUCER_MEMORY)}
    found = lanes({**of, table: frame(spark, table, rows)}.__getitem__).collect()
    columns = ("p99", "p99_in_loop", "most", "most_in_loop")
    assert {row["scenario"]: tuple(row[column] for column in columns) for row in found} == {
        "captured": (7, None, 70, None),
        "other": (4, 3, 40, 30),
    }
