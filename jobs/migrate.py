"""migrate: add to a lake's tables the columns that an older release did not have."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

from pydantic import BaseModel, ConfigDict

from jobs.lake.migration import NewColumns, add_columns, incomplete_rows, missing_columns
from jobs.lake.pruning import holdings_of, stored_tables
from jobs.report_page.verdict import labelled_lines
from jobs.run import Run
from jobs.session.spark import spark_session
from jobs.terminal.progress import stage
from jobs.terminal.screen import Grid, grid_lines, with_rest_count
from jobs.terminal.wording import quantity
from schemas.tables.gold import RUNS
from schemas.tables.silver import CAPTURES
from schemas.tables.table import Table

MOST_NAMED = 20


class MigratedTable(BaseModel):
    """The columns that a table did not have, and has now unless this is a dry run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str
    new_columns: list[str]


class MigratedLake(BaseModel):
    """The tables that were changed, or would be, and what has to be made anew because an older release wrote its rows
    without columns that they have to have: ids of capture sets to ingest, and of runs to replay.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    lake: str
    dry_run: bool
    tables: list[MigratedTable]
    to_ingest: list[str]
    to_replay: list[str]


def migrated_lake(
    run: Run, missing: list[NewColumns], lacking: Mapping[Table, Mapping[str, list[str]]]
) -> MigratedLake:
    """What was done and what is left. lacking: by table and capture set or run, the columns that its rows lack."""
    incomplete = {
        column: sorted({one for table, rows in lacking.items() if table.replaced_by == column for one in rows})
        for column in (CAPTURES.capture_id, RUNS.run_id)
    }
    return MigratedLake(
        lake=run.lake,
        dry_run=run.dry_run,
        tables=[
            MigratedTable(table=f"{table.layer}/{table.name}", new_columns=columns.names) for table, columns in missing
        ],
        to_ingest=incomplete[CAPTURES.capture_id],
        to_replay=incomplete[RUNS.run_id],
    )


def migrated_lines(migrated: MigratedLake) -> Iterator[str]:
    """What is printed."""
    if migrated.tables:
        yield f"Tables of {migrated.lake} that {'would have' if migrated.dry_run else 'have'} new columns"
        cells = [[table.table, ", ".join(table.new_columns)] for table in migrated.tables]
        yield from grid_lines(Grid(("table", "new columns"), cells, ("table", "new columns")), len(cells))
    else:
        yield f"The tables of {migrated.lake} have all columns"
    for ids, kind, to_do in (
        (migrated.to_ingest, "capture set", "`ingest` or `pipeline` with their captures"),
        (migrated.to_replay, "run", "`replay` with their settings"),
    ):
        if ids:
            named = ", ".join(with_rest_count(ids[:MOST_NAMED], len(ids)))
            yield from labelled_lines("AGAIN", f"{quantity(len(ids), kind)} without values of new columns: {named}")
            yield from labelled_lines("", f"{to_do} makes them anew, in the same place")
    if migrated.dry_run:
        yield from labelled_lines("", "nothing was changed: --dry-run")


def main(run: Run) -> None:
    """Run the job. Raises LakeError where the lake has no tables, or some that differ in more than columns that they
    lack; then nothing is changed.
    """
    spark = spark_session(run.session.master, "refetch migrate", run.session.conf)
    with stage("migrate", spark):
        stored = stored_tables(spark, run.lake)
        missing = missing_columns(spark, run.lake, stored)
        for columns in [] if run.dry_run else missing:
            add_columns(spark, run.lake, columns)
        lacking = incomplete_rows(spark, run.lake, holdings_of(spark, stored))
    migrated = migrated_lake(run, missing, lacking)
    if run.output.as_json:
        sys.stdout.write(migrated.model_dump_json(indent=2) + "\n")
        return
    sys.stdout.writelines(f"{line}\n" for line in migrated_lines(migrated))
