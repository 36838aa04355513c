"""The lake: Delta tables at LAKE/LAYER/NAME, or in a schema of a catalog, as schemas/tables declares them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pyarrow as pa
from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from jobs.lake import delta_log, local_log
from jobs.lake.declared_columns import MIGRATE_IT, check_declared_columns, column_comment, spark_schema
from jobs.lake.lake_storage import literal_pattern, workers_folder
from jobs.lake.local_log import FEW_FILES, LocalTable
from jobs.lake.older_rows import check_complete_rows, lacking_by_spark, lacking_in_files, lacking_in_rows, note_complete
from jobs.lake.table_address import TableAddress, address_of, table_path
from schemas.tables.gold import FIDELITY, RUNS, TABLES_OF_REPLAY
from schemas.tables.gold_aims import AIM_TABLES
from schemas.tables.gold_predictions import PREDICTIONS_CHECKED
from schemas.tables.gold_trends import TRENDS
from schemas.tables.silver import CAPTURES, SILVER
from schemas.tables.table import Table
from udfs.errors import LakeError
from udfs.facts.arrow_tables import arrow_schema

T = TypeVar("T")
TASKS_AT_A_TIME = 3
ONE_TASK_ROWS = 20_000
"""Up to this many rows are read at once, as one partition. A query of them is one task, without the shuffles that
groups and joins need otherwise."""
MOST_SMALL_FILES = 2_000
"""Up to this many small files of a table are read at once: five years of nights."""


def rows_of_driver(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """A DataFrame of rows that the driver has. They come as an Arrow table, because Spark would convert Python's own
    values in workers of a second kind, which take seconds to start.
    """
    schema = None if rows.num_rows else from_arrow_schema(rows.schema)  # a server cannot derive it if there are no rows
    return spark.createDataFrame(rows, schema)


def table_without_rows(spark: SparkSession, table: Table) -> DataFrame:
    """The table without any rows."""
    return rows_of_driver(spark, arrow_schema(table).empty_table())


def local_table(spark: SparkSession, lake: str, table: Table) -> LocalTable | None:
    """The table, whether it exists yet or not, if this process and the workers can read and write its files themselves;
    None if only Spark can.
    """
    folder = workers_folder(spark, lake)
    return None if folder is None else local_log.open_local_table(table_path(folder, table))


def stored_columns(spark: SparkSession, lake: str, table: Table, local: LocalTable | None) -> StructType | None:
    """The columns that the table has in the lake; None if it is not there."""
    if local is not None:
        return local.schema
    return address_of(lake, table).columns(spark)


def has_table(spark: SparkSession, lake: str, table: Table) -> bool:
    """Whether the lake has the table."""
    local = local_table(spark, lake, table)
    return stored_columns(spark, lake, table, local) is not None


def read_table(
    spark: SparkSession,
    lake: str,
    table: Table,
    identities: Collection[str] | None = None,
    *,
    columns: Collection[str] = (),
    with_files: bool = False,
) -> DataFrame:
    """The table's rows. Raises LakeError if it is not there, or has other columns than declared.

    identities: the capture sets or, in gold, the runs whose rows are wanted; None for all. columns: those that are
    wanted, including the one by which the table is partitioned; all if none is named. with_files: the rows have Spark's
    column `_metadata`, which says in which file a row is and when that was written.
    """
    local, column = table_to_read(spark, lake, table), table.replaced_by
    files: tuple[str, ...] = ()
    if local is not None:
        files = local.all_files() if identities is None else local.files_of(str(column), identities)
    if local is None or (len(files) > FEW_FILES and not _are_small(local, files)):
        rows = rows_by_delta(spark, address_of(lake, table), table)
        wanted = rows if identities is None else rows.where(F.col(column).isin(*identities))
        return wanted.select(*columns) if columns else wanted
    if with_files:
        return rows_in(spark, local.path, table, files)
    return local_rows(spark, local, table, files, columns)


def _are_small(local: LocalTable, files: Collection[str]) -> bool:
    """Whether a table's files, even if there are many, have so few rows that reading all of them is faster than having
    Delta find those that are wanted. Tables that list capture sets or runs have a file for each of these.
    """
    return len(files) <= MOST_SMALL_FILES and local.row_count(files) <= ONE_TASK_ROWS


def stored_rows(spark: SparkSession, lake: str, table: Table, identity: str) -> DataFrame:
    """A table's rows of one capture set or, in gold, of one run.

    Raises what `read_table` raises, and LakeError if an older release wrote the rows without columns that rows must
    have.
    """
    local, partition = table_to_read(spark, lake, table), (str(table.replaced_by), identity)
    if local is None:
        address = address_of(lake, table)
        check_complete_rows(table, identity, lacking_by_spark(spark, address, table, identity))
        return _rows_by_spark(spark, address, table, identity)
    check_complete_rows(table, identity, lacking_in_files(local, table, identity))
    files = local.files(partition)
    if files is None:
        return rows_by_delta(spark, address_of(lake, table), table).where(F.col(table.replaced_by) == identity)
    return local_rows(spark, local, table, files)


def rows_for_queries(spark: SparkSession, lake: str, table: Table, identity: str) -> DataFrame:
    """As `stored_rows`, for rows that several queries read. If only Spark reaches the table and it has few such rows,
    they are read once, here, because Delta looks for a table's files in each query.
    """
    if table_to_read(spark, lake, table) is not None:
        return stored_rows(spark, lake, table, identity)
    rows = _rows_by_spark(spark, address_of(lake, table), table, identity)
    read = rows.limit(ONE_TASK_ROWS + 1).toArrow()
    check_complete_rows(table, identity, lacking_in_rows(table, read))
    if read.num_rows > ONE_TASK_ROWS:
        return rows
    return rows_of_driver(spark, read.cast(arrow_schema(table))).coalesce(1)


def _rows_by_spark(spark: SparkSession, address: TableAddress, table: Table, identity: str) -> DataFrame:
    """A table's rows of one capture set or run, if only Spark reaches the table. They may be incomplete."""
    held = delta_log.partition_files(spark, address, (str(table.replaced_by), identity))
    if held is None or held.few is None:
        return rows_by_delta(spark, address, table).where(F.col(table.replaced_by) == identity)
    return rows_in(spark, held.folder, table, held.few)


