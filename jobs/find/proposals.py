"""Which lanes to replay next, from those that were: where the best one may be better, and where constraints are met."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterator

import numpy as np

from jobs.find.axes import Axis, Point, representative
from jobs.find.tried import Search, nearest_but_for, on_line, order_of, range_around, trade_off, with_coordinate

FIRST_LANES, MORE_LANES, ANYWHERE = 256, 256, 16
"""Lanes of the first round, of each that follows, and how many of these are anywhere."""
MOST_ON_ONE_AXIS = 65
AROUND = {1: 15, 2: 3}
"""By number of axes, how many coordinates come between two neighbours; 1 where there are more axes."""
MOST_NEIGHBOURS = 24
"""So many of the lanes of the trade-off get others around them in a round."""


def first_grid(axes: tuple[Axis, ...]) -> Iterator[Point]:
    """A grid over all axes: of long ones about as many coordinates each, of short ones all."""
    counts, lanes, left = dict[str, int](), FIRST_LANES, len(axes)
    for axis in sorted(axes, key=lambda axis: (axis.ends[1] - axis.ends[0], axis.key)):
        share = max(2, min(MOST_ON_ONE_AXIS, int(lanes ** (1 / left) + 1e-9)))
        counts[axis.key] = min(share, axis.ends[1] - axis.ends[0] + 1)
        lanes, left = lanes // counts[axis.key], left - 1
    yield from itertools.product(*(axis.spread(counts[axis.key]) for axis in axes))


def next_points(so_far: Search, random: np.random.Generator) -> list[Point]:
    """The points of the next round, those that promise most first."""
    proposed = itertools.chain(
        around(so_far, so_far.best, AROUND.get(len(so_far.axes), 1)),
        simpler(so_far),
        lines_through(so_far, so_far.best),
        *(around(so_far, point, 1) for point in to_relax(so_far)),
        at_limits(so_far),
        *(along_axes(so_far, point, 1) for point in neighbourhoods(so_far)),
    )
    new = (point for point in dict.fromkeys(proposed) if representative(so_far.axes, point) not in so_far.tried)
    chosen = list(itertools.islice(new, MORE_LANES - ANYWHERE))
    return [*chosen, *anywhere(so_far, random)] if chosen else []


def to_relax(so_far: Search) -> Iterator[Point]:
    """Where no point meets all constraints, those that would if one constraint gave way as little as is known."""
    if not so_far.is_met(so_far.best):
        yield from filter(None, (nearest_but_for(so_far, constraint) for constraint in so_far.aim.where))


def neighbourhoods(so_far: Search) -> list[Point]:
    """Points that others are put around: those of the trade-off, and those that would be better than the best one if
    they met the constraints, of both those that fail least, then those that are best.
    """
    best = so_far.judged[so_far.best]
    better = [point for point, judged in so_far.judged.items() if judged.score < best.score]
    some = dict.fromkeys((*trade_off(so_far), *better))
    nearest = sorted(some, key=lambda point: (so_far.judged[point].rank, order_of(point)))
    failing = [point for point in nearest if not so_far.is_met(point)][:MOST_NEIGHBOURS]
    return [*failing, *(point for point in nearest[:MOST_NEIGHBOURS] if so_far.is_met(point))]


def around(so_far: Search, point: Point, count: int) -> Iterator[Point]:
    """Points around one: its coordinates, its neighbours' and so many between, in every combination."""
    yield from itertools.product(
        *([None] if at is None else [at, *nearby(so_far, k, at, count)] for k, at in enumerate(point))
    )


def along_axes(so_far: Search, point: Point, count: int) -> Iterator[Point]:
    """The same, of which one coordinate alone is another."""
    for k, at in enumerate(point):
        if at is not None:
            yield from (with_coordinate(point, k, other) for other in nearby(so_far, k, at, count))


def lines_through(so_far: Search, point: Point) -> Iterator[Point]:
    """Points on the lines through one along each axis, at all coordinates that were tried anywhere."""
    for k, at in enumerate(point):
        if at is not None:
            yield from (with_coordinate(point, k, other) for other in so_far.coordinates[k])


def nearby(so_far: Search, k: int, at: int, count: int) -> list[int]:
    """The neighbours of a coordinate on an axis, and so many coordinates between it and each of them."""
    known = so_far.coordinates[k]
    place = bisect_left(known, at)
    low = known[place - 1] if place else None
    high = known[place + 1] if place + 1 < len(known) else None
    axis = so_far.axes[k]
    below = [] if low is None else [low, *axis.between(low, at, count)]
    return [*below, *([] if high is None else [*axis.between(at, high, count), high])]


def simpler(so_far: Search) -> Iterator[Point]:
    """The best point with fewer settings changed."""
    best = so_far.best
    kept = [k for k, at in enumerate(best) if at is not None and so_far.axes[k].key == so_far.aim.target]
    others = [k for k, at in enumerate(best) if at is not None and k not in kept]
    for count in range(len(others)):
        for some in itertools.combinations(others, count):
            yield tuple(at if k in kept or k in some else None for k, at in enumerate(best))


def at_limits(so_far: Search) -> Iterator[Point]:
    """Points between two neighbours on a line of which one alone meets the constraints, and that may be better."""
    best = so_far.judged[so_far.best]
    pairs = []
    for k in range(len(so_far.axes)):
        for one, other in neighbours(so_far, k):
            if so_far.is_met(one) != so_far.is_met(other):
                score = min(so_far.judged[one].score, so_far.judged[other].score)
                if score < best.score:
                    pairs.append((score, k, one, other))
    for _, k, one, other in sorted(pairs, key=lambda pair: (pair[0], pair[1], order_of(pair[2]))):
        low, high = sorted(at for at in (one[k], other[k]) if at is not None)
        yield from (with_coordinate(one, k, at) for at in so_far.axes[k].between(low, high, 3))


def neighbours(so_far: Search, k: int) -> Iterator[tuple[Point, Point]]:
    """Points that were tried next to each other on an axis, their other coordinates being the same."""
    lines = dict[Point, list[Point]]()
    for point in so_far.tried:
        if point[k] is not None:
            lines.setdefault(with_coordinate(point, k, None), []).append(point)
    for points in lines.values():
        yield from itertools.pairwise(sorted(points, key=order_of))


def anywhere(so_far: Search, random: np.random.Generator) -> Iterator[Point]:
    """Points drawn from all there are."""
    grids = [axis.spread(4 * MOST_ON_ONE_AXIS) for axis in so_far.axes]
    for _ in range(ANYWHERE):
        yield tuple(int(random.choice(grid)) for grid in grids)


def ends_of_range(so_far: Search) -> Iterator[Point]:
    """Points that tell how far each setting of the best point can be changed with the others as they are."""
    best = so_far.best
    for k, (axis, at) in enumerate(zip(so_far.axes, best, strict=True)):
        if at is None or axis.key == so_far.aim.target:
            continue
        yield from (with_coordinate(best, k, other) for other in axis.spread(17))
        low, high = range_around(so_far, k)
        line = on_line(so_far, k)
        for one, other in itertools.pairwise(line):
            if other == low or one == high:
                yield from (with_coordinate(best, k, mid) for mid in axis.between(one, other, 7))
