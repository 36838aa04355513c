"""How good a lane is: its score in the aim, by how much it fails constraints, and its costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import NamedTuple

from jobs.replays.ranged import Ranged
from jobs.scenarios.aims import Aim, Constraint
from jobs.scenarios.scenario import Lane
from jobs.scenarios.settings import Value, setting_of
from schemas.tables.outcomes import outcomes_of


class Failure(NamedTuple):
    """How far a lane is from meeting constraints.

    without_end: the number of constraints that it fails by an infinite amount. share: for the other constraints, the
    sum of the amounts by which it fails each one, as shares of their bounds.
    """

    without_end: int
    share: float


NO_FAILURE = Failure(0, 0.0)
Outcomes = Mapping[str, Ranged]
"""The outcomes of a lane, by their names."""


def aim_score(aim: Aim, lane: Lane, outcomes: Outcomes, in_force: Mapping[str, Value]) -> float:
    """A lane's score in the aim: less is better; inf if it is not known or is a time without end.

    in_force: for each setting the value in lanes that do not change it.
    """
    if aim.is_of_setting:
        figure = number_or_inf(lane.settings.get(aim.target, captured_value(aim.target, in_force)))
        if figure == inf:
            return inf
    else:
        figure = outcomes[aim.target].value
    return figure if aim.is_least else -figure


def captured_value(key: str, in_force: Mapping[str, Value]) -> Value | None:
    """The value of a setting in the captured lane; None if it is not known.

    A setting that exists only in the model, such as `traffic.speed`, has its default in that lane.
    """
    setting = setting_of(key)
    return setting.default_value if setting.exists_as == "model" else in_force.get(key)


def number_or_inf(value: Value | None) -> float:
    """A value as a number; inf if it is not a number."""
    if isinstance(value, int | float):
        return float(value)
    return float(value) if value is not None and value.isdecimal() else inf


def constraint_cost(constraint: Constraint, outcomes: Outcomes) -> float:
    """A lane's cost in the outcome of a constraint, of which less is better: the worse end of the outcome's range. For
    a constraint with `=` it is the distance from the bound to the farther end.
    """
    figure = outcomes[constraint.outcome]
    if constraint.relation in ("<=", "<"):
        return figure.high
    if constraint.relation in (">=", ">"):
        return -figure.low
    return max(abs(figure.low - constraint.bound), abs(figure.high - constraint.bound))


def constraint_excess(constraint: Constraint, outcomes: Outcomes) -> float:
    """By how much a lane fails a constraint; 0 if it meets it."""
    pays = constraint_cost(constraint, outcomes)
    limit = {"<=": constraint.bound, "<": constraint.bound, ">=": -constraint.bound, ">": -constraint.bound, "=": 0.0}
    most = limit[constraint.relation]
    if constraint.relation in ("<", ">") and pays == most:
        return 1e-9 * max(abs(most), 1.0)
    return max(pays - most, 0.0)


def failure_of_constraints(constraints: Iterable[Constraint], outcomes: Outcomes) -> Failure:
    """How far a lane is from meeting constraints; NO_FAILURE if it meets them."""
    shares = [constraint_excess(constraint, outcomes) / (abs(constraint.bound) or 1.0) for constraint in constraints]
    return Failure(shares.count(inf), sum(share for share in shares if share != inf))


def meets_constraints(constraints: Iterable[Constraint], outcomes: Outcomes) -> bool:
    """Whether a lane meets constraints."""
    return failure_of_constraints(constraints, outcomes) == NO_FAILURE


def traded_constraints(aim: Aim) -> tuple[Constraint, ...]:
    """What the aim is traded for: its constraints.

    If it has none, it is the first other outcome of the replay that is about the same side, without a bound.
    """
    if aim.where:
        return aim.where
    known = outcomes_of(aim.algorithm)
    side = known[aim.target].side if aim.target in known else None
    other = next(outcome for outcome in known.values() if outcome.name != aim.target and side in (None, outcome.side))
    return (Constraint(other.name, "<=" if other.is_smaller_better else ">=", inf),)
