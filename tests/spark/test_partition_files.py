"""The rows of a capture set are those of Delta's newest version, although Delta is asked only once for their files."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession

import jobs.lake.delta_log
import jobs.lake.delta_tables
import jobs.lake.local_log
from jobs.lake.delta_tables import local_table, read_table, rows_for_queries, rows_of_driver, stored_rows, write_table
from jobs.lake.local_log import open_local_table
from jobs.lake.table_address import TableAddress, address_of_folder, table_path
from jobs.lake.target import Target
from schemas.tables.silver import EXCHANGES
from udfs.facts.arrow_tables import arrow_schema

A = (str(EXCHANGES.replaced_by), "a")
_VALUES: dict[str, object] = {"string": "x", "bigint": 1, "int": 1, "smallint": 1, "boolean": True}


@pytest.fixture(params=["seen by this process", "seen by Spark alone"], autouse=True)
def is_local(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether this process sees the lake's folder, or only Spark does."""
    if request.param == "seen by Spark alone":
        monkeypatch.setattr(jobs.lake.delta_tables, "workers_folder", lambda *_: None)
    return bool(request.param == "seen by this process")


def exchanges(*numbers: int) -> pa.Table:
    filled = {c: _VALUES[c.type] for c in EXCHANGES.columns if not c.nullable}
    rows = [{**filled, "capture_id": "a", "exchange_no": number} for number in numbers]
    return pa.Table.from_pylist(rows, schema=arrow_schema(EXCHANGES))


def write(spark: SparkSession, lake: Path, *numbers: int) -> None:
    write_table(rows_of_driver(spark, exchanges(*numbers)), str(lake), EXCHANGES, "a")


def numbers_in(rows: DataFrame) -> list[int]:
    return sorted(row.exchange_no for row in rows.collect())


def jobs_of(spark: SparkSession, work: Callable[[], object]) -> int:
    """How many Spark jobs the work takes."""
    group = str(uuid4())
    spark.sparkContext.setJobGroup(group, "counted")
    try:
        work()
        return len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # None takes it away


@pytest.mark.usefixtures("is_local")
@pytest.mark.parametrize("is_local", ["seen by this process"], indirect=True)
def test_few_rows_are_grouped_without_a_shuffle(spark: SparkSession, tmp_path: Path) -> None:
    write(spark, tmp_path, *range(100))
    write(spark, tmp_path, *range(200))
    by_number = stored_rows(spark, str(tmp_path), EXCHANGES, "a").groupBy(EXCHANGES.exchange_no).count()
    plan = str(by_number._jdf.queryExecution().executedPlan())
    assert "HashAggregate" in plan
    assert "Exchange" not in plan


@pytest.mark.parametrize(("most", "are_read_at_once"), [(2, False), (3, True)])
def test_no_query_opens_the_files_of_few_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, are_read_at_once: bool
) -> None:
    monkeypatch.setattr(jobs.lake.delta_tables, "ONE_TASK_ROWS", most)
    write(spark, tmp_path, 1, 2, 3)
    own = rows_for_queries(spark, str(tmp_path), EXCHANGES, "a")
    plan = str(own.where("exchange_no > 1")._jdf.queryExecution().executedPlan())
    assert ("FileScan" not in plan) == are_read_at_once
    assert numbers_in(own) == [1, 2, 3]


def test_every_version_has_its_own_rows(spark: SparkSession, tmp_path: Path) -> None:
    for numbers in ([1, 2], [3], []):
        write(spark, tmp_path, *numbers)
        assert numbers_in(stored_rows(spark, str(tmp_path), EXCHANGES, "a")) == numbers
    assert numbers_in(stored_rows(spark, str(tmp_path), EXCHANGES, "b")) == []


def files_of_a(spark: SparkSession, path: str, is_local: bool) -> tuple[str, ...] | None:
    local = open_local_table(path)
    assert local is not None
    if is_local:
        return local.files(A)
    held = jobs.lake.delta_log.partition_files(spark, address_of_folder(path), A)
    assert held is not None
    return held.few


def test_delta_looks_for_files_once_a_version_where_spark_alone_sees_the_lake(
    spark: SparkSession, tmp_path: Path, is_local: bool
) -> None:
    write(spark, tmp_path, 1)
    path = table_path(str(tmp_path), EXCHANGES)
    found = []
    looks = [jobs_of(spark, lambda: found.append(files_of_a(spark, path, is_local))) for _ in range(2)]
    assert (looks[0] > 0, looks[1]) == (not is_local, 0)
    assert found[0] == found[1]
    assert len(found[0] or ()) == 1


