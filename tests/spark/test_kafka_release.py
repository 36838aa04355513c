"""What followers tell of their release."""

from __future__ import annotations

from pyspark.sql import SparkSession

from jobs.captures.kafka_release import by_follower, oldest_and_newest
from schemas.tables.silver import EXCHANGES
from tests.gate_rows import frame


def test_a_version_that_cannot_be_is_none(spark: SparkSession) -> None:
    versions = ("3.9.1", "unknown", "9" * 5000 + ".1")
    rows = [
        {"client_id": f"broker-{n}-fetcher-0", "client_software_version": version} for n, version in enumerate(versions)
    ]
    assert oldest_and_newest(by_follower(frame(spark, EXCHANGES, rows)).collect()) == ("3.9", "3.9")
