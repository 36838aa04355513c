"""A lake for a notebook: the tables of one capture set and of the newest run of each replay, by name and in SQL.

from jobs.open_lake import open_lake
lake = open_lake("./lake")
lake.tables()
lake.rows("fetch_fairness")
lake.sql("SELECT reader, scenario, max(longest_wait_ms) FROM fetch_fairness GROUP BY ALL")
lake.sql("SELECT * FROM starved_partitions JOIN lane_settings USING (scenario) WHERE fetch_max_bytes = 1048576")
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from jobs.flags import LATEST
from jobs.gates.results import gate_result_rows
from jobs.lake.capture_sets import choose_capture
from jobs.lake.delta_tables import has_table, read_table, rows_of_driver, stored_rows
from jobs.lake.lake_storage import check_reachable, largest_part
from jobs.lake.listed_runs import finished_runs
from jobs.lake.table_address import address_of
from jobs.lake_views import DOCS, LANE_SETTINGS, VIEWS, table_of_lanes
from jobs.paths import COMMAND, IS_CLONE
from jobs.places import absolute_lake
from jobs.quickstart import INSTALLED_LAKE, SCENARIO
from jobs.replays.algorithms import ALGORITHMS
from jobs.report_page.findings import known_run
from jobs.report_page.refusals import gate_refusals, is_of_captures, subjects_with_rules
from jobs.scenarios.scenario_file import resolve_scenario
from jobs.scenarios.settings import ON_REQUEST, TRIES, nearest_word_hint
from jobs.session.spark import is_session_new, spark_session
from jobs.session.spark_properties import Workload
from jobs.terminal.wording import quantity
from schemas.tables.gold import FIDELITY, GOLD, RUNS
from schemas.tables.gold_gates import GATE_RESULTS
from schemas.tables.gold_predictions import PREDICTIONS_CHECKED
from schemas.tables.gold_recommendations import RECOMMENDATIONS
from schemas.tables.gold_trends import TRENDS
from schemas.tables.silver import SILVER
from schemas.tables.table import Table
from udfs.errors import ArgumentError, LakeError

LAKE_VARIABLE = "REFETCH_LAKE"
"""The environment variable that names the lake where none is given."""
TABLES: Mapping[str, Table] = {table.name: table for table in (*SILVER, *GOLD)}
_OF_ALL = (FIDELITY, PREDICTIONS_CHECKED, RECOMMENDATIONS, RUNS)
_TABLE_LIST = pa.schema([("table", pa.string()), ("layer", pa.string()), ("what", pa.string())])
_NOTEBOOK_CONF = {
    # A DataFrame at the end of a cell is shown as a table, its texts in full and the rows of a large grid's lanes.
    "spark.sql.repl.eagerEval.enabled": "true",
    "spark.sql.repl.eagerEval.maxNumRows": "100",
    "spark.sql.repl.eagerEval.truncate": "0",
}


class Replay(NamedTuple):
    """A run's replay of one algorithm: the run's id and the names of the replay's lanes, in their order."""

    run_id: str
    lanes: list[str]


@dataclass(frozen=True)
class OpenLake:
    """One capture set of a lake, and the newest replay of it by each algorithm."""

    spark: SparkSession
    path: str
    capture_id: str
    replays: Mapping[str, Replay]

    def __repr__(self) -> str:
        replays = ", ".join(f"{name} ({quantity(len(replay.lanes), 'lane')})" for name, replay in self.replays.items())
        return f"OpenLake({self.path}, capture set {self.capture_id}, replays: {replays or 'none'})"

    def tables(self) -> DataFrame:
        """(table, layer, what): the tables that the lake has, views of them, and what a row of each is."""
        there = [table for table in TABLES.values() if has_table(self.spark, self.path, table)]
        rows = [{"table": table.name, "layer": table.layer, "what": table.doc} for table in there]
        rows += [{"table": name, "layer": "view", "what": doc} for name, doc in DOCS.items()]
        return rows_of_driver(self.spark, pa.Table.from_pylist(rows, _TABLE_LIST))

    def rows(self, table: Table | str) -> DataFrame:
        """A table's rows, by its name or declaration, or the rows of a view (`jobs.lake_views`), by its name.

        A silver table has the rows of this capture set, a gold table those of the newest run that made them.
        `fidelity`, `predictions_checked`, `recommendations` and `runs` have the rows of the newest replay by each
        algorithm, `trends` those of all nights.

        Raises LakeError, which says which command makes a table that is not there, and ArgumentError for a name that no
        table has.
        """
        if table == LANE_SETTINGS:
            lanes = {name: replay.lanes for name, replay in self.replays.items()}
            return rows_of_driver(self.spark, table_of_lanes(lanes))
        if isinstance(table, str) and table in VIEWS:
            return VIEWS[table].rows(self.rows)
        table = find_table(table) if isinstance(table, str) else table
        if table.layer == "silver":
            return stored_rows(self.spark, self.path, table, self.capture_id)
        if table == TRENDS:
            return read_table(self.spark, self.path, table)
        if table in _OF_ALL:
            return self._of_newest_replays(table)
        (algorithm,) = (name for name, algorithm_made in ALGORITHMS.items() if table in algorithm_made.tables)
        return stored_rows(self.spark, self.path, table, self.replay_of(algorithm).run_id)

    def replay_of(self, algorithm: str) -> Replay:
        """The newest replay by an algorithm. Raises LakeError, which says which command makes one, if there is none."""
        if algorithm not in self.replays:
            raise _not_replayed_error(self.path, self.capture_id, algorithm)
        return self.replays[algorithm]

    def lanes(self, algorithm: str) -> list[str]:
        """The lanes of the newest replay by an algorithm, in their order. Raises LakeError as `replay_of` does."""
        return self.replay_of(algorithm).lanes

    def _of_newest_replays(self, table: Table) -> DataFrame:
        if not self.replays:
            raise _not_replayed_error(self.path, self.capture_id, next(iter(ALGORITHMS)))
        newest = (
            (F.col(table.run_id) == replay.run_id) & (F.col(table.algorithm) == algorithm)
            for algorithm, replay in self.replays.items()
        )
        runs = {replay.run_id for replay in self.replays.values()}
        return read_table(self.spark, self.path, table, runs).where(reduce(or_, newest))

    def sql(self, query: str) -> DataFrame:
        """The answer to a query that names views, or the lake's tables as `docs/tables.md` does, without their layer.

        Each table or view that it names becomes a temporary view of the session. Raises LakeError as `rows` does.
        """
        for name in (*TABLES, *DOCS):
            if re.search(rf"\b{name}\b", query):
                self.rows(name).createOrReplaceTempView(name)
        return self.spark.sql(query)


