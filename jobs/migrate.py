"""migrate: add to a lake the tables and columns that an older release did not have."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict
from pyspark.sql import SparkSession

from jobs.lake.migration import (
    NewColumns,
    add_columns,
    add_table,
    incomplete_rows,
    missing_columns,
    missing_tables,
)
from jobs.lake.pruning import stored_tables
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
INGEST_AGAIN = "`ingest` or `pipeline` with their captures makes them anew, in the same place"
REPLAY_AGAIN = (
    "`replay` with their settings makes them anew, under another id if settings were added since; `prune` removes "
    "those that stay"
)


class MigratedTable(BaseModel):
    """The columns that a table lacked. They are added, unless this is a dry run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str
    new_columns: list[str]


class MigratedLake(BaseModel):
    """The tables that were made or changed, or would be in a dry run, and what has to be made anew: ids of capture sets
    to ingest and of runs to replay, because an older release wrote their rows without columns that rows must have.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    lake: str
    dry_run: bool
    new_tables: list[str]
    tables: list[MigratedTable]
    to_ingest: list[str]
    to_replay: list[str]


class Additions(NamedTuple):
    """The tables that a lake lacks, and the columns that its other tables lack."""

    tables: list[Table]
    columns: list[NewColumns]


def migrated_lake(run: Run, added: Additions, lacking: Mapping[Table, Mapping[str, list[str]]]) -> MigratedLake:
    """What was done and what is left to do. lacking: the columns that rows lack, by table and by capture set or run."""
    incomplete = {
        column: sorted({one for table, rows in lacking.items() if table.replaced_by == column for one in rows})
        for column in (CAPTURES.capture_id, RUNS.run_id)
    }
    return MigratedLake(
        lake=run.lake,
        dry_run=run.dry_run,
        new_tables=[name_with_layer(table) for table in added.tables],
        tables=[
            MigratedTable(table=name_with_layer(table), new_columns=columns.names) for table, columns in added.columns
        ],
        to_ingest=incomplete[CAPTURES.capture_id],
        to_replay=incomplete[RUNS.run_id],
    )


def name_with_layer(table: Table) -> str:
    """A table's name as in paths, with its layer."""
    return f"{table.layer}/{table.name}"


def migrated_lines(migrated: MigratedLake) -> Iterator[str]:
    """What is printed."""
    if migrated.new_tables:
        yield f"New tables that {migrated.lake} {'would have' if migrated.dry_run else 'has'}, without rows"
        yield from (f"  {name}" for name in migrated.new_tables)
        yield from labelled_lines("", "rows come with the next `ingest` and `replay`, also of what the lake has")
    if migrated.tables:
        yield f"Tables of {migrated.lake} that {'would have' if migrated.dry_run else 'have'} new columns"
        cells = [[table.table, ", ".join(table.new_columns)] for table in migrated.tables]
        yield from grid_lines(Grid(("table", "new columns"), cells, ("table", "new columns")), len(cells))
    if not migrated.new_tables and not migrated.tables:
        yield f"{migrated.lake} has all tables and columns"
    for ids, kind, to_do in (
        (migrated.to_ingest, "capture set", INGEST_AGAIN), (migrated.to_replay, "run", REPLAY_AGAIN)
    ):  # fmt: skip
        if ids:
            named = ", ".join(with_rest_count(ids[:MOST_NAMED], len(ids)))
            yield from labelled_lines("AGAIN", f"{quantity(len(ids), kind)} without values of new columns: {named}")
            yield from labelled_lines("", to_do)
    if migrated.dry_run:
        yield from labelled_lines("", "nothing was changed: --dry-run")


def add_missing(spark: SparkSession, lake: str, missing: Additions) -> None:
    """Add to the lake what it lacks."""
    for columns in missing.columns:
        add_columns(spark, lake, columns)
    for table in missing.tables:
        add_table(spark, lake, table)


def main(run: Run) -> None:
    """Run the job. Raises LakeError, and changes nothing, if the lake has no tables, or has tables that differ in
    more than lacking columns.
    """
    spark = spark_session(run.session.master, "refetch migrate", run.session.conf)
    with stage("migrate", spark):
        stored = stored_tables(spark, run.lake)
        missing = Additions(missing_tables(spark, run.lake, stored), missing_columns(spark, run.lake, stored))
        if not run.dry_run:
            add_missing(spark, run.lake, missing)
        lacking = incomplete_rows(spark, run.lake, dict.fromkeys(stored))
    migrated = migrated_lake(run, missing, lacking)
    if run.output.as_json:
        sys.stdout.write(migrated.model_dump_json(indent=2) + "\n")
        return
    sys.stdout.writelines(f"{line}\n" for line in migrated_lines(migrated))
