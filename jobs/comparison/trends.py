"""Nights side by side: the results of a lake's runs on comparable captures, as stored in the table `trends`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from math import inf

import pyarrow as pa
from pyspark.sql import Column, Row, SparkSession
from pyspark.sql import functions as F

from jobs.captures.clusters import captured_clusters
from jobs.comparison.comparison import replays_of_run, run_span
from jobs.comparison.figures import Figure
from jobs.comparison.incomplete_runs import incomplete_runs, incomplete_runs_text
from jobs.comparison.named_runs import ComparedRun, compared_run
from jobs.comparison.night_figures import night_figures
from jobs.lake.delta_tables import different_values, has_table, read_table, run_side_by_side
from jobs.lake.listed_runs import finished_runs
from jobs.lake.target import Target
from jobs.report_page.findings import KnownRun, known_run, runs_on_captures
from jobs.terminal.progress import stage
from jobs.units import none_if_infinite
from schemas.tables.gold import RUNS
from schemas.tables.gold_trends import TRENDS
from udfs.errors import LakeError
from udfs.facts.arrow_tables import arrow_schema

FEWEST = 3
"""The fewest nights of a trend; two nights are a comparison."""
LENGTHS = 2.0
"""Captures are comparable if the longer one is at most this many times as long as the other: the longest wait grows
with the length of the capture."""
Name = tuple[str, str]
"""The name of a figure: (kind, metric)."""


@dataclass(frozen=True)
class Night:
    """A run of a capture set, and its results.

    first, last: the times of the first and last packet; None if the captures have none. scopes: the client or broker
    with the largest figure, by the figure's name.
    """

    run_id: str
    capture_id: str
    cluster_id: str | None
    first: datetime | None
    last: datetime | None
    run_at: datetime
    figures: Mapping[Name, Figure]
    scopes: Mapping[Name, str]

    @property
    def seconds(self) -> float:
        """The length of the captures in seconds."""
        return 0.0 if self.first is None or self.last is None else (self.last - self.first).total_seconds()

    @property
    def begin(self) -> datetime:
        """When the capture began; for captures without a time, when they were replayed."""
        return self.first or self.run_at


@dataclass(frozen=True)
class Trend:
    """The nights of a trend.

    of: the night with which others are compared. nights: those that can be compared, including `of`, the newest last.
    others: how many more nights the lake has. incomplete: runs from which no night can be made, because an older
    release wrote their rows without columns that rows must have.
    """

    of: Night
    nights: Sequence[Night]
    others: int
    incomplete: Sequence[str] = ()


def find_trend(spark: SparkSession, lake: str, run: KnownRun, most: int) -> Trend | None:
    """At most `most` nights that can be compared with that of a run: the run's own, and earlier ones.

    Nights that `trends` lacks are made from the tables of their runs, and stored in `trends` if the lake can be
    written. None for a run of a window, which covers only a part of its captures. Raises LakeError for an incomplete
    run.
    """
    runs = newest_of_each(spark, lake, run, most)
    wanted = replayed_by(runs)
    if run.run_id not in wanted:
        return None
    kept = kept_nights(spark, lake, wanted, most)
    incomplete = incomplete_runs(spark, lake, [row for row in runs if row[RUNS.run_id] not in kept])
    if run.run_id in incomplete:
        raise LakeError(incomplete_runs_text(lake, [run.run_id]))
    missing = [run_id for run_id in wanted if run_id not in kept and run_id not in incomplete]
    if missing:
        with stage("trends", spark):
            made = run_side_by_side(spark, [partial(make_night, spark, lake, run_id) for run_id in missing])
            for night in made:
                keep_night(spark, lake, night, wanted[night.run_id])
        kept |= {night.run_id: night for night in made}
    return replace(trend_among(kept[run.run_id], kept.values(), most), incomplete=incomplete)


def newest_night(spark: SparkSession, lake: str, most: int) -> tuple[KnownRun, Sequence[str]]:
    """(the newest run on captures that has a night or whose night can be made, the incomplete runs that are newer).

    Raises LakeError if all of the lake's newest runs are incomplete.
    """
    t = RUNS
    newest = known_run(spark, lake, None)
    ids = [row[t.run_id] for row in newest.newest]
    rows = read_table(spark, lake, t, ids)
    runs = rows.select(t.run_id, t.capture_id, t.replayed_by).distinct().collect()
    kept = kept_nights(spark, lake, replayed_by(runs), most)
    incomplete = incomplete_runs(spark, lake, [row for row in runs if row[t.run_id] not in kept])
    chosen = next((run_id for run_id in ids if run_id not in incomplete), None)
    if chosen is None:
        raise LakeError(incomplete_runs_text(lake, incomplete))
    return newest if chosen == newest.run_id else known_run(spark, lake, chosen), ids[: ids.index(chosen)]


def replayed_by(runs: Iterable[Row]) -> dict[str, str]:
    """Which code has replayed each run, by run id."""
    return {row[RUNS.run_id]: row[RUNS.replayed_by] for row in runs}


def trend_among(reference: Night, nights: Iterable[Night], most: int) -> Trend:
    """The trend of a night: nights of the same cluster and of similar length, one for each capture set.

    reference: the night with which others are compared.
    """
    by_set = {night.capture_id: night for night in sorted(nights, key=lambda night: night.run_at)}
    all_of = sorted({**by_set, reference.capture_id: reference}.values(), key=lambda night: (night.begin, night.run_id))
    alike = [
        night
        for night in all_of
        if night.cluster_id == reference.cluster_id and is_as_long(night.seconds, reference.seconds)
    ]
    return Trend(reference, alike[-most:], len(all_of) - len(alike))


def is_as_long(one: float, other: float) -> bool:
    """Whether neither time is more than LENGTHS times the other."""
    return max(one, other) <= LENGTHS * min(one, other)


def newest_of_each(spark: SparkSession, lake: str, run: KnownRun, most: int) -> list[Row]:
    """At most `most` rows (run_id, capture_id, replayed_by), the newest first: this run, and for each other capture set
    its newest run that is not newer than this run. Runs of a window are left out.

    It reads the rows of about as many runs as it returns, however many there are.
    """
    run_at = run.rows[0][RUNS.run_at].astimezone(UTC)
    others = [one for one in runs_on_captures(spark, lake) if one.run_at <= run_at and one.capture_id != run.capture_id]
    by_set, size = {row[RUNS.capture_id]: row for row in whole_runs(spark, lake, [run.run_id])}, most
    while others and len(by_set) < most:
        for row in whole_runs(spark, lake, [one.run_id for one in others[:size]]):
            by_set.setdefault(row[RUNS.capture_id], row)
        others = [one for one in others[size:] if one.capture_id not in by_set]
        size *= 2  # so that many runs of windows are read in few passes
    return [*by_set.values()][:most]


def whole_runs(spark: SparkSession, lake: str, run_ids: Sequence[str]) -> list[Row]:
    """Rows (run_id, capture_id, replayed_by) of these runs, in this order. Runs of a window are left out."""
    t = RUNS
    rows = read_table(spark, lake, t, run_ids).where(is_whole()).select(t.run_id, t.capture_id, t.replayed_by)
    return sorted(rows.distinct().collect(), key=lambda row: run_ids.index(row[t.run_id]))


def is_whole() -> Column:
    """Whether a run covers all of its captures, and not only a window."""
    ends = (F.get_json_object(RUNS.scenario_json, f"$.{key}") for key in ("from", "to"))
    return F.coalesce(*ends).isNull()


def kept_nights(spark: SparkSession, lake: str, wanted: Mapping[str, str], most: int) -> dict[str, Night]:
    """The nights that `trends` has, by run id: those of wanted runs that the same code has replayed, and those of the
    last `most` runs that were removed from the lake.

    wanted: which code has replayed a run, by run id.
    """
    t = TRENDS
    if not has_table(spark, lake, t):
        return {}
    there = {run.run_id for run in finished_runs(spark, lake)}
    gone = dict[str, datetime]()
    for run_id, at in zip(*different_values(spark, lake, t, (t.run_id, t.run_at)).to_pydict().values(), strict=True):
        if run_id not in there:
            gone[run_id] = max(at, gone.get(run_id, at))
    last_gone = sorted(sorted(gone), key=gone.__getitem__, reverse=True)[:most]
    rows = read_table(spark, lake, t, [*wanted, *last_gone])
    by_run: dict[str, list[Row]] = {}
    for row in rows.collect():
        if wanted.get(row[t.run_id], row[t.replayed_by]) == row[t.replayed_by]:
            by_run.setdefault(row[t.run_id], []).append(row)
    return {run_id: night_of(of_run) for run_id, of_run in by_run.items()}


def night_of(rows: Sequence[Row]) -> Night:
    """The night in rows of `trends`."""
    t, first = TRENDS, rows[0]
    by_name = {(row[t.kind], row[t.metric]): row for row in rows}
    return Night(
        run_id=first[t.run_id],
        capture_id=first[t.capture_id],
        cluster_id=first[t.cluster_id],
        first=as_utc(first[t.first_time]),
        last=as_utc(first[t.last_time]),
        run_at=first[t.run_at].astimezone(UTC),
        figures={
            name: Figure(inf if row[t.value] is None else row[t.value], row[t.p10], row[t.p90], row[t.cases])
            for name, row in by_name.items()
        },
        scopes={name: row[t.scope] for name, row in by_name.items() if row[t.scope] is not None},
    )


def as_utc(at: datetime | None) -> datetime | None:
    """A time from Spark in UTC. Spark's time is in the zone of this process."""
    return None if at is None else at.astimezone(UTC)


