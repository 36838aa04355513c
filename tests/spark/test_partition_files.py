"""The rows of a capture set are those of Delta's newest version, though Delta is asked for their files once."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession

import jobs.delta_log
from jobs.delta_log import DataFile, partition_files, replace_partition
from jobs.lake import described_schema, read_table, rows_here, rows_of, table_path, write_table
from schemas.tables.silver import EXCHANGES
from udfs.facts.arrow_tables import arrow_schema

A = (str(EXCHANGES.replaced_by), "a")


def exchanges(*numbers: int) -> pa.Table:
    rows = [{"capture_id": "a", "exchange_no": number} for number in numbers]
    return pa.Table.from_pylist(rows, schema=arrow_schema(EXCHANGES))


def write(spark: SparkSession, lake: Path, *numbers: int) -> None:
    write_table(rows_here(spark, exchanges(*numbers)), str(lake), EXCHANGES, "a")


def numbers_in(rows: DataFrame) -> list[int]:
    return sorted(row.exchange_no for row in rows.collect())


def jobs_of(spark: SparkSession, work: Callable[[], object]) -> int:
    """How many Spark jobs it takes."""
    group = str(uuid4())
    spark.sparkContext.setJobGroup(group, "counted")
    try:
        work()
        return len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


def test_every_version_has_its_own_rows(spark: SparkSession, tmp_path: Path) -> None:
    for numbers in ([1, 2], [3], []):
        write(spark, tmp_path, *numbers)
        assert numbers_in(rows_of(spark, str(tmp_path), EXCHANGES, "a")) == numbers
    assert numbers_in(rows_of(spark, str(tmp_path), EXCHANGES, "b")) == []


def test_delta_looks_for_files_once_a_version_and_never_for_those_written_here(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(spark, tmp_path, 1)
    path = table_path(str(tmp_path), EXCHANGES)

    def look() -> object:
        return partition_files(spark, path, A)

    assert jobs_of(spark, look) > 0
    assert jobs_of(spark, look) == 0
    (file,) = partition_files(spark, path, A) or ()
    copied = DataFile("capture_id=a/copied.parquet", Path(file.removeprefix("file:")).stat().st_size, "{}")
    shutil.copy(file.removeprefix("file:"), f"{path}/{copied.path}")
    replace_partition(spark, path, described_schema(EXCHANGES).json(), A, [copied])
    assert jobs_of(spark, look) == 0
    assert partition_files(spark, path, A) == (f"{path}/{copied.path}",)
    assert numbers_in(rows_of(spark, str(tmp_path), EXCHANGES, "a")) == [1]


def test_a_table_that_was_deleted_and_written_again_has_the_new_rows(spark: SparkSession, tmp_path: Path) -> None:
    for number in (1, 2):
        write(spark, tmp_path / "lake", number)
        assert numbers_in(rows_of(spark, str(tmp_path / "lake"), EXCHANGES, "a")) == [number]
        shutil.rmtree(tmp_path / "lake")


def test_a_copy_of_a_lake_has_rows_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    write(spark, tmp_path / "lake", 1)
    shutil.copytree(tmp_path / "lake", tmp_path / "copy")
    for name in ("lake", "copy"):
        assert numbers_in(rows_of(spark, str(tmp_path / name), EXCHANGES, "a")) == [1]
        shutil.rmtree(tmp_path / name)


def test_rows_that_were_deleted_from_a_file_stay_out(spark: SparkSession, tmp_path: Path) -> None:
    write(spark, tmp_path, 1, 2, 3)
    path = table_path(str(tmp_path), EXCHANGES)
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)")
    DeltaTable.forPath(spark, path).delete("exchange_no = 2")
    assert partition_files(spark, path, A) is None
    assert numbers_in(rows_of(spark, str(tmp_path), EXCHANGES, "a")) == [1, 3]


def test_of_many_files_those_are_passed_over_that_statistics_rule_out(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs.delta_log, "_FEW_FILES", 1)
    rows = rows_here(spark, exchanges(*range(20))).repartitionByRange(2, "exchange_no")
    write_table(rows, str(tmp_path), EXCHANGES, "a")
    path = table_path(str(tmp_path), EXCHANGES)
    assert partition_files(spark, path, A) is None
    assert jobs_of(spark, lambda: partition_files(spark, path, A)) == 0
    own = rows_of(spark, str(tmp_path), EXCHANGES, "a")
    assert own.count() == 20
    assert numbers_in(own.where("exchange_no = 7")) == [7]
    assert own.schema == read_table(spark, str(tmp_path), EXCHANGES).schema


def test_columns_are_the_same_whoever_reads_them(spark: SparkSession, tmp_path: Path) -> None:
    write(spark, tmp_path, 1)
    assert partition_files(spark, table_path(str(tmp_path), EXCHANGES), A) is not None
    assert rows_of(spark, str(tmp_path), EXCHANGES, "a").columns == read_table(spark, str(tmp_path), EXCHANGES).columns


def test_what_is_known_of_versions_is_bounded(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs.delta_log, "_MOST_KNOWN", 2)
    for number in range(4):
        write(spark, tmp_path, number)
        assert numbers_in(rows_of(spark, str(tmp_path), EXCHANGES, "a")) == [number]
    assert len(jobs.delta_log._known) == 2
