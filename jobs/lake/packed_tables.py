"""Writes tables from packed rows. The workers that unpack the rows write the files if they can; if not, Spark does."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.lake.declared_columns import spark_schema
from jobs.lake.delta_tables import rows_in, run_side_by_side, table_to_write
from jobs.lake.local_log import LocalTable
from jobs.lake.target import FILE_COLUMNS, Target, files_by_table, keep_files
from schemas.tables.table import Table
from udfs.facts.cluster_names import ClusterNames
from udfs.facts.table_files import unpacked_rows, write_files

PACKED_TABLE, PACKED_ROWS = "table", "rows"


def write_packed(spark: SparkSession, packed: DataFrame, tables: Collection[Table], to: Target) -> None:
    """Write these tables from packed rows, which have the columns PACKED_TABLE and PACKED_ROWS. Raises LakeError if the
    lake has one of them with other columns.
    """
    opened = {table: table_to_write(spark, to.lake, table) for table in tables}
    by_target = [table for table, local in opened.items() if local is None]
    by_target += write_by_workers(spark, packed, {table: local for table, local in opened.items() if local}, to)
    run_side_by_side(spark, [partial(to.write, unpack_table(packed, table, to.names), table) for table in by_target])


def unpack_table(packed: DataFrame, table: Table, names: ClusterNames | None = None) -> DataFrame:
    """The rows of one table among packed rows. names: if given, names of brokers and topics to put into the rows."""

    def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _, rows in unpacked_rows(batches, [table], names):
            yield rows

    return packed_rows_of(packed, [table]).mapInArrow(unpack, spark_schema(table))


def packed_rows_of(packed: DataFrame, tables: Iterable[Table]) -> DataFrame:
    """The packed rows of some tables."""
    named = packed.where(F.col(PACKED_TABLE).isin([table.name for table in tables]))
    return named.select(PACKED_TABLE, PACKED_ROWS)


def write_by_workers(
    spark: SparkSession, packed: DataFrame, opened: Mapping[Table, LocalTable], to: Target
) -> list[Table]:
    """Have the workers write the tables' files while they unpack the rows. Returns the tables that still have to be
    written, because a rule takes out some of their rows.
    """
    if not opened:
        return []
    # `to` cannot be sent to workers, because its watch has DataFrames; a table's log cannot be sent either.
    folders, identity, names = {table: local.path for table, local in opened.items()}, to.identity, to.names

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield write_files(unpacked_rows(batches, folders, names), folders, identity)

    files = files_by_table(packed_rows_of(packed, folders).mapInArrow(write, FILE_COLUMNS).toArrow(), folders)
    rows = {
        table: rows_in(spark, path, table, [f"{path}/{file.path}" for file in files[table]])
        for table, path in folders.items()
    }
    to_change = to.watch.with_rows_to_take_out(rows, {t: sum(file.rows for file in files[t]) for t in folders})
    for table, local in opened.items():
        if table not in to_change:
            keep_files(local, table, to, files[table])
    for table in to_change:
        for file in files[table]:
            Path(folders[table], file.path).unlink()
    return to_change
