"""Delta tables from their declarations: types, comments, and rows that are replaced and never duplicated."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from chispa import assert_df_equality
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jobs.lake.delta_tables
from jobs.lake.declared_columns import check_declared_columns, spark_schema
from jobs.lake.delta_tables import check_tables, local_table, read_table, rows_in, rows_of_driver, write_table
from jobs.lake.table_address import NEW_TABLE, table_path
from jobs.lake.target import Target
from jobs.terminal.failures import ReadableSparkFailures
from schemas.tables.gold import FIDELITY, GOLD, RUNS
from schemas.tables.silver import EXCHANGES, QUARANTINE, SILVER
from schemas.tables.steps import LOG_EVENTS, READS, SENT
from schemas.tables.table import Spec, Table, Type
from schemas.tables.table import table as declare
from udfs.errors import LakeError, SparkError
from udfs.facts.arrow_tables import arrow_schema

TIME = datetime(2026, 11, 21, 12, 0, 0, 123456, UTC)
EXAMPLES: dict[Type, object] = {
    "boolean": True,
    "tinyint": -(2**7),
    "smallint": -(2**15),
    "int": -(2**31),
    "bigint": -(2**63),
    "double": 0.1,
    "string": "häufig",
    "binary": b"\xff\x00",
    "timestamp": TIME,
    "array<int>": [2**31 - 1, None, 0],
    "array<bigint>": [2**63 - 1, None, 0],
    "array<string>": ["", None],
    "map<string,bigint>": [("throttled", 2**63 - 1)],
    "map<string,double>": [("catch_up", float("inf"))],
    "map<string,string>": [("häufig", "")],
}


def examples(table: Table) -> pa.Table:
    """A row of values at the edges of their types, and one of nulls."""
    values = {str(column): EXAMPLES[column.type] for column in table.columns}
    return pa.Table.from_pylist([values, dict.fromkeys(values)], schema=arrow_schema(table))


def quarantined(spark: SparkSession, capture_id: str, *offsets: int) -> DataFrame:
    """Rows of `quarantine` of one capture set, which differ by their offset."""
    row = {str(column): EXAMPLES[column.type] for column in QUARANTINE.columns} | {"capture_id": capture_id}
    rows = [row | {"stream_offset": offset} for offset in offsets]
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=arrow_schema(QUARANTINE)))


def offsets_in(spark: SparkSession, lake: str) -> list[tuple[str, int]]:
    t = QUARANTINE
    return sorted(tuple(row) for row in read_table(spark, lake, t).select(t.capture_id, t.stream_offset).collect())


@pytest.mark.parametrize("table", [*SILVER, *GOLD, LOG_EVENTS, READS, SENT], ids=lambda table: table.name)
def test_spark_and_arrow_read_a_declaration_alike(spark: SparkSession, table: Table) -> None:
    def through_a_worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.cast(arrow_schema(table))

    rows = examples(table)
    there = spark.createDataFrame(rows)
    assert [f.dataType for f in there.schema] == [f.dataType for f in spark_schema(table)]
    back = there.repartition(1).mapInArrow(through_a_worker, spark_schema(table)).toArrow()
    assert [(field.name, field.type) for field in back.schema] == [(f.name, f.type) for f in arrow_schema(table)]
    assert sorted(map(str, back.to_pylist())) == sorted(map(str, rows.to_pylist()))


def test_rows_of_the_driver_are_made_without_a_worker(spark: SparkSession) -> None:
    def plan(rows: DataFrame) -> str:
        return str(rows._jdf.queryExecution().executedPlan().toString())

    assert "ExistingRDD" in plan(spark.createDataFrame([("a", 1)], "name string, number int"))
    assert plan(rows_of_driver(spark, examples(QUARANTINE))).startswith("LocalTableScan")
    assert plan(rows_of_driver(spark, examples(QUARANTINE).slice(0, 0))).startswith("LocalTableScan")


@pytest.mark.parametrize("table", [*SILVER, *GOLD], ids=lambda table: table.name)
def test_a_table_is_read_as_it_was_written(spark: SparkSession, tmp_path: Path, table: Table) -> None:
    rows = spark.createDataFrame(examples(table)).where(F.col(table.replaced_by).isNotNull())
    write_table(rows, str(tmp_path), table, str(EXAMPLES["string"]))
    local = local_table(spark, str(tmp_path), table)
    assert local is not None
    by_spark = rows_in(spark, local.path, table, local.all_files())
    for read in (read_table(spark, str(tmp_path), table), by_spark):
        assert [f.dataType for f in read.schema] == [f.dataType for f in spark_schema(table)]
        assert list(map(str, read.toArrow().to_pylist())) == list(map(str, rows.toArrow().to_pylist()))


def test_a_tables_columns_carry_their_meaning_and_unit(spark: SparkSession, tmp_path: Path) -> None:
    write_table(quarantined(spark, "a", 1), str(tmp_path), QUARANTINE, "a")
    schema = spark.read.format("delta").load(table_path(str(tmp_path), QUARANTINE)).schema
    assert schema["bytes"].metadata["comment"] == f"{QUARANTINE.bytes.doc} [bytes]"
    assert all(field.metadata["comment"] for field in schema)


def test_a_table_that_spark_makes_has_the_properties_of_those_that_delta_rs_makes(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_table(quarantined(spark, "a", 1), str(tmp_path), QUARANTINE, "a")
    Target(str(tmp_path), "a").clear(spark, EXCHANGES)
    by_spark, by_delta_rs = (
        DeltaTable(table_path(str(tmp_path), table)).metadata().configuration for table in (QUARANTINE, EXCHANGES)
    )
    assert by_delta_rs == NEW_TABLE
    assert by_spark.items() >= NEW_TABLE.items()


def test_rows_written_twice_are_there_once(spark: SparkSession, tmp_path: Path) -> None:
    for _ in range(2):
        write_table(quarantined(spark, "a", 1, 2), str(tmp_path), QUARANTINE, "a")
    assert offsets_in(spark, str(tmp_path)) == [("a", 1), ("a", 2)]


def test_rows_of_another_capture_set_are_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    write_table(quarantined(spark, "a", 1, 2), str(tmp_path), QUARANTINE, "a")
    write_table(quarantined(spark, "b", 7), str(tmp_path), QUARANTINE, "b")
    write_table(quarantined(spark, "a", 3), str(tmp_path), QUARANTINE, "a")
    assert offsets_in(spark, str(tmp_path)) == [("a", 3), ("b", 7)]


@pytest.mark.parametrize("few_files", [32, 1], ids=["files that are read at once", "files that Delta looks for"])
def test_rows_of_some_capture_sets_are_read_alone(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few_files: int
) -> None:
    monkeypatch.setattr(jobs.lake.delta_tables, "FEW_FILES", few_files)
    monkeypatch.setattr(jobs.lake.delta_tables, "MOST_SMALL_FILES", few_files)
    for capture_id, offset in (("one", 1), ("two", 2), ("three", 3)):
        write_table(quarantined(spark, capture_id, offset), str(tmp_path), QUARANTINE, capture_id)

    def offsets(*identities: str) -> list[int]:
        rows = read_table(spark, str(tmp_path), QUARANTINE, identities)
        return sorted(row[0] for row in rows.select(QUARANTINE.stream_offset).collect())

    assert offsets("three", "one", "one", "none") == [1, 3]
    assert offsets() == []


def test_no_rows_take_the_place_of_rows(spark: SparkSession, tmp_path: Path) -> None:
    write_table(quarantined(spark, "a", 1), str(tmp_path), QUARANTINE, "a")
    write_table(quarantined(spark, "a"), str(tmp_path), QUARANTINE, "a")
    assert offsets_in(spark, str(tmp_path)) == []


def test_rows_of_another_capture_set_cannot_slip_in(spark: SparkSession, tmp_path: Path) -> None:
    write_table(quarantined(spark, "b", 7), str(tmp_path), QUARANTINE, "b")
    mixed = quarantined(spark, "a", 1).union(quarantined(spark, "b", 2))
    with pytest.raises(SparkError, match="REPLACE_WHERE"), ReadableSparkFailures():
        write_table(mixed, str(tmp_path), QUARANTINE, "a")


def test_the_order_of_columns_is_the_declarations(spark: SparkSession, tmp_path: Path) -> None:
    rows = quarantined(spark, "a", 1)
    write_table(rows.select(*reversed(rows.columns)), str(tmp_path), QUARANTINE, "a")
    assert_df_equality(read_table(spark, str(tmp_path), QUARANTINE), rows, ignore_nullable=True, ignore_metadata=True)


def test_all_differences_from_the_declaration_are_told_at_once(spark: SparkSession) -> None:
    rows = quarantined(spark, "a", 1).drop("time", "reason")
    rows = rows.withColumn("bytes", F.lit("many")).withColumn("payload", F.lit(b"secret"))
    with pytest.raises(LakeError) as raised:
        check_declared_columns(rows.schema, QUARANTINE, "lake/silver/quarantine")
    assert str(raised.value) == (
        "lake/silver/quarantine is not the table this version writes: no column `reason`; no column `time`; "
        "unknown column `payload`; column `bytes` is string, expected bigint. Use another --lake"
    )


def test_a_table_of_other_columns_is_neither_read_nor_written_over(spark: SparkSession, tmp_path: Path) -> None:
    columns = {"id": Spec("string", "An id"), "size": Spec("int", "A size")}
    other = declare("quarantine", "silver", "Of another version.", ("id",), "id", **columns)
    write_table(spark.createDataFrame([("a", 1)], spark_schema(other)), str(tmp_path), other, "a")
    with pytest.raises(
        LakeError, match=r"no column `capture_id`.*unknown column `id`; unknown column `size`.*Use another --lake"
    ):
        read_table(spark, str(tmp_path), QUARANTINE)
    with pytest.raises((LakeError, SparkError)), ReadableSparkFailures():
        write_table(quarantined(spark, "a", 1), str(tmp_path), QUARANTINE, "a")
    assert read_table(spark, str(tmp_path), other).count() == 1


def test_all_tables_of_other_columns_are_told_before_anything_is_written(spark: SparkSession, tmp_path: Path) -> None:
    columns = {"id": Spec("string", "An id"), "size": Spec("int", "A size")}
    for table in (FIDELITY, RUNS):
        other = declare(table.name, table.layer, "Of another version.", ("id",), "id", **columns)
        write_table(spark.createDataFrame([("a", 1)], spark_schema(other)), str(tmp_path), other, "a")
    with pytest.raises(LakeError, match=r"gold/fidelity is not the table.*\n.*gold/runs is not the table"):
        check_tables(spark, str(tmp_path), [QUARANTINE, FIDELITY, RUNS])


def test_a_lake_without_the_table_says_what_to_do(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(LakeError, match=r"silver/quarantine: no such table; run `ingest` with captures"):
        read_table(spark, str(tmp_path), QUARANTINE)
    with pytest.raises(LakeError, match=rf"gold/fidelity: no such table; run `replay --lake={tmp_path}` first, or"):
        read_table(spark, str(tmp_path), FIDELITY)


def test_a_declaration_reaches_workers_whole() -> None:
    again: Table = pickle.loads(pickle.dumps(QUARANTINE))  # noqa: S301  # its own
    assert again == QUARANTINE
    assert [vars(column) for column in again.columns] == [vars(column) for column in QUARANTINE.columns]
    assert again.bytes.unit == "bytes"
