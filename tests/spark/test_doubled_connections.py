"""The rule `connections_are_there_once`: it finds requests that a proxy passed on, and not clients that do the same."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest
from pyspark.sql import SparkSession

from schemas.tables.silver import CONNECTIONS, EXCHANGES
from schemas.tables.table import Table
from tests.gate_rows import GOOD, TIME, Row
from tests.spark.test_gates import refused

RULE = "connections_are_there_once"
TO_PROXY = {"connection_id": 21, "client": "10.0.0.1:40000", "server": "10.0.0.9:19092"}
TO_BROKER = {"connection_id": 22, "client": "10.0.0.9:50000", "server": "10.0.0.2:9092"}


def fetches(connection_id: int, count: int, *, later: int = 0, sooner: int = 0, late: int = 0) -> list[Row]:
    """Fetches 500 ms apart, each answered after 400 ms.

    later, sooner: us by which the requests come later, and the responses sooner. late: us by which each fetch is later
    than the one before, beyond the 500 ms.
    """
    return [
        {
            "connection_id": connection_id,
            "exchange_no": n,
            "api_key": 1,
            "client_id": "app",
            "correlation_id": n,
            "request_bytes": 100,
            "response_bytes": 300,
            "request_time": TIME + timedelta(microseconds=500_000 * n + late * n + later),
            "response_time": TIME + timedelta(microseconds=500_000 * n + late * n + 400_000 - sooner),
        }
        for n in range(count)
    ]


def rows(*exchanges: list[Row]) -> Mapping[Table, list[Row]]:
    return {**GOOD, CONNECTIONS: [TO_PROXY, TO_BROKER], EXCHANGES: [row for each in exchanges for row in each]}


def shifted(exchanges: list[Row], us: int) -> list[Row]:
    """The exchanges by a clock that is ahead by some us."""
    times = ("request_time", "response_time")
    return [row | {name: row[name] + timedelta(microseconds=us) for name in times} for row in exchanges]


@pytest.mark.parametrize("ahead_us", [0, -90_000, 90_000])
def test_what_a_proxy_passes_on_is_there_twice(spark: SparkSession, ahead_us: int) -> None:
    passed_on = shifted(fetches(22, 12, later=300, sooner=250), ahead_us)
    assert refused(spark, rows(fetches(21, 12), passed_on), {RULE}) == {RULE: 1}


def test_clients_that_do_the_same_are_not_one(spark: SparkSession) -> None:
    other = fetches(22, 12, later=300, sooner=-300, late=20)
    assert refused(spark, rows(fetches(21, 12), other), {RULE}) == {RULE: 0}


@pytest.mark.parametrize(("count", "doubled"), [(9, 0), (10, 1)])
def test_few_requests_prove_nothing_unless_the_client_is_the_same(
    spark: SparkSession, count: int, doubled: int
) -> None:
    passed_on = fetches(22, count, later=300, sooner=250)
    assert refused(spark, rows(fetches(21, count), passed_on), {RULE}) == {RULE: doubled}
    same_client = [TO_PROXY, TO_BROKER | {"client": TO_PROXY["client"]}]
    translated = {**rows(fetches(21, count), passed_on), CONNECTIONS: same_client}
    assert refused(spark, translated, {RULE}) == {RULE: 1}


def test_a_few_doubled_requests_are_accepted(spark: SparkSession) -> None:
    others = [row | {"client_id": f"other-{n}"} for n in range(20) for row in fetches(23 + n, 20)]
    passed_on = fetches(22, 10, later=300, sooner=250)
    assert refused(spark, rows(fetches(21, 10), passed_on, others), {RULE}) == {RULE: 0}


@pytest.mark.parametrize(("cluster_id", "doubled"), [(None, 1), ("one", 1), ("other", 0)])
def test_requests_to_different_clusters_are_not_the_same(
    spark: SparkSession, cluster_id: str | None, doubled: int
) -> None:
    of_clusters = [TO_PROXY | {"cluster_id": "one"}, TO_BROKER | {"cluster_id": cluster_id}]
    exchanges = rows(fetches(21, 12), fetches(22, 12, later=300, sooner=250))
    assert refused(spark, {**exchanges, CONNECTIONS: of_clusters}, {RULE}) == {RULE: doubled}
