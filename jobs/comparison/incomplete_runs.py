"""Runs of an older release whose rows lack columns of this release, so that nothing can be said about them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark.sql import Row, SparkSession

from jobs.lake.migration import incomplete_rows
from jobs.lake.pruning import MOST_NAMED, RECORD
from jobs.terminal.screen import with_rest_count
from schemas.tables.gold import GOLD, RUNS
from schemas.tables.silver import SILVER


def incomplete_runs(spark: SparkSession, lake: str, runs: Collection[Row]) -> list[str]:
    """The runs among these that are incomplete, or whose capture set is incomplete. `migrate` lists them.

    runs: rows (run_id, capture_id).
    """
    if not runs:
        return []
    tables = {
        table: {row[str(table.replaced_by)] for row in runs}
        for table in (*SILVER, *GOLD)
        if table.replaced_by in (RUNS.run_id, RUNS.capture_id) and table not in RECORD
    }
    lacking = {identity for of in incomplete_rows(spark, lake, tables).values() for identity in of}
    return sorted(row[RUNS.run_id] for row in runs if not lacking.isdisjoint((row[RUNS.run_id], row[RUNS.capture_id])))


def incomplete_runs_text(lake: str, incomplete: Sequence[str]) -> str:
    """What is wrong with incomplete runs, and what to do."""
    runs, to_do = run_names(incomplete), "`migrate` with this --lake says what to do"
    be = "run {} was" if len(incomplete) == 1 else "runs {} were"
    return f"{lake}: {be.format(runs)} written by an older release without columns of today: {to_do}"


def run_names(runs: Sequence[str]) -> str:
    """The ids of runs; only the first ones if there are many."""
    return ", ".join(with_rest_count(runs[:MOST_NAMED], len(runs)))
