"""How often a live cluster's values lie in the predicted ranges, and how wide these ranges are.

One score covers both: the interval score of Gneiting and Raftery (2007). It is the width of a range plus, for each
value outside, ten times its distance from the range. It is compared with the scores of two references: the captured
value as a point, and the p10 to p90 of equal runs under the captured settings.
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
"""The share of values that should lie between p10 and p90."""


@dataclass(frozen=True)
class Range:
    """A predicted range, p10 to p90."""

    low: float
    high: float

    def holds(self, value: float) -> bool:
        """Whether the value lies in the range. A distance of up to a tenth of a millisecond counts as inside."""
        return self.low - 0.1 <= value <= self.high + 0.1

    def score(self, value: float) -> float:
        """The interval score of a value: less is better."""
        return self.high - self.low + 2 / (1 - WITHIN) * max(self.low - value, value - self.high, 0.0)


@dataclass(frozen=True)
class Case:
    """One group of settings predicted from the runs of another group: a range from each run, the captured values, and
    the seen values.

    are_same: the runs are predicted from each other, but none from itself.
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
        """Each range with each value that should lie in it; ranges: one for each run."""
        for (run, of), (other, value) in product(enumerate(ranges), enumerate(self.seen)):
            if run != other or not self.are_same:
                yield of, value

    def within(self) -> float:
        """The share of seen values that lie in the ranges."""
        return mean(of.holds(value) for of, value in self.predictions(self.ranges))

    def scores(self, ranges: Sequence[Range]) -> float:
        """The mean score of these ranges; ranges: one for each run."""
        return mean(of.score(value) for of, value in self.predictions(ranges))


def coverage_row(family: str, figure: str, cases: Sequence[Case]) -> Sequence[str]:
    """Cells for HEAD. Scores are relative to the median seen value, so that all cases count equally."""
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
    return ["", "Ranges (p10 to p90) compared with what was seen", *aligned_lines(HEAD, rows, ("of", "figure"))]
