"""Figures of two runs, what lies between them, and whether that is more than their ranges allow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, sqrt
from typing import Literal

Judgement = Literal["same", "noise", "exact", "beyond", "new", "gone"]
"""`beyond`: the ranges of the two do not meet. `noise`: they do. `exact`: neither figure has a range, so that every
difference is one. `new`, `gone`: the second run or the first alone has it."""
NO_CHANGE = ("same", "noise")
SCORE = 1.2816
"""The standard normal's 90th percentile: between minus and plus that lie 80 %, as between p10 and p90."""


@dataclass(frozen=True)
class Figure:
    """A number that a run has of something, or a text such as a setting's value.

    value: inf for a time without end. low, high: between them lie 80 % of what it is when pace or time varies; None
    where it is exact. cases: of a share, of how many it is one.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    cases: int | None = None
    text: str | None = None

    @property
    def range(self) -> tuple[float, float] | None:
        """Its range, which has the value in it; None where the figure is exact."""
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

    part, kind, scope, metric: what it is a figure of: `traffic`, `client`, `app`, `requests_per_s`.
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
        return judged(self.before, self.after)

    @property
    def size(self) -> float:
        """How large the change is, from 0 to 1: relative to the larger of the two."""
        before, after = (None if figure is None else figure.value for figure in (self.before, self.after))
        if before is None or after is None:
            return 1.0
        most = max(abs(before), abs(after))
        return 0.0 if before == after else 1.0 if most == inf else abs(after - before) / most


def judged(before: Figure | None, after: Figure | None) -> Judgement:
    """How two figures of the same thing differ.

    >>> judged(Figure(10.0, 8.0, 12.0), Figure(13.0, 11.0, 15.0))
    'noise'
    >>> judged(Figure(10.0, 8.0, 12.0), Figure(20.0, 15.0, 25.0))
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
        (of.value or 0.0, of.value or 0.0) if own is None else own
        for of, own in zip((before, after), ranges, strict=True)
    )
    return "beyond" if least > high or most < low else "noise"


def range_of_share(share: float, cases: float) -> tuple[float, float]:
    """Between which shares 80 % of such samples lie: Wilson's score interval, which also holds near 0 and 1."""
    if cases <= 0:
        return 0.0, 1.0
    z = SCORE**2 / cases
    middle, half = (share + z / 2) / (1 + z), sqrt(z * share * (1 - share) + z * z / 4) / (1 + z)
    return max(0.0, middle - half), min(1.0, middle + half)


def changed(changes: Iterable[Change]) -> list[Change]:
    """Those that are more than noise, the largest first; equal ones by what they are of."""
    real = (change for change in changes if change.judgement not in NO_CHANGE)
    return sorted(real, key=lambda change: (-change.size, change.kind, change.scope, change.metric))
