"""compact: join the small files of a lake's tables, and remove those that no table needs any more."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict

from jobs.lake.delta_tables import side_by_side
from jobs.lake.pruning import stored_tables, vacuumed
from jobs.run import Run
from jobs.session.spark import spark_session
from jobs.terminal.progress import stage
from jobs.terminal.screen import Grid, grid_lines
from jobs.terminal.wording import counted, span_said
from schemas.tables.silver import CAPTURES

AS_WRITTEN = (CAPTURES,)
"""Files of a capture set are as old as the set: by them it is known which one was written last, and whether one was
ingested again while a job replays it."""


class TableFiles(BaseModel):
    """The files of a table before and after; null for after where somebody wrote it meanwhile."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str
    files_before: int
    files_after: int | None


class CompactedLake(BaseModel):
    """The tables whose files were looked at, and how many files went from the disk."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    lake: str
    tables: list[TableFiles]
    files_removed: int | None


def lines(of: CompactedLake, run: Run) -> Iterator[str]:
    """What is printed: the tables whose files were joined, and what that comes to."""
    yield f"Files of the tables of {of.lake}"
    joined = [one for one in of.tables if one.files_after != one.files_before]
    cells = [
        [one.table, f"{one.files_before:,}", "written meanwhile" if one.files_after is None else f"{one.files_after:,}"]
        for one in joined
    ]
    before = sum(one.files_before for one in of.tables)
    after = sum(one.files_before if one.files_after is None else one.files_after for one in of.tables)
    cells.append([f"{counted(len(of.tables), 'table')} in all", f"{before:,}", f"{after:,}"])
    yield from grid_lines(Grid(("table", "files before", "after"), cells, ("table",)), len(cells))
    removed, stay = counted(of.files_removed or 0, "file"), span_said(run.retention)
    yield f"{removed} removed that no table has needed for {stay}; those joined now stay as long, for readers"


def main(run: Run) -> None:
    """Run the job. Raises LakeError where the lake has no tables."""
    spark = spark_session(run.master, "refetch compact", run.spark_conf)
    with stage("compact", spark):
        stored = stored_tables(spark, run.lake)
        to_join = {table: one for table, one in stored.items() if table not in AS_WRITTEN}
        compacted = dict(zip(to_join, side_by_side(spark, [one.compact for one in to_join.values()]), strict=True))
        removed = vacuumed(spark, list(stored.values()), run.retention)
    result = CompactedLake(
        lake=run.lake,
        tables=[
            TableFiles(table=f"{table.layer}/{table.name}", files_before=of.before, files_after=of.after)
            for table, of in compacted.items()
        ],
        files_removed=removed,
    )
    if run.as_json:
        sys.stdout.write(result.model_dump_json(indent=2) + "\n")
        return
    sys.stdout.writelines(f"{line}\n" for line in lines(result, run))
