"""What lanes come to: an algorithm's pass over the capture set for these lanes, of whose rows only sums are kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from jobs.find.judgement import Figure, Outcomes, exact
from jobs.find.search import OutcomesOf
from jobs.lake.packed_tables import of_tables
from jobs.replays.algorithm import Algorithm, Source
from jobs.scenarios.aims import Aim
from jobs.scenarios.scenario import CAPTURED_LANE, Lane
from jobs.scenarios.settings import setting_of
from schemas.tables.gold import FETCH_RANGES
from schemas.tables.outcomes import Outcome, outcomes_of
from schemas.tables.values import CONSUMER, FOLLOWER
from udfs.columns.arrow_columns import compute as pc
from udfs.facts.table_files import unpacked_rows

LANE, OUTCOME, ENDS = "lane", "outcome", ("value", "low", "high")
_FIELDS: list[pa.Field[Any]] = [
    pa.field(LANE, pa.string()), pa.field(OUTCOME, pa.string()), *(pa.field(end, pa.float64()) for end in ENDS)
]  # fmt: skip
SUMS = pa.schema(_FIELDS)
"""What becomes of a table's rows: by lane and outcome the aggregate of the value, and of both ends of its range."""
READER, SCENARIO = str(FETCH_RANGES.reader), str(FETCH_RANGES.scenario)
AGGREGATES: Mapping[str, str] = {"most": "max", "least": "min", "total": "sum", "rows": "sum"}


def lane_outcomes(source: Source, algorithm: Algorithm, aim: Aim) -> OutcomesOf:
    """A function of lanes that replays them, the captured one with them, and returns what they come to."""
    known, readers = tuple(outcomes_of(aim.algorithm).values()), readers_of(aim)
    summed = partial(sums_of_rows, outcomes=known, readers=readers)

    def replayed(lanes: Sequence[Lane]) -> Mapping[str, Outcomes]:
        packed = algorithm.packed(with_lanes(source, aim.algorithm, lanes))
        tables = dict.fromkeys(outcome.table for outcome in known)
        rows = of_tables(packed, tables).mapInArrow(summed, from_arrow_schema(SUMS)).groupBy(LANE, OUTCOME)
        ends = [getattr(F, kind)(end).alias(f"{kind}_{end}") for kind in ("max", "min", "sum") for end in ENDS]
        figures = figures_of(rows.agg(*ends).collect(), known)
        return {name: whole(figures.get(name, {}), known) for name in (CAPTURED_LANE, *(lane.name for lane in lanes))}

    return replayed


def with_lanes(source: Source, algorithm: str, lanes: Sequence[Lane]) -> Source:
    """The source of a replay of these lanes alone: of other replays there are none to hand anything on to."""
    others = dict.fromkeys(source.run.scenario.replay, ())
    own = tuple(lane for lane in lanes if lane.name != CAPTURED_LANE)
    scenario = replace(source.run.scenario, listed={**others, algorithm: own})
    return replace(source, run=replace(source.run, scenario=scenario), before={})


def readers_of(aim: Aim) -> tuple[str, ...]:
    """Whose fetches an aim is about: consumers' or followers', if its settings are of one of them alone."""
    set_on = {setting_of(key).set_on for key in aim.over}
    if "broker" in set_on or {"replica", "consumer"} <= set_on:
        return (CONSUMER, FOLLOWER)
    return (FOLLOWER,) if "replica" in set_on else (CONSUMER,)


def sums_of_rows(
    batches: Iterable[pa.RecordBatch], outcomes: Sequence[Outcome], readers: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Rows of SUMS from packed rows of the outcomes' tables."""
    for table, rows in unpacked_rows(batches, {outcome.table for outcome in outcomes}, None):
        for outcome in outcomes:
            if outcome.table == table:
                yield from sums(rows, outcome, readers)


def sums(rows: pa.RecordBatch, outcome: Outcome, readers: Sequence[str]) -> list[pa.RecordBatch]:
    """Rows of SUMS for one outcome, a row a lane."""
    own = pa.Table.from_batches([rows])
    for column, value in outcome.where:
        own = own.filter(pc.equal(own[column], value))
    if READER in own.column_names:
        own = own.filter(pc.is_in(own[READER], value_set=pa.array(readers)))
    figures: Any = {LANE: own[SCENARIO], **dict(zip(ENDS, ends_of(own, outcome), strict=True))}
    kind: Any = AGGREGATES[outcome.aggregate]
    by_lane = pa.table(figures).group_by([LANE], use_threads=False).aggregate([(end, kind) for end in ENDS])
    columns: Any = {LANE: by_lane[LANE], OUTCOME: pa.array([outcome.name] * by_lane.num_rows, pa.string())}
    columns |= {end: by_lane[f"{end}_{kind}"].cast(pa.float64()) for end in ENDS}
    return pa.table(columns, schema=SUMS).to_batches()


def ends_of(rows: pa.Table, outcome: Outcome) -> list[pa.ChunkedArray[Any]]:
    """What an outcome comes to in each row, and both ends of its range."""
    if outcome.ranges:
        r = FETCH_RANGES  # all tables of ranges have these columns
        return [_filled(rows[column], outcome) for column in (r.p50, r.p10, r.p90)]
    value: Any = rows[outcome.columns[0]].cast(pa.float64())
    for column in outcome.columns[1:]:
        value = pc.add(value, rows[column].cast(pa.float64()))
    if outcome.per is not None:
        per = rows[outcome.per].cast(pa.float64())
        value = pc.if_else(pc.greater(per, 0), pc.divide(value, per), None)
    if outcome.aggregate == "rows":
        value = pc.greater(value, 0).cast(pa.float64())
    return 3 * [_filled(value, outcome)]


def _filled(values: pa.ChunkedArray[Any], outcome: Outcome) -> pa.ChunkedArray[Any]:
    return pc.fill_null(values, inf) if outcome.missing_is_worst else values


def figures_of(rows: Iterable[Row], outcomes: Sequence[Outcome]) -> dict[str, dict[str, Figure]]:
    """By lane and outcome what it comes to."""
    kinds = {outcome.name: AGGREGATES[outcome.aggregate] for outcome in outcomes}
    figures = dict[str, dict[str, Figure]]()
    for row in rows:
        ends = [row[f"{kinds[row[OUTCOME]]}_{end}"] for end in ENDS]
        if None not in ends:
            figures.setdefault(row[LANE], {})[row[OUTCOME]] = Figure(*ends)
    return figures


def whole(figures: Mapping[str, Figure], outcomes: Sequence[Outcome]) -> Outcomes:
    """A lane's outcomes, all of them: where there are no rows, nothing was lost, and nothing is near."""
    return {
        outcome.name: figures.get(outcome.name, exact(inf if outcome.aggregate == "least" else 0.0))
        for outcome in outcomes
    }
