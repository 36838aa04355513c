"""Tables out of packed rows: the workers that unpack the rows write the files where they can; elsewhere Spark does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from jobs.delta_log import DataFile, replace_partition
from jobs.gates.row_rules import Watch
from jobs.lake import (
    check_tables,
    described_schema,
    rows_in,
    side_by_side,
    spark_schema,
    table_path,
    write_table,
)
from jobs.lake_storage import workers_folder
from schemas.tables.table import Table
from udfs.facts.arrow_tables import unpack
from udfs.facts.known_names import Names, with_names
from udfs.facts.table_files import FILES, write_files

PACKED_TABLE, PACKED_ROWS = "table", "rows"


@dataclass(frozen=True)
class Target:
    """Where rows go: the lake, the capture set or run whose rows they replace, the rules that watch over them, and the
    names of brokers and topics where they are known.
    """

    lake: str
    identity: str
    watch: Watch
    names: Names | None = None

    def write(self, rows: DataFrame, table: Table) -> None:
        """Have Spark write rows of a table, less those that rules take out."""
        write_table(self.watch.over(rows, table), self.lake, table, self.identity)


def write_packed(spark: SparkSession, packed: DataFrame, tables: Collection[Table], to: Target) -> None:
    """Write these tables out of packed rows, columns PACKED_TABLE and PACKED_ROWS. Raises LakeError where one is there
    with other columns.
    """
    folder = workers_folder(spark, to.lake)
    by_spark = list(tables) if folder is None else written_by_workers(spark, packed, tables, to, folder)
    side_by_side(spark, [partial(to.write, unpacked(packed, table, to.names), table) for table in by_spark])


def unpacked(packed: DataFrame, table: Table, names: Names | None = None) -> DataFrame:
    """One table's rows out of the packed ones, called by their names where any are given."""

    def unpack_named(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in unpack(batches):
            yield rows if names is None else with_names(rows, table, names)

    own = packed.where(F.col(PACKED_TABLE) == table.name).select(PACKED_ROWS)
    return own.mapInArrow(unpack_named, spark_schema(table))


def written_by_workers(
    spark: SparkSession, packed: DataFrame, tables: Collection[Table], to: Target, folder: str
) -> list[Table]:
    """Have the workers write the tables' files; returns the tables that Spark has to write, for rules take out rows."""
    check_tables(spark, to.lake, tables)
    folders = {table: table_path(folder, table) for table in tables}
    identity, names = to.identity, to.names  # workers cannot be sent `to`, whose watch has rows of Spark's

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from write_files(batches, folders, identity, names)

    own = packed.where(F.col(PACKED_TABLE).isin([table.name for table in tables])).select(PACKED_TABLE, PACKED_ROWS)
    files: dict[str, list[DataFile]] = defaultdict(list)
    for name, path, size, stats in own.mapInArrow(write, from_arrow_schema(FILES)).collect():
        files[name].append(DataFile(path, size, stats))
    rows = {
        table: rows_in(spark, folders[table], table, [f"{folders[table]}/{file.path}" for file in files[table.name]])
        for table in tables
    }
    to_change = to.watch.with_rows_to_take_out(rows)

    def keep(table: Table) -> None:
        schema = described_schema(table).json()
        replace_partition(spark, folders[table], schema, (table.replaced_by, identity), files[table.name])

    side_by_side(spark, [partial(keep, table) for table in tables if table not in to_change])
    for table in to_change:
        for file in files[table.name]:
            Path(folders[table], file.path).unlink()
    return to_change
