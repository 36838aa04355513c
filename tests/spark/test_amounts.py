"""The amounts that grids are chosen from, read from silver tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from jobs.captures import amounts
from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
from schemas.tables.silver_topics import CLUSTER_METADATA
from schemas.tables.table import Table
from tests.gate_rows import TIME, frame


def found(spark: SparkSession, query: Callable[..., DataFrame], table: Table, rows: Sequence[dict[str, Any]]) -> Any:
    planted = frame(spark, table, rows)
    return sorted(map(tuple, query({table: planted}.__getitem__).collect()))


def test_what_a_client_may_hold_is_the_largest_response_of_each_of_its_brokers_together(spark: SparkSession) -> None:
    """Responses with the metadata log do not count, because controllers send them."""
    row = {"reader": "consumer", "client_id": "a", "max_bytes": 1000, "partition_max_bytes": 100}
    rows = [
        row | {"broker": "1", "connection_id": 1, "response_record_bytes": 70},
        row | {"broker": "1", "connection_id": 2, "response_record_bytes": 90, "returned_bytes": 60},
        row | {"broker": "2", "connection_id": 3, "response_record_bytes": 40, "partition_max_bytes": 200},
        row | {"broker": "2", "client_id": "b", "response_record_bytes": 95, "max_bytes": 500},
        row | {"broker": "3", "topic": "AAAAAAAAAAAAAAAAAAAAAQ", "response_record_bytes": 5000, "max_bytes": 9000},
    ]
    assert found(spark, amounts.fetch_amounts, FETCH_PARTITIONS, rows) == [("consumer", 1000, 200, 95, 60, 130)]


def test_the_largest_batch_may_be_one_record_but_a_producers_batch_is_of_several(spark: SparkSession) -> None:
    taken = {"source": "produce", "error_code": 0}
    rows = [
        taken | {"size_bytes": 900, "record_count": 1},
        taken | {"size_bytes": 300, "record_count": 2},
        taken | {"size_bytes": 5000, "record_count": 9, "error_code": 10},
        {"source": "fetch", "size_bytes": 1000, "record_count": 4, "error_code": None},
    ]
    assert found(spark, amounts.batch_amounts, RECORD_BATCHES, rows) == [(1000, 300)]
    without_answer = [taken | {"size_bytes": 900, "record_count": 1, "error_code": None}]
    assert found(spark, amounts.batch_amounts, RECORD_BATCHES, without_answer) == [(900, 0)]


def test_readers_are_counted_at_a_time_and_by_broker(spark: SparkSession) -> None:
    def fetch(broker: str, connection: int, second: int, epoch: int = 1) -> dict[str, Any]:
        at = TIME + timedelta(seconds=second)
        own = {"broker": broker, "connection_id": connection, "request_time": at, "fetch_session_epoch": epoch}
        return own | {"api_key": 1, "exchange_no": second}

    one_after_the_other = [
        fetch("1", connection, 10 * connection + second) for connection in range(5) for second in (0, 9)
    ]
    together = [fetch("2", connection, second) for connection in range(10, 13) for second in (connection - 10, 60)]
    sessionless = [fetch("2", connection, second, epoch=-1) for connection in range(20, 30) for second in (0, 60)]
    assert found(spark, amounts.most_readers, EXCHANGES, one_after_the_other) == [(1,)]
    assert found(spark, amounts.most_readers, EXCHANGES, [*one_after_the_other, *together, *sessionless]) == [(3,)]


def test_the_last_metadata_says_who_has_a_partition(spark: SparkSession) -> None:
    row = {"entry": "partition", "is_internal": False, "topic": "t"}
    rows = [
        row | {"partition": 0, "exchange_no": 1, "replica_nodes": [1, 2]},
        row | {"partition": 0, "exchange_no": 2, "replica_nodes": [2, 3]},
        row | {"partition": 1, "exchange_no": 2, "replica_nodes": [3]},
        row
        | {"topic": "__consumer_offsets", "partition": 0, "exchange_no": 2, "replica_nodes": [1], "is_internal": True},
    ]
    assert found(spark, amounts.most_replicas, CLUSTER_METADATA, rows) == [(2,)]


def test_where_a_capture_shows_nothing_the_amounts_are_none(spark: SparkSession) -> None:
    nothing = [(None,)]
    assert found(spark, amounts.fetch_amounts, FETCH_PARTITIONS, []) == []
    assert found(spark, amounts.batch_amounts, RECORD_BATCHES, []) == [(None, None)]
    assert found(spark, amounts.most_readers, EXCHANGES, []) == nothing
    assert found(spark, amounts.largest_request, EXCHANGES, []) == nothing
    assert found(spark, amounts.most_replicas, CLUSTER_METADATA, []) == nothing
