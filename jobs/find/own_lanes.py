"""Which clients and topics would do better with a value of their own than with the one for all.

Each is judged by the outcomes of lanes for it by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf

from jobs.find.axes import Point, representative_point
from jobs.find.judgement import Outcomes, meets_constraints
from jobs.find.scopes import OwnOutcomes, Scope, own_constraints
from jobs.find.search_state import Search
from jobs.replays.ranged import LEAST_MS, are_apart
from schemas.tables.outcomes import outcomes_of
from schemas.tables.values import OF_CLIENT

MOST_ALONE = 10
"""The most clients and topics that are kept: those that gain most."""


@dataclass(frozen=True)
class OwnLane:
    """A client or topic for which another lane is better than the one for all.

    search: the outcomes of the lanes for it; its `best` is the point that is best for it. for_all: the point of the
    lane for all. gain: the share by which its best lane is better; inf if the lane for all fails a constraint or has a
    time without end.
    """

    scope: Scope
    search: Search
    for_all: Point
    gain: float

    @property
    def own_places(self) -> list[int]:
        """The indices of the axes on which its best point differs from the one for all."""
        pairs = zip(self.search.best, self.for_all, strict=True)
        return [axis_no for axis_no, (own, other) in enumerate(pairs) if own != other]


def better_own_lanes(done: Search, own: OwnOutcomes, points: Iterable[Point]) -> list[OwnLane]:
    """The clients, topics and limits that would gain from one of these points' lanes of their own; those that gain most
    come first.

    own: the outcomes of lanes for each client, topic or limit. A topic or limit is left out if all lanes have the same
    outcomes for it as for a client: then only that client produces there.
    """
    names = {point: done.lane(point).name for point in done.tried}
    candidates, better = list(points), list[OwnLane]()
    for scope, outcomes in own.items():
        better += better_own_lane(done, scope, outcomes_by_point(done, names, outcomes), candidates)
    kept = list[OwnLane]()
    for alone in sorted(better, key=lambda alone: (-alone.gain, alone.scope)):
        if alone.scope.kind == OF_CLIENT or all(alone.search.tried != other.search.tried for other in kept):
            kept.append(alone)
    return kept[:MOST_ALONE]


def outcomes_by_point(
    done: Search, names: Mapping[Point, str], outcomes: Mapping[str, Outcomes]
) -> dict[Point, Outcomes]:
    """The outcomes of points for one client or topic by itself. If lanes of points cannot differ, only one was
    replayed.

    names: for each point the name of its lane. outcomes: for the name of each replayed lane, its outcomes.
    """
    by_point = dict[Point, Outcomes]()
    for point, name in names.items():
        of_point = outcomes.get(name) or outcomes.get(names.get(representative_point(done.axes, point), ""))
        if of_point is not None:
            by_point[point] = of_point
    return by_point


def better_own_lane(
    done: Search, scope: Scope, tried: Mapping[Point, Outcomes], points: Iterable[Point]
) -> Iterator[OwnLane]:
    """The best of these points for one client or topic by itself, if it is clearly better than the one for all.

    tried: for each point the outcomes of its lane for this client or topic.
    """
    for_all = done.best if done.is_met(done.best) else done.captured
    candidates = [point for point in points if point in tried]
    if for_all not in tried or not candidates:
        return
    search = Search(replace(done.aim, where=own_constraints(done.aim, tried[for_all])), done.axes, done.in_force)
    search.note(tried)
    search.best = search.best_of(candidates)
    if gain := gain_over_all(search, for_all):
        yield OwnLane(scope, search, for_all, gain)


def gain_over_all(own: Search, for_all: Point) -> float:
    """The share by which the best lane for one client or topic by itself is better than the lane for all.

    It is 0 if the share is within the aim's step, or if the ranges of the two lanes overlap.
    """
    if not own.is_met(own.best):
        return 0.0
    if not own.is_met(for_all):
        return inf if are_failures_apart(own, for_all) else 0.0
    best, other = own.judged[own.best].score, own.judged[for_all].score
    if not best < other or not (own.aim.is_of_setting or is_target_apart(own, for_all)):
        return 0.0
    share = inf if other in (0.0, inf) else (other - best) / abs(other)
    return share if share > own.aim.step else 0.0


def are_failures_apart(own: Search, for_all: Point) -> bool:
    """Whether the ranges of both lanes do not overlap, in each outcome whose constraint the lane for all fails."""
    best, other = own.tried[own.best], own.tried[for_all]
    failed = (constraint.outcome for constraint in own.aim.where if not meets_constraints([constraint], other))
    return all(are_apart(best[name], other[name]) for name in failed)


def is_target_apart(own: Search, for_all: Point) -> bool:
    """Whether the ranges of both lanes, in the outcome that is to be best, are far enough apart to matter."""
    target = own.aim.target
    best, other = own.tried[own.best][target], own.tried[for_all][target]
    least = LEAST_MS if outcomes_of(own.aim.algorithm)[target].unit == "ms" else 0.0
    return are_apart(best, other) and abs(other.value - best.value) > least
