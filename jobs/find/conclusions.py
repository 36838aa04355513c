"""The result of a search: which constraints bind, which to relax if not all can be met, and which lanes to keep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, inf, isfinite

from jobs.find.axes import Point
from jobs.find.judgement import constraint_cost, meets_constraints
from jobs.find.own_lanes import OwnLane, better_own_lanes
from jobs.find.scopes import OwnOutcomes
from jobs.find.search import OutcomesOf
from jobs.find.search_state import Search, nearest_failing_only, point_order, trade_off_points
from jobs.scenarios.aims import Constraint, constraint_text
from jobs.scenarios.scenario import Lane
from schemas.tables.outcomes import outcomes_of as known_outcomes

MOST_ON_CURVE = 8
"""The number of lanes of the trade-off that are kept, besides the best and the captured one."""
NOBODY: OwnOutcomes = {}


def binding_constraints(done: Search) -> list[str]:
    """The constraints that bind, as text: without such a constraint the aim would be better by more than its step."""
    if not done.is_met(done.best):
        return []
    score = done.judged[done.best].score
    enough = score - done.tolerance * abs(score) if isfinite(score) else score
    binds = []
    for constraint in done.aim.where:
        others = [other for other in done.aim.where if other != constraint]
        without = [point for point, outcomes in done.tried.items() if meets_constraints(others, outcomes)]
        if min((done.judged[point].score for point in without), default=inf) < enough:
            binds.append(constraint_text(done.aim.algorithm, constraint))
    return binds


def relaxed_constraints(done: Search) -> list[str]:
    """Relaxed constraints with which a lane would meet all constraints, as text; empty if a lane does so already.

    Each text relaxes one constraint, and that would be enough. If no single constraint is enough, one text relaxes all
    constraints that the best lane fails.
    """
    if done.is_met(done.best):
        return []
    alone = [*_each_relaxed_alone(done)]
    if alone:
        return alone
    outcomes = done.tried[done.best]
    failed = [constraint for constraint in done.aim.where if not meets_constraints([constraint], outcomes)]
    return [
        " and ".join(
            _relaxed_constraint(done, constraint, constraint_cost(constraint, outcomes)) for constraint in failed
        )
    ]


def _each_relaxed_alone(done: Search) -> Iterator[str]:
    for constraint in done.aim.where:
        point = nearest_failing_only(done, constraint)
        if point is not None and isfinite(pays := constraint_cost(constraint, done.tried[point])):
            yield _relaxed_constraint(done, constraint, pays)


def _relaxed_constraint(done: Search, constraint: Constraint, pays: float) -> str:
    """A constraint, as text, relaxed so that a lane whose `constraint_cost` is `pays` meets it."""
    if not isfinite(pays):
        return f"no bound on {constraint.outcome}"
    unit = known_outcomes(done.aim.algorithm)[constraint.outcome].unit
    # Bytes to the KiB, shares to a hundredth of a percent, everything else to a whole number.
    scale = 10_000 if unit == "share" else 1 / 1024 if unit == "bytes" and abs(pays) > 1024 else 1
    if constraint.relation in ("<=", "<"):
        return constraint_text(done.aim.algorithm, constraint._replace(relation="<=", bound=ceil(pays * scale) / scale))
    if constraint.relation in (">=", ">"):
        bound = -ceil(pays * scale) / scale
        return constraint_text(done.aim.algorithm, constraint._replace(relation=">=", bound=bound))
    return f"{constraint_text(done.aim.algorithm, constraint)} within {pays:g}"


def trade_off_curve(done: Search) -> list[Point]:
    """The points of the trade-off that are kept, first the best in the aim: the best point, the captured one, and at
    most MOST_ON_CURVE others, spread evenly over the whole trade-off.
    """
    points = trade_off_points(done)
    if len(points) > MOST_ON_CURVE:
        places = {round(i * (len(points) - 1) / (MOST_ON_CURVE - 1)) for i in range(MOST_ON_CURVE)}
        points = [point for place, point in enumerate(points) if place in places or point == done.best]
    return sorted({*points, done.best, done.captured}, key=lambda point: (done.judged[point][1:], point_order(point)))


@dataclass(frozen=True)
class Settled:
    """A search that is over.

    curve: the points of its trade-off, in order, with the best one. kept: the points whose lanes are replayed in full:
    those of the curve, then those that are best for one client or topic by itself. alone: the clients and topics that
    would gain from one of these lanes of their own; those that gain most come first.
    """

    search: Search
    curve: tuple[Point, ...]
    kept: tuple[Point, ...]
    alone: tuple[OwnLane, ...]

    @property
    def lanes(self) -> list[Lane]:
        """The lanes that are replayed in full, without the captured one."""
        return [self.search.lane(point) for point in self.kept if point != self.search.captured]


def settle_search(done: Search, beside: Sequence[Lane], outcomes_of: OutcomesOf, own: OwnOutcomes = NOBODY) -> Settled:
    """End a search: replay the kept lanes again, together with the other lanes of the run.

    How often a pace is drawn anew depends on how many lanes are replayed together, and an aim has to give the same
    outcomes for a lane as the run's tables. Replays without ranges draw no pace, so they are not replayed again.

    beside: the other lanes of the run. own: the outcomes of lanes for each client or topic by itself; `outcomes_of`
    adds those of the lanes that it replays.
    """
    points = trade_off_curve(done)
    own_best = [alone.search.best for alone in better_own_lanes(done, own, [*done.tried])]
    kept = tuple(dict.fromkeys((*points, *own_best)))
    if any(outcome.ranges for outcome in known_outcomes(done.aim.algorithm).values()):
        lanes = {point: done.lane(point) for point in kept}
        figures = outcomes_of([*{lane.name: lane for lane in (*beside, *lanes.values())}.values()])
        done.note({point: figures[lane.name] for point, lane in lanes.items()})
    done.best = done.best_of(points)
    return Settled(done, tuple(points), kept, tuple(better_own_lanes(done, own, kept)))
