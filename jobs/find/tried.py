"""What a search has replayed so far, and what that is worth: the best lane, the trade-off, and what does as well."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import NamedTuple

import numpy as np

from jobs.find.axes import Axis, Point, lane_at
from jobs.find.judgement import NO_FAILURE, Failure, Outcomes, aimed, cost, failure, meets, traded
from jobs.scenarios.aims import Aim, Constraint
from jobs.scenarios.scenario import CAPTURED_LANE, Lane
from jobs.scenarios.settings import Value


class Judged(NamedTuple):
    """What a point's lane is worth: how far it is from meeting the constraints, what it comes to in the aim and what
    it pays for that, less being better.
    """

    failure: Failure
    score: float
    costs: tuple[float, ...]

    @property
    def rank(self) -> tuple[Failure, float]:
        """Its place: first those that meet the constraints, then those that are best in the aim."""
        return self.failure, self.score


@dataclass
class Search:
    """What was replayed so far, and what it came to.

    in_force: by setting the value that lanes have which leave it as captured. tried: by point what its lane comes to;
    the point without any coordinate is the captured lane. judged: by point what that is worth. best: the point to
    recommend. coordinates: by axis those that were tried, in order. replayed: how many lanes were.
    """

    aim: Aim
    axes: tuple[Axis, ...]
    in_force: Mapping[str, Value]
    tried: dict[Point, Outcomes] = field(default_factory=dict)
    judged: dict[Point, Judged] = field(default_factory=dict)
    best: Point = ()
    coordinates: list[list[int]] = field(default_factory=list)
    replayed: int = 0
    rounds: int = 0

    @property
    def captured(self) -> Point:
        """The point of the captured lane."""
        return (None,) * len(self.axes)

    def lane(self, point: Point) -> Lane:
        """The lane of a point."""
        return Lane(CAPTURED_LANE, {}) if point == self.captured else lane_at(self.axes, point)

    def is_met(self, point: Point) -> bool:
        """Whether a point that was tried meets the constraints."""
        return self.judged[point].failure == NO_FAILURE

    @property
    def tolerance(self) -> float:
        """By which share an aim may differ and be as good: none for a setting, which is exact."""
        return 0.0 if self.aim.is_of_setting else self.aim.step

    def does_as_well(self, point: Point, as_one: Judged) -> bool:
        """Whether a point that was tried is as good as one that is judged so."""
        failed, score, _ = self.judged[point]
        within = isfinite(as_one.score) and score <= as_one.score + self.tolerance * abs(as_one.score)
        return failed <= as_one.failure and (within or score == as_one.score)

    def note(self, outcomes: Mapping[Point, Outcomes]) -> None:
        """Take in what points come to."""
        prices = traded(self.aim)
        for point, of in outcomes.items():
            score = aimed(self.aim, self.lane(point), of, self.in_force)
            costs = tuple(cost(constraint, of) for constraint in prices)
            self.tried[point], self.judged[point] = of, Judged(failure(self.aim.where, of), score, costs)
        self.best = self.best_of(self.tried)
        self.coordinates = [sorted({at for point in self.tried if (at := point[k]) is not None}) for k in self._places]

    @property
    def _places(self) -> range:
        return range(len(self.axes))

    def best_of(self, points: Iterable[Point]) -> Point:
        """Of the points that do as well as the best of them that which changes the fewest settings, then that which
        pays least.
        """
        some = list(points)
        first = min((self.judged[point] for point in some), key=lambda judged: judged.rank)
        alike = [point for point in some if self.does_as_well(point, first)]
        return min(alike, key=lambda at: (changes(at), self.judged[at].costs, self.judged[at].rank, order_of(at)))


def nearest_but_for(so_far: Search, constraint: Constraint) -> Point | None:
    """Of the points that meet all other constraints the one that fails this one least; None if there is none."""
    others = [other for other in so_far.aim.where if other != constraint]
    some = [
        point
        for point, outcomes in so_far.tried.items()
        if so_far.judged[point].score != inf and meets(others, outcomes)
    ]
    return min(some, key=lambda at: (cost(constraint, so_far.tried[at]), order_of(at)), default=None)


def on_line(so_far: Search, k: int) -> list[int]:
    """The coordinates that were tried on an axis through the best point, in order."""
    return [at for at in so_far.coordinates[k] if with_coordinate(so_far.best, k, at) in so_far.tried]


def range_around(so_far: Search, k: int) -> tuple[int, int]:
    """The first and last coordinate around the best point's between which all that were tried do as well."""
    best, line = so_far.best, on_line(so_far, k)
    place, own = line.index(best[k] or 0), so_far.judged[best]

    def end(others: Sequence[int]) -> int:
        alike = itertools.takewhile(lambda at: so_far.does_as_well(with_coordinate(best, k, at), own), others)
        return list(alike)[-1]

    low, high, axis = end(line[place::-1]), end(line[place:]), so_far.axes[k]
    return low, high if axis.reach is None or high < axis.reach else axis.ends[1]


def trade_off(so_far: Search, points: Iterable[Point] | None = None) -> list[Point]:
    """The points that no other beats in the aim and in all that it is traded for, best aim first; of those that come to
    the same the one that changes fewest settings. Of these points, or of all that were tried.
    """
    by_figures = dict[tuple[float, ...], Point]()
    some = so_far.tried if points is None else points
    for point in sorted(some, key=lambda at: (at != so_far.best, changes(at), order_of(at))):
        figures = (so_far.judged[point].score, *so_far.judged[point].costs)
        if figures[0] != inf:
            by_figures.setdefault(figures, point)
    if not by_figures:
        return []
    rows = np.array(list(by_figures))
    order = sorted(by_figures)
    kept = []
    for figures in order:
        others = np.all(rows <= figures, axis=1) & np.any(rows < figures, axis=1)
        if not others.any():
            kept.append(by_figures[figures])
    return kept


def with_coordinate(point: Point, k: int, at: int | None) -> Point:
    """The point with another coordinate on an axis."""
    return (*point[:k], at, *point[k + 1 :])


def changes(point: Point) -> int:
    """How many settings a point changes."""
    return sum(at is not None for at in point)


def order_of(point: Point) -> tuple[int, ...]:
    """An order of points: by coordinates, those left as captured first."""
    return tuple(-1 if at is None else at for at in point)
