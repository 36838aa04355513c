"""The outcomes of lanes. An algorithm replays the capture set in these lanes, and only sums of its rows are kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from jobs.find.judgement import Outcomes
from jobs.find.scopes import FOR_ALL, Scope, judged_outcomes, scope_kinds
from jobs.lake.packed_tables import packed_rows_of
from jobs.replays.algorithm import Algorithm, Source
from jobs.replays.ranged import Ranged, without_range
from jobs.scenarios.aims import COLUMNS, Aim, is_meant
from jobs.scenarios.scenario import CAPTURED_LANE, Lane
from jobs.scenarios.settings import setting_of
from schemas.tables import algorithms
from schemas.tables.gold import FETCH_RANGES
from schemas.tables.gold_splits import BATCH_SPLIT
from schemas.tables.outcomes import Outcome, outcomes_of
from schemas.tables.values import CONSUMER, FOLLOWER, OF_CLUSTER, OF_LIMIT
from udfs.columns.arrow_columns import compute as pc
from udfs.facts.table_files import unpacked_rows

LANE, OUTCOME, KIND, NAME, ENDS = "lane", "outcome", "kind", "name", ("value", "low", "high")
_FIELDS: list[pa.Field[Any]] = [
    *(pa.field(key, pa.string()) for key in (LANE, OUTCOME, KIND, NAME)), *(pa.field(end, pa.float64()) for end in ENDS)
]  # fmt: skip
SUMS = pa.schema(_FIELDS)
"""Made from a table's rows: for each lane, outcome and scope, the aggregate of the value and of both ends of its range.
"""
Only = Mapping[str, Sequence[str]]
"""For each column the patterns of the values that count. In tables without that column all rows count."""
READER, SCENARIO = str(FETCH_RANGES.reader), str(FETCH_RANGES.scenario)
AGGREGATES: Mapping[str, str] = {"most": "max", "least": "min", "total": "sum", "rows": "sum"}
MOST_OF_A_KIND = 100
"""The most clients, topics or limits that are judged by themselves: those that are worst off as captured."""
LIMIT = Outcome(
    "limit", algorithms.BATCH_SPLIT, BATCH_SPLIT, (BATCH_SPLIT.max_message_bytes,), "least", "bytes",
    doc="The topic's max.message.bytes",
)  # fmt: skip
"""The outcome that says which topics have the same limit. No aim can name it."""


@dataclass(eq=False)
class LaneOutcomes:
    """A function that replays lanes, always with the captured one, and returns their outcomes.

    own: for each client, topic or limit that is judged by itself, the outcomes that the aim is judged by, of all lanes
    replayed so far. first: the names of these clients, topics and limits, by kind of scope.
    """

    source: Source
    algorithm: Algorithm
    aim: Aim
    own: dict[Scope, dict[str, Outcomes]] = field(default_factory=dict)
    first: dict[str, list[str]] = field(default_factory=dict)

    def __call__(self, lanes: Sequence[Lane]) -> Mapping[str, Outcomes]:
        """The outcomes of each lane for all together, by the lane's name; the captured lane is included."""
        known, judged = tuple(outcomes_of(self.aim.algorithm).values()), judged_outcomes(self.aim)
        figures = outcomes_by_lane(self._rows_to_judge(self._replayed_sums(lanes, known)))
        names = (CAPTURED_LANE, *(lane.name for lane in lanes))
        for kind, scope_names in self.first.items():
            for scope in (Scope(kind, name) for name in scope_names):
                came_to = {name: complete_outcomes(figures.get((scope, name), {}), judged) for name in names}
                self.own.setdefault(scope, {}).update(came_to)
        return {name: complete_outcomes(figures.get((FOR_ALL, name), {}), known) for name in names}

    def _replayed_sums(self, lanes: Sequence[Lane], known: Sequence[Outcome]) -> DataFrame:
        """Rows of SUMS of a replay of these lanes, one for each lane, outcome and scope."""
        packed, kinds = self.algorithm.packed(with_lanes(self.source, self.aim.algorithm, lanes)), scope_kinds(self.aim)
        wanted = [*known, LIMIT] if OF_LIMIT in kinds else known
        return sums_by_scope(packed, wanted, rows_that_count(self.aim), kinds)

    def _rows_to_judge(self, rows: DataFrame) -> list[Row]:
        """The rows for all together, and for those that are judged by themselves."""
        kinds, judged = scope_kinds(self.aim), judged_outcomes(self.aim)
        if not kinds:
            return self._rows_of_worst_off(rows).collect()
        summed = rows.persist()
        try:
            rows = with_limits(summed, judged) if OF_LIMIT in kinds else summed
            rows = rows.where((F.col(KIND) == OF_CLUSTER) | F.col(OUTCOME).isin([outcome.name for outcome in judged]))
            self.first = self.first or {kind: worst_off_names(rows, kind, judged[0]) for kind in kinds}
            return self._rows_of_worst_off(rows).collect()
        finally:
            summed.unpersist()

    def _rows_of_worst_off(self, rows: DataFrame) -> DataFrame:
        is_wanted = F.col(KIND) == OF_CLUSTER
        for kind, names in self.first.items():
            is_wanted |= (F.col(KIND) == kind) & F.col(NAME).isin(names)
        return rows.where(is_wanted)


