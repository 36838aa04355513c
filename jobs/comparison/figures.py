"""Figures of two runs, and whether they differ by more than their ranges allow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, sqrt
from typing import Literal

Judgement = Literal["same", "noise", "exact", "beyond", "new", "gone"]
"""`beyond`: the ranges of the two figures do not overlap. `noise`: they do. `exact`: neither figure has a range, so any
difference is real. `new`: only the second run has the figure. `gone`: only the first run has it."""
NO_CHANGE = ("same", "noise")
SCORE = 1.2816
"""The 90th percentile of the standard normal distribution: 80 % lie between -SCORE and SCORE, as between p10 and p90.
"""


@dataclass(frozen=True)
class Figure:
    """A number that describes a run, or a text such as a setting's value.

    value: None for a text, inf for an infinite time. low, high: p10 and p90 of the value as pace or time varies; None
    if it is exact. cases: the number of cases behind a share; None for other figures.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    cases: int | None = None
    text: str | None = None

    @property
    def range(self) -> tuple[float, float] | None:
        """The range of the figure, which always includes its value; None if the figure is exact or a text."""
        if self.value is None:
            return None
        if self.cases is not None:
            return range_of_share(self.value, self.cases)
        if self.low is None or self.high is None or self.low == self.high == self.value:
            return None
        return min(self.low, self.value), max(self.high, self.value)


@dataclass(frozen=True)
class Change:
    """A figure in the first run and in the second; None in one that does not have it.

    part, kind, scope, metric: what the figure describes, such as `traffic`, `client`, `app`, `requests_per_s`.
    """

    part: str
    kind: str
    scope: str
    metric: str
    before: Figure | None
    after: Figure | None

    @property
    def judgement(self) -> Judgement:
        """Whether the two differ by more than their ranges allow."""
        return judge_figures(self.before, self.after)

    @property
    def size(self) -> float:
        """How large the change is relative to the larger figure, from 0 to 1; 1 if only one figure is a number."""
        before, after = (None if figure is None else figure.value for figure in (self.before, self.after))
        if before is None or after is None:
            return 1.0
        most = max(abs(before), abs(after))
        return 0.0 if before == after else 1.0 if most == inf else abs(after - before) / most


def judge_figures(before: Figure | None, after: Figure | None) -> Judgement:
    """How two figures of the same thing differ.

    >>> judge_figures(Figure(10.0, 8.0, 12.0), Figure(13.0, 11.0, 15.0))
    'noise'
    >>> judge_figures(Figure(10.0, 8.0, 12.0), Figure(20.0, 15.0, 25.0))
    'beyond'
    """
    if before is None or after is None:
        return "new" if before is None else "gone"
    if (before.value, before.text) == (after.value, after.text):
        return "same"
    ranges = before.range, after.range
    if ranges == (None, None) or before.value is None or after.value is None:
        return "exact"
    (low, high), (least, most) = (
        (figure.value or 0.0, figure.value or 0.0) if range_of_figure is None else range_of_figure
        for figure, range_of_figure in zip((before, after), ranges, strict=True)
    )
    return "beyond" if least > high or most < low else "noise"


def range_of_share(share: float, cases: float) -> tuple[float, float]:
    """The range in which 80 % of such samples lie: Wilson's score interval, which is also valid near 0 and 1."""
    if cases <= 0:
        return 0.0, 1.0
    z = SCORE**2 / cases
    middle, half = (share + z / 2) / (1 + z), sqrt(z * share * (1 - share) + z * z / 4) / (1 + z)
    return max(0.0, middle - half), min(1.0, middle + half)


def changes_beyond_noise(changes: Iterable[Change]) -> list[Change]:
    """The changes that are more than noise, the largest first. Equal ones are sorted by kind, scope and metric."""
    real = (change for change in changes if change.judgement not in NO_CHANGE)
    return sorted(real, key=lambda change: (-change.size, change.kind, change.scope, change.metric))
