"""How often what a live cluster did lies in the predicted range, and how wide these ranges are.

A score says both at once: the interval score of Gneiting and Raftery (2007), which is the width of a range and, for
each value outside, ten times how far it is outside. Beside it stand those of two references: what was captured, as a
point, and the p10 to p90 of what equal runs had under the captured settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import mean, median

import numpy as np

from jobs.terminal.screen import aligned_lines

HEAD = ("of", "figure", "cases", "within", "width / runs differ by", "score", "as captured", "equal runs")
WITHIN = 0.8
"""The share that p10 to p90 are to hold."""


@dataclass(frozen=True)
class Range:
    """A predicted range, p10 to p90."""

    low: float
    high: float

    def holds(self, value: float) -> bool:
        """Whether the value lies in it; a time within a tenth of a millisecond does."""
        return self.low - 0.1 <= value <= self.high + 0.1

    def score(self, value: float) -> float:
        """The interval score of a value: the less the better."""
        return self.high - self.low + 2 / (1 - WITHIN) * max(self.low - value, value - self.high, 0.0)


@dataclass(frozen=True)
class Case:
    """One group of settings predicted from the runs of another: a range from each run, what was captured, and seen.

    are_same: the runs are predicted from one another, and not from themselves.
    """

    ranges: Sequence[Range]
    captured: Sequence[float]
    seen: Sequence[float]
    are_same: bool = False

    @property
    def spread(self) -> float:
        """How far equal runs differ."""
        return max(self.seen) - min(self.seen)

    def predictions(self, ranges: Sequence[Range]) -> Iterator[tuple[Range, float]]:
        """Each range, one a run, with each value that is to lie in it."""
        for (run, of), (other, value) in product(enumerate(ranges), enumerate(self.seen)):
            if run != other or not self.are_same:
                yield of, value

    def within(self) -> float:
        """The share of the values seen that lie in the ranges."""
        return mean(of.holds(value) for of, value in self.predictions(self.ranges))

    def scores(self, ranges: Sequence[Range]) -> float:
        """The mean score of these ranges, one a run."""
        return mean(of.score(value) for of, value in self.predictions(ranges))


def coverage_row(family: str, figure: str, cases: Sequence[Case]) -> Sequence[str]:
    """Cells of HEAD. Scores are relative to the median value seen, so that cases count alike."""
    widths = [mean(of.high - of.low for of in case.ranges) / case.spread for case in cases if case.spread > 0]
    own, as_captured, equal_runs = (
        mean(case.scores(ranges) / max(median(case.seen), 1.0) for case, ranges in zip(cases, of, strict=True))
        for of in (
            [case.ranges for case in cases],
            [[Range(value, value) for value in case.captured] for case in cases],
            [[Range(*np.quantile(case.captured, (0.1, 0.9)))] * len(case.captured) for case in cases],
        )
    )
    within = mean(case.within() for case in cases)
    width = f"{median(widths):.2f}" if widths else "-"
    return family, figure, f"{len(cases)}", f"{100 * within:.0f} %", width, *(
        f"{score:.2f}" for score in (own, as_captured, equal_runs)
    )  # fmt: skip


def coverage_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """The rows as lines of a screen."""
    return ["", "Ranges (p10 to p90) beside what was seen", *aligned_lines(HEAD, rows, ("of", "figure"))]
