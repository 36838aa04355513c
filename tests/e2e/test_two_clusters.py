"""Two clusters in one capture set: each is replayed as if it had been captured alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.ingest import ingest
from jobs.replay import replay
from jobs.replays.algorithms import algorithms_to_replay
from jobs.run import Run
from jobs.scenarios.scenario_file import resolve_scenario
from schemas.tables.gold import FIDELITY, RUNS
from schemas.tables.silver import CONNECTIONS
from schemas.tables.silver_topics import CLUSTER_METADATA
from schemas.tables.table import Table
from tests.e2e.conftest import RUN_AT, CapturedLake
from tests.e2e.other_cluster import HOST, OTHER_HOST, as_of_another_cluster
from tests.lakes import queried


def rows_of(lake: str, table: Table, run_id: str) -> list[str]:
    """The sorted rows of a run, without run id and connection id. Hosts of both clusters have the same name."""
    kept = [column for column in table.columns if column not in (RUNS.run_id, CONNECTIONS.connection_id)]
    rows = map(str, queried(lake, table, *kept, where=f"run_id = '{run_id}'"))
    return sorted(row.replace(OTHER_HOST.decode(), HOST.decode()) for row in rows)


def test_each_cluster_is_replayed_as_if_it_were_alone(
    spark: SparkSession, captured: Callable[[str], CapturedLake], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both have topics with the same names, brokers with the same node ids, and traffic at the same time."""
    alone, other = captured("mixed"), tmp_path / "other.pcap"
    (cluster_id,) = {row[CONNECTIONS.cluster_id] for row in alone.rows(CONNECTIONS)}
    topic_ids = {row[CLUSTER_METADATA.topic_id] for row in alone.rows(CLUSTER_METADATA)} - {None}
    clusters = (cluster_id, as_of_another_cluster(alone.capture, other, cluster_id, topic_ids))
    lake = str(tmp_path / "lake")
    scenario = resolve_scenario(None, (), ())
    tables = [FIDELITY, *(table for algorithm in algorithms_to_replay(scenario) for table in algorithm.tables)]
    capture_id = None
    for named in clusters:
        run = Run(scenario, (alone.capture, other), lake, RUN_AT, cluster_id=named)
        capture_id = capture_id or ingest(spark, run)
        done = replay(spark, run, capture_id)
        for table in tables:
            assert rows_of(lake, table, done.run_id) == rows_of(alone.path, table, alone.run_id), (named, table.name)
    assert f"{clusters[1]} is replayed, as named" in capsys.readouterr().err
