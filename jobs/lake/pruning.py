"""What is to leave a lake: runs and capture sets by age or id, with everything that the tables have of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import NamedTuple

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.lake.delta_tables import has_table, read_table, side_by_side
from jobs.lake.stored_tables import Holding, StoredTable, stored_table
from jobs.terminal.screen import with_rest
from schemas.tables.gold import GOLD, RUNS
from schemas.tables.gold_predictions import PREDICTIONS_CHECKED
from schemas.tables.gold_trends import TRENDS
from schemas.tables.silver import CAPTURES, SILVER
from schemas.tables.table import Table
from udfs.errors import ArgumentError, LakeError

TABLES = (*SILVER, *GOLD)
FIRST = (RUNS, CAPTURES)
"""Who looks for runs and capture sets finds them here: they leave these tables before all others."""
RECORD = (PREDICTIONS_CHECKED, TRENDS)
"""Small tables that tell of the lake's past: age alone takes nothing from them."""
BETWEEN = "-"
"""In the identity of rows that are of two runs, between their ids."""
UNFINISHED_FOR = timedelta(days=1)
"""Rows that no finished run or capture set has are at least so old when age takes them: one may be under way."""
MOST_NAMED = 20
Stored = Mapping[Table, StoredTable]
Holdings = Mapping[Table, Mapping[str, Holding]]


class FinishedRun(NamedTuple):
    """A run that `runs` has: its id, its capture set, and its clock, when it was last asked for."""

    run_id: str
    capture_id: str
    run_at: datetime


@dataclass(frozen=True)
class Pruned:
    """What goes.

    runs, capture_sets: those that were finished, by id. unfinished: ids of what was ended before it was. is_by_age:
    nobody named them, so that `RECORD` keeps what it has of them.
    """

    runs: tuple[str, ...] = ()
    capture_sets: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()
    is_by_age: bool = False

    @property
    def ids(self) -> frozenset[str]:
        """All of them."""
        return frozenset((*self.runs, *self.capture_sets, *self.unfinished))

    def of(self, table: Table, identities: Iterable[str]) -> list[str]:
        """Those identities of a table's rows that go."""
        if self.is_by_age and table in RECORD:
            return []
        return [identity for identity in identities if not self.ids.isdisjoint(identity.split(BETWEEN))]


def stored_tables(spark: SparkSession, lake: str) -> Stored:
    """The tables that the lake has. Raises LakeError where it has none."""
    tables = side_by_side(spark, [partial(stored_table, spark, lake, table) for table in TABLES])
    stored = {table: found for table, found in zip(TABLES, tables, strict=True) if found is not None}
    if not stored:
        raise LakeError(f"{lake}: no captures and no runs, so there is nothing to do; --lake names another folder")
    return stored


def holdings_of(spark: SparkSession, stored: Stored) -> Holdings:
    """What each table has, by capture set and run."""
    return dict(zip(stored, side_by_side(spark, [table.holdings for table in stored.values()]), strict=True))


def known_runs(spark: SparkSession, lake: str) -> list[FinishedRun]:
    """The finished runs of a lake, the newest first."""
    t = RUNS
    if not has_table(spark, lake, t):
        return []
    rows = read_table(spark, lake, t).groupBy(t.run_id, t.capture_id).agg(F.max(t.run_at).alias("at"))
    runs = rows.orderBy(F.desc("at"), t.run_id).collect()
    return [FinishedRun(run_id, capture_id, at.astimezone(UTC)) for run_id, capture_id, at in runs]


def of_run(run_id: str, runs: Sequence[FinishedRun], holdings: Holdings) -> Pruned:
    """A run by its id, finished or not. Raises ArgumentError where the lake has nothing of it."""
    if any(run.run_id == run_id for run in runs):
        return Pruned(runs=(run_id,))
    if run_id in written_by_id({table: held for table, held in holdings.items() if table.replaced_by == RUNS.run_id}):
        return Pruned(unfinished=(run_id,))
    newest = ", ".join(with_rest([run.run_id for run in runs[:MOST_NAMED]], len(runs))) or "none"
    raise ArgumentError(f"no run {run_id}; the newest are {newest}")


def of_capture_set(capture_id: str, runs: Sequence[FinishedRun], holdings: Holdings) -> Pruned:
    """A capture set by its id with its runs. Raises ArgumentError where the lake has nothing of it."""
    its_runs = tuple(run.run_id for run in runs if run.capture_id == capture_id)
    sets = holdings.get(CAPTURES, {})
    if capture_id in sets:
        return Pruned(its_runs, (capture_id,))
    of_sets = {table: held for table, held in holdings.items() if table.replaced_by == CAPTURES.capture_id}
    if its_runs or capture_id in written_by_id(of_sets):
        return Pruned(its_runs, unfinished=(capture_id,))
    known = ", ".join(with_rest([*sets][:MOST_NAMED], len(sets))) or "none"
    raise ArgumentError(f"no capture set {capture_id}; it has {known}")


def older_than(age: timedelta, now: datetime, runs: Sequence[FinishedRun], holdings: Holdings) -> Pruned:
    """Runs whose clock is so long ago, and capture sets written so long ago that have no younger run; with them what
    was left by jobs that were ended.
    """
    latest = now - age
    old = tuple(run.run_id for run in runs if run.run_at < latest)
    in_use = {run.capture_id for run in runs if run.run_at >= latest}
    sets = holdings.get(CAPTURES, {})
    old_sets = tuple(of for of, holding in sets.items() if holding.written < latest and of not in in_use)
    finished = {*sets, *(id_of for run in runs for id_of in (run.run_id, run.capture_id))}
    written = written_by_id({table: of for table, of in holdings.items() if table not in RECORD})
    left_latest = now - max(age, UNFINISHED_FOR)
    left = (of for of, at in written.items() if of not in finished and at < left_latest)
    return Pruned(old, old_sets, tuple(sorted(left)), is_by_age=True)


def written_by_id(holdings: Holdings) -> dict[str, datetime]:
    """By capture set and run when a table's newest file of it was written."""
    written: dict[str, datetime] = {}
    for of_table in holdings.values():
        for identity, holding in of_table.items():
            written[identity] = max(holding.written, written.get(identity, holding.written))
    return written


def drop(spark: SparkSession, stored: Stored, holdings: Holdings, pruned: Pruned) -> None:
    """Delete what is to go: runs and capture sets first from the tables in which others look for them."""
    by_table = {table: pruned.of(table, holdings[table]) for table in stored}
    for tables in (FIRST, [table for table in stored if table not in FIRST]):
        side_by_side(spark, [partial(stored[table].drop, by_table[table]) for table in tables if by_table.get(table)])


def vacuumed(
    spark: SparkSession, tables: Collection[StoredTable], retention: timedelta, *, dry_run: bool = False
) -> int | None:
    """Remove files that are needed no more from all tables. Returns how many; None where a dry run does not tell."""
    counts = side_by_side(spark, [partial(table.vacuum, retention, dry_run=dry_run) for table in tables])
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
