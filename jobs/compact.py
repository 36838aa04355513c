"""compact: join the small files of a lake's tables, and remove those that no table needs any more."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict

from jobs.lake.delta_tables import run_side_by_side
from jobs.lake.pruning import stored_tables, vacuum_tables
from jobs.run import Run
from jobs.session.spark import spark_session
from jobs.terminal.progress import stage
from jobs.terminal.screen import Grid, grid_lines
from jobs.terminal.wording import days_or_hours, quantity
from schemas.tables.silver import CAPTURES

AS_WRITTEN = (CAPTURES,)
"""Tables whose files are not joined. The age of a capture set's files in `captures` shows which set was written last,
and the files themselves show whether a set was ingested again while a job replays it."""


class TableFiles(BaseModel):
    """The number of a table's files before and after; after is null if somebody wrote the table meanwhile."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str
    files_before: int
    files_after: int | None


class CompactedLake(BaseModel):
    """The tables whose files were looked at, and how many files were removed from the disk."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    lake: str
    tables: list[TableFiles]
    files_removed: int | None


def compact_lines(compacted: CompactedLake, run: Run) -> Iterator[str]:
    """What is printed: the tables whose files were joined, and the totals."""
    yield f"Files of the tables of {compacted.lake}"
    joined = [table for table in compacted.tables if table.files_after != table.files_before]
    cells = [
        [
            table.table,
            f"{table.files_before:,}",
            "written meanwhile" if table.files_after is None else f"{table.files_after:,}",
        ]
        for table in joined
    ]
    before = sum(table.files_before for table in compacted.tables)
    after = sum(table.files_before if table.files_after is None else table.files_after for table in compacted.tables)
    cells.append([f"{quantity(len(compacted.tables), 'table')} in all", f"{before:,}", f"{after:,}"])
    yield from grid_lines(Grid(("table", "files before", "after"), cells, ("table",)), len(cells))
    removed, stay = quantity(compacted.files_removed or 0, "file"), days_or_hours(run.removal.retention)
    yield f"{removed} removed that no table has needed for {stay}; those joined now stay as long, for readers"


def main(run: Run) -> None:
    """Run the job. Raises LakeError if the lake has no tables."""
    spark = spark_session(run.session.master, "refetch compact", run.session.conf)
    with stage("compact", spark):
        stored = stored_tables(spark, run.lake)
        to_join = {table: store for table, store in stored.items() if table not in AS_WRITTEN}
        compacted = dict(
            zip(to_join, run_side_by_side(spark, [store.compact for store in to_join.values()]), strict=True)
        )
        removed = vacuum_tables(spark, list(stored.values()), run.removal.retention)
    result = CompactedLake(
        lake=run.lake,
        tables=[
            TableFiles(table=f"{table.layer}/{table.name}", files_before=files.before, files_after=files.after)
            for table, files in compacted.items()
        ],
        files_removed=removed,
    )
    if run.output.as_json:
        sys.stdout.write(result.model_dump_json(indent=2) + "\n")
        return
    sys.stdout.writelines(f"{line}\n" for line in compact_lines(result, run))