def make_night(spark: SparkSession, lake: str, run_id: str) -> Night:
    """A night, made from the tables of its run."""
    run = compared_run(spark, lake, known_run(spark, lake, run_id))
    rows = night_figures(run.own_rows, run_span(run), replays_of_run(run)).collect()
    by_name = {(row["kind"], row["metric"]): row for row in rows}
    return Night(
        run_id=run_id,
        capture_id=run.run.capture_id,
        cluster_id=cluster_of_run(spark, run),
        first=as_utc(run.captures.first_time),
        last=as_utc(run.captures.last_time),
        run_at=run.run.rows[0][RUNS.run_at].astimezone(UTC),
        figures={name: Figure(row["value"], row["low"], row["high"], row["cases"]) for name, row in by_name.items()},
        scopes={name: row["scope"] for name, row in by_name.items() if row["scope"] is not None},
    )


def cluster_of_run(spark: SparkSession, run: ComparedRun) -> str | None:
    """The cluster that is replayed; None if the captures do not show its id."""
    clusters = captured_clusters(spark, run.lake, run.run.capture_id)
    return run.run.cluster_id or next((cluster.cluster_id for cluster in clusters), None)


def keep_night(spark: SparkSession, lake: str, night: Night, replayed_by: str) -> None:
    """Write a night's rows instead of those that its run had."""
    try:
        Target(lake, night.run_id).write_here(spark, night_rows(night, replayed_by), TRENDS)
    except (LakeError, OSError) as fault:  # somebody who may not write the lake still sees trends
        sys.stderr.write(f"refetch: trends of run {night.run_id} are not kept: {fault}\n")


def night_rows(night: Night, replayed_by: str) -> pa.Table:
    """A night's rows of the table `trends`. replayed_by: which code has replayed its run."""
    t = TRENDS
    rows: list[dict[str, object]] = [
        {
            t.run_id: night.run_id, t.replayed_by: replayed_by, t.capture_id: night.capture_id,
            t.cluster_id: night.cluster_id, t.first_time: night.first, t.last_time: night.last, t.run_at: night.run_at,
            t.kind: kind, t.metric: metric, t.scope: night.scopes.get((kind, metric)),
            t.value: null_if_endless(figure.value), t.p10: null_if_endless(figure.low),
            t.p90: null_if_endless(figure.high), t.cases: figure.cases,
        }
        for (kind, metric), figure in sorted(night.figures.items(), key=lambda item: item[0])
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=arrow_schema(t))


def null_if_endless(value: float | None) -> float | None:
    """A value for the table: null for an infinite one."""
    return None if value is None else none_if_infinite(value)
