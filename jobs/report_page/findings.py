"""Reads from a run's tables all that the summary and the report need: every query once, several at the same time."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from jobs.captures.clusters import rows_of_cluster
from jobs.captures.kafka_release import releases
from jobs.gates.results import gate_result_rows
from jobs.lake.capture_sets import capture_ids, check_captures
from jobs.lake.delta_tables import read_table, rows_for_queries, run_side_by_side
from jobs.lake.listed_runs import FinishedRun, finished_runs
from jobs.replays.algorithm import OwnRows
from jobs.replays.algorithms import ALGORITHMS
from jobs.replays.capture_window import rows_in_window
from jobs.replays.finished_runs import captured_release
from jobs.report_page.advice.aims import aim_settings, trade_off_lanes
from jobs.report_page.advice.recommendations import QUERIES as ADVICE_QUERIES
from jobs.report_page.capture_contents import CONTENT_QUERIES, captured_files, connections_by_protocol, requests_by_api
from jobs.report_page.question import Findings, Query
from jobs.report_page.questions import queries_of
from jobs.report_page.refusals import gate_refusals
from jobs.report_page.trust import fidelity_by_reason
from jobs.scenarios.moment import Moment, parse_moment
from jobs.scenarios.settings import Value, setting_of
from schemas.tables.gold import RUNS
from schemas.tables.silver import EXCHANGES
from schemas.tables.table import Table
from udfs.errors import ArgumentError, LakeError
from udfs.replay.shared.lanes import KAFKA_RELEASE

MOST_RUNS = 20


@dataclass(frozen=True)
class KnownRun:
    """A run of a lake. rows: its rows in `runs`, one for each algorithm. newest: the lake's newest runs."""

    rows: tuple[Row, ...]
    newest: tuple[Row, ...]

    @property
    def run_id(self) -> str:
        """The run's id."""
        return str(self.rows[0][RUNS.run_id])

    @property
    def capture_id(self) -> str:
        """The capture set that was replayed."""
        return str(self.rows[0][RUNS.capture_id])

    @property
    def lanes(self) -> tuple[str, ...]:
        """The lanes of all its replays, each once."""
        return tuple(dict.fromkeys(lane for row in self.rows for lane in row[RUNS.lanes]))

    @property
    def refused(self) -> Mapping[str, str]:
        """Why algorithms that were asked for were not replayed, by name."""
        return self.rows[0][RUNS.refused]

    @property
    def assumed(self) -> list[str]:
        """Settings for which Kafka's default is assumed: nobody stated them, and the captures do not show them."""
        return sorted(key for key in self.rows[0][RUNS.assumed] if ": " not in key)

    @property
    def nobody_stated(self) -> frozenset[str]:
        """Settings that nobody stated, whether the captures show them or not."""
        return frozenset(line.partition(": ")[0] for line in self.rows[0][RUNS.assumed])

    @property
    def from_capture(self) -> list[str]:
        """Settings that the captures show, as `key: value and how it is known`."""
        return sorted(line for line in self.rows[0][RUNS.assumed] if ": " in line)

    @property
    def cluster_id(self) -> str | None:
        """The cluster that is replayed; None if the captures do not show several."""
        return self.rows[0][RUNS.cluster_id]

    @property
    def stated(self) -> list[str]:
        """Settings that somebody stated as in force, each with its value."""
        by_key = {key: value for key, value in self.captured.items() if key not in self.nobody_stated}
        return sorted(f"{key}={setting_of(key).format(value)}" for key, value in by_key.items())

    @property
    def captured(self) -> Mapping[str, Value]:
        """The values that were taken as in force, by setting, without the settings that the captures show."""
        return json.loads(self.rows[0][RUNS.scenario_json])["captured"]

    @property
    def varied(self) -> Mapping[str, list[str]]:
        """The values of a setting in the lanes, as for --set, by setting."""
        grids = json.loads(self.rows[0][RUNS.scenario_json])["replay"].values()
        return {
            key: [setting_of(key).format(value) for value in values] for grid in grids for key, values in grid.items()
        }

    @property
    def window(self) -> tuple[Moment | None, Moment | None]:
        """Begin and end of the time that counts; None for an end that is the capture's own."""
        scenario = json.loads(self.rows[0][RUNS.scenario_json])
        begin, end = (scenario.get(key) for key in ("from", "to"))
        return begin and parse_moment(begin), end and parse_moment(end)

    @property
    def kafka(self) -> str:
        """The release whose semantics the replays follow, and how it is known."""
        if KAFKA_RELEASE in self.captured:
            return f"{self.captured[KAFKA_RELEASE]}, as stated"
        newest = f"{releases()[0]}, the newest supported, because the capture shows none"
        return captured_release(self.from_capture) or newest


