"""A lake like one that an older release wrote: some of its tables lack a column, and one table does not exist."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from deltalake import DeltaTable

from jobs.lake.table_address import table_path
from schemas.tables.gold import GOLD
from schemas.tables.silver import CAPTURES, SILVER
from schemas.tables.silver_quality import LOG_AGREEMENT
from schemas.tables.table import Table

VERSION_DIGITS = 20
LATER_TABLE = LOG_AGREEMENT
"""This table has no rows if no request logs were ingested, so that removing it loses none."""


def tables_there(lake: Path) -> dict[Table, Path]:
    """The tables that a lake has, with their folders."""
    folders = {table: Path(table_path(str(lake), table)) for table in (*SILVER, *GOLD)}
    return {table: folder for table, folder in folders.items() if DeltaTable.is_deltatable(str(folder))}


def make_older(lake: Path) -> None:
    """Remove from the schema of each table the last nullable column without any value, and remove LATER_TABLE if it has
    no rows. Rows that an older release wrote have no values of a later column either, so the rows stay the same even if
    `compact` writes their files anew before the column is back.
    """
    there = tables_there(lake)
    for table, folder in there.items():
        rows = DeltaTable(folder).to_pyarrow_table()
        empty = [column for column in table.columns if column.nullable and rows[column].null_count == len(rows)]
        if empty:
            forget_column(folder, empty[-1])
    if {CAPTURES, LATER_TABLE} <= there.keys() and not DeltaTable(there[LATER_TABLE]).file_uris():
        shutil.rmtree(there[LATER_TABLE])


def forget_column(folder: Path, name: str) -> None:
    """Write a version of a Delta table whose schema does not have the column (Delta's protocol, "Change Metadata";
    delta-rs cannot drop columns).
    """
    table = DeltaTable(folder)
    schema, about = json.loads(table.schema().to_json()), table.metadata()
    left = [column for column in schema["fields"] if column["name"] != name]
    action = {
        "id": about.id, "name": about.name, "description": about.description, "createdTime": about.created_time,
        "partitionColumns": about.partition_columns, "configuration": about.configuration,
        "format": {"provider": "parquet", "options": {}}, "schemaString": json.dumps({**schema, "fields": left}),
    }  # fmt: skip
    said = {"timestamp": time.time_ns() // 1_000_000, "operation": "MANUAL UPDATE"}
    lines = [json.dumps({"commitInfo": said}), json.dumps({"metaData": action})]
    version = f"{table.version() + 1:0{VERSION_DIGITS}}.json"
    (folder / "_delta_log" / version).write_text("".join(f"{line}\n" for line in lines))


def lacking(lake: Path) -> Mapping[str, frozenset[str]]:
    """By name of table, the columns that it lacks; only tables that lack any. A silver table that does not exist lacks
    all of its columns, if anything was ingested.
    """
    there = tables_there(lake)
    stored = {table: {field.name for field in DeltaTable(folder).schema().fields} for table, folder in there.items()}
    stored |= {table: set[str]() for table in SILVER if CAPTURES in there and table not in there}
    lack = {table.name: frozenset(map(str, table.columns)) - columns for table, columns in stored.items()}
    return {name: columns for name, columns in lack.items() if columns}


def lacking_lines(lake: Path) -> Iterator[str]:
    """What a lake lacks: one line for each table."""
    for table, columns in lacking(lake).items():
        yield f"{table} lacks {', '.join(sorted(columns))}"
