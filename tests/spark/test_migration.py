"""Columns that a table lacks are added, by delta-rs and by Delta's own SQL, and the rows stay as they are."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from jobs.lake import declared_columns, delta_log, delta_tables, migration
from jobs.lake.delta_tables import check_tables
from jobs.lake.migration import (
    add_columns,
    add_table,
    check_complete,
    incomplete_rows,
    missing_columns,
    missing_tables,
)
from jobs.lake.pruning import stored_tables
from jobs.lake.table_address import TableAddress, table_path
from schemas.tables import algorithms
from schemas.tables.gold import FETCH_FAIRNESS, FETCH_MEMORY, FIDELITY, RUNS, TABLES_OF_REPLAY
from schemas.tables.gold_aims import AIM_TABLES
from schemas.tables.gold_sessions import SESSION_CACHE, SESSION_EVICTIONS
from schemas.tables.silver import CAPTURES, EXCHANGES, SILVER
from schemas.tables.table import Table
from tests.lakes import plant
from udfs.errors import LakeError
from udfs.facts.arrow_tables import arrow_schema

LEFT_OUT = ["decoder", "first_time"]
"""The first column must not be null in today's rows, the second may be."""


@pytest.fixture(params=["delta-rs", "Delta's SQL"])
def lake(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A lake with a table that an older release wrote, with fewer columns."""
    if request.param != "delta-rs":
        for module in (delta_tables, migration):
            monkeypatch.setattr(module, "local_table", lambda spark, lake, table: None)
    plant_rows(str(tmp_path), "older", LEFT_OUT)
    return str(tmp_path)


def plant_rows(lake: str, capture_id: str, without: list[str]) -> None:
    """Write a row of a capture set, without some of the columns."""
    schema = pa.schema([field for field in arrow_schema(CAPTURES) if field.name not in without])
    values: dict[str, object] = {"string": "x", "bigint": 1, "int": 1, "boolean": True, "timestamp": 1}
    row = {c: values.get(c.type) for c in CAPTURES.columns if c not in without} | {"capture_id": capture_id}
    rows = pa.Table.from_pylist([row], schema)
    write_deltalake(f"{lake}/silver/captures", rows, mode="append", schema_mode="merge", partition_by=["capture_id"])


def test_columns_are_added_with_their_meaning_and_the_rows_lack_them(spark: SparkSession, lake: str) -> None:
    (missing,) = missing_columns(spark, lake, [CAPTURES])
    assert sorted(missing.columns.names) == sorted(LEFT_OUT)
    add_columns(spark, lake, missing)
    assert missing_columns(spark, lake, [CAPTURES]) == []
    rows = delta_tables.read_table(spark, lake, CAPTURES)
    assert [(row["decoder"], row["first_time"], row["path"]) for row in rows.collect()] == [(None, None, "x")]
    stored = spark.read.format("delta").load(f"{lake}/silver/captures").schema
    assert {name: stored[name].metadata["comment"] for name in LEFT_OUT} == {
        column: declared_columns.column_comment(column) for column in CAPTURES.columns if column in LEFT_OUT
    }


def test_rows_are_incomplete_only_where_they_lack_what_is_never_null(spark: SparkSession, lake: str) -> None:
    add_columns(spark, lake, missing_columns(spark, lake, [CAPTURES])[0])
    plant_rows(lake, "newer", ["first_time"])
    for named in (None, ["older", "newer"]):
        assert incomplete_rows(spark, lake, {CAPTURES: named}) == {CAPTURES: {"older": ["decoder"]}}
    assert incomplete_rows(spark, lake, {CAPTURES: ["newer"]}) == {}
    check_complete(spark, lake, [CAPTURES], "newer")
    with pytest.raises(LakeError, match=r"set older was written by .* silver/captures lacks `decoder` of it: run"):
        check_complete(spark, lake, [CAPTURES], "older")


def test_rows_that_this_process_has_written_are_not_checked_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the files of a table cannot be looked at, as through Spark Connect, each check is a query."""
    monkeypatch.setattr(migration, "local_table", lambda *_: None)
    monkeypatch.setattr(delta_log, "jvm_of_delta_spark", lambda _: None)
    lake = str(tmp_path)
    delta_tables.write_table(delta_tables.table_without_rows(spark, CAPTURES), lake, CAPTURES, "written")
    plant_rows(lake, "older", LEFT_OUT)
    with monkeypatch.context() as patched:
        patched.setattr(TableAddress, "rows", None)
        check_complete(spark, lake, [CAPTURES], "written")
    with pytest.raises(LakeError, match="set older was written by"):
        check_complete(spark, lake, [CAPTURES], "older")


def test_a_lake_lacks_what_its_ended_jobs_would_have_written_today(spark: SparkSession, lake: str) -> None:
    of_silver = [table for table in SILVER if table != CAPTURES]
    assert missing_tables(spark, lake, [CAPTURES]) == of_silver
    for table in (FETCH_FAIRNESS, SESSION_CACHE, FIDELITY):  # no run of the second one's replay has ended
        plant(lake, table, arrow_schema(table).empty_table())
    run = {"run_id": "run", "algorithm": algorithms.FETCH_MAX_BYTES}
    plant(lake, RUNS, pa.Table.from_pylist([run], arrow_schema(RUNS)))
    of_fetches = [table for table in TABLES_OF_REPLAY[algorithms.FETCH_MAX_BYTES] if table != FETCH_FAIRNESS]
    lacks = missing_tables(spark, lake, [CAPTURES, FETCH_FAIRNESS, SESSION_CACHE, FIDELITY, RUNS])
    assert lacks == [*of_silver, *AIM_TABLES, *of_fetches]
    with pytest.raises(LakeError) as refused:
        check_tables(spark, lake, [FETCH_MEMORY, SESSION_EVICTIONS, EXCHANGES])
    assert [line.partition(": ")[0] for line in str(refused.value).splitlines()] == [
        table_path(lake, table) for table in (FETCH_MEMORY, EXCHANGES)
    ]
    with pytest.raises(LakeError, match=r"exchanges: no such table; `migrate` with this --lake"):
        delta_tables.read_table(spark, lake, EXCHANGES)
    with pytest.raises(LakeError, match=r"session_evictions: no such table; run `replay"):
        delta_tables.read_table(spark, lake, SESSION_EVICTIONS)
    for table in lacks:
        add_table(spark, lake, table)
    assert missing_tables(spark, lake, list(stored_tables(spark, lake))) == []
    assert delta_tables.read_table(spark, lake, EXCHANGES).count() == 0


def test_every_table_that_cannot_be_migrated_is_named(spark: SparkSession, lake: str) -> None:
    other = Table("captures", "silver", "", (), "capture_id", CAPTURES.columns[:3], {})
    with pytest.raises(LakeError, match="captures cannot be migrated: unknown column"):
        missing_columns(spark, lake, [other])


def test_a_table_that_is_not_there_lacks_nothing(spark: SparkSession, tmp_path: Path) -> None:
    for lake in (str(tmp_path), "catalog:spark_catalog.nowhere"):
        for named in (None, ["a"]):
            assert incomplete_rows(spark, lake, {CAPTURES: named}) == {}
        check_complete(spark, lake, [CAPTURES], "a")
