"""What the table `runs` says of a run, also if the run's tables are kept instead of written again."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from jobs.lake.delta_tables import read_table
from jobs.lake.target import Target
from jobs.replays.fetch_max_bytes.job import FETCH_MAX_BYTES
from jobs.replays.finished_runs import RunRows, kept_run, make_run_id, run_rows
from jobs.run import Run
from jobs.scenarios.scenario_file import resolve_scenario
from schemas.tables.gold import RUNS

CAPTURE, CODE, KAFKA = "a-capture", "this code", "4.3, from the API versions that brokers offer"


def test_what_was_assumed_of_a_kept_run_is_told_as_of_the_last_command(spark: SparkSession, tmp_path: Path) -> None:
    """A run that states Kafka's default is the same run as one that does not. Only the assumed settings differ."""

    def run(*stated: str) -> Run:
        return Run(resolve_scenario(None, (), stated), (), str(tmp_path), datetime(2026, 1, 31, tzinfo=UTC))

    def assumed() -> set[str]:
        (row,) = read_table(spark, str(tmp_path), RUNS).collect()
        return set(row[RUNS.assumed])

    silent, outspoken = run(), run("broker.fetch.max.bytes=55MiB")
    name = make_run_id(CAPTURE, silent.scenario)
    assert name == make_run_id(CAPTURE, outspoken.scenario)
    rows = run_rows(silent, RunRows(name, CAPTURE, CODE, KAFKA), [FETCH_MAX_BYTES])
    Target(str(tmp_path), name).write_here(spark, rows, RUNS)
    before = assumed()
    assert {"broker.fetch.max.bytes", f"kafka: {KAFKA}"} < before
    assert kept_run(spark, outspoken, name, CODE) == {}
    assert assumed() == before - {"broker.fetch.max.bytes"}
    assert kept_run(spark, silent, name, CODE) == {}
    assert assumed() == before
