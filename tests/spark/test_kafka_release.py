"""What followers show of their Kafka release."""

from __future__ import annotations

from pyspark.sql import SparkSession

from jobs.captures.kafka_release import oldest_and_newest, release_by_fetches, release_by_follower
from schemas.tables.silver import EXCHANGES
from schemas.wire.fetch import FETCH_REQUEST
from tests.gate_rows import TIME, frame


def test_a_version_that_cannot_be_is_none(spark: SparkSession) -> None:
    versions = ("3.9.1", "unknown", "9" * 5000 + ".1")
    rows = [
        {"client_id": f"broker-{n}-fetcher-0", "client_software_version": version} for n, version in enumerate(versions)
    ]
    assert oldest_and_newest(release_by_follower(frame(spark, EXCHANGES, rows)).collect()) == ("3.9", "3.9")


def test_where_nobody_says_it_the_versions_by_which_followers_fetch_tell_the_least(spark: SparkSession) -> None:
    of_consumer = {"fetch_replica_id": -1, "api_version": 4, "response_time": TIME}
    of_follower = {"fetch_replica_id": 1, "api_version": 7, "response_time": TIME}
    without_answer = {"fetch_replica_id": 1, "api_version": 11, "response_time": None}
    rows = [{"api_key": FETCH_REQUEST.api_key} | row for row in (of_consumer, of_follower, without_answer)]
    assert oldest_and_newest(release_by_fetches(frame(spark, EXCHANGES, rows)).collect()) == ("1.1", "1.1")