def identities_in(spark: SparkSession, lake: str, table: Table) -> DataFrame:
    """The capture sets or, in gold, the runs of which the table has rows: the column `replaced_by`, a row for each.

    Raises what `read_table` raises.
    """
    local, column = table_to_read(spark, lake, table), table.replaced_by
    if local is None:
        return rows_by_delta(spark, address_of(lake, table), table).select(column).distinct()
    return rows_of_driver(spark, pa.table({str(column): pa.array(local.values(column), pa.string())})).coalesce(1)


def different_values(spark: SparkSession, lake: str, table: Table, columns: Collection[str]) -> pa.Table:
    """The values that a few columns have in the table's rows; each combination of values at least once.

    In a lake that this process sees, Delta's log has most of them, so few files are opened; times from the log are cut
    to milliseconds. columns: including the one by which the table is partitioned. Raises what `read_table` raises.
    """
    local, schema = table_to_read(spark, lake, table), arrow_schema(table)
    if local is None:
        return read_table(spark, lake, table).select(*columns).distinct().toArrow()
    return local.different_values(pa.schema([schema.field(name) for name in columns]), str(table.replaced_by))


def table_to_read(spark: SparkSession, lake: str, table: Table) -> LocalTable | None:
    """As `local_table`. Raises LakeError if the lake has no such table, or one with other columns than declared."""
    local, is_there = _open_checked(spark, lake, table)
    if not is_there:
        is_newer = table in tables_of_ended_jobs(spark, lake)
        raise LakeError(_not_there_text(lake, table, MIGRATE_IT if is_newer else _how_to_make(lake, table)))
    return local


def tables_of_ended_jobs(spark: SparkSession, lake: str) -> frozenset[Table]:
    """The tables that the jobs which have finished in this lake would have written if they were of this release.

    If one of them is missing, the lake was written by a release that did not have it.
    """
    silver = SILVER if has_table(spark, lake, CAPTURES) else ()  # `ingest` makes this table last
    of_aims = AIM_TABLES if has_table(spark, lake, FIDELITY) else ()  # a replay makes this table after those of aims
    of_replays = (table for name in _finished_replays(spark, lake) for table in TABLES_OF_REPLAY.get(name, ()))
    return frozenset([*silver, *of_aims, *of_replays])


def _finished_replays(spark: SparkSession, lake: str) -> set[str]:
    """The names of the replays that `runs` has."""
    local, t = local_table(spark, lake, RUNS), RUNS
    if stored_columns(spark, lake, t, local) is None:
        return set()
    if local is None:
        return {row[0] for row in address_of(lake, t).rows(spark).select(t.algorithm).distinct().collect()}
    columns = pa.schema([arrow_schema(t).field(column) for column in (t.replaced_by, t.algorithm)])
    return set(map(str, local.rows(local.all_files(), columns, t.replaced_by)[t.algorithm].to_pylist()))


