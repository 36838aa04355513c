"""What the report says about consumers' fetches."""

from __future__ import annotations

from pyspark.sql import SparkSession

from jobs.report_page.traffic import fetches_by_reader, fetching_consumers
from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS
from tests.gate_rows import TIME, Row, frame

ONE_FETCH = {"reader": "consumer", "read_position": 0, "response_record_bytes": 10, "connection_id": 5}


def test_a_client_older_than_fetch_max_bytes_asks_for_none(spark: SparkSession) -> None:
    """A Fetch request before version 3 counts as one that sets no limit (KIP-74)."""
    old = ONE_FETCH | {"client_id": "old", "exchange_no": 0, "api_version": 2, "max_bytes": 2**31 - 1}
    today = ONE_FETCH | {"client_id": "today", "exchange_no": 1, "api_version": 3, "max_bytes": 50_000}
    rows = fetching_consumers(lambda table: frame(spark, table, [old, today])).collect()
    f = FETCH_PARTITIONS
    assert {row[f.client_id]: row[f.max_bytes] for row in rows} == {"old": None, "today": 50_000}


def test_a_fetch_whose_response_the_capture_cuts_is_not_one_that_came_back_empty(spark: SparkSession) -> None:
    fetch: Row = {"api_name": "FETCH", "fetch_replica_id": -1, "response_time": TIME, "connection_id": 5}
    fetch |= {"fetch_session_id": 0, "fetch_session_epoch": 0}
    whole = [fetch | {"exchange_no": number, "error_code": 0, "missing_bytes": 0} for number in range(2)]
    cut = [fetch | {"exchange_no": 2 + number, "error_code": None, "missing_bytes": 900} for number in range(3)]
    got = ONE_FETCH | {"exchange_no": 0, "returned_bytes": 10}
    rows_of = {EXCHANGES: [*whole, *cut], FETCH_PARTITIONS: [got]}
    (row,) = fetches_by_reader(lambda table: frame(spark, table, rows_of[table])).collect()
    assert (row["fetches"], row["empty"], row["bytes"], row["cut"]) == (2, 1, 10, 3)


def test_brokers_that_fetch_the_metadata_log_from_a_controller_are_no_followers(spark: SparkSession) -> None:
    fetch: Row = {"api_name": "FETCH", "fetch_replica_id": 1, "response_time": TIME, "connection_id": 5}
    fetch |= {"exchange_no": 0, "api_version": 17, "fetch_session_id": 0, "fetch_session_epoch": -1}
    got = ONE_FETCH | {"exchange_no": 0, "reader": "follower", "topic": "__cluster_metadata", "returned_bytes": 10}
    rows_of = {EXCHANGES: [fetch], FETCH_PARTITIONS: [got]}
    assert fetches_by_reader(lambda table: frame(spark, table, rows_of[table])).collect() == []
