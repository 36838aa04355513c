"""The runs that a command line names: ids, `latest`, `previous`, or the newest runs of two lakes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC

from pyspark.sql import SparkSession

from jobs.flags import LATEST, PREVIOUS
from jobs.lake.capture_sets import CaptureSet, capture_set
from jobs.places import is_in_catalog
from jobs.replays.algorithm import OwnRows
from jobs.report_page.findings import KnownRun, known_run, own_rows_of, runs_on_captures
from schemas.tables.gold import RUNS
from udfs.errors import ArgumentError


@dataclass(frozen=True)
class ComparedRun:
    """A run that is compared: the lake that has it, and its capture set."""

    lake: str
    run: KnownRun
    captures: CaptureSet
    own_rows: OwnRows

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.run.run_id


def is_lake(name: str) -> bool:
    """Whether a resolved name is that of a lake: an absolute path, a URI, or a schema of a catalog."""
    return "/" in name or is_in_catalog(name)


def resolve_run_names(spark: SparkSession, lake: str, names: Sequence[str]) -> tuple[ComparedRun, ComparedRun]:
    """The two runs, in the order of their names. Raises LakeError if a lake has no run, and ArgumentError if it does
    not have the named ones, or if both are the same run.
    """
    by_place: dict[int, tuple[str, KnownRun]] = {}
    # `previous` depends on the other run, so it is resolved last.
    for place in sorted(range(len(names)), key=lambda place: names[place] == PREVIOUS):
        other = next(iter(by_place.values()), None)
        by_place[place] = resolve_run_name(spark, lake, names[place], other)
    (one_lake, one), (other_lake, two) = by_place[0], by_place[1]
    if (one_lake, one.run_id) == (other_lake, two.run_id):
        raise ArgumentError(f"{one_lake}: both are run {one.run_id}; `runs` lists those that can be compared")
    return compared_run(spark, one_lake, one), compared_run(spark, other_lake, two)


def resolve_run_name(
    spark: SparkSession, lake: str, name: str, other: tuple[str, KnownRun] | None
) -> tuple[str, KnownRun]:
    """(the lake, the run) that a name stands for.

    other: the lake and the run with which it is compared, if already known; `previous` needs them.
    """
    if is_lake(name):
        return name, known_run(spark, name, None)
    if name == PREVIOUS:
        newest = known_run(spark, lake, None) if other is None or other[0] != lake else other[1]
        return lake, known_run(spark, lake, previous_id(spark, lake, newest))
    return lake, known_run(spark, lake, None if name == LATEST else name)


def previous_id(spark: SparkSession, lake: str, run: KnownRun) -> str:
    """The id of the newest run before a run; of a run on another capture set if there is one.

    Raises ArgumentError if there is no run before it.
    """
    run_at = run.rows[0][RUNS.run_at].astimezone(UTC)
    before = [one for one in runs_on_captures(spark, lake) if one.run_at <= run_at and one.run_id != run.run_id]
    if not before:
        raise ArgumentError(f"{lake}: no run is older than {run.run_id}; `runs` lists those that can be compared")
    return next((one for one in before if one.capture_id != run.capture_id), before[0]).run_id


def compared_run(spark: SparkSession, lake: str, run: KnownRun) -> ComparedRun:
    """A run with its captures."""
    return ComparedRun(lake, run, capture_set(spark, lake, run.capture_id), own_rows_of(spark, lake, run))
