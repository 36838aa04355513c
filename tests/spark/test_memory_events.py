"""What the replay of memory is told of exchanges."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from jobs.lake.delta_tables import no_rows
from jobs.replays.memory_releases import with_releases
from schemas.tables.silver import EXCHANGES, RECORD_BATCHES
from schemas.tables.steps import MEMORY_EVENTS
from tests.gate_rows import TIME, frame
from udfs.replay.memory.memory_trace import BY_LOG, BY_RESPONSE


@pytest.mark.parametrize(("local_ms", "by"), [(-1.5, BY_LOG), (1e300, BY_RESPONSE), (9.2233e15, BY_RESPONSE)])
def test_a_time_of_a_log_that_cannot_be_is_none(spark: SparkSession, local_ms: float, by: int) -> None:
    exchange = {"request_queue_time_ms": 1.0, "local_time_ms": local_ms, "status": "answered"}
    (row,) = with_releases(frame(spark, EXCHANGES, [exchange]), no_rows(spark, RECORD_BATCHES)).collect()
    start = int(TIME.timestamp() * 1_000_000)
    assert (row[MEMORY_EVENTS.released_by], row[MEMORY_EVENTS.released] - start) == (by, -500 if by == BY_LOG else 0)
