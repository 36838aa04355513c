"""Compares two runs: the figures of both, with few rows on the driver, and the predictions of the first run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from jobs.comparison.checked_predictions import CHECKS, CheckedPredictions
from jobs.comparison.figure_rows import change_in_row, number_left_out, side_by_side_rows
from jobs.comparison.figures import Change, Figure
from jobs.comparison.named_runs import ComparedRun
from jobs.comparison.outcome_figures import ADVISED, OUTCOMES, advice_figures, agreement_figures
from jobs.comparison.predictions import Prediction, check_id, prediction_rows
from jobs.comparison.traffic_figures import (
    CONSUMED,
    PRODUCED,
    RATE,
    TimeSpan,
    client_figures,
    limit_figures,
    span_of,
    topic_figures,
    version_figures,
    whole_span,
)
from jobs.comparison.upgrades import Upgrade, find_upgrades
from jobs.lake.delta_tables import has_table, read_table, run_side_by_side
from jobs.lake.target import Target
from jobs.report_page.findings import KnownRun
from jobs.report_page.traffic import fetching_software
from jobs.scenarios.settings import setting_of
from schemas.tables.gold import RUNS
from schemas.tables.gold_predictions import PREDICTIONS_CHECKED
from schemas.tables.gold_recommendations import RECOMMENDATIONS
from udfs.errors import LakeError
from udfs.replay.shared.lanes import KAFKA_RELEASE

TRAFFIC, VERSIONS, SETTINGS, OUTCOMES_PART, ADVICE, AGREEMENT = (
    "traffic", "versions", "settings", "outcomes", "advice", "agreement"
)  # fmt: skip
PARTS = (TRAFFIC, VERSIONS, SETTINGS, OUTCOMES_PART, ADVICE, AGREEMENT)
"""The subjects of changes, in the order in which they are shown."""
LONE = (RATE, PRODUCED, CONSUMED, ADVISED)
"""The metrics that make a client, topic or advice new or gone if only one of the runs has them."""
SETTING = "setting"


@dataclass(frozen=True)
class RunComparison:
    """How two runs differ.

    changes: those of all parts, but only the largest of each metric. left_out: how many smaller changes there are, by
    part. upgrades: one for each software. replayed_once: the replays that only one run has. checked: the predictions of
    the first run. hits, in_all: how many predictions in the second run's lake hit, of how many.
    """

    before: ComparedRun
    after: ComparedRun
    changes: Sequence[Change]
    left_out: Mapping[str, int]
    upgrades: Sequence[Upgrade]
    replayed_once: Collection[str]
    checked: CheckedPredictions
    hits: int = 0
    in_all: int = 0


def compare_runs(spark: SparkSession, before: ComparedRun, after: ComparedRun) -> RunComparison:
    """Compare two runs by their tables, and write the checked predictions to `predictions_checked`."""
    rows = differing_rows(spark, before, after)
    changes = [change_in_row(row, part) for part, part_rows in rows for row in part_rows]
    changes += setting_changes(stated_settings(before.run), stated_settings(after.run))
    left_out_by_part: dict[str, int] = {}
    for part, part_rows in rows:
        left_out_by_part[part] = left_out_by_part.get(part, 0) + number_left_out(part_rows)
    was, now = run_side_by_side(spark, [partial(fetching_software_rows, run) for run in (before, after)])
    replays = [frozenset(replays_of_run(run)) for run in (before, after)]
    checked = checked_predictions(spark, before, after, replays[0] & replays[1])
    hits, in_all = keep_predictions(spark, before, after, checked.predictions)
    return RunComparison(
        before=before,
        after=after,
        changes=changes,
        left_out=left_out_by_part,
        upgrades=find_upgrades(was, now),
        replayed_once=sorted(replays[0] ^ replays[1]),
        checked=checked,
        hits=hits,
        in_all=in_all,
    )


def differing_rows(spark: SparkSession, before: ComparedRun, after: ComparedRun) -> list[tuple[str, list[Row]]]:
    """(part, rows of the figures that differ), one for each query; a part may have several queries."""
    spans = run_side_by_side(spark, [partial(run_span, run) for run in (before, after)])
    # If every run of a lake ended before it wrote recommendations, there is no such table.
    has_advice = all(has_table(spark, run.lake, RECOMMENDATIONS) for run in (before, after))
    tasks: list[Callable[[], tuple[str, list[Row]]]] = [
        partial(differing_in_part, part, before, after, query)
        for part, query in figure_queries(before, after, spans)
        if part != ADVICE or has_advice
    ]
    return run_side_by_side(spark, tasks)


def figure_queries(
    before: ComparedRun, after: ComparedRun, spans: Sequence[TimeSpan]
) -> Iterable[tuple[str, Callable[[ComparedRun], DataFrame]]]:
    """(part, query): each query makes rows of figures from a run."""
    span = dict(zip((before.run_id, after.run_id), spans, strict=True))
    yield TRAFFIC, lambda run: client_figures(run.own_rows, span[run.run_id])
    yield TRAFFIC, lambda run: topic_figures(run.own_rows, span[run.run_id])
    yield VERSIONS, lambda run: version_figures(run.own_rows)
    yield SETTINGS, lambda run: limit_figures(run.own_rows)
    for name, outcomes in OUTCOMES.items():
        if name in replays_of_run(before) and name in replays_of_run(after):
            yield OUTCOMES_PART, partial(figures_of_run, outcomes)
    yield ADVICE, lambda run: advice_figures(run.own_rows)
    yield AGREEMENT, lambda run: agreement_figures(run.own_rows)


def figures_of_run(outcomes: Callable[..., DataFrame], run: ComparedRun) -> DataFrame:
    """The rows of figures that `outcomes` makes from a run."""
    return outcomes(run.own_rows)


def differing_in_part(
    part: str, before: ComparedRun, after: ComparedRun, query: Callable[[ComparedRun], DataFrame]
) -> tuple[str, list[Row]]:
    """(part, rows of the figures that differ) for one query."""
    return part, side_by_side_rows(query(before), query(after), LONE).collect()


def run_span(run: ComparedRun) -> TimeSpan:
    """The time that a run's requests cover."""
    (row,) = whole_span(run.own_rows).collect()
    return span_of(row["first"], row["last"])


