"""Rows get the names that the whole capture set shows, however their texts are stored in Arrow."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from schemas.tables.silver import CONNECTIONS, EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
from schemas.tables.silver_topics import CLUSTER_METADATA, TOPIC_CHANGES
from schemas.tables.table import Table
from udfs.facts.arrow_tables import arrow_schema
from udfs.facts.cluster_names import ClusterNames, IdInForce, with_names

KNOWN = ClusterNames({"id-orders": "orders"}, {"orders": [IdInForce("id-orders")]}, {"10.0.0.1:9092": "1"})
MADE_AGAIN = ClusterNames({}, {"orders": [IdInForce("id-1", until=5_000_000), IdInForce("id-2", since=7_000_000)]})
Row = dict[str, object]


def rows_of(table: Table, *rows: Row) -> pa.RecordBatch:
    """Rows of a table of which only some columns matter."""
    return pa.RecordBatch.from_pylist(list(rows), schema=arrow_schema(table))


def at_second(second: int | None) -> datetime | None:
    return None if second is None else datetime(1970, 1, 1, 0, 0, second, tzinfo=UTC)


@pytest.mark.parametrize(
    ("topic", "topic_id", "named"),
    [
        pytest.param(None, "id-orders", ("orders", "id-orders"), id="an id gets its name"),
        pytest.param("orders", None, ("orders", "id-orders"), id="a name gets its id"),
        pytest.param(None, "id-new", ("id-new", "id-new"), id="an unknown id stands for the name"),
        pytest.param("payments", None, ("payments", None), id="an unknown name stays without id"),
        pytest.param("payments", "id-orders", ("payments", "id-orders"), id="what the row says goes before"),
    ],
)
def test_topics_have_both_names(topic: str | None, topic_id: str | None, named: tuple[str, str | None]) -> None:
    row: Row = {"broker": "10.0.0.1:9092", "partition": 3}
    rows = rows_of(FETCH_PARTITIONS, row | {"topic": topic, "topic_id": topic_id})
    assert with_names(rows, FETCH_PARTITIONS, KNOWN) == rows_of(
        FETCH_PARTITIONS, {"broker": "1", "partition": 3, "topic": named[0], "topic_id": named[1]}
    )


@pytest.mark.parametrize(
    ("second", "topic_id"),
    [
        pytest.param(1, "id-1", id="before it was first shown"),
        pytest.param(5, "id-1", id="when it was deleted"),
        pytest.param(6, None, id="between both"),
        pytest.param(7, "id-2", id="when it was made again"),
        pytest.param(9, "id-2", id="later"),
        pytest.param(11, None, id="when it was deleted for good"),
        pytest.param(None, None, id="at no time"),
    ],
)
def test_a_name_that_was_made_again_gets_the_id_that_was_in_force(second: int | None, topic_id: str | None) -> None:
    spans = [IdInForce("id-1", until=5_000_000), IdInForce("id-2", since=7_000_000, until=10_000_000)]
    names = ClusterNames({}, {"bills": [IdInForce("id-0")], "orders": spans, "payments": [IdInForce("id-3")]})
    row: Row = {"topic": "orders", "partition": 3, "request_time": at_second(second)}
    assert with_names(rows_of(FETCH_PARTITIONS, row), FETCH_PARTITIONS, names) == rows_of(
        FETCH_PARTITIONS, row | {"topic_id": topic_id}
    )


@pytest.mark.parametrize(
    ("answered", "topic_id"),
    [
        pytest.param(5, "id-1", id="before the topic was deleted"),
        pytest.param(6, None, id="when the topic was gone"),
        pytest.param(8, None, id="by the topic that was made after it"),
        pytest.param(None, "id-1", id="not at all"),
    ],
)
def test_a_batch_gets_an_id_only_if_its_name_stood_for_it_until_the_response(
    answered: int | None, topic_id: str | None
) -> None:
    row: Row = {"topic": "orders", "request_time": at_second(4), "response_time": at_second(answered)}
    assert with_names(rows_of(RECORD_BATCHES, row), deepcopy(RECORD_BATCHES), MADE_AGAIN) == rows_of(
        RECORD_BATCHES, row | {"topic_id": topic_id}
    )


@pytest.mark.parametrize("table", [FETCH_PARTITIONS, TOPIC_CHANGES])
def test_a_fetch_or_a_change_gets_the_id_that_was_in_force_when_it_was_asked_for(table: Table) -> None:
    row: Row = {"topic": "orders", "request_time": at_second(5), "response_time": at_second(6)}
    assert with_names(rows_of(table, row), table, MADE_AGAIN) == rows_of(table, row | {"topic_id": "id-1"})


def test_a_broker_without_a_name_keeps_its_address() -> None:
    rows = rows_of(EXCHANGES, {"broker": "10.0.0.9:9092"}, {"broker": "10.0.0.1:9092"})
    assert with_names(rows, EXCHANGES, KNOWN) == rows_of(EXCHANGES, {"broker": "10.0.0.9:9092"}, {"broker": "1"})


def test_what_metadata_itself_says_is_not_rewritten() -> None:
    rows = rows_of(CLUSTER_METADATA, {"topic": None, "topic_id": "id-orders"}, {"topic": "orders", "topic_id": None})
    assert with_names(rows, CLUSTER_METADATA, KNOWN) == rows


def test_rows_stay_as_they_are_if_nothing_is_known() -> None:
    rows = rows_of(FETCH_PARTITIONS, {"broker": "10.0.0.1:9092", "topic": "orders"})
    assert with_names(rows, FETCH_PARTITIONS, ClusterNames()) == rows


def test_a_name_gets_the_id_that_it_stands_for_on_its_cluster() -> None:
    servers = {"10.0.0.1:9092": "cluster-1", "10.0.1.1:9092": "cluster-2"}
    ids = {"cluster-1/orders": [IdInForce("id-a")], "cluster-2/orders": [IdInForce("id-b")]}
    names = ClusterNames({}, ids, {}, servers)
    rows: list[Row] = [{"broker": server, "topic": "orders"} for server in (*servers, "10.0.2.1:9092")]
    given: list[Row] = [row | {"topic_id": id_} for row, id_ in zip(rows, ("id-a", "id-b", None), strict=True)]
    assert with_names(rows_of(FETCH_PARTITIONS, *rows), FETCH_PARTITIONS, names) == rows_of(FETCH_PARTITIONS, *given)


def test_a_connection_gets_its_brokers_cluster_in_a_worker_too() -> None:
    """In a worker, a table is a copy of the declared one."""
    table = deepcopy(CONNECTIONS)
    server: Row = {"server": "10.0.0.1:9092"}
    names = ClusterNames({}, {}, {}, {"10.0.0.1:9092": "cluster-1"})
    rows: list[Row] = [server | {"broker": "10.0.0.1:9092"}, server | {"broker": None}]
    named: list[Row] = [rows[0] | {"cluster_id": "cluster-1"}, rows[1]]
    assert with_names(rows_of(CONNECTIONS, *rows), table, names) == rows_of(CONNECTIONS, *named)
    told = rows_of(CLUSTER_METADATA, {"topic": "orders", "topic_id": None})
    assert with_names(told, deepcopy(CLUSTER_METADATA), KNOWN) == told
