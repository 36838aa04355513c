"""How good a lane is: what it comes to in the aim, by how much it fails constraints, and what it pays."""

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
    """How far a lane is from what constraints ask: how many are failed without measure, and by which shares others."""

    without_end: int
    share: float


NO_FAILURE = Failure(0, 0.0)
Outcomes = Mapping[str, Ranged]
"""What a lane comes to, by outcome."""


def aimed(aim: Aim, lane: Lane, outcomes: Outcomes, in_force: Mapping[str, Value]) -> float:
    """What a lane comes to in the aim, less being better; inf if that is not known or never ends.

    in_force: by setting the value of lanes that do not change it.
    """
    if aim.is_of_setting:
        figure = number_of(lane.settings.get(aim.target, as_captured(aim.target, in_force)))
        if figure == inf:
            return inf
    else:
        figure = outcomes[aim.target].value
    return figure if aim.is_least else -figure


def as_captured(key: str, in_force: Mapping[str, Value]) -> Value | None:
    """The value of a setting in the captured lane; None where nobody knows it. What exists in the model alone, such as
    `traffic.speed`, has its default there.
    """
    setting = setting_of(key)
    return setting.default_value if setting.exists_as == "model" else in_force.get(key)


def number_of(value: Value | None) -> float:
    """The number that a value is; inf for one that is none."""
    if isinstance(value, int | float):
        return float(value)
    return float(value) if value is not None and value.isdecimal() else inf


def cost(constraint: Constraint, outcomes: Outcomes) -> float:
    """The end of an outcome's range that the constraint is about, less being better."""
    figure = outcomes[constraint.outcome]
    if constraint.relation in ("<=", "<"):
        return figure.high
    if constraint.relation in (">=", ">"):
        return -figure.low
    return max(abs(figure.low - constraint.bound), abs(figure.high - constraint.bound))


def excess(constraint: Constraint, outcomes: Outcomes) -> float:
    """By how much a lane fails a constraint; 0 if it meets it."""
    pays = cost(constraint, outcomes)
    limit = {"<=": constraint.bound, "<": constraint.bound, ">=": -constraint.bound, ">": -constraint.bound, "=": 0.0}
    most = limit[constraint.relation]
    if constraint.relation in ("<", ">") and pays == most:
        return 1e-9 * max(abs(most), 1.0)
    return max(pays - most, 0.0)


def failure(constraints: Iterable[Constraint], outcomes: Outcomes) -> Failure:
    """How far a lane is from meeting constraints; NO_FAILURE if it meets them."""
    shares = [excess(of, outcomes) / (abs(of.bound) or 1.0) for of in constraints]
    return Failure(shares.count(inf), sum(share for share in shares if share != inf))


def meets(constraints: Iterable[Constraint], outcomes: Outcomes) -> bool:
    """Whether a lane meets constraints."""
    return failure(constraints, outcomes) == NO_FAILURE


def traded(aim: Aim) -> tuple[Constraint, ...]:
    """What the aim is traded for: its constraints; without any the first other outcome of the replay, smaller or larger
    as is better.
    """
    if aim.where:
        return aim.where
    known = outcomes_of(aim.algorithm)
    side = known[aim.target].side if aim.target in known else None
    other = next(of for of in known.values() if of.name != aim.target and side in (None, of.side))
    return (Constraint(other.name, "<=" if other.is_smaller_better else ">=", inf),)
