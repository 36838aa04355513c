"""Who would do better with a setting of their own than with the one for all: each is judged by its own outcomes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf

from jobs.find.axes import Point, representative
from jobs.find.judgement import Outcomes, meets
from jobs.find.scopes import OwnOutcomes, Scope, own_constraints
from jobs.find.tried import Search
from jobs.replays.ranged import are_apart
from schemas.tables.outcomes import outcomes_of
from schemas.tables.values import OF_CLIENT

MOST_ALONE = 10
"""So many clients and topics are told: those that gain most."""
LEAST_MS = 10.0
"""Times that differ by no more milliseconds are not worth a setting of one's own."""


@dataclass(frozen=True)
class Alone:
    """A client or topic for which another lane is better than the one for all.

    search: what the lanes come to for it, of which `best` is best for it. for_all: the point of the lane for all.
    gain: by which share it is better; inf if the lane for all fails a constraint, or never ends.
    """

    scope: Scope
    search: Search
    for_all: Point
    gain: float

    @property
    def own_places(self) -> list[int]:
        """The axes on which its best lane is another than the one for all."""
        pairs = zip(self.search.best, self.for_all, strict=True)
        return [axis_no for axis_no, (own, other) in enumerate(pairs) if own != other]


def better_alone(done: Search, own: OwnOutcomes, points: Iterable[Point]) -> list[Alone]:
    """Those who would gain from a lane of their own among these points, those that gain most first.

    A topic of which lanes tell the same as of a client is that client's, and not told again.
    """
    names = {point: done.lane(point).name for point in done.tried}
    some, better = list(points), list[Alone]()
    for scope, outcomes in own.items():
        better += judged_alone(done, scope, came_to(done, names, outcomes), some)
    kept = list[Alone]()
    for one in sorted(better, key=lambda one: (-one.gain, one.scope)):
        if one.scope.kind == OF_CLIENT or all(one.search.tried != other.search.tried for other in kept):
            kept.append(one)
    return kept[:MOST_ALONE]


def came_to(done: Search, names: Mapping[Point, str], outcomes: Mapping[str, Outcomes]) -> dict[Point, Outcomes]:
    """What points come to for one alone. Of points whose lanes cannot differ one was replayed.

    names: by point the name of its lane. outcomes: by lane that was replayed.
    """
    by_point = dict[Point, Outcomes]()
    for point, name in names.items():
        of = outcomes.get(name) or outcomes.get(names.get(representative(done.axes, point), ""))
        if of is not None:
            by_point[point] = of
    return by_point


def judged_alone(
    done: Search, scope: Scope, tried: Mapping[Point, Outcomes], points: Iterable[Point]
) -> Iterator[Alone]:
    """The lane among these points that is best for one alone, if that is clearly better than the one for all."""
    for_all = done.best if done.is_met(done.best) else done.captured
    some = [point for point in points if point in tried]
    if for_all not in tried or not some:
        return
    search = Search(replace(done.aim, where=own_constraints(done.aim, tried[for_all])), done.axes, done.in_force)
    search.note(tried)
    search.best = search.best_of(some)
    if gain := gained(search, for_all):
        yield Alone(scope, search, for_all, gain)


def gained(own: Search, for_all: Point) -> float:
    """By which share the best lane of one alone is better than the one for all; 0 if that is within the step, or if
    their ranges do not tell them apart.
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
    """Whether each constraint that the lane for all fails is on an outcome that the ranges tell apart."""
    best, other = own.tried[own.best], own.tried[for_all]
    failed = (of.outcome for of in own.aim.where if not meets([of], other))
    return all(are_apart(best[name], other[name]) for name in failed)


def is_target_apart(own: Search, for_all: Point) -> bool:
    """Whether the ranges tell apart what is to be best, and by enough to matter."""
    target = own.aim.target
    best, other = own.tried[own.best][target], own.tried[for_all][target]
    least = LEAST_MS if outcomes_of(own.aim.algorithm)[target].unit == "ms" else 0.0
    return are_apart(best, other) and abs(other.value - best.value) > least