def outcomes_of_lanes(packed: DataFrame, aim: Aim, lanes: Iterable[Lane]) -> list[Outcomes]:
    """For each of these lanes, the outcomes that the aim is judged by, for all clients together.

    packed: the packed rows of a replay of these lanes.
    """
    judged = judged_outcomes(aim)
    figures = outcomes_by_lane(sums_by_scope(packed, judged, rows_that_count(aim), {}).collect())
    return [complete_outcomes(figures.get((FOR_ALL, lane.name), {}), judged) for lane in lanes]


def sums_by_scope(packed: DataFrame, known: Sequence[Outcome], only: Only, by: Mapping[str, str]) -> DataFrame:
    """Rows of SUMS from packed rows, one for each lane, outcome and scope. only, by: as in `sums_of_rows`."""
    tables = dict.fromkeys(outcome.table for outcome in known)
    of_batches = partial(sums_of_rows, outcomes=known, only=only, by=by)
    rows = packed_rows_of(packed, tables).mapInArrow(of_batches, from_arrow_schema(SUMS))
    return rows.groupBy(LANE, OUTCOME, KIND, NAME).agg(*(combined_end(end, known).alias(end) for end in ENDS))


def combined_end(end: str, outcomes: Iterable[Outcome]) -> Column:
    """The largest, the least or the sum of a value, whichever the outcome of its rows asks for. end: one of ENDS."""
    names = {
        kind: [outcome.name for outcome in outcomes if AGGREGATES[outcome.aggregate] == kind] for kind in ("max", "min")
    }
    of_max = F.when(F.col(OUTCOME).isin(names["max"]), F.max(end))
    return of_max.when(F.col(OUTCOME).isin(names["min"]), F.min(end)).otherwise(F.sum(end))


def with_limits(rows: DataFrame, outcomes: Sequence[Outcome]) -> DataFrame:
    """The rows, in which one row replaces those of all topics that had the same limit as captured.

    rows: rows of SUMS whose topics have the kind OF_LIMIT and the outcome LIMIT besides others. outcomes: those of
    topics that count.
    """
    is_of_topic, is_limit = F.col(KIND) == OF_LIMIT, F.col(OUTCOME) == LIMIT.name
    captured = rows.where(is_of_topic & is_limit & (F.col(LANE) == CAPTURED_LANE))
    limits = captured.select(NAME, F.col("value").cast("bigint").cast("string").alias(LIMIT.name))
    of_topics = rows.where(is_of_topic & ~is_limit).join(limits, NAME).groupBy(LANE, OUTCOME, KIND, LIMIT.name)
    by_limit = of_topics.agg(*(combined_end(end, outcomes).alias(end) for end in ENDS))
    return rows.where(~is_of_topic & ~is_limit).unionByName(by_limit.withColumnRenamed(LIMIT.name, NAME))


def worst_off_names(rows: DataFrame, kind: str, outcome: Outcome) -> list[str]:
    """The names of one kind of scope that are worst off by an outcome of the captured lane, first the worst."""
    order = F.desc_nulls_last if outcome.is_smaller_better else F.asc_nulls_last
    is_of_kind = (F.col(KIND) == kind) & (F.col(LANE) == CAPTURED_LANE) & (F.col(OUTCOME) == outcome.name)
    first = rows.where(is_of_kind).orderBy(order("value"), NAME).limit(MOST_OF_A_KIND)
    return [row[NAME] for row in first.select(NAME).collect()]


def with_lanes(source: Source, algorithm: str, lanes: Sequence[Lane]) -> Source:
    """The source of a replay of only these lanes. Other replays have no lanes in it, so they make nothing."""
    others = dict.fromkeys(source.run.scenario.replay, ())
    listed = tuple(lane for lane in lanes if lane.name != CAPTURED_LANE)
    scenario = replace(source.run.scenario, listed={**others, algorithm: listed})
    return replace(source, run=replace(source.run, scenario=scenario), before={}, judges_lanes=True)


def readers_of(aim: Aim) -> tuple[str, ...]:
    """The kinds of reader whose fetches an aim is about: both, unless its settings are set on only one of them."""
    set_on = {setting_of(key).set_on for key in aim.over}
    if "broker" in set_on or {"replica", "consumer"} <= set_on:
        return (CONSUMER, FOLLOWER)
    return (FOLLOWER,) if "replica" in set_on else (CONSUMER,)


