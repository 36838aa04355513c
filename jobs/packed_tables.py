"""Tables out of packed rows: the workers that unpack the rows write the files where they can; elsewhere Spark does."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.lake import check_tables, local_table, rows_in, side_by_side, spark_schema
from jobs.target import FILE_COLUMNS, Target, files_by_table, keep_files
from schemas.tables.table import Table
from udfs.facts.arrow_tables import unpack
from udfs.facts.known_names import Names, with_names
from udfs.facts.table_files import unpacked_rows, write_files

PACKED_TABLE, PACKED_ROWS = "table", "rows"


def write_packed(spark: SparkSession, packed: DataFrame, tables: Collection[Table], to: Target) -> None:
    """Write these tables out of packed rows, columns PACKED_TABLE and PACKED_ROWS. Raises LakeError where one is there
    with other columns.
    """
    check_tables(spark, to.lake, tables)
    folders = {table: local_table(spark, to.lake, table) for table in tables}
    by_spark = [table for table, folder in folders.items() if folder is None]
    by_spark += written_by_workers(spark, packed, {table: path for table, path in folders.items() if path}, to)
    side_by_side(spark, [partial(to.write, unpacked(packed, table, to.names), table) for table in by_spark])


def unpacked(packed: DataFrame, table: Table, names: Names | None = None) -> DataFrame:
    """One table's rows out of the packed ones, called by their names where any are given."""

    def unpack_named(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in unpack(batches):
            yield rows if names is None else with_names(rows, table, names)

    own = packed.where(F.col(PACKED_TABLE) == table.name).select(PACKED_ROWS)
    return own.mapInArrow(unpack_named, spark_schema(table))


def written_by_workers(spark: SparkSession, packed: DataFrame, folders: Mapping[Table, str], to: Target) -> list[Table]:
    """Have the workers write the tables' files; returns the tables that Spark has to write, for rules take out rows."""
    if not folders:
        return []
    identity, names = to.identity, to.names  # workers cannot be sent `to`, whose watch has rows of Spark's

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield write_files(unpacked_rows(batches, folders, names), folders, identity)

    own = packed.where(F.col(PACKED_TABLE).isin([table.name for table in folders])).select(PACKED_TABLE, PACKED_ROWS)
    files = files_by_table(own.mapInArrow(write, FILE_COLUMNS).toArrow(), folders)
    rows = {
        table: rows_in(spark, path, table, [f"{path}/{file.path}" for file in files[table]])
        for table, path in folders.items()
    }
    counts = {table: sum(file.rows for file in files[table]) for table in folders}
    to_change = to.watch.with_rows_to_take_out(rows, counts)
    for table, path in folders.items():
        if table not in to_change:
            keep_files(table, path, identity, files[table])
    for table in to_change:
        for file in files[table]:
            Path(folders[table], file.path).unlink()
    return to_change
