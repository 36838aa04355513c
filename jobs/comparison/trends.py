"""Nights side by side: what the runs of a lake come to, kept in `trends`, of captures that can be compared."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from math import inf

import pyarrow as pa
from pyspark.sql import Column, Row, SparkSession
from pyspark.sql import functions as F

from jobs.captures.clusters import seen_clusters
from jobs.comparison.comparison import replays_of, run_span
from jobs.comparison.figures import Figure
from jobs.comparison.named_runs import ComparedRun, compared_run
from jobs.comparison.night_figures import night_figures
from jobs.gates.row_rules import Watch
from jobs.lake.delta_tables import has_table, read_table, side_by_side
from jobs.lake.target import Target
from jobs.report_page.findings import KnownRun, known_run, runs_on_captures
from jobs.terminal.progress import stage
from jobs.units import finite
from schemas.tables.gold import RUNS
from schemas.tables.gold_trends import TRENDS
from udfs.errors import LakeError
from udfs.facts.arrow_tables import arrow_schema

FEWEST = 3
"""Nights of a trend: two are a comparison."""
LENGTHS = 2.0
"""Captures are compared that are at most so many times as long as each other: a longest wait grows with the time in
which it is looked for."""
Name = tuple[str, str]
"""Of a figure: what it is of, and the metric."""


@dataclass(frozen=True)
class Night:
    """A run of a capture set, and what it comes to.

    first, last: times of the first and last packet; None where the captures have none. scopes: by figure the client or
    broker that has most.
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
        """How long the captures are."""
        return 0.0 if self.first is None or self.last is None else (self.last - self.first).total_seconds()

    @property
    def begin(self) -> datetime:
        """When it was captured; of captures without a time, when it was replayed."""
        return self.first or self.run_at


@dataclass(frozen=True)
class Trend:
    """The nights that can be compared, the newest last, the one they are compared with among them; and how many others
    the lake has.
    """

    of: Night
    nights: Sequence[Night]
    others: int


def trend(spark: SparkSession, lake: str, run: KnownRun, most: int) -> Trend | None:
    """The last nights up to a run's that can be compared with it, so many at most. What `trends` lacks of them is made
    from their tables, and kept there where the lake can be written. None for a run of a part of its captures alone.
    """
    wanted = {row[RUNS.run_id]: row[RUNS.replayed_by] for row in newest_of_each(spark, lake, run, most)}
    if run.run_id not in wanted:
        return None
    kept = kept_nights(spark, lake, wanted, most)
    missing = [run_id for run_id in wanted if run_id not in kept]
    if missing:
        with stage("trends", spark):
            made = side_by_side(spark, [partial(made_night, spark, lake, run_id) for run_id in missing])
            for night in made:
                keep(spark, lake, night, wanted[night.run_id])
        kept |= {night.run_id: night for night in made}
    return among(kept[run.run_id], kept.values(), most)


def among(reference: Night, nights: Iterable[Night], most: int) -> Trend:
    """A night with those that can be compared with it: of the same cluster, about as long, one of each capture set."""
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
    """(run_id, replayed_by): this run, and the newest one of each other capture set that is no younger, of whole
    captures; so many at most.
    """
    t = RUNS
    of = run.rows[0]
    rows = read_table(spark, lake, t).where(is_whole()).join(
        runs_on_captures(spark, lake).select(t.run_id), str(t.run_id), "left_semi"
    )  # fmt: skip
    not_younger = rows.where((F.col(t.run_at) <= F.lit(of[t.run_at])) & (F.col(t.capture_id) != run.capture_id))
    own = rows.where(F.col(t.run_id) == run.run_id)
    by_run = own.unionByName(not_younger).groupBy(t.capture_id).agg(
        F.max_by(F.struct(t.run_id, t.replayed_by), F.struct(t.run_at, t.run_id)).alias("newest"),
        F.max(t.run_at).alias("at"),
    )  # fmt: skip
    return by_run.orderBy(F.desc("at"), t.capture_id).limit(most).select("newest.*").collect()


def is_whole() -> Column:
    """Whether a run is of all that was captured, and not of a window."""
    ends = (F.get_json_object(RUNS.scenario_json, f"$.{key}") for key in ("from", "to"))
    return F.coalesce(*ends).isNull()


