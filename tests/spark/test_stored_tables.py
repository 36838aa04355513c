"""Tables as files: rows are dropped, files are joined, and files are removed, by delta-rs and by Delta's own SQL."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from jobs.lake.pruning import vacuum_tables
from jobs.lake.stored_tables import DeltaStore, LocalStore, StoredTable
from jobs.lake.table_address import TableAddress, address_of_folder
from udfs.errors import LakeError

WEEK = timedelta(days=7)
Store = Callable[[str], StoredTable]
ROWS = [{"of": of, "no": no, "names": [f"{of}{no}"], "counts": [("x", no)]} for of in "ab" for no in range(3)]
SCHEMA = pa.schema([
    ("of", pa.string()), ("no", pa.int64()), ("names", pa.list_(pa.string())), ("counts", pa.map_("string", "int64"))
])  # fmt: skip


@pytest.fixture(params=["delta-rs", "Delta's SQL", "by name"])
def store(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[Store]:
    name = "`spark_catalog`.`default`.`stored`"

    def named(path: str) -> StoredTable:
        spark.sql(f"CREATE TABLE IF NOT EXISTS {name} USING delta LOCATION '{path}'")
        return DeltaStore(spark, TableAddress("default.stored", None, name), "of")

    stores: dict[str, Store] = {
        "delta-rs": lambda path: LocalStore(path, "of"),
        "Delta's SQL": lambda path: DeltaStore(spark, address_of_folder(path), "of"),
        "by name": named,
    }
    yield stores[request.param]
    spark.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A table with one file for each row."""
    for row in ROWS:
        write_deltalake(tmp_path, pa.Table.from_pylist([row], SCHEMA), mode="append", partition_by=["of"])
    return str(tmp_path)


def files_of(path: str) -> list[Path]:
    return sorted(file for file in Path(path).rglob("*.parquet") if "_delta_log" not in file.parts)


def rows_of(spark: SparkSession, path: str) -> list[str]:
    return sorted(str(row.asDict(recursive=True)) for row in spark.read.format("delta").load(path).collect())


def test_a_table_tells_what_it_has_of_each(path: str, store: Store) -> None:
    found = store(path).holdings()
    sizes = {of: sum(file.stat().st_size for file in files_of(path) if f"of={of}" in str(file)) for of in "ab"}
    assert {of: (held.files, held.size) for of, held in found.items()} == {of: (3, sizes[of]) for of in "ab"}
    assert all(0 <= time.time() - held.written.timestamp() < 600 for held in found.values())


def test_rows_leave_and_their_files_stay_for_those_who_read_them(spark: SparkSession, path: str, store: Store) -> None:
    files = files_of(path)
    store(path).drop(["a", "not there"])
    assert [row["of"] for row in spark.read.format("delta").load(path).collect()] == ["b"] * 3
    assert store(path).holdings().keys() == {"b"}
    assert vacuum_tables(spark, [store(path)], WEEK) == 0
    assert files_of(path) == files
    assert spark.read.format("delta").option("versionAsOf", len(ROWS) - 1).load(path).count() == len(ROWS)


def test_joined_files_have_the_same_rows(spark: SparkSession, path: str, store: Store) -> None:
    before = rows_of(spark, path)
    assert store(path).compact() == (6, 2)
    assert rows_of(spark, path) == before
    assert {of: held.files for of, held in store(path).holdings().items()} == {"a": 1, "b": 1}
    assert store(path).compact() == (2, 2)


def test_what_nobody_needs_goes_after_the_retention(spark: SparkSession, path: str, store: Store) -> None:
    store(path).compact()
    joined = len(files_of(path))
    killed, begun = (Path(path, "of=a", f"part-{name}.parquet") for name in ("killed", "begun"))
    for file in (killed, begun):
        file.write_bytes(b"rows")
    long_ago = time.time() - 2 * WEEK.total_seconds()
    os.utime(killed, (long_ago, long_ago))
    assert vacuum_tables(spark, [store(path)], WEEK) == 1
    assert (killed.exists(), begun.exists(), len(files_of(path))) == (False, True, joined + 1)


