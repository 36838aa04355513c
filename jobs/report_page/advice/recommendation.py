"""A recommendation: what to do about one setting of one client, topic or cluster, and on what evidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Row

from jobs.find.scopes import Scope
from jobs.scenarios.settings import setting_of
from jobs.terminal.wording import exact_size, short_size
from schemas.tables.gold_recommendations import RECOMMENDATIONS
from schemas.tables.values import CHANGE, KEEP, WITHHELD
from udfs.facts.arrow_tables import arrow_schema
from udfs.replay.shared.lanes import NO_LIMIT

ORDER = (CHANGE, WITHHELD, KEEP)
NO_BOUND = "no bound"


@dataclass(frozen=True)
class InForce:
    """The value in force, as in Kafka's configuration files, None if it is not known; and where it comes from."""

    value: str | None
    source: str


Ends = tuple[float | None, float | None]
"""The range of a value at other paces: (low, high), the same value twice if pace does not matter. An end is None if it
is not known, or if it is the time of a backlog that is never read.
"""
NO_ENDS: Ends = (None, None)


@dataclass(frozen=True)
class Effect:
    """What a change gains or costs. text: as a sentence. before, after: the metric without and with the change."""

    text: str = ""
    metric: str | None = None
    before: float | None = None
    after: float | None = None
    before_range: Ends = NO_ENDS
    after_range: Ends = NO_ENDS


@dataclass(frozen=True)
class Confidence:
    """How often the replay as captured equals the capture, and how many of its results could not be checked."""

    checked: int = 0
    agreed: int = 0
    unknown: int = 0


NOTHING = Effect()


@dataclass(frozen=True)
class Recommendation:
    """What to do about a setting, and why.

    verdict: CHANGE, KEEP or WITHHELD. recommended: the value to set, or the value in force if it is kept. enough: the
    smallest value that would have been enough in this capture, if the replay shows it. sure: how far the replay agrees
    with the capture.
    """

    algorithm: str
    scope: Scope
    setting: str
    verdict: str
    now: InForce
    recommended: str | None
    sure: Confidence
    reason: str
    gain: Effect = NOTHING
    cost: Effect = NOTHING
    enough: str | None = None
    is_proposal: bool = False

    @property
    def name(self) -> str:
        """Kafka's own name of the setting."""
        return setting_of(self.setting).name

    @property
    def weight(self) -> float:
        """How much a change gains, as a share of the metric before it. Recommendations are ranked by it."""
        before, after = self.gain.before or 0.0, self.gain.after or 0.0
        return (before - after) / before if before else 0.0


def exact_value_text(setting: str, value: str | None) -> str:
    """A value that somebody has to set: as from `value_text`, but with all its bytes."""
    is_bytes = value is not None and value.isdigit() and setting_of(setting).type == "bytes"
    return exact_size(int(value)) if value is not None and is_bytes else value_text(setting, value)


def value_text(setting: str, value: str | None) -> str:
    """A value as text: `1 MiB`, `1,000`, `no bound`, `not known`."""
    if value is None:
        return "not known"
    if value == NO_LIMIT:
        return NO_BOUND
    parts = value.split(", ")
    if len(parts) > 1:
        return " or ".join(value_text(setting, part) for part in parts)
    if not value.isdigit():
        return value
    kind = setting_of(setting).type
    return short_size(int(value)) if kind == "bytes" else f"{int(value):,}{' ms' if kind == 'ms' else ''}"


def rank_recommendations(recommendations: Iterable[Recommendation]) -> list[Recommendation]:
    """Sorted: changes come first, then what is withheld, then what is kept. In each group, those that gain most come
    first.
    """

    def place(recommendation: Recommendation) -> tuple[object, ...]:
        """A sort key. It ends with names, so that the order of rows does not decide between equal weights."""
        names = (recommendation.algorithm, recommendation.scope.kind, recommendation.scope.name, recommendation.setting)
        return (ORDER.index(recommendation.verdict), recommendation.is_proposal, -recommendation.weight, *names)

    return sorted(recommendations, key=place)


def recommendation_rows(run_id: str, recommendations: Iterable[Recommendation]) -> pa.Table:
    """The rows of the table `recommendations`, in the order of the recommendations."""
    t = RECOMMENDATIONS
    rows: list[dict[str, object]] = [
        {
            t.run_id: run_id, t.place: place, t.algorithm: one.algorithm, t.scope_kind: one.scope.kind,
            t.scope: one.scope.name, t.setting: one.setting, t.verdict: one.verdict, t.value_now: one.now.value,
            t.source: one.now.source, t.recommended: one.recommended, t.enough: one.enough,
            t.gain: one.gain.text, t.gain_metric: one.gain.metric, t.gain_before: one.gain.before,
            t.gain_after: one.gain.after, **gain_ranges(one.gain),
            t.cost: one.cost.text, t.cost_metric: one.cost.metric,
            t.cost_before: one.cost.before, t.cost_after: one.cost.after, t.checked: one.sure.checked,
            t.agreed: one.sure.agreed, t.unknown: one.sure.unknown, t.reason: one.reason,
            t.is_proposal: one.is_proposal,
        }
        for place, one in enumerate(recommendations, 1)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=arrow_schema(t))


def gain_ranges(gain: Effect) -> dict[str, object]:
    """The columns with the ranges of a gain."""
    t = RECOMMENDATIONS
    before, after = (t.gain_before_low, t.gain_before_high), (t.gain_after_low, t.gain_after_high)
    return dict(zip((*before, *after), (*gain.before_range, *gain.after_range), strict=True))


def recommendation_from_row(row: Row) -> Recommendation:
    """The recommendation in a row of the table."""
    t = RECOMMENDATIONS
    return Recommendation(
        algorithm=row[t.algorithm],
        scope=Scope(row[t.scope_kind], row[t.scope]),
        setting=row[t.setting],
        verdict=row[t.verdict],
        now=InForce(row[t.value_now], row[t.source]),
        recommended=row[t.recommended],
        sure=Confidence(row[t.checked], row[t.agreed], row[t.unknown]),
        reason=row[t.reason],
        gain=Effect(
            row[t.gain],
            row[t.gain_metric],
            row[t.gain_before],
            row[t.gain_after],
            (row[t.gain_before_low], row[t.gain_before_high]),
            (row[t.gain_after_low], row[t.gain_after_high]),
        ),
        cost=Effect(row[t.cost], row[t.cost_metric], row[t.cost_before], row[t.cost_after]),
        enough=row[t.enough],
        is_proposal=row[t.is_proposal],
    )