def kept_nights(spark: SparkSession, lake: str, wanted: Mapping[str, str], most: int) -> dict[str, Night]:
    """By run the nights that `trends` has: those that are wanted and were made by the same code, and the last ones
    whose runs have left the lake.
    """
    t = TRENDS
    if not has_table(spark, lake, t):
        return {}
    rows = read_table(spark, lake, t)
    gone = rows.join(read_table(spark, lake, RUNS).select(RUNS.run_id), str(t.run_id), "left_anti")
    last = gone.groupBy(t.run_id).agg(F.max(t.run_at).alias("at")).orderBy(F.desc("at"), t.run_id).limit(most)
    ids = [*wanted, *(row[0] for row in last.collect())]
    by_run: dict[str, list[Row]] = {}
    for row in rows.where(F.col(t.run_id).isin(*ids)).collect():
        if wanted.get(row[t.run_id], row[t.replayed_by]) == row[t.replayed_by]:
            by_run.setdefault(row[t.run_id], []).append(row)
    return {run_id: night_of(of_run) for run_id, of_run in by_run.items()}


def night_of(rows: Sequence[Row]) -> Night:
    """A night by its rows of `trends`."""
    t, first = TRENDS, rows[0]
    by_name = {(row[t.kind], row[t.metric]): row for row in rows}
    return Night(
        run_id=first[t.run_id],
        capture_id=first[t.capture_id],
        cluster_id=first[t.cluster_id],
        first=in_utc(first[t.first_time]),
        last=in_utc(first[t.last_time]),
        run_at=first[t.run_at].astimezone(UTC),
        figures={
            name: Figure(inf if row[t.value] is None else row[t.value], row[t.p10], row[t.p90], row[t.cases])
            for name, row in by_name.items()
        },
        scopes={name: row[t.scope] for name, row in by_name.items() if row[t.scope] is not None},
    )


def in_utc(at: datetime | None) -> datetime | None:
    """A time as Spark gave it, which is in the zone of this process."""
    return None if at is None else at.astimezone(UTC)


def made_night(spark: SparkSession, lake: str, run_id: str) -> Night:
    """A night by the tables of its run."""
    run = compared_run(spark, lake, known_run(spark, lake, run_id))
    rows = night_figures(run.own_rows, run_span(run), replays_of(run)).collect()
    by_name = {(row["kind"], row["metric"]): row for row in rows}
    return Night(
        run_id=run_id,
        capture_id=run.run.capture_id,
        cluster_id=cluster_of(spark, run),
        first=in_utc(run.captures.first_time),
        last=in_utc(run.captures.last_time),
        run_at=run.run.rows[0][RUNS.run_at].astimezone(UTC),
        figures={name: Figure(row["value"], row["low"], row["high"], row["cases"]) for name, row in by_name.items()},
        scopes={name: row["scope"] for name, row in by_name.items() if row["scope"] is not None},
    )


def cluster_of(spark: SparkSession, run: ComparedRun) -> str | None:
    """The cluster that is replayed; None where the captures do not show its id."""
    clusters = seen_clusters(spark, run.lake, run.run.capture_id)
    return run.run.cluster_id or next((cluster.cluster_id for cluster in clusters), None)


def keep(spark: SparkSession, lake: str, night: Night, replayed_by: str) -> None:
    """Put a night's rows in the place of those that its run had."""
    try:
        Target(lake, night.run_id, Watch()).write_here(spark, night_rows(night, replayed_by), TRENDS)
    except (LakeError, OSError) as fault:  # who may read a lake and not write it sees trends all the same
        sys.stderr.write(f"refetch: trends of run {night.run_id} are not kept: {fault}\n")


def night_rows(night: Night, replayed_by: str) -> pa.Table:
    """The rows of the table."""
    t = TRENDS
    rows: list[dict[str, object]] = [
        {
            t.run_id: night.run_id, t.replayed_by: replayed_by, t.capture_id: night.capture_id,
            t.cluster_id: night.cluster_id, t.first_time: night.first, t.last_time: night.last, t.run_at: night.run_at,
            t.kind: kind, t.metric: metric, t.scope: night.scopes.get((kind, metric)),
            t.value: ended(figure.value), t.p10: ended(figure.low), t.p90: ended(figure.high), t.cases: figure.cases,
        }
        for (kind, metric), figure in sorted(night.figures.items(), key=lambda item: item[0])
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=arrow_schema(t))


def ended(value: float | None) -> float | None:
    """A value as the table has it: null for one without end."""
    return None if value is None else finite(value)
