"""Lakes of older releases: tables and columns that they lack, and rows that were written without these columns.

A release adds tables and columns; it never renames or drops any. Files that an older release wrote stay unchanged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import NamedTuple

from deltalake import Schema
from deltalake.schema import Field
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from jobs.lake.declared_columns import column_faults, columns_to_add
from jobs.lake.delta_tables import local_table, run_side_by_side, stored_columns, tables_of_ended_jobs
from jobs.lake.local_log import forget_checksum, lake_errors
from jobs.lake.older_rows import incomplete_text, lacking_by_identity, lacking_by_spark, lacking_in_files
from jobs.lake.table_address import address_of, columns_as_ddl
from jobs.lake.target import Target
from schemas.tables.gold import GOLD
from schemas.tables.silver import SILVER
from schemas.tables.table import Table
from udfs.errors import LakeError

_NOBODY = ""
"""The identity whose rows are replaced when a table is made without rows."""


class NewColumns(NamedTuple):
    """The columns that a table lacks, as declared."""

    table: Table
    columns: StructType


def missing_columns(spark: SparkSession, lake: str, tables: Iterable[Table]) -> list[NewColumns]:
    """The tables of the lake that lack columns. Raises LakeError, which names all tables that differ in another way."""
    found, faults = list[NewColumns](), list[str]()
    for table in tables:
        stored = stored_columns(spark, lake, table, local_table(spark, lake, table))
        if stored is not None:
            missing = columns_to_add(stored, table)
            others = column_faults(StructType([*stored, *missing]), table)
            faults += [f"{address_of(lake, table)} cannot be migrated: {'; '.join(others)}"] if others else []
            found += [NewColumns(table, missing)] if missing else []
    if faults:
        raise LakeError("\n".join([*faults, "Use another --lake"]))
    return found


def add_columns(spark: SparkSession, lake: str, missing: NewColumns) -> None:
    """Add the columns to the table of the lake; its files stay unchanged."""
    local = local_table(spark, lake, missing.table)
    log = None if local is None else local.own_log()
    if local is not None and log is not None:
        with lake_errors(local.path, "columns could not be added"):
            forget_checksum(local.path)
            log.alter.add_columns(_fields(missing.columns))
        return
    spark.sql(f"ALTER TABLE {address_of(lake, missing.table).sql} ADD COLUMNS ({columns_as_ddl(missing.columns)})")


def missing_tables(spark: SparkSession, lake: str, tables: Collection[Table]) -> list[Table]:
    """The tables that the lake lacks because an older release wrote it. tables: the tables that it has."""
    newer = tables_of_ended_jobs(spark, lake)
    return [table for table in (*SILVER, *GOLD) if table in newer and table not in tables]


def add_table(spark: SparkSession, lake: str, table: Table) -> None:
    """Make a table without rows."""
    Target(lake, _NOBODY).clear(spark, table)


def _fields(columns: StructType) -> list[Field]:
    """The columns as fields for delta-rs."""
    return Schema.from_json(columns.json()).fields


def incomplete_rows(
    spark: SparkSession, lake: str, identities: Mapping[Table, Iterable[str] | None]
) -> Mapping[Table, Mapping[str, list[str]]]:
    """The columns that rows lack, by table and by id of a capture set or run. Only those that lack any are included.

    identities: the capture sets or runs whose rows are checked, by table; None for all that the table has.
    """
    tasks = [partial(_lacking_by_id, spark, lake, table, of_table) for table, of_table in identities.items()]
    by_table = zip(identities, run_side_by_side(spark, tasks), strict=True)
    return {table: lacking for table, lacking in by_table if lacking}


def _lacking_by_id(
    spark: SparkSession, lake: str, table: Table, identities: Iterable[str] | None
) -> Mapping[str, list[str]]:
    """As `incomplete_rows`, for one table."""
    local = local_table(spark, lake, table)
    if local is None:
        return lacking_by_identity(spark, address_of(lake, table), table, identities)
    named = local.values(str(table.replaced_by)) if identities is None else identities
    by_identity = {identity: lacking_in_files(local, table, identity) for identity in named}
    return {identity: lacking for identity, lacking in by_identity.items() if lacking}


def check_complete(spark: SparkSession, lake: str, tables: Iterable[Table], identity: str) -> None:
    """Raises LakeError if rows of a capture set or run are incomplete, and names all tables that have such rows."""
    faults = list[str]()
    for table in tables:
        local = local_table(spark, lake, table)
        lacking = (
            lacking_by_spark(spark, address_of(lake, table), table, identity)
            if local is None
            else lacking_in_files(local, table, identity)
        )
        faults += [incomplete_text(table, identity, lacking)] if lacking else []
    if faults:
        raise LakeError("\n".join(f"{lake}: {fault}" for fault in faults))
