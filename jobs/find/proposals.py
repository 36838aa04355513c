"""Which lanes to replay next: those that may be better than the best one, and those that may meet the constraints."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterator

import numpy as np

from jobs.find.axes import Axis, Point, representative
from jobs.find.tried import Search, nearest_but_for, on_line, order_of, range_around, trade_off, with_coordinate

FIRST_LANES, MORE_LANES, ANYWHERE = 256, 256, 16
"""At most so many lanes are in the first round, in each round that follows, and at random among these."""
MOST_ON_ONE_AXIS = 65
AROUND = {1: 15, 2: 3}
"""By number of axes, how many coordinates are put between the best point and a neighbour. For more axes it is 1."""
MOST_NEIGHBOURS = 24
"""So many of the lanes of the trade-off get others around them in a round."""


def first_grid(axes: tuple[Axis, ...]) -> Iterator[Point]:
    """A grid over all axes. It has all coordinates of short axes, and about equally many of each long one."""
    counts, lanes, left = dict[str, int](), FIRST_LANES, len(axes)
    for axis in sorted(axes, key=lambda axis: (axis.ends[1] - axis.ends[0], axis.key)):
        share = max(2, min(MOST_ON_ONE_AXIS, int(lanes ** (1 / left) + 1e-9)))
        counts[axis.key] = min(share, axis.ends[1] - axis.ends[0] + 1)
        lanes, left = lanes // counts[axis.key], left - 1
    yield from itertools.product(*(axis.spread(counts[axis.key]) for axis in axes))


def next_points(search: Search, random: np.random.Generator) -> list[Point]:
    """The points of the next round, those that promise most first."""
    proposed = itertools.chain(
        around(search, search.best, AROUND.get(len(search.axes), 1)),
        simpler(search),
        lines_through(search, search.best),
        *(around(search, point, 1) for point in to_relax(search)),
        at_limits(search),
        *(along_axes(search, point, 1) for point in neighbourhoods(search)),
    )
    new = (point for point in dict.fromkeys(proposed) if representative(search.axes, point) not in search.tried)
    chosen = list(itertools.islice(new, MORE_LANES - ANYWHERE))
    return [*chosen, *anywhere(search, random)] if chosen else []


def to_relax(search: Search) -> Iterator[Point]:
    """Where no point meets all constraints: for each constraint the point that fails it least and meets all others."""
    if not search.is_met(search.best):
        yield from filter(None, (nearest_but_for(search, constraint) for constraint in search.aim.where))


def neighbourhoods(search: Search) -> list[Point]:
    """The points that others are put around: those of the trade-off, and those that beat the best one in the aim but
    meet the constraints less. Points that fail constraints come first, those that fail least before others; then those
    that meet them, the best first.
    """
    best = search.judged[search.best]
    better = [point for point, judged in search.judged.items() if judged.score < best.score]
    some = dict.fromkeys((*trade_off(search), *better))
    nearest = sorted(some, key=lambda point: (search.judged[point].rank, order_of(point)))
    failing = [point for point in nearest if not search.is_met(point)][:MOST_NEIGHBOURS]
    return [*failing, *(point for point in nearest[:MOST_NEIGHBOURS] if search.is_met(point))]


def around(search: Search, point: Point, count: int) -> Iterator[Point]:
    """Points around a point: on each axis its own coordinate and those that are `nearby`, in every combination."""
    yield from itertools.product(
        *(
            [None] if coordinate is None else [coordinate, *nearby(search, axis_no, coordinate, count)]
            for axis_no, coordinate in enumerate(point)
        )
    )


def along_axes(search: Search, point: Point, count: int) -> Iterator[Point]:
    """Points around a point that differ from it on one axis alone, by a coordinate that is `nearby`."""
    for axis_no, coordinate in enumerate(point):
        if coordinate is not None:
            yield from (with_coordinate(point, axis_no, other) for other in nearby(search, axis_no, coordinate, count))


def lines_through(search: Search, point: Point) -> Iterator[Point]:
    """Points that differ from a point on one axis alone, by any coordinate that was tried on that axis."""
    for axis_no, coordinate in enumerate(point):
        if coordinate is not None:
            yield from (with_coordinate(point, axis_no, other) for other in search.coordinates[axis_no])


def nearby(search: Search, axis_no: int, coordinate: int, count: int) -> list[int]:
    """The neighbours of a coordinate on an axis, and up to `count` coordinates between it and each; ascending."""
    known = search.coordinates[axis_no]
    place = bisect_left(known, coordinate)
    low = known[place - 1] if place else None
    high = known[place + 1] if place + 1 < len(known) else None
    axis = search.axes[axis_no]
    below = [] if low is None else [low, *axis.between(low, coordinate, count)]
    return [*below, *([] if high is None else [*axis.between(coordinate, high, count), high])]


def simpler(search: Search) -> Iterator[Point]:
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


def at_limits(search: Search) -> Iterator[Point]:
    """Points between two neighbours on an axis, of which one meets the constraints and the other does not, where they
    may be better than the best point.
    """
    best = search.judged[search.best]
    pairs = []
    for axis_no in range(len(search.axes)):
        for one, other in neighbours(search, axis_no):
            if search.is_met(one) != search.is_met(other):
                score = min(search.judged[one].score, search.judged[other].score)
                if score < best.score:
                    pairs.append((score, axis_no, one, other))
    for _, axis_no, one, other in sorted(pairs, key=lambda pair: (pair[0], pair[1], order_of(pair[2]))):
        low, high = sorted(coordinate for coordinate in (one[axis_no], other[axis_no]) if coordinate is not None)
        yield from (
            with_coordinate(one, axis_no, coordinate) for coordinate in search.axes[axis_no].between(low, high, 3)
        )


def neighbours(search: Search, axis_no: int) -> Iterator[tuple[Point, Point]]:
    """Pairs of points that were tried next to each other on an axis, with the same coordinates on all other axes."""
    lines = dict[Point, list[Point]]()
    for point in search.tried:
        if point[axis_no] is not None:
            lines.setdefault(with_coordinate(point, axis_no, None), []).append(point)
    for points in lines.values():
        yield from itertools.pairwise(sorted(points, key=order_of))


def anywhere(search: Search, random: np.random.Generator) -> Iterator[Point]:
    """Points drawn at random from a fine grid over all axes."""
    grids = [axis.spread(4 * MOST_ON_ONE_AXIS) for axis in search.axes]
    for _ in range(ANYWHERE):
        yield tuple(int(random.choice(grid)) for grid in grids)


def ends_of_range(search: Search) -> Iterator[Point]:
    """Points that show how far one setting of the best point can be changed while its lane does as well."""
    best = search.best
    for axis_no, (axis, coordinate) in enumerate(zip(search.axes, best, strict=True)):
        if coordinate is None or axis.key == search.aim.target:
            continue
        yield from (with_coordinate(best, axis_no, other) for other in axis.spread(17))
        low, high = range_around(search, axis_no)
        line = on_line(search, axis_no)
        for one, other in itertools.pairwise(line):
            if other == low or one == high:
                yield from (with_coordinate(best, axis_no, mid) for mid in axis.between(one, other, 7))
