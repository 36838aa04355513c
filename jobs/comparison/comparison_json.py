"""A comparison for programs: what `compare --json` prints, by schemas/comparison.schema.json.

A new field leaves `schema_version` unchanged; a field that is removed, or gets another meaning, raises it.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from jobs.comparison.comparison import RunComparison
from jobs.comparison.figures import Change, Figure, Judgement
from jobs.comparison.named_runs import ComparedRun
from jobs.comparison.predictions import Prediction, figure_number
from jobs.comparison.run_list import utc_iso_text
from jobs.comparison.upgrades import Upgrade
from jobs.units import none_if_infinite
from schemas.tables.gold import RUNS


class ComparisonPart(BaseModel):
    """What all parts have in common: they do not change, and have no other fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class RunOf(ComparisonPart):
    """One of the two runs.

    run_at: when the run was last asked for, in UTC. captures: the names of the first capture files. files: how many
    files there are.
    """

    lake: str
    run_id: str
    capture_id: str
    run_at: str
    captures: list[str]
    files: int


class FigureOf(ComparisonPart):
    """A number with its range, or a text such as a setting's value.

    value: null for a text, and for a backlog that is never read. low, high: the ends of the range; null if the figure
    is exact, and if an end is a time that never ends. text: null for a number.
    """

    value: float | None
    low: float | None
    high: float | None
    text: str | None


class ChangeOf(ComparisonPart):
    """A figure that differs between the two runs.

    part, kind, scope, metric: what the figure describes, such as traffic, client, the client.id and requests_per_s.
    judgement: beyond if the ranges of the two figures do not overlap, noise if they do, exact if they have no range,
    new if only the second run has the figure, gone if only the first run has it. before, after: the figure in the first
    and in the second run; null if the run does not have it.
    """

    part: str
    kind: str
    scope: str
    metric: str
    judgement: Judgement
    before: FigureOf | None
    after: FigureOf | None


class UpgradeOf(ComparisonPart):
    """A client software that fetches in new versions: question 18 of the report.

    name: the software. versions_before: its versions that only the first run has, or all versions of the first run if
    the second has them, too. versions_after: its versions that only the second run has. changes: what changed in its
    fetches.
    """

    name: str
    versions_before: list[str]
    versions_after: list[str]
    changes: list[ChangeOf]


class PredictionOf(ComparisonPart):
    """A prediction of the first run, beside what was seen in the second: a row of gold/predictions_checked.

    docs/tables.md explains its columns.
    """

    algorithm: str
    scenario: str
    is_changed: bool
    scope_kind: str
    scope: str
    metric: str
    predicted: float | None
    p10: float | None
    p90: float | None
    seen: float | None
    seen_by: str
    is_hit: bool


class Comparison(ComparisonPart):
    """What differs between two runs.

    before, after: the two runs. left_out: by part, how many smaller changes there are that `changes` does not list.
    replayed_once: the replays that only one of the runs has. without_lane: for how many clients or clusters no lane of
    the first run has the settings that are in force in the second, so that nothing was predicted for them.
    """

    schema_version: Literal[1] = 1
    before: RunOf
    after: RunOf
    changes: list[ChangeOf]
    left_out: dict[str, int]
    upgrades: list[UpgradeOf]
    replayed_once: list[str]
    predictions: list[PredictionOf]
    without_lane: int


def comparison_json(compared: RunComparison) -> Comparison:
    """What is printed of a comparison."""
    return Comparison(
        before=run_json(compared.before), after=run_json(compared.after), changes=[*map(change_json, compared.changes)],
        left_out=dict(compared.left_out), upgrades=[*map(upgrade_json, compared.upgrades)],
        replayed_once=list(compared.replayed_once), predictions=[*map(prediction_json, compared.checked.predictions)],
        without_lane=compared.checked.without_lane,
    )  # fmt: skip


def run_json(run: ComparedRun) -> RunOf:
    """A run."""
    return RunOf(
        lake=run.lake, run_id=run.run_id, capture_id=run.run.capture_id,
        run_at=utc_iso_text(run.run.rows[0][RUNS.run_at]),
        captures=[path.rpartition("/")[2] for path in run.captures.first_paths], files=run.captures.files,
    )  # fmt: skip


def change_json(change: Change) -> ChangeOf:
    """A change."""
    return ChangeOf(
        part=change.part, kind=change.kind, scope=change.scope, metric=change.metric, judgement=change.judgement,
        before=figure_json(change.before), after=figure_json(change.after),
    )  # fmt: skip


def figure_json(figure: Figure | None) -> FigureOf | None:
    """A figure."""
    if figure is None:
        return None
    low, high = figure.range or (None, None)
    ends = (None if end is None else none_if_infinite(end) for end in (figure.value, low, high))
    value, low, high = ends
    return FigureOf(value=value, low=low, high=high, text=figure.text)


def upgrade_json(upgrade: Upgrade) -> UpgradeOf:
    """An upgrade."""
    return UpgradeOf(
        name=upgrade.name, versions_before=list(upgrade.was), versions_after=list(upgrade.now),
        changes=[change_json(change) for change in upgrade.changes],
    )  # fmt: skip


def prediction_json(prediction: Prediction) -> PredictionOf:
    """A prediction."""
    low, high = prediction.range
    return PredictionOf(
        algorithm=prediction.algorithm, scenario=prediction.lane, is_changed=prediction.is_changed,
        scope_kind=prediction.kind, scope=prediction.scope,
        metric=prediction.metric, predicted=none_if_infinite(figure_number(prediction.predicted)),
        p10=none_if_infinite(low), p90=none_if_infinite(high),
        seen=none_if_infinite(figure_number(prediction.seen)), seen_by=prediction.seen_by, is_hit=prediction.is_hit,
    )  # fmt: skip
