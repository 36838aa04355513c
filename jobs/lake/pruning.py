"""Which runs and capture sets are removed from a lake, by age or by id, and how their rows are deleted from tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from pyspark.sql import SparkSession

from jobs.lake.delta_tables import run_side_by_side
from jobs.lake.listed_runs import FinishedRun
from jobs.lake.stored_tables import Holding, StoredTable, stored_table, vacuums_allowed
from jobs.terminal.screen import with_rest_count
from schemas.tables.gold import GOLD, RUNS
from schemas.tables.gold_predictions import PREDICTIONS_CHECKED
from schemas.tables.gold_trends import TRENDS
from schemas.tables.silver import CAPTURES, SILVER
from schemas.tables.table import Table
from udfs.errors import ArgumentError, LakeError

TABLES = (*SILVER, *GOLD)
FIRST = (RUNS, CAPTURES)
"""The tables in which commands look for runs and capture sets. Rows are deleted from these tables first, so that no
command finds a run or capture set some of whose rows are already deleted."""
RECORD = (PREDICTIONS_CHECKED, TRENDS)
"""Small tables about the lake's past. Nothing is deleted from them because of its age."""
BETWEEN = "-"
"""The text between the ids of two runs in the identity of rows that belong to both."""
UNFINISHED_FOR = timedelta(days=1)
"""Rows of an unfinished run or capture set stay until they are this old: the job may still be running."""
MOST_NAMED = 20
Stored = Mapping[Table, StoredTable]
Holdings = Mapping[Table, Mapping[str, Holding]]


@dataclass(frozen=True)
class Pruned:
    """What is removed.

    runs, capture_sets: ids of finished ones. unfinished: ids of runs and capture sets whose jobs ended before they were
    finished. is_by_age: the reason is their age and not an id, so the tables in `RECORD` keep their rows.
    """

    runs: tuple[str, ...] = ()
    capture_sets: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()
    is_by_age: bool = False

    @property
    def ids(self) -> frozenset[str]:
        """The ids of all that is removed."""
        return frozenset((*self.runs, *self.capture_sets, *self.unfinished))

    def identities_in(self, table: Table, identities: Iterable[str]) -> list[str]:
        """The identities of the rows to delete from a table. identities: all that the table has."""
        if self.is_by_age and table in RECORD:
            return []
        return [identity for identity in identities if not self.ids.isdisjoint(identity.split(BETWEEN))]


def stored_tables(spark: SparkSession, lake: str) -> Stored:
    """The tables that the lake has. Raises LakeError if it has none."""
    tables = run_side_by_side(spark, [partial(stored_table, spark, lake, table) for table in TABLES])
    stored = {table: there for table, there in zip(TABLES, tables, strict=True) if there is not None}
    if not stored:
        raise LakeError(f"{lake}: no captures and no runs, so there is nothing to do; --lake names another folder")
    return stored


def holdings_of(spark: SparkSession, stored: Stored) -> Holdings:
    """What each table has of each capture set and run."""
    return dict(zip(stored, run_side_by_side(spark, [table.holdings for table in stored.values()]), strict=True))


def what_goes_with_run(run_id: str, runs: Sequence[FinishedRun], holdings: Holdings) -> Pruned:
    """What is removed with the run of this id, finished or not. Raises ArgumentError if the lake has nothing of it."""
    if any(run.run_id == run_id for run in runs):
        return Pruned(runs=(run_id,))
    if run_id in written_by_id({table: held for table, held in holdings.items() if table.replaced_by == RUNS.run_id}):
        return Pruned(unfinished=(run_id,))
    newest = ", ".join(with_rest_count([run.run_id for run in runs[:MOST_NAMED]], len(runs))) or "none"
    raise ArgumentError(f"no run {run_id}; the newest are {newest}")


def what_goes_with_set(capture_id: str, runs: Sequence[FinishedRun], holdings: Holdings) -> Pruned:
    """What is removed with the capture set of this id, including its runs. Raises ArgumentError if the lake has nothing
    of it.
    """
    its_runs = tuple(run.run_id for run in runs if run.capture_id == capture_id)
    sets = holdings.get(CAPTURES, {})
    if capture_id in sets:
        return Pruned(its_runs, (capture_id,))
    of_sets = {table: held for table, held in holdings.items() if table.replaced_by == CAPTURES.capture_id}
    if its_runs or capture_id in written_by_id(of_sets):
        return Pruned(its_runs, unfinished=(capture_id,))
    known = ", ".join(with_rest_count([*sets][:MOST_NAMED], len(sets))) or "none"
    raise ArgumentError(f"no capture set {capture_id}; it has {known}")


def what_goes_by_age(age: timedelta, now: datetime, runs: Sequence[FinishedRun], holdings: Holdings) -> Pruned:
    """What is removed because of its age: runs whose clock is older than `age`, capture sets that were written before
    that and have no younger run, and what jobs left that ended before they were finished.
    """
    latest = now - age
    old = tuple(run.run_id for run in runs if run.run_at < latest)
    in_use = {run.capture_id for run in runs if run.run_at >= latest}
    sets = holdings.get(CAPTURES, {})
    old_sets = tuple(
        capture_id for capture_id, holding in sets.items() if holding.written < latest and capture_id not in in_use
    )
    finished = {*sets, *(id_of for run in runs for id_of in (run.run_id, run.capture_id))}
    written = written_by_id({table: held for table, held in holdings.items() if table not in RECORD})
    left_latest = now - max(age, UNFINISHED_FOR)
    left = (identity for identity, time in written.items() if identity not in finished and time < left_latest)
    return Pruned(old, old_sets, tuple(sorted(left)), is_by_age=True)


def written_by_id(holdings: Holdings) -> dict[str, datetime]:
    """When the newest file of each capture set or run was written, over all these tables, by id."""
    written: dict[str, datetime] = {}
    for of_table in holdings.values():
        for identity, holding in of_table.items():
            written[identity] = max(holding.written, written.get(identity, holding.written))
    return written


def drop_pruned(spark: SparkSession, stored: Stored, holdings: Holdings, pruned: Pruned) -> None:
    """Delete the rows of what is removed, first from the tables in `FIRST`."""
    by_table = {table: pruned.identities_in(table, holdings[table]) for table in stored}
    for tables in (FIRST, [table for table in stored if table not in FIRST]):
        run_side_by_side(
            spark, [partial(stored[table].drop, by_table[table]) for table in tables if by_table.get(table)]
        )


def vacuum_tables(
    spark: SparkSession, tables: Collection[StoredTable], retention: timedelta, *, dry_run: bool = False
) -> int | None:
    """Remove the files that no version of these tables has needed for at least the retention.

    Returns how many; None for a dry run that does not know. A dry run removes nothing.
    """
    with vacuums_allowed(spark):
        counts = run_side_by_side(spark, [partial(table.vacuum, retention, dry_run=dry_run) for table in tables])
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