def test_without_a_retention_all_that_was_joined_goes(spark: SparkSession, path: str, store: Store) -> None:
    before = rows_of(spark, path)
    store(path).compact()
    assert vacuum_tables(spark, [store(path)], timedelta(0)) == len(ROWS)
    assert len(files_of(path)) == 2
    assert rows_of(spark, path) == before
    assert spark.conf.get("spark.databricks.delta.retentionDurationCheck.enabled", "true") == "true"


def test_vacuums_side_by_side_leave_the_session_as_it_was(spark: SparkSession, path: str) -> None:
    tables = [shutil.copytree(path, f"{path}-{no}") for no in range(3)]
    stores = [DeltaStore(spark, address_of_folder(table), "of") for table in tables]
    assert vacuum_tables(spark, stores, timedelta(0)) == 0
    assert spark.conf.get("spark.databricks.delta.retentionDurationCheck.enabled", "true") == "true"


def test_a_dry_run_changes_nothing(path: str) -> None:
    table = LocalStore(path, "of")
    table.drop(["a"])
    assert table.vacuum(timedelta(0), dry_run=True) == 3
    assert len(files_of(path)) == len(ROWS)


def test_folders_of_what_is_gone_go_once_nobody_can_be_writing_there(path: str) -> None:
    table, folder = LocalStore(path, "of"), Path(path, "of=a")
    table.drop(["a"])
    table.vacuum(timedelta(0))
    folder.mkdir(exist_ok=True)
    table.vacuum(WEEK)
    assert folder.exists()
    long_ago = time.time() - 2 * WEEK.total_seconds()
    os.utime(folder, (long_ago, long_ago))
    table.vacuum(WEEK)
    assert not folder.exists()
    assert Path(path, "of=b").exists()


class Behind(LocalStore):
    """A table whose log was read before others changed the table."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "of")
        object.__setattr__(self, "read_before", DeltaTable(path))

    @property
    def _log(self) -> DeltaTable:
        read: DeltaTable = vars(self)["read_before"]
        return read


def test_a_table_that_somebody_writes_meanwhile_stays_as_they_leave_it(path: str) -> None:
    table = Behind(path)
    LocalStore(path, "of").drop(["a"])
    assert table.compact() == (6, None)
    assert {of: held.files for of, held in LocalStore(path, "of").holdings().items()} == {"b": 3}


def test_rows_that_somebody_has_deleted_meanwhile_are_said_to_be_in_use(path: str) -> None:
    table = Behind(path)
    LocalStore(path, "of").drop(["a"])
    with pytest.raises(LakeError, match="another refetch changes the rows that are to go: run the command again"):
        table.drop(["a"])


class Conflicting(DeltaStore):
    """A table that somebody else writes at the same time as each statement that changes it."""

    said = "[DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT] Transaction conflict detected."

    def _sql(self, statement: str) -> DataFrame:
        if statement.startswith(("DELETE", "OPTIMIZE")):
            raise PySparkException(self.said)
        return super()._sql(statement)


class Failing(Conflicting):
    """A table whose statements fail for another reason."""

    said = "[DELTA_TABLE_NOT_FOUND] It is gone."


def test_what_delta_says_of_others_who_write_is_told_as_such(spark: SparkSession, path: str) -> None:
    address = address_of_folder(path)
    table = Conflicting(spark, address, "of")
    assert table.compact() == (6, None)
    with pytest.raises(LakeError, match="another refetch changes the rows that are to go"):
        table.drop(["a"])
    for change in (
        Failing(spark, address_of_folder(path), "of").compact,
        lambda: Failing(spark, address_of_folder(path), "of").drop(["a"]),
    ):
        with pytest.raises(PySparkException, match="It is gone"):
            change()
