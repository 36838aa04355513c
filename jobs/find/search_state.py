"""The state of a search: what was replayed so far, the best lane, the trade-off, and the lanes that do as well."""

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
    """The judgement of a point's lane.

    failure: how far it is from meeting the constraints. score: its score in the aim, less is better. costs: its cost in
    each outcome that the aim is traded for, less is better.
    """

    failure: Failure
    score: float
    costs: tuple[float, ...]

    @property
    def rank(self) -> tuple[Failure, float]:
        """A sort key: points that fail constraints least come first; among equals the best in the aim."""
        return self.failure, self.score


@dataclass
class Search:
    """What was replayed so far, and the outcomes.

    in_force: for each setting the value in lanes that leave it as captured. tried: for each point the outcomes of its
    lane; the point whose coordinates are all None is the captured lane. judged: for each point the judgement of its
    lane. best: the point to recommend. coordinates: for each axis the coordinates that were tried, ascending. replayed,
    rounds: the number of lanes that were replayed, and the number of rounds.
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

        It is 0 if the aim is a setting, because its value is exact.
        """
        return 0.0 if self.aim.is_of_setting else self.aim.step

    def does_as_well(self, point: Point, other: Judged) -> bool:
        """Whether a point that was tried is at least as good as another one, whose judgement is `other`."""
        failed, score, _ = self.judged[point]
        within = isfinite(other.score) and score <= other.score + self.tolerance * abs(other.score)
        return failed <= other.failure and (within or score == other.score)

    def note(self, outcomes: Mapping[Point, Outcomes]) -> None:
        """Add points that were replayed, with the outcomes of their lanes, and judge them."""
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
        """The point to recommend among these. Of the points that do as well as the best one, it is the one that changes
        the fewest settings; if there are several, the one that costs least.
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
    """Among the points that meet all other constraints, the one that fails this one least; None if there is none."""
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
    """(first, last) of the coordinates around the best point's, between which all that were tried do as well."""
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
    """The points of the trade-off, first the best in the aim. A point belongs to it if no other point is at least as
    good in the aim and in all costs, and better in one of them. If several points have the same outcomes, only the one
    that changes the fewest settings belongs to it.

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
    """The number of settings that the point's lane changes."""
    return sum(coordinate is not None for coordinate in point)


def point_order(point: Point) -> tuple[int, ...]:
    """A sort key for points: by coordinates; settings left as captured come first."""
    return tuple(-1 if coordinate is None else coordinate for coordinate in point)