def fetching_software_rows(run: ComparedRun) -> list[Row]:
    """The rows of the query `fetching_software` for a run."""
    return fetching_software(run.own_rows).collect()


def replays_of_run(run: ComparedRun) -> list[str]:
    """The replays that a run has."""
    return [row[RUNS.algorithm] for row in run.run.rows]


def stated_settings(run: KnownRun) -> dict[str, str]:
    """The values in force by setting, for settings that the capture does not show for each client."""
    captured = {key: setting_of(key).format(value) for key, value in run.captured.items()}
    return {**captured, KAFKA_RELEASE: run.kafka.partition(",")[0]}


def setting_changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[Change]:
    """The settings of a run that have another value, or that only one run takes."""
    return [
        Change(SETTINGS, SETTING, key, "value", *(
            Figure(text=values[key]) if key in values else None for values in (before, after)
        ))
        for key in dict.fromkeys([*before, *after])
        if before.get(key) != after.get(key)
    ]  # fmt: skip


def checked_predictions(
    spark: SparkSession, before: ComparedRun, after: ComparedRun, replays: Collection[str]
) -> CheckedPredictions:
    """The checked predictions of all replays that both runs have. replays: their names."""
    tasks = [partial(check, before, after) for name, check in CHECKS.items() if name in replays]
    checks = run_side_by_side(spark, tasks)
    return CheckedPredictions(
        tuple(prediction for checked in checks for prediction in checked.predictions),
        sum(checked.without_lane for checked in checks),
        sum(checked.left_out for checked in checks),
    )


def keep_predictions(
    spark: SparkSession, before: ComparedRun, after: ComparedRun, predictions: Sequence[Prediction]
) -> tuple[int, int]:
    """Write the predictions instead of earlier ones of the same two runs.

    Returns (how many hit, how many there are), over all predictions in the lake that are for changed settings.
    """
    t, identity = PREDICTIONS_CHECKED, check_id(before.run_id, after.run_id)
    if predictions or has_table(spark, after.lake, t):
        rows = prediction_rows(before.run_id, after.run_id, predictions)
        try:
            Target(after.lake, identity).write_here(spark, rows, t)
        except (LakeError, OSError) as fault:  # somebody who may not write the lake can still compare
            sys.stderr.write(f"refetch: predictions are not kept: {fault}\n")
    if not has_table(spark, after.lake, t):
        return 0, 0
    kept = read_table(spark, after.lake, t).where(F.col(t.is_changed))
    (row,) = kept.agg(F.count_if(F.col(t.is_hit)), F.count("*")).collect()
    return row[0], row[1]
