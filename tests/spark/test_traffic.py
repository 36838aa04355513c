"""What the report says about consumers' fetches."""

from __future__ import annotations

from pyspark.sql import SparkSession

from jobs.report_page.traffic import fetching_consumers
from schemas.tables.silver import FETCH_PARTITIONS
from tests.gate_rows import frame

ONE_FETCH = {"reader": "consumer", "read_position": 0, "response_record_bytes": 10, "connection_id": 5}


def test_a_client_older_than_fetch_max_bytes_asks_for_none(spark: SparkSession) -> None:
    """A Fetch request before version 3 counts as one that sets no limit (KIP-74)."""
    old = ONE_FETCH | {"client_id": "old", "exchange_no": 0, "api_version": 2, "max_bytes": 2**31 - 1}
    today = ONE_FETCH | {"client_id": "today", "exchange_no": 1, "api_version": 3, "max_bytes": 50_000}
    rows = fetching_consumers(lambda table: frame(spark, table, [old, today])).collect()
    f = FETCH_PARTITIONS
    assert {row[f.client_id]: row[f.max_bytes] for row in rows} == {"old": None, "today": 50_000}