def find_table(name: str) -> Table:
    """The table of this name. Raises ArgumentError, which says what may have been meant and which names there are."""
    if name not in TABLES:
        names = (*TABLES, *DOCS)
        nearest = nearest_word_hint(name, names) or ";"
        raise ArgumentError(f"open_lake: no table is called `{name}`{nearest} The tables are {', '.join(names)}")
    return TABLES[name]


def open_lake(
    path: str | None = None,
    *,
    capture: str | None = None,
    run: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> OpenLake:
    """Open the lake at this folder or URI; without a path that at REFETCH_LAKE, else the quickstart's.

    capture: the id of a capture set; None for the one whose rows were written last. If the lake has several, stderr
    says which one is opened.

    run: the id of a run, or `latest`: only that run's replays are shown. None for the newest run of each replay.

    conf: Spark properties, as for --conf. An existing session is used; without one, Spark is started.
    Raises LakeError if the lake cannot be reached or has no captures, ArgumentError if it does not have the named
    capture set or run, and what `jobs.session.spark.spark_session` raises.
    """
    lake = absolute_lake(path or os.environ.get(LAKE_VARIABLE) or _quickstart_lake(), "open_lake:")
    work = Workload(stored_bytes=largest_part(lake) if is_session_new() else 0)
    spark = spark_session(None, "refetch notebook", {**_NOTEBOOK_CONF, **(conf or {})}, work)
    check_reachable(spark, lake)
    if run is None:
        capture_id = choose_capture(spark, lake, capture, "open_lake(capture=ID)")
        replays = _newest_replays(spark, lake, capture_id)
    else:
        known = known_run(spark, lake, None if run == LATEST else run, capture)
        capture_id, replays = known.capture_id, _replays_in(known.rows)
    _tell_refused(spark, lake, [capture_id, *(replay.run_id for replay in replays.values())])
    return OpenLake(spark, lake, capture_id, replays)


def _newest_replays(spark: SparkSession, lake: str, capture_id: str) -> Mapping[str, Replay]:
    of_set = [run.run_id for run in finished_runs(spark, lake) if run.capture_id == capture_id]
    if not of_set:
        return {}
    return _replays_in(read_table(spark, lake, RUNS, of_set).orderBy(RUNS.run_at, RUNS.run_id).collect())


def _replays_in(rows: Iterable[Row]) -> Mapping[str, Replay]:
    """The replay by each algorithm: that of the last of these rows of `runs` with the algorithm."""
    return {row[RUNS.algorithm]: Replay(row[RUNS.run_id], row[RUNS.lanes]) for row in rows}


def _tell_refused(spark: SparkSession, lake: str, identities: Collection[str]) -> None:
    """Say on stderr whether gates refused a capture set or its runs. The tables of refused ones stay in the lake."""
    t = GATE_RESULTS
    rows = gate_refusals(lambda _: gate_result_rows(spark, lake, identities)).collect()

    def refused(row: Row) -> str:
        return f"{'capture set' if is_of_captures(row) else 'run'} {row[t.checked_id]} was refused by its gate,"

    for line in subjects_with_rules(rows, refused):
        sys.stderr.write(f"refetch: {line}: {address_of(lake, t)} says why\n")


def _quickstart_lake() -> str:
    lake = resolve_scenario(str(SCENARIO)).lake if IS_CLONE else INSTALLED_LAKE
    if lake is None:
        raise LakeError("name a lake: open_lake(PATH), or the environment variable REFETCH_LAKE")
    return lake


def _not_replayed_error(lake: str, capture_id: str, algorithm: str) -> LakeError:
    is_usual = algorithm not in ON_REQUEST
    # A run makes every usual replay, but a replay without settings has no lanes: so the command sets one for each.
    tries = [value for name, value in TRIES.items() if name not in ON_REQUEST] if is_usual else [TRIES[algorithm]]
    job = f"replay --capture={capture_id}" if is_usual else "pipeline --captures=CAPTURES"
    return LakeError(
        f"{lake} has no replay of {algorithm} over capture set {capture_id}; make one with `{COMMAND} {job} "
        f"--lake={lake} {' '.join(f'--set={value}' for value in tries)}`"
    )
