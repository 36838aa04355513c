"""Rows that an older release wrote, without columns that have been added since.

Their files lack the columns, which reads as null. Rows without a column that is never null otherwise are incomplete:
nothing is replayed from them, and nothing said about them.
"""

from __future__ import annotations

from collections.abc import Collection

from jobs.lake.local_log import columns_of_file
from schemas.tables.table import Table
from udfs.errors import LakeError


def lacking_columns(table: Table, columns: Collection[str]) -> list[str]:
    """The columns that are never null, and that rows with these columns lack. The one by which a table is laid out in
    folders is in none of its files.
    """
    return [str(c) for c in table.columns if not c.nullable and c != table.replaced_by and c not in columns]


def check_complete_file(path: str, table: Table, identity: str) -> None:
    """Raises LakeError where a file's rows, of a capture set or run, are incomplete."""
    lacking = lacking_columns(table, columns_of_file(path))
    if lacking:
        raise LakeError(incomplete_text(table, identity, lacking))


def incomplete_text(table: Table, identity: str, lacking: Collection[str]) -> str:
    """What is wrong with incomplete rows of a table, and what to do."""
    kind, job = ("capture set", "ingest") if table.layer == "silver" else ("run", "replay")
    what = f"{kind} {identity} was written by an older release, and {table.layer}/{table.name} lacks"
    return f"{what} {', '.join(f'`{column}`' for column in lacking)} of it: run `{job}` for it again"
