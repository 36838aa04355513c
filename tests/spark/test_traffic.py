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


def test_empty_fetches_of_consumers_beyond_a_high_watermark_are_counted(spark: SparkSession) -> None:
    """Followers read to the log's end, which is beyond the high watermark, and a fetch with records is not empty."""
    asked = [("consumer", 12, 0), ("consumer", 12, 10), ("consumer", 11, 0), ("follower", 12, 0)]
    fetch: Row = {"api_name": "FETCH", "response_time": TIME, "connection_id": 5, "api_version": 17, "error_code": 0}
    fetch |= {"fetch_session_id": 0, "fetch_session_epoch": 0, "missing_bytes": 0}
    sent = [
        fetch | {"exchange_no": n, "fetch_replica_id": 1 if reader == "follower" else -1}
        for n, (reader, _, _) in enumerate(asked)
    ]
    got = [
        ONE_FETCH
        | {"exchange_no": n, "reader": reader, "fetch_offset": offset, "high_watermark": 11, "returned_bytes": returned}
        for n, (reader, offset, returned) in enumerate(asked)
    ]
    rows_of = {EXCHANGES: sent, FETCH_PARTITIONS: got}
    rows = fetches_by_reader(lambda table: frame(spark, table, rows_of[table])).collect()
    assert {row["reader"]: (row["empty"], row["beyond"]) for row in rows} == {"consumer": (2, 1), "follower": (1, 0)}


def test_brokers_that_fetch_the_metadata_log_from_a_controller_are_no_followers(spark: SparkSession) -> None:
    fetch: Row = {"api_name": "FETCH", "fetch_replica_id": 1, "response_time": TIME, "connection_id": 5}
    fetch |= {"exchange_no": 0, "api_version": 17, "fetch_session_id": 0, "fetch_session_epoch": -1}
    got = ONE_FETCH | {"exchange_no": 0, "reader": "follower", "topic": "__cluster_metadata", "returned_bytes": 10}
    rows_of = {EXCHANGES: [fetch], FETCH_PARTITIONS: [got]}
    assert fetches_by_reader(lambda table: frame(spark, table, rows_of[table])).collect() == []
