"""Which lanes to replay next: those that may be better than the best one, and those that may meet the constraints."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterator

import numpy as np

from jobs.find.axes import Point, SearchAxis, representative_point
from jobs.find.search_state import (
    Search,
    coordinates_through_best,
    equally_good_range,
    nearest_failing_only,
    point_order,
    trade_off_points,
    with_coordinate,
)

FIRST_LANES, MORE_LANES, ANYWHERE = 256, 256, 16
"""The most lanes in the first round, in each later round, and among these at random."""
MOST_ON_ONE_AXIS = 65
AROUND = {1: 15, 2: 3}
"""For each number of axes, the number of coordinates between the best point and a neighbour. For more axes it is 1."""
MOST_NEIGHBOURS = 24
"""The number of lanes of the trade-off around which a round tries others."""


def first_grid(axes: tuple[SearchAxis, ...]) -> Iterator[Point]:
    """A grid over all axes. It has all coordinates of short axes, and about the same number of each long axis."""
    counts, lanes, left = dict[str, int](), FIRST_LANES, len(axes)
    for axis in sorted(axes, key=lambda axis: (axis.ends[1] - axis.ends[0], axis.key)):
        share = max(2, min(MOST_ON_ONE_AXIS, int(lanes ** (1 / left) + 1e-9)))
        counts[axis.key] = min(share, axis.ends[1] - axis.ends[0] + 1)
        lanes, left = lanes // counts[axis.key], left - 1
    yield from itertools.product(*(axis.spread(counts[axis.key]) for axis in axes))


def next_points(search: Search, random: np.random.Generator) -> list[Point]:
    """The points of the next round, first those that promise most."""
    proposed = itertools.chain(
        points_around(search, search.best, AROUND.get(len(search.axes), 1)),
        simpler_points(search),
        points_on_lines(search, search.best),
        *(points_around(search, point, 1) for point in points_to_relax(search)),
        points_at_limits(search),
        *(points_along_axes(search, point, 1) for point in points_to_refine(search)),
    )
    new = (point for point in dict.fromkeys(proposed) if representative_point(search.axes, point) not in search.tried)
    chosen = list(itertools.islice(new, MORE_LANES - ANYWHERE))
    return [*chosen, *random_points(search, random)] if chosen else []


def points_to_relax(search: Search) -> Iterator[Point]:
    """If no point meets all constraints: for each constraint the point that fails it least and meets all others."""
    if not search.is_met(search.best):
        yield from filter(None, (nearest_failing_only(search, constraint) for constraint in search.aim.where))


def points_to_refine(search: Search) -> list[Point]:
    """The points around which others are tried: those of the trade-off, and those that beat the best one in the aim but
    are farther from meeting the constraints. First come the points that fail constraints, those that fail least before
    others; then the points that meet them, the best before others.
    """
    best = search.judged[search.best]
    better = [point for point, judged in search.judged.items() if judged.score < best.score]
    some = dict.fromkeys((*trade_off_points(search), *better))
    nearest = sorted(some, key=lambda point: (search.judged[point].rank, point_order(point)))
    failing = [point for point in nearest if not search.is_met(point)][:MOST_NEIGHBOURS]
    return [*failing, *(point for point in nearest[:MOST_NEIGHBOURS] if search.is_met(point))]


def points_around(search: Search, point: Point, count: int) -> Iterator[Point]:
    """Points around a point: its own coordinate on each axis and the nearby ones, in every combination."""
    yield from itertools.product(
        *(
            [None] if coordinate is None else [coordinate, *nearby_coordinates(search, axis_no, coordinate, count)]
            for axis_no, coordinate in enumerate(point)
        )
    )


def points_along_axes(search: Search, point: Point, count: int) -> Iterator[Point]:
    """Points around a point that differ from it on only one axis, where they have a nearby coordinate."""
    for axis_no, coordinate in enumerate(point):
        if coordinate is not None:
            yield from (
                with_coordinate(point, axis_no, other)
                for other in nearby_coordinates(search, axis_no, coordinate, count)
            )


def points_on_lines(search: Search, point: Point) -> Iterator[Point]:
    """Points that differ from a point on only one axis, where they have any coordinate that was tried."""
    for axis_no, coordinate in enumerate(point):
        if coordinate is not None:
            yield from (with_coordinate(point, axis_no, other) for other in search.coordinates[axis_no])


def nearby_coordinates(search: Search, axis_no: int, coordinate: int, count: int) -> list[int]:
    """The neighbours of a coordinate on an axis, and up to `count` coordinates between it and each; ascending."""
    known = search.coordinates[axis_no]
    place = bisect_left(known, coordinate)
    low = known[place - 1] if place else None
    high = known[place + 1] if place + 1 < len(known) else None
    axis = search.axes[axis_no]
    below = [] if low is None else [low, *axis.between(low, coordinate, count)]
    return [*below, *([] if high is None else [*axis.between(coordinate, high, count), high])]


def simpler_points(search: Search) -> Iterator[Point]:
    """The best point with fewer of its settings changed; the setting that the aim is about stays as it is."""
    best = search.best
    kept = [
        axis_no
        for axis_no, coordinate in enumerate(best)
        if coordinate is not None and search.axes[axis_no].key == search.aim.target
    ]
    others = [axis_no for axis_no, coordinate in enumerate(best) if coordinate is not None and axis_no not in kept]
    for count in range(len(others)):
        for some in itertools.combinations(others, count):
            yield tuple(
                coordinate if axis_no in kept or axis_no in some else None for axis_no, coordinate in enumerate(best)
            )


def points_at_limits(search: Search) -> Iterator[Point]:
    """Points that may be better than the best one, between two neighbours on an axis of which one meets the constraints
    and the other does not.
    """
    best = search.judged[search.best]
    pairs = []
    for axis_no in range(len(search.axes)):
        for one, other in neighbouring_points(search, axis_no):
            if search.is_met(one) != search.is_met(other):
                score = min(search.judged[one].score, search.judged[other].score)
                if score < best.score:
                    pairs.append((score, axis_no, one, other))
    for _, axis_no, one, other in sorted(pairs, key=lambda pair: (pair[0], pair[1], point_order(pair[2]))):
        low, high = sorted(coordinate for coordinate in (one[axis_no], other[axis_no]) if coordinate is not None)
        yield from (
            with_coordinate(one, axis_no, coordinate) for coordinate in search.axes[axis_no].between(low, high, 3)
        )


def neighbouring_points(search: Search, axis_no: int) -> Iterator[tuple[Point, Point]]:
    """Pairs of points that were tried next to each other on an axis, with the same coordinates on all other axes."""
    lines = dict[Point, list[Point]]()
    for point in search.tried:
        if point[axis_no] is not None:
            lines.setdefault(with_coordinate(point, axis_no, None), []).append(point)
    for points in lines.values():
        yield from itertools.pairwise(sorted(points, key=point_order))


def random_points(search: Search, random: np.random.Generator) -> Iterator[Point]:
    """Points drawn at random from a fine grid over all axes."""
    grids = [axis.spread(4 * MOST_ON_ONE_AXIS) for axis in search.axes]
    for _ in range(ANYWHERE):
        yield tuple(int(random.choice(grid)) for grid in grids)


def points_at_range_ends(search: Search) -> Iterator[Point]:
    """Points that show how far one setting of the best point can be changed while its lane does as well."""
    best = search.best
    for axis_no, (axis, coordinate) in enumerate(zip(search.axes, best, strict=True)):
        if coordinate is None or axis.key == search.aim.target:
            continue
        yield from (with_coordinate(best, axis_no, other) for other in axis.spread(17))
        low, high = equally_good_range(search, axis_no)
        line = coordinates_through_best(search, axis_no)
        for one, other in itertools.pairwise(line):
            if other == low or one == high:
                yield from (with_coordinate(best, axis_no, mid) for mid in axis.between(one, other, 7))
