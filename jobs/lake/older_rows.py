"""Rows that an older release wrote without columns that have been added since.

Their files lack the columns, which are then read as null. Rows that lack a column which is never null otherwise are
incomplete: nothing is replayed from them or said about them. One release wrote all rows of a capture set or run in a
table, so one file, or one row, shows what they lack.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from jobs.lake import delta_log
from jobs.lake.local_log import LocalTable, columns_of_file
from jobs.lake.table_address import TableAddress
from schemas.tables.table import Table
from udfs.errors import LakeError

_complete: set[tuple[str, str]] = set()
"""(table, identity) of rows that are complete, because they were checked or because this process has written them. It
is for tables that only Spark reaches, where each check is a Spark job."""


def lacking_columns(table: Table, columns: Collection[str]) -> list[str]:
    """The columns that are never null and that rows with these columns lack. The column by which a table is partitioned
    does not count, since it is in none of the files.
    """
    return [column for column in never_null(table) if column not in columns]


def never_null(table: Table) -> list[str]:
    """The columns that always have a value in rows of this release, except the one that partitions the table."""
    return [str(c) for c in table.columns if not c.nullable and c != table.replaced_by]


def lacking_in_files(local: LocalTable, table: Table, identity: str) -> list[str]:
    """The columns that rows of a capture set or run lack, in a table that this process sees."""
    file = next(iter(local.all_files((str(table.replaced_by), identity))), None)
    return [] if file is None else lacking_columns(table, columns_of_file(file))


def lacking_in_rows(table: Table, rows: pa.Table) -> list[str]:
    """The columns that rows of one capture set or run lack; none if there are no rows."""
    return [column for column in never_null(table) if rows.num_rows and not rows[column][0].is_valid]


def lacking_by_spark(spark: SparkSession, address: TableAddress, table: Table, identity: str) -> list[str]:
    """The columns that rows of a capture set or run lack, in a table that only Spark reaches."""
    if (address.text, identity) in _complete or address.columns(spark) is None:
        return []
    held = delta_log.partition_files(spark, address, (str(table.replaced_by), identity))
    if held is not None:
        return lacking_columns(table, delta_log.columns_in_footer(spark, held.first[0])) if held.first else []
    row = address.rows(spark).where(F.col(table.replaced_by) == identity).select(*_nulls(table)).first()
    lacking = [] if row is None else [column for column in never_null(table) if row[column]]
    if row is not None and not lacking:
        note_complete(address, identity)
    return lacking


def note_complete(address: TableAddress, identity: str) -> None:
    """Remember that the rows of a capture set or run are complete."""
    _complete.add((address.text, identity))


def lacking_by_identity(
    spark: SparkSession, address: TableAddress, table: Table, identities: Iterable[str] | None
) -> Mapping[str, list[str]]:
    """The columns that rows lack, by capture set or run, for these or for all that the table has, with one Spark job.
    Only those that lack any are included.

    If the files cannot be looked at, the job reads all rows of the table.
    """
    if address.columns(spark) is None:
        return {}
    files = delta_log.a_file_of_each(spark, address, str(table.replaced_by))
    wanted = None if identities is None else set(identities)
    if files is None:
        rows = address.rows(spark).groupBy(table.replaced_by).agg(F.first(F.struct(*_nulls(table)))).collect()
        lacking = {of: [column for column in never_null(table) if nulls[column]] for of, nulls in rows}
    else:
        lacking = {
            of: lacking_columns(table, delta_log.columns_in_footer(spark, file))
            for of, file in files.items()
            if wanted is None or of in wanted
        }
    return {of: columns for of, columns in lacking.items() if columns and (wanted is None or of in wanted)}


def _nulls(table: Table) -> list[Column]:
    """For each column that is never null: whether a row has a value there."""
    return [F.col(column).isNull().alias(column) for column in never_null(table)]


def check_complete_rows(table: Table, identity: str, lacking: Collection[str]) -> None:
    """Raises LakeError if rows of a capture set or run are incomplete. lacking: the columns that they lack."""
    if lacking:
        raise LakeError(incomplete_text(table, identity, lacking))


def incomplete_text(table: Table, identity: str, lacking: Collection[str]) -> str:
    """What is wrong with incomplete rows of a table, and what to do."""
    kind, job = ("capture set", "ingest") if table.layer == "silver" else ("run", "replay")
    what = f"{kind} {identity} was written by an older release, and {table.layer}/{table.name} lacks"
    return f"{what} {', '.join(f'`{column}`' for column in lacking)} of it: run `{job}` for it again"
