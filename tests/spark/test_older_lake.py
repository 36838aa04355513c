"""A lake whose tables another version wrote, with other columns."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from jobs.ingest import ingest
from jobs.lake.declared_columns import spark_schema
from jobs.lake.delta_tables import has_table, write_table
from jobs.lake.table_address import table_path
from jobs.replay import replay
from jobs.run import Run
from jobs.scenarios.scenario_file import resolve_scenario
from schemas.tables.gold import FETCH_FAIRNESS
from schemas.tables.gold_aims import AIM_TABLES
from schemas.tables.gold_sessions import SESSION_CACHE
from schemas.tables.table import Spec, table
from tests.lakes import queried
from udfs.errors import LakeError
from udfs.facts.arrow_tables import arrow_schema


def test_a_replay_is_refused_before_the_first_of_its_tables_is_written(
    spark: SparkSession, repository: Path, tmp_path: Path
) -> None:
    scenario = replace(resolve_scenario(None), replay={"fetch_max_bytes": {}, "session_cache": {}})
    capture, lake = repository / "tests/captures/starve.pcap.zst", str(tmp_path / "lake")
    run = Run(scenario, (capture,), lake, datetime(2026, 1, 31, tzinfo=UTC))
    capture_id = ingest(spark, run)
    columns = {"run_id": Spec("string", "An id"), "size": Spec("int", "A size")}
    older = table(SESSION_CACHE.name, "gold", "Of another version.", ("run_id",), "run_id", **columns)
    write_table(spark.createDataFrame([("a", 1)], spark_schema(older)), lake, older, "a")
    with pytest.raises(LakeError, match="gold/session_cache is not the table this version writes"):
        replay(spark, run, capture_id)
    assert not has_table(spark, lake, FETCH_FAIRNESS)


def test_a_run_has_no_aims_that_another_version_searched_for(
    spark: SparkSession, repository: Path, tmp_path: Path
) -> None:
    scenario = replace(resolve_scenario(None), replay={"session_cache": {}})
    capture, lake = repository / "tests/captures/starve.pcap.zst", str(tmp_path / "lake")
    run = Run(scenario, (capture,), lake, datetime(2026, 1, 31, tzinfo=UTC))
    capture_id = ingest(spark, run)
    run_id = replay(spark, run, capture_id).run_id
    for of_aims in AIM_TABLES:
        row = pa.Table.from_pylist([{"run_id": run_id}], arrow_schema(of_aims))
        write_deltalake(table_path(lake, of_aims), row, mode="append", partition_by=["run_id"])
    assert replay(spark, run, capture_id).run_id == run_id
    assert [queried(lake, of_aims) for of_aims in AIM_TABLES] == [[], []]