def rows_that_count(aim: Aim) -> Only:
    """The rows that an aim is about: of its kinds of reader, and of the clients or topics that it is for."""
    return {READER: readers_of(aim), **{COLUMNS[kind]: patterns for kind, patterns in aim.whom.items()}}


def sums_of_rows(
    batches: Iterable[pa.RecordBatch], outcomes: Sequence[Outcome], only: Only, by: Mapping[str, str]
) -> Iterator[pa.RecordBatch]:
    """Rows of SUMS from packed rows of the outcomes' tables.

    only: the rows that count. by: for each kind of scope the column that has its names.
    """
    for table, rows in unpacked_rows(batches, {outcome.table for outcome in outcomes}, None):
        for outcome in outcomes:
            if outcome.table == table:
                yield from sums_of_outcome(rows, outcome, only, by)


def sums_of_outcome(
    rows: pa.RecordBatch, outcome: Outcome, only: Only, by: Mapping[str, str]
) -> Iterator[pa.RecordBatch]:
    """Rows of SUMS for one outcome, a row for each lane and scope."""
    counted = pa.Table.from_batches([rows])
    for column, value in outcome.where:
        counted = counted.filter(pc.equal(counted[column], value))
    for key, patterns in only.items():
        if key in counted.column_names:
            names: list[Any] = counted[key].unique().to_pylist()
            meant = pa.array([name for name in names if name is not None and is_meant(name, patterns)], pa.string())
            counted = counted.filter(pc.is_in(counted[key], value_set=meant))
    ends, everyone = value_with_ends(counted, outcome), pa.array([""] * counted.num_rows, pa.string())
    aggregate: Any = AGGREGATES[outcome.aggregate]
    by_kind: dict[str, Any] = {kind: counted[column] for kind, column in by.items() if column in counted.column_names}
    for kind, scope_names in ({OF_CLUSTER: everyone} | by_kind).items():
        figures: Any = {LANE: counted[SCENARIO], NAME: scope_names, **dict(zip(ENDS, ends, strict=True))}
        groups = pa.table(figures).group_by([LANE, NAME], use_threads=False)
        grouped = groups.aggregate([(end, aggregate) for end in ENDS])
        constants = {OUTCOME: outcome.name, KIND: kind}
        columns: Any = {key: pa.array([text] * grouped.num_rows, pa.string()) for key, text in constants.items()}
        columns |= {LANE: grouped[LANE], NAME: grouped[NAME]}
        columns |= {end: grouped[f"{end}_{aggregate}"].cast(pa.float64()) for end in ENDS}
        yield from pa.table(columns).select(SUMS.names).cast(SUMS).to_batches()


def value_with_ends(rows: pa.Table, outcome: Outcome) -> list[pa.ChunkedArray[Any]]:
    """The value of an outcome in each row, and both ends of its range."""
    if outcome.ranges:
        r = FETCH_RANGES  # all tables of ranges have these columns
        return [_fill_missing(rows[column], outcome) for column in (r.p50, r.p10, r.p90)]
    value: Any = rows[outcome.columns[0]].cast(pa.float64())
    for column in outcome.columns[1:]:
        value = pc.add(value, rows[column].cast(pa.float64()))
    if outcome.per is not None:
        per = rows[outcome.per].cast(pa.float64())
        value = pc.if_else(pc.greater(per, 0), pc.divide(value, per), None)
    if outcome.aggregate == "rows":
        value = pc.greater(value, 0).cast(pa.float64())
    return 3 * [_fill_missing(value, outcome)]


def _fill_missing(values: pa.ChunkedArray[Any], outcome: Outcome) -> pa.ChunkedArray[Any]:
    return pc.fill_null(values, inf) if outcome.missing_is_worst else values


def outcomes_by_lane(rows: Iterable[Row]) -> dict[tuple[Scope, str], dict[str, Ranged]]:
    """For each scope and lane's name, the lane's outcomes by their names. rows: rows of SUMS."""
    figures = dict[tuple[Scope, str], dict[str, Ranged]]()
    for row in rows:
        ends = [row[end] for end in ENDS]
        if None not in ends:
            figures.setdefault((Scope(row[KIND], row[NAME]), row[LANE]), {})[row[OUTCOME]] = Ranged(*ends)
    return figures


def complete_outcomes(figures: Mapping[str, Ranged], outcomes: Iterable[Outcome]) -> Outcomes:
    """All these outcomes of a lane. One without rows is 0, because nothing was lost; if it is the least of several
    values, it is inf, because nothing is near.
    """
    return {
        outcome.name: figures.get(outcome.name, without_range(inf if outcome.aggregate == "least" else 0.0))
        for outcome in outcomes
    }
