"""What a search has replayed so far, and what that is worth: the best lane, the trade-off, and what does as well."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import NamedTuple

import numpy as np

from jobs.find.axes import Point, SearchAxis, lane_at
from jobs.find.judgement import (
    NO_FAILURE,
    Failure,
    Outcomes,
    aim_score,
    constraint_cost,
    failure_of_constraints,
    meets_constraints,
    traded_constraints,
)
from jobs.scenarios.aims import Aim, Constraint
from jobs.scenarios.scenario import CAPTURED_LANE, Lane
from jobs.scenarios.settings import Value


class Judged(NamedTuple):
    """What the lane of a point is worth.

    failure: how far it is from meeting the constraints. score: what it comes to in the aim, less being better. costs:
    what it comes to in each outcome that the aim is traded for, less being better.
    """

    failure: Failure
    score: float
    costs: tuple[float, ...]

    @property
    def rank(self) -> tuple[Failure, float]:
        """A sort key: points that fail constraints least come first, and of these the best in the aim."""
        return self.failure, self.score


@dataclass
class Search:
    """What was replayed so far, and what it came to.

    in_force: by setting the value of lanes that leave it as captured. tried: by point what its lane comes to; the point
    whose coordinates are all None is the captured lane. judged: by point what its lane is worth. best: the point to
    recommend. coordinates: by axis the coordinates that were tried, ascending. replayed, rounds: how many lanes were
    replayed, and in how many rounds.
    """

    aim: Aim
    axes: tuple[SearchAxis, ...]
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
        """The share by which two lanes may differ in the aim and count as equally good.

        It is 0 where the aim is a setting, whose value is exact.
        """
        return 0.0 if self.aim.is_of_setting else self.aim.step

    def does_as_well(self, point: Point, other: Judged) -> bool:
        """Whether a point that was tried is at least as good as another one, which is judged as `other`."""
        failed, score, _ = self.judged[point]
        within = isfinite(other.score) and score <= other.score + self.tolerance * abs(other.score)
        return failed <= other.failure and (within or score == other.score)

    def note(self, outcomes: Mapping[Point, Outcomes]) -> None:
        """Add points that were replayed, with what their lanes come to, and judge them."""
        prices = traded_constraints(self.aim)
        for point, of in outcomes.items():
            score = aim_score(self.aim, self.lane(point), of, self.in_force)
            costs = tuple(constraint_cost(constraint, of) for constraint in prices)
            self.tried[point], self.judged[point] = of, Judged(failure_of_constraints(self.aim.where, of), score, costs)
        self.best = self.best_of(self.tried)
        self.coordinates = [
            sorted({coordinate for point in self.tried if (coordinate := point[axis_no]) is not None})
            for axis_no in self._places
        ]

    @property
    def _places(self) -> range:
        return range(len(self.axes))

    def best_of(self, points: Iterable[Point]) -> Point:
        """The point to recommend among these: of those that do as well as the best one, the one that changes the fewest
        settings, and of several such points the one that costs least.
        """
        some = list(points)
        first = min((self.judged[point] for point in some), key=lambda judged: judged.rank)
        alike = [point for point in some if self.does_as_well(point, first)]
        return min(
            alike,
            key=lambda point: (
                count_changes(point),
                self.judged[point].costs,
                self.judged[point].rank,
                point_order(point),
            ),
        )


def nearest_failing_only(search: Search, constraint: Constraint) -> Point | None:
    """The point that fails this constraint least of those that meet all others; None if there is no such point."""
    others = [other for other in search.aim.where if other != constraint]
    some = [
        point
        for point, outcomes in search.tried.items()
        if search.judged[point].score != inf and meets_constraints(others, outcomes)
    ]
    return min(
        some, key=lambda point: (constraint_cost(constraint, search.tried[point]), point_order(point)), default=None
    )


def coordinates_through_best(search: Search, axis_no: int) -> list[int]:
    """The coordinates that were tried on an axis through the best point, in order."""
    return [
        coordinate
        for coordinate in search.coordinates[axis_no]
        if with_coordinate(search.best, axis_no, coordinate) in search.tried
    ]


def equally_good_range(search: Search, axis_no: int) -> tuple[int, int]:
    """The range of coordinates around the best point's in which all that were tried do as well: (first, last)."""
    best, line = search.best, coordinates_through_best(search, axis_no)
    place, judged = line.index(best[axis_no] or 0), search.judged[best]

    def end(others: Sequence[int]) -> int:
        alike = itertools.takewhile(
            lambda coordinate: search.does_as_well(with_coordinate(best, axis_no, coordinate), judged), others
        )
        return list(alike)[-1]

    low, high, axis = end(line[place::-1]), end(line[place:]), search.axes[axis_no]
    return low, high if axis.reach is None or high < axis.reach else axis.ends[1]


def trade_off_points(search: Search, points: Iterable[Point] | None = None) -> list[Point]:
    """The points of the trade-off, the best in the aim first: no other point is at least as good in the aim and in all
    costs, and better in one of them. Of points that come to the same it has the one that changes the fewest settings.

    points: those to choose from; None for all that were tried.
    """
    by_figures = dict[tuple[float, ...], Point]()
    some = search.tried if points is None else points
    for point in sorted(some, key=lambda point: (point != search.best, count_changes(point), point_order(point))):
        figures = (search.judged[point].score, *search.judged[point].costs)
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


def with_coordinate(point: Point, axis_no: int, coordinate: int | None) -> Point:
    """The point with another coordinate on an axis."""
    return (*point[:axis_no], coordinate, *point[axis_no + 1 :])


def count_changes(point: Point) -> int:
    """How many settings the point's lane changes."""
    return sum(coordinate is not None for coordinate in point)


def point_order(point: Point) -> tuple[int, ...]:
    """An order of points: by coordinates, those left as captured first."""
    return tuple(-1 if coordinate is None else coordinate for coordinate in point)
