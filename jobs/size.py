"""size: partition limits (KIP-578, a proposal) on a cluster described in a file, without a capture."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from jobs.lake.delta_tables import rows_of_driver, stored_rows
from jobs.lake.packed_tables import write_packed
from jobs.lake.table_address import address_of
from jobs.lake.target import Target
from jobs.ready_session import ready_session
from jobs.replays.finished_runs import RunRows, make_run_id, run_rows
from jobs.replays.partition_limits.answers import answer_lines
from jobs.replays.partition_limits.job import PARTITION_LIMITS, lanes_for_limits, seed_of_draws
from jobs.run import Run
from jobs.scenarios.cluster import Cluster
from jobs.scenarios.cluster_file import read_cluster
from jobs.scenarios.scenario import Scenario
from jobs.session.one_shuffle import PACKED_COLUMNS
from jobs.terminal.progress import stage
from jobs.version import replayer_version
from schemas.tables.gold import RUNS
from schemas.tables.table import Table
from udfs.columns.time_units import US_PER_S
from udfs.errors import ArgumentError
from udfs.replay.partition_limits.described_cluster import DescribedCluster, SizedTopics, described_events
from udfs.replay.partition_limits.replay import replay_topics

ALGORITHM = PARTITION_LIMITS.name


def part_for_size(scenario: Scenario) -> Scenario:
    """The part of a scenario that `size` replays: limits on partitions. stderr names the settings that are left out."""
    others = [key for name, lanes in scenario.replay.items() if name != ALGORITHM for key in lanes]
    if others:
        sys.stderr.write(f"refetch: size replays {ALGORITHM} alone, and not {', '.join(dict.fromkeys(others))}\n")
    return replace(scenario.without_window, replay={ALGORITHM: scenario.replay.get(ALGORITHM, {})})


def replay_described_cluster(spark: SparkSession, run: Run, cluster: Cluster, cluster_id: str) -> str:
    """Replay the changes of a described cluster and write the gold tables. Returns the run's id."""
    run_name = make_run_id(cluster_id, run.scenario)
    lanes = lanes_for_limits(run.scenario, run.scenario.captured)
    to = Target(run.lake, run_name)
    events = rows_of_driver(spark, events_of_cluster(cluster, seed_of_draws(cluster_id)))
    with stage("size", spark):
        replay = partial(replay_topics, lanes=lanes, seed=seed_of_draws(cluster_id), run_id=run_name)
        rows = events.coalesce(1).mapInArrow(replay, PACKED_COLUMNS).persist()
        write_packed(spark, rows, PARTITION_LIMITS.tables, to)
    rows.unpersist()
    to.write_here(
        spark, run_rows(run, RunRows(run_name, cluster_id, replayer_version(cluster_id)), [PARTITION_LIMITS]), RUNS
    )
    return run_name


def events_of_cluster(cluster: Cluster, seed: int) -> pa.Table:
    """The cluster as rows of TOPIC_EVENTS."""
    growth = cluster.growth
    described = DescribedCluster(
        brokers=[(broker.id, broker.rack) for broker in cluster.brokers],
        present=[SizedTopics(t.name, t.partitions, t.replication_factor, how_many=t.count) for t in cluster.topics],
        coming=[SizedTopics(t.name, t.partitions, t.replication_factor, per_day=t.per_day) for t in growth.topics],
        start_us=round(growth.start.timestamp() * US_PER_S),
        days=growth.days,
    )
    return described_events(described, seed)


def size_summary(spark: SparkSession, run: Run, cluster_id: str, run_name: str) -> str:
    """The text that is printed; it is made from the tables only."""

    def own_rows(table: Table) -> DataFrame:
        return stored_rows(spark, run.lake, table, run_name)

    rows = {name: query(own_rows).collect() for name, query in PARTITION_LIMITS.queries.items()}
    lines = answer_lines(rows, [lane.name for lane in run.scenario.lanes(ALGORITHM)])
    paths = [f"  {address_of(run.lake, table)}" for table in (*PARTITION_LIMITS.tables, RUNS)]
    title = f"Partition limits (KIP-578, a proposal) on the cluster of {run.cluster}"
    parts = ["", title, *lines, "", "Tables", *paths, f"  run {run_name}, cluster {cluster_id}"]
    return "\n".join(parts) + "\n"


def main(run: Run) -> None:
    """Run the job: write the gold tables of the described cluster, print what its limits would refuse."""
    if run.cluster is None:
        raise ArgumentError("size needs a cluster file: --cluster=FILE")
    cluster = read_cluster(run.cluster)
    cluster_id = hashlib.sha256(Path(run.cluster).read_bytes()).hexdigest()[:16]
    run = replace(run, scenario=part_for_size(run.scenario))
    spark = ready_session(run, [ALGORITHM])
    run_name = replay_described_cluster(spark, run, cluster, cluster_id)
    sys.stdout.write(size_summary(spark, run, cluster_id, run_name))
