"""Whom lanes are judged for, beside all together: clients or topics that no other one influences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from jobs.find.judgement import Outcomes, traded
from jobs.scenarios.aims import Aim, Constraint
from jobs.scenarios.settings import setting_of
from schemas.tables import algorithms
from schemas.tables.gold import FETCH_RANGES
from schemas.tables.gold_splits import BATCH_SPLIT
from schemas.tables.outcomes import Outcome, outcomes_of
from schemas.tables.values import OF_CLIENT, OF_CLUSTER, OF_TOPIC


class Scope(NamedTuple):
    """What a setting is of: all together, or one client, topic or broker. name: empty for all, and for clients without
    client.id.
    """

    kind: str = OF_CLUSTER
    name: str = ""


FOR_ALL = Scope()
OwnOutcomes = Mapping[Scope, Mapping[str, Outcomes]]
"""By client or topic what lanes come to for it alone, by their names."""
_CLIENT, _TOPIC = {OF_CLIENT: str(FETCH_RANGES.client_id)}, {OF_TOPIC: str(BATCH_SPLIT.topic)}
ALONE: Mapping[tuple[str, str], Mapping[str, str]] = {
    (algorithms.FETCH_MAX_BYTES, "consumer"): _CLIENT,
    (algorithms.CONSUMER_MEMORY, "consumer"): _CLIENT,
    (algorithms.CONSUMER_MEMORY, "producer"): _CLIENT,
    (algorithms.BATCH_SPLIT, "producer"): _CLIENT | _TOPIC,
    (algorithms.BATCH_SPLIT, "topic"): _TOPIC,
}
"""By replay, and by who has the settings, of whom there can be one with a value of its own: the column of their names.

Each of these replays takes a client by itself, and nothing of its lanes enters that of another: logs are as captured,
and a pool is of one process. Slots of a session cache, pools of brokers and limits of partitions are shared.
"""


def kinds_of(aim: Aim) -> Mapping[str, str]:
    """By kind of scope that the aim can be judged for alone the column of its names; none where one influences another,
    or where the aim names what is of others.
    """
    set_on = {setting_of(key).set_on for key in aim.over}
    if len(set_on) != 1 or any(shared(constraint, aim.algorithm) for constraint in aim.where):
        return {}
    whose = set_on.pop() or ""
    is_of_others = any(outcome.side not in (None, whose) for outcome in named(aim))
    return {} if is_of_others else ALONE.get((aim.algorithm, whose), {})


def shared(constraint: Constraint, algorithm: str) -> bool:
    """Whether a constraint is on a sum that must come to a certain value, of which nobody has a share of their own."""
    return is_sum(outcomes_of(algorithm)[constraint.outcome]) and constraint.relation == "=" and constraint.bound != 0


def is_sum(outcome: Outcome) -> bool:
    """Whether an outcome adds up what everyone comes to."""
    return outcome.aggregate in ("total", "rows")


def named(aim: Aim) -> list[Outcome]:
    """The outcomes by which lanes are judged: what is to be best, and what that is traded for."""
    known = outcomes_of(aim.algorithm)
    names = (aim.target, *(constraint.outcome for constraint in traded(aim)))
    return [known[name] for name in dict.fromkeys(names) if name in known]


def own_constraints(aim: Aim, for_all: Outcomes) -> tuple[Constraint, ...]:
    """The constraints of one alone. A bound on a sum becomes what it has of that sum in the lane for all, so that the
    sum keeps to its bound whoever takes a lane of their own; a sum that is to be 0 is to be 0 for everyone.

    for_all: what the lane for all comes to for it.
    """
    known = outcomes_of(aim.algorithm)
    return tuple(
        _own(constraint, for_all) if is_sum(known[constraint.outcome]) and constraint.bound else constraint
        for constraint in aim.where
    )


def _own(constraint: Constraint, for_all: Outcomes) -> Constraint:
    figure = for_all[constraint.outcome]
    if constraint.relation in ("<=", "<"):
        return Constraint(constraint.outcome, "<=", figure.high)
    return Constraint(constraint.outcome, ">=", figure.low)
