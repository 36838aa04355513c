"""If a capture set shows several clusters, one is replayed: the named one, or else the one with the most requests."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.captures.clusters import choose_cluster, rows_of_cluster
from jobs.lake.delta_tables import write_table
from schemas.tables.silver import CAPTURES, CONNECTIONS, EXCHANGES
from tests.gate_rows import frame
from udfs.errors import ArgumentError

CAPTURE = "a-capture"
CONNECTED: tuple[tuple[int, str | None, str, int], ...] = (
    (1, "small", "10.0.1.1:9092", 40), (2, "large", "10.0.0.1:9092", 30), (3, "large", "10.0.0.2:9092", 30),
    (4, None, "10.0.9.9:443", 0),
)  # fmt: skip


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> str:
    """A lake with two clusters, and a connection of which no cluster is known."""
    rows = [
        {"capture_id": CAPTURE, "connection_id": id_, "cluster_id": cluster_id, "server": server, "requests": requests}
        for id_, cluster_id, server, requests in CONNECTED
    ]
    write_table(frame(spark, CONNECTIONS, rows), str(tmp_path), CONNECTIONS, CAPTURE)
    exchanges = [{"capture_id": CAPTURE, "connection_id": row[0]} for row in CONNECTED]
    write_table(frame(spark, EXCHANGES, exchanges), str(tmp_path), EXCHANGES, CAPTURE)
    write_table(frame(spark, CAPTURES, [{"capture_id": CAPTURE}]), str(tmp_path), CAPTURES, CAPTURE)
    return str(tmp_path)


@pytest.mark.parametrize(
    ("named", "chosen", "told"),
    [
        pytest.param(None, "large", "large is replayed, the one with most requests; --cluster-id=ID names another: "
                     "small (1 server, 40 requests)", id="by its requests"),
        pytest.param("small", "small", "small is replayed, as named; --cluster-id=ID names another: "
                     "large (2 servers, 60 requests)", id="by its name"),
    ],
)  # fmt: skip
def test_a_cluster_is_chosen(
    spark: SparkSession, lake: str, capsys: pytest.CaptureFixture[str], named: str | None, chosen: str, told: str
) -> None:
    assert choose_cluster(spark, lake, CAPTURE, named) == chosen
    assert capsys.readouterr().err == f"refetch: capture set {CAPTURE} shows several clusters; {told}\n"


def test_a_cluster_that_the_captures_do_not_show_is_refused(spark: SparkSession, lake: str) -> None:
    with pytest.raises(ArgumentError) as error:
        choose_cluster(spark, lake, CAPTURE, "other")
    assert str(error.value) == (
        f"{lake}: capture set {CAPTURE} shows no cluster other; it has\n"
        "  large (2 servers, 60 requests)\n  small (1 server, 40 requests)"
    )


def test_one_cluster_is_replayed_with_what_nothing_tells_a_cluster_of(
    spark: SparkSession, lake: str, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = frame(spark, CONNECTIONS, [{"capture_id": CAPTURE, "connection_id": 1, "cluster_id": "small"}])
    write_table(alone, lake, CONNECTIONS, CAPTURE)
    assert [choose_cluster(spark, lake, CAPTURE, named) for named in (None, "small")] == [None, None]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("cluster_id", "connections"), [("large", [2, 3]), ("small", [1]), (None, [1, 2, 3, 4])])
def test_a_replay_reads_the_connections_of_its_cluster(
    spark: SparkSession, lake: str, cluster_id: str | None, connections: list[int]
) -> None:
    rows = rows_of_cluster(spark, lake, EXCHANGES, CAPTURE, cluster_id)
    assert sorted(row[EXCHANGES.connection_id] for row in rows.collect()) == connections
    assert rows_of_cluster(spark, lake, CAPTURES, CAPTURE, cluster_id).count() == 1