def _not_there_text(lake: str, table: Table, to_do: str) -> str:
    return f"{address_of(lake, table)}: no such table; {to_do}"


def _how_to_make(lake: str, table: Table) -> str:
    """What to do to get a table that no job has made yet."""
    if table.layer == "silver":
        return "run `ingest` with captures and this --lake first"
    if table == PREDICTIONS_CHECKED:
        return f"run `compare --lake={lake}` first"
    if table == TRENDS:
        return f"run `runs --trend --lake={lake}` first"
    return f"run `replay --lake={lake}` first, or `pipeline` with captures and this --lake"


def table_to_write(spark: SparkSession, lake: str, table: Table) -> LocalTable | None:
    """As `local_table`. Raises LakeError if the lake has a table there with other columns than declared."""
    return _open_checked(spark, lake, table)[0]


def _open_checked(spark: SparkSession, lake: str, table: Table) -> tuple[LocalTable | None, bool]:
    local = local_table(spark, lake, table)
    columns = stored_columns(spark, lake, table, local)
    if columns is not None:
        check_declared_columns(columns, table, str(address_of(lake, table)))
    return local, columns is not None


def rows_by_delta(spark: SparkSession, address: TableAddress, table: Table) -> DataFrame:
    """The table's rows, read by Delta, which looks for the table's files in every query."""
    return address.rows(spark).select(*table.columns)


def rows_in(spark: SparkSession, folder: str, table: Table, files: Collection[str]) -> DataFrame:
    """The rows in some files of a table's folder."""
    if not files:
        return table_without_rows(spark, table)
    read = spark.read.schema(spark_schema(table)).option("basePath", folder)
    return read.parquet(*map(literal_pattern, files)).select(*table.columns)


def local_rows(
    spark: SparkSession, local: LocalTable, table: Table, files: Collection[str], columns: Collection[str] = ()
) -> DataFrame:
    """The rows in some files of a table that this process sees. It reads up to ONE_TASK_ROWS rows itself, because for
    so few rows each query of Spark takes longer. columns: as for `read_table`.
    """
    named = columns or table.columns
    if local.row_count(files) > ONE_TASK_ROWS:
        return rows_in(spark, local.path, table, files).select(*named)
    schema = pa.schema([arrow_schema(table).field(column) for column in named])
    rows = local.rows(files, schema, str(table.replaced_by))
    return rows_of_driver(spark, rows).coalesce(1)


def write_table(rows: DataFrame, lake: str, table: Table, replaced: str) -> None:
    """Replace the rows whose `replaced_by` column is `replaced` by these rows, which must have the same value there.

    A second write, by another run or after a kill, leaves the same table. Raises LakeError for other columns.
    """
    address = address_of(lake, table)
    check_declared_columns(rows.schema, table, f"what is to be written to {address}")
    # Through Spark Connect, texts that workers make are `string collate UTF8_BINARY`, which delta-rs does not read.
    typed = {c: F.col(c).cast(c.type) for c in table.columns}
    described = rows.select(*(typed[c].alias(c, metadata={"comment": column_comment(c)}) for c in table.columns))
    address.replace_rows(described, str(table.replaced_by), replaced)
    note_complete(address, replaced)


def check_tables(spark: SparkSession, lake: str, tables: Iterable[Table], *, makes_missing: bool = False) -> None:
    """Raises LakeError, which names all tables that have other columns than declared, and all that the lake lacks
    because an older release wrote it. Tables that no finished job would have written may be missing.

    makes_missing: the job makes missing tables itself, so the lake may lack any.
    """
    faults, not_there = list[str](), list[Table]()
    for table in tables:
        try:
            _, is_there = _open_checked(spark, lake, table)
            not_there += [] if is_there else [table]
        except LakeError as fault:
            faults.append(str(fault))
    newer = tables_of_ended_jobs(spark, lake) if not_there and not makes_missing else frozenset()
    faults += [_not_there_text(lake, table, MIGRATE_IT) for table in not_there if table in newer]
    if faults:
        raise LakeError("\n".join(faults))


def run_side_by_side(spark: SparkSession, tasks: Iterable[Callable[[], T]]) -> list[T]:
    """Run tasks at the same time, since the short Spark jobs of one task leave cores idle. Returns their results."""
    with ThreadPoolExecutor(max_workers=TASKS_AT_A_TIME) as pool:
        return [done.result() for done in [pool.submit(inheritable_thread_target(spark)(task)) for task in tasks]]
