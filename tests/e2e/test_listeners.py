"""A broker with several listeners is one broker: the sessions of its followers and of its clients share one cache."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from jobs.ingest import ingest
from jobs.replay import replay
from jobs.run import Run
from jobs.scenarios.scenario_file import resolve_scenario
from schemas.tables.gold_sessions import SESSION_CACHE
from schemas.tables.silver import CONNECTIONS, EXCHANGES
from schemas.tables.silver_quality import CAPTURE_QUALITY
from tests.e2e.conftest import IN_FORCE, RUN_AT, SLOTS
from tests.e2e.other_listeners import with_other_listeners
from tests.lakes import queried


class Replayed(NamedTuple):
    """A lake, and its rows of gold/session_cache without the run id."""

    lake: str
    cache: list[str]


def replayed(spark: SparkSession, capture: Path, folder: Path) -> Replayed:
    """Ingest a capture, and replay only its fetch sessions."""
    scenario = folder / "sessions.yaml"
    scenario.write_text(f"replay:\n  session_cache:\n    {SLOTS}: [8, 12]\n")
    run = Run(resolve_scenario(str(scenario), [], IN_FORCE["sessions"]), (capture,), str(folder / "lake"), RUN_AT)
    replay(spark, run, ingest(spark, run))
    kept = [column for column in SESSION_CACHE.columns if column != SESSION_CACHE.run_id]
    return Replayed(run.lake, sorted(map(str, queried(run.lake, SESSION_CACHE, *kept))))


@pytest.fixture(scope="module")
def alone(spark: SparkSession, shared_captures: Path, tmp_path_factory: pytest.TempPathFactory) -> Replayed:
    """The capture as it is: all brokers on one address, each with one listener."""
    return replayed(spark, shared_captures / "sessions.pcap", tmp_path_factory.mktemp("alone"))


def ports_in(lake: str) -> tuple[dict[int, int], dict[int, int]]:
    """Node ids by the ports of brokers, and by those of followers that fetch from them."""
    c, x = CONNECTIONS, EXCHANGES
    kafka = queried(lake, c, where=f"{c.protocol} = 'kafka'")
    fetches = queried(lake, x, x.connection_id, x.fetch_replica_id, where=f"{x.fetch_replica_id} >= 0")
    replicas = {row[x.connection_id]: row[x.fetch_replica_id] for row in fetches}
    of_followers = [row for row in kafka if row[c.connection_id] in replicas]
    followers = {port_of(row[c.client]): replicas[row[c.connection_id]] for row in of_followers}
    return {port_of(row[c.server]): int(row[c.broker]) for row in kafka}, followers


def port_of(end: str) -> int:
    """The port of address:port."""
    return int(end.rpartition(":")[2])


@pytest.mark.parametrize(
    ("host", "replication_port"),
    [
        pytest.param(b"10.10.0.%d", 9999, id="a listener for followers that no Metadata lists"),
        pytest.param(b"kafka%d.k8", 9092, id="names, and one port for all, as on Kubernetes"),
    ],
)
def test_a_broker_with_other_listeners_is_the_same_broker(
    spark: SparkSession, shared_captures: Path, alone: Replayed, tmp_path: Path, host: bytes, replication_port: int
) -> None:
    other = tmp_path / "other.pcap"
    with_other_listeners(shared_captures / "sessions.pcap", other, *ports_in(alone.lake), replication_port, host)
    found = replayed(spark, other, tmp_path)
    c, q = CONNECTIONS, CAPTURE_QUALITY
    kafka = queried(found.lake, c, c.broker, c.server, where=f"{c.protocol} = 'kafka'")
    nodes = {(row[c.server].rpartition(":")[0], row[c.broker]) for row in kafka}
    assert nodes == {(f"10.10.0.{node}", str(node)) for node in (1, 2, 3)}
    assert {tuple(row[q.unnamed_brokers]) for row in queried(found.lake, q)} == {()}
    assert found.cache == alone.cache
