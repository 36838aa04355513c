"""Columns that a table lacks are added to it, by delta-rs and by Delta's own SQL, and its rows stay as they are."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from jobs.lake import declared_columns, delta_tables, migration
from jobs.lake.migration import add_columns, check_complete, incomplete_rows, missing_columns
from jobs.lake.stored_tables import stored_table
from schemas.tables.silver import CAPTURES
from schemas.tables.table import Table
from udfs.errors import LakeError
from udfs.facts.arrow_tables import arrow_schema

LEFT_OUT = ["decoder", "first_time"]
"""The first is never null in rows of today, the second can be."""


@pytest.fixture(params=["delta-rs", "Delta's SQL"])
def lake(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A lake with a table of a release that knew fewer columns."""
    if request.param != "delta-rs":
        for module in (delta_tables, migration):
            monkeypatch.setattr(module, "local_table", lambda spark, lake, table: None)
    plant_rows(str(tmp_path), "older", LEFT_OUT)
    return str(tmp_path)


def plant_rows(lake: str, capture_id: str, without: list[str]) -> None:
    """A row of a capture set, without some of the columns."""
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
    store = stored_table(spark, lake, CAPTURES)
    assert store is not None
    assert incomplete_rows(spark, lake, {CAPTURES: store.holdings()}) == {CAPTURES: {"older": ["decoder"]}}
    check_complete(spark, lake, [CAPTURES], "newer")
    with pytest.raises(LakeError, match=r"set older was written by .* silver/captures lacks `decoder` of it: run"):
        check_complete(spark, lake, [CAPTURES], "older")


def test_every_table_that_cannot_be_migrated_is_named(spark: SparkSession, lake: str) -> None:
    other = Table("captures", "silver", "", (), "capture_id", CAPTURES.columns[:3], {})
    with pytest.raises(LakeError, match="captures cannot be migrated: unknown column"):
        missing_columns(spark, lake, [other])