def known_run(spark: SparkSession, lake: str, run_id: str | None, capture_id: str | None = None) -> KnownRun:
    """The run with this id, else the newest one; the newest of a capture set if one is named. Raises LakeError if there
    is none, ArgumentError if the named one does not exist.
    """
    t = RUNS
    of_set = "" if capture_id is None else f" of capture set {capture_id}"
    runs = runs_on_captures(spark, lake, capture_id)
    if not runs:
        raise LakeError(
            f"{lake}: no run{of_set or ' on captures'} is finished; run `pipeline` or `replay` with this --lake first"
        )
    newest_ids = [run.run_id for run in runs[:MOST_RUNS]]
    chosen = run_id or newest_ids[0]
    stored = read_table(spark, lake, t, {chosen, *newest_ids})
    on_captures = F.col(t.capture_id).isin(*{run.capture_id for run in runs})
    rows = tuple(stored.where((F.col(t.run_id) == chosen) & on_captures).orderBy(t.algorithm).collect())
    if not rows:
        is_known = capture_id is None and not stored.where(F.col(t.run_id) == chosen).isEmpty()
        message = f"run {chosen} is of `size`, and not on captures" if is_known else f"no run {chosen}{of_set}"
        raise ArgumentError(f"{lake}: {message}; the newest are {', '.join(newest_ids)}")
    newest = runs_in(stored.where(F.col(t.run_id).isin(*newest_ids))).orderBy(F.desc(t.run_at), t.run_id)
    return KnownRun(rows, tuple(newest.collect()))


def runs_on_captures(spark: SparkSession, lake: str, capture_id: str | None = None) -> list[FinishedRun]:
    """The finished runs that replay captures, or this capture set, the newest first. Runs of `size` are left out, since
    they replay a cluster file and no capture. Raises LakeError if the lake has no captures.
    """
    check_captures(spark, lake)
    replayable = capture_ids(spark, lake) if capture_id is None else {capture_id} & capture_ids(spark, lake)
    return [run for run in finished_runs(spark, lake) if run.capture_id in replayable]


def runs_in(rows: DataFrame) -> DataFrame:
    """(run_id, capture_id, run_at, replays) of each run. rows: of `runs`."""
    t = RUNS
    replays = F.array_sort(F.collect_list(t.algorithm)).alias("replays")
    return rows.groupBy(t.run_id, t.capture_id, t.run_at).agg(replays)


def own_rows_of(spark: SparkSession, lake: str, run: KnownRun) -> OwnRows:
    """The function that gives a run's rows of a table; of a silver table those of the replayed cluster and window."""

    @cache
    def own_rows(table: Table) -> DataFrame:
        if table.layer == "gold":
            return rows_for_queries(spark, lake, table, run.run_id)
        rows = rows_of_cluster(spark, lake, table, run.capture_id, run.cluster_id, rows_for_queries)
        time = EXCHANGES.request_time
        return rows_in_window(rows, time, *run.window) if time in table.columns else rows

    return own_rows


def look_up_run(spark: SparkSession, lake: str, run: KnownRun) -> Findings:
    """All that the summary and the report need of a run, queried from its tables."""
    t = RUNS
    lanes = {row[t.algorithm]: tuple(row[t.lanes]) for row in run.rows}
    of_cluster = own_rows_of(spark, lake, run)

    @cache
    def of_captures(table: Table) -> DataFrame:
        return rows_for_queries(spark, lake, table, run.run_id if table.layer == "gold" else run.capture_id)

    of_replays = [query for name in lanes for query in ALGORITHMS[name].queries.values()]
    of_advice = [query for name, queries in ADVICE_QUERIES.items() if name in lanes for query in queries]
    wanted: dict[Query, OwnRows] = dict.fromkeys(
        [*of_replays, *of_advice, *queries_of(lanes), aim_settings, trade_off_lanes], of_cluster
    )
    wanted |= dict.fromkeys((*CONTENT_QUERIES, fidelity_by_reason), of_captures)
    wanted[gate_refusals] = lambda _: gate_result_rows(spark, lake, (run.capture_id, run.run_id))
    return Findings(run_queries(spark, wanted), lanes, run.refused, run.captured, run.kafka, run.nobody_stated)


def look_up_captured(spark: SparkSession, lake: str, capture_id: str) -> Findings:
    """What was read and lost of a capture set, queried from its silver tables."""
    return look_up_queries(spark, lake, capture_id, CONTENT_QUERIES)


def look_up_traffic(spark: SparkSession, lake: str, capture_id: str) -> Findings:
    """Whether a capture set has any Kafka traffic, queried from its silver tables."""
    return look_up_queries(spark, lake, capture_id, [captured_files, requests_by_api, connections_by_protocol])


def look_up_queries(spark: SparkSession, lake: str, capture_id: str, queries: Sequence[Query]) -> Findings:
    """The rows of queries of the silver tables for a capture set."""
    own_rows = cache(partial(rows_for_queries, spark, lake, identity=capture_id))
    return Findings(run_queries(spark, dict.fromkeys(queries, own_rows)), {}, {}, {}, "")


def run_queries(spark: SparkSession, queries: Mapping[Query, OwnRows]) -> dict[Query, list[Row]]:
    """The rows of each query. All queries run at the same time.

    queries: the function that gives a query the rows of a table, by query.
    """

    def rows(query: Query, own_rows: OwnRows) -> list[Row]:
        return query(own_rows).collect()

    tasks: list[Callable[[], list[Row]]] = [partial(rows, *query) for query in queries.items()]
    return dict(zip(queries, run_side_by_side(spark, tasks), strict=True))
