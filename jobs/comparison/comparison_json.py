"""A comparison for programs: what `compare --json` prints, by schemas/comparison.schema.json.

A field that is added leaves `schema_version` as it is; one that goes, or means something else, raises it.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from jobs.comparison.comparison import Compared
from jobs.comparison.figures import Change, Figure, Judgement
from jobs.comparison.named_runs import ComparedRun
from jobs.comparison.predictions import Prediction, number
from jobs.comparison.run_list import in_utc
from jobs.comparison.upgrades import Upgrade
from jobs.units import finite
from schemas.tables.gold import RUNS


class Part(BaseModel):
    """What all parts have in common: they do not change, and have no other fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class RunOf(Part):
    """A run that is compared. captures: the names of the first files."""

    lake: str
    run_id: str
    capture_id: str
    run_at: str
    captures: list[str]
    files: int


class FigureOf(Part):
    """A number with its range, or a text. value: null for a text, and for a backlog that is not read. low, high: null
    where the figure is exact.
    """

    value: float | None
    low: float | None
    high: float | None
    text: str | None


class ChangeOf(Part):
    """A figure that differs. judgement: beyond, its ranges do not meet; noise, they do; exact, it has no range; new and
    gone, the second run or the first alone has it.
    """

    part: str
    kind: str
    scope: str
    metric: str
    judgement: Judgement
    before: FigureOf | None
    after: FigureOf | None


class UpgradeOf(Part):
    """Question 18: a client's software that fetches with versions that the first run has not."""

    name: str
    versions_before: list[str]
    versions_after: list[str]
    changes: list[ChangeOf]


class PredictionOf(Part):
    """A row of gold/predictions_checked."""

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


class Comparison(Part):
    """Two runs. left_out: by part how many changes there are beside those listed, each of them smaller. replayed_once:
    replays that one run alone has. without_lane: how many clients or clusters have settings that no lane of the first
    run has.
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


def comparison_of(of: Compared) -> Comparison:
    """What is printed of a comparison."""
    return Comparison(
        before=run_of(of.before), after=run_of(of.after), changes=[change_of(one) for one in of.changes],
        left_out=dict(of.left_out), upgrades=[upgrade_of(one) for one in of.upgrades],
        replayed_once=list(of.replayed_once),
        predictions=[prediction_of(one) for one in of.checked.predictions], without_lane=of.checked.without_lane,
    )  # fmt: skip


def run_of(of: ComparedRun) -> RunOf:
    """A run."""
    return RunOf(
        lake=of.lake, run_id=of.run_id, capture_id=of.run.capture_id,
        run_at=in_utc(of.run.rows[0][RUNS.run_at]),
        captures=[path.rpartition("/")[2] for path in of.captures.first_paths], files=of.captures.files,
    )  # fmt: skip


def change_of(one: Change) -> ChangeOf:
    """A change."""
    return ChangeOf(
        part=one.part, kind=one.kind, scope=one.scope, metric=one.metric, judgement=one.judgement,
        before=figure_of(one.before), after=figure_of(one.after),
    )  # fmt: skip


def figure_of(of: Figure | None) -> FigureOf | None:
    """A figure."""
    if of is None:
        return None
    low, high = of.range or (None, None)
    ends = (None if end is None else finite(end) for end in (of.value, low, high))
    value, low, high = ends
    return FigureOf(value=value, low=low, high=high, text=of.text)


def upgrade_of(one: Upgrade) -> UpgradeOf:
    """An upgrade."""
    return UpgradeOf(
        name=one.name, versions_before=list(one.was), versions_after=list(one.now),
        changes=[change_of(of) for of in one.changes],
    )  # fmt: skip


def prediction_of(one: Prediction) -> PredictionOf:
    """A prediction."""
    low, high = one.range
    return PredictionOf(
        algorithm=one.algorithm, scenario=one.lane, is_changed=one.is_changed, scope_kind=one.kind, scope=one.scope,
        metric=one.metric, predicted=finite(number(one.predicted)), p10=finite(low), p90=finite(high),
        seen=finite(number(one.seen)), seen_by=one.seen_by, is_hit=one.is_hit,
    )  # fmt: skip