def test_delta_looks_for_a_file_of_each_partition_once_a_version(spark: SparkSession, tmp_path: Path) -> None:
    found = list[Mapping[str, str] | None]()
    for number in (1, 2):
        write(spark, tmp_path, number)
        table = address_of_folder(table_path(str(tmp_path), EXCHANGES))

        def look(table: TableAddress = table) -> None:
            found.append(jobs.lake.delta_log.a_file_of_each(spark, table, A[0]))

        looks = [jobs_of(spark, look) for _ in range(2)]
        assert (looks[0] > 0, looks[1]) == (True, 0)
    first, same, other, same_as_other = found
    assert first is not None
    assert first == same
    assert first.keys() == {"a"}
    assert other == same_as_other != first


def test_a_table_that_was_deleted_and_written_again_has_the_new_rows(spark: SparkSession, tmp_path: Path) -> None:
    for number in (1, 2):
        write(spark, tmp_path / "lake", number)
        assert numbers_in(stored_rows(spark, str(tmp_path / "lake"), EXCHANGES, "a")) == [number]
        shutil.rmtree(tmp_path / "lake")


def test_a_copy_of_a_lake_has_rows_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    write(spark, tmp_path / "lake", 1)
    shutil.copytree(tmp_path / "lake", tmp_path / "copy")
    for name in ("lake", "copy"):
        assert numbers_in(stored_rows(spark, str(tmp_path / name), EXCHANGES, "a")) == [1]
        shutil.rmtree(tmp_path / name)


def test_rows_that_were_deleted_from_a_file_stay_out(spark: SparkSession, tmp_path: Path) -> None:
    """Only Delta's own classes read and write a table with a feature that other readers may not know."""
    write(spark, tmp_path, 1, 2, 3)
    path = table_path(str(tmp_path), EXCHANGES)
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)")
    DeltaTable.forPath(spark, path).delete("exchange_no = 2")
    assert local_table(spark, str(tmp_path), EXCHANGES) is None
    assert jobs.lake.delta_log.partition_files(spark, address_of_folder(path), A) is None
    assert numbers_in(stored_rows(spark, str(tmp_path), EXCHANGES, "a")) == [1, 3]
    Target(str(tmp_path), "a").write_here(spark, exchanges(5), EXCHANGES)
    assert numbers_in(stored_rows(spark, str(tmp_path), EXCHANGES, "a")) == [5]


def test_of_many_files_those_are_passed_over_that_statistics_rule_out(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_local: bool
) -> None:
    for module in (jobs.lake.delta_log, jobs.lake.local_log, jobs.lake.delta_tables):
        monkeypatch.setattr(module, "FEW_FILES", 1)
    monkeypatch.setattr(jobs.lake.delta_tables, "ONE_TASK_ROWS", 10)
    rows = rows_of_driver(spark, exchanges(*range(20))).repartitionByRange(2, "exchange_no")
    write_table(rows, str(tmp_path), EXCHANGES, "a")
    assert files_of_a(spark, table_path(str(tmp_path), EXCHANGES), is_local) is None
    own = stored_rows(spark, str(tmp_path), EXCHANGES, "a")
    assert own.count() == 20
    assert numbers_in(own.where("exchange_no = 7")) == [7]
    assert own.schema == read_table(spark, str(tmp_path), EXCHANGES).schema


@pytest.mark.usefixtures("is_local")
@pytest.mark.parametrize("is_local", ["seen by this process"], indirect=True)
def test_a_small_table_of_many_files_is_read_without_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table `runs` is such a table. It has a file for each night."""
    monkeypatch.setattr(jobs.lake.delta_tables, "FEW_FILES", 1)
    write(spark, tmp_path, 1)
    of_b = exchanges(2).set_column(0, "capture_id", pa.array(["b"]))
    Target(str(tmp_path), "b").write_here(spark, of_b, EXCHANGES)
    for most, is_small in ((20_000, True), (1, False)):
        monkeypatch.setattr(jobs.lake.delta_tables, "ONE_TASK_ROWS", most)
        rows = read_table(spark, str(tmp_path), EXCHANGES)
        assert (rows.inputFiles() == []) == is_small
        assert numbers_in(rows) == [1, 2]


def test_columns_are_the_same_whoever_reads_them(spark: SparkSession, tmp_path: Path, is_local: bool) -> None:
    write(spark, tmp_path, 1)
    assert files_of_a(spark, table_path(str(tmp_path), EXCHANGES), is_local) is not None
    assert (
        stored_rows(spark, str(tmp_path), EXCHANGES, "a").columns == read_table(spark, str(tmp_path), EXCHANGES).columns
    )


def test_what_is_known_of_versions_is_bounded(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_local: bool
) -> None:
    monkeypatch.setattr(jobs.lake.delta_log, "_MOST_KNOWN", 2)
    monkeypatch.setattr(jobs.lake.delta_log, "_known", {})
    for number in range(4):
        write(spark, tmp_path, number)
        assert numbers_in(stored_rows(spark, str(tmp_path), EXCHANGES, "a")) == [number]
    assert len(jobs.lake.delta_log._known) == (0 if is_local else 2)
