"""For whom lanes are judged: for all together, and for each client, each topic or all topics of one limit, if no other
influences it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from jobs.find.judgement import Outcomes, traded_constraints
from jobs.scenarios.aims import COLUMNS, Aim, Constraint
from jobs.scenarios.settings import setting_of
from schemas.tables import algorithms
from schemas.tables.outcomes import Outcome, outcomes_of
from schemas.tables.values import OF_CLIENT, OF_CLUSTER, OF_LIMIT, OF_TOPIC


class Scope(NamedTuple):
    """Who has a setting: all together, or one client, topic or broker, or all topics of one limit.

    name: empty for all together, and for clients without client.id; for a limit its bytes.
    """

    kind: str = OF_CLUSTER
    name: str = ""


FOR_ALL = Scope()
OwnOutcomes = Mapping[Scope, Mapping[str, Outcomes]]
"""For each client, topic or limit, the outcomes of lanes for it by itself, by the lane's name."""
_CLIENT, _TOPIC = ({kind: COLUMNS[kind]} for kind in (OF_CLIENT, OF_TOPIC))
_LIMIT = {OF_LIMIT: COLUMNS[OF_TOPIC]}
ALONE: Mapping[tuple[str, str], Mapping[str, str]] = {
    (algorithms.FETCH_MAX_BYTES, "consumer"): _CLIENT,
    (algorithms.CONSUMER_MEMORY, "consumer"): _CLIENT,
    (algorithms.CONSUMER_MEMORY, "producer"): _CLIENT,
    (algorithms.BATCH_SPLIT, "producer"): _CLIENT | _LIMIT,
    (algorithms.BATCH_SPLIT, "topic"): _TOPIC,
}
"""The replays and settings in which one client or topic can have a value of its own.

By replay and by what the settings are set on: for each kind of scope, the column that has the names of clients or
topics; topics of one limit are combined later. Each of these replays takes a client by itself, and its lanes do not
change another client: logs are as captured, and a pool belongs to one process. Slots of a session cache, pools of
brokers and limits on partitions are shared, so they are not here.
"""


def scope_kinds(aim: Aim) -> Mapping[str, str]:
    """The kinds of scope whose members can be judged by themselves, with the column of their names.

    There are none if one client influences another, or if the aim names outcomes of clients, topics or brokers that do
    not have its settings.
    """
    set_on = {setting_of(key).set_on for key in aim.over}
    if len(set_on) != 1 or any(is_on_shared_sum(constraint, aim.algorithm) for constraint in aim.where):
        return {}
    whose = set_on.pop() or ""
    is_of_others = any(outcome.side not in (None, whose) for outcome in judged_outcomes(aim))
    return {} if is_of_others else ALONE.get((aim.algorithm, whose), {})


def is_on_shared_sum(constraint: Constraint, algorithm: str) -> bool:
    """Whether a constraint asks for a certain sum over all, in which no client or topic has a share of its own."""
    return is_sum(outcomes_of(algorithm)[constraint.outcome]) and constraint.relation == "=" and constraint.bound != 0


def is_sum(outcome: Outcome) -> bool:
    """Whether an outcome is a sum over all clients or topics."""
    return outcome.aggregate in ("total", "rows")


def judged_outcomes(aim: Aim) -> list[Outcome]:
    """The outcomes by which lanes are judged: the one that is to be best, and those that it is traded for."""
    known = outcomes_of(aim.algorithm)
    names = (aim.target, *(constraint.outcome for constraint in traded_constraints(aim)))
    return [known[name] for name in dict.fromkeys(names) if name in known]


def own_constraints(aim: Aim, for_all: Outcomes) -> tuple[Constraint, ...]:
    """The constraints under which one client or topic is judged by itself.

    A bound on a sum becomes the part of the sum that this client or topic has in the lane for all, so that the sum
    stays within its bound whichever clients or topics take lanes of their own. A sum that has to be 0 has to be 0 for
    each one.

    for_all: the outcomes of the lane for all, for this client or topic.
    """
    known = outcomes_of(aim.algorithm)
    return tuple(
        _with_own_part(constraint, for_all) if is_sum(known[constraint.outcome]) and constraint.bound else constraint
        for constraint in aim.where
    )


def _with_own_part(constraint: Constraint, for_all: Outcomes) -> Constraint:
    figure = for_all[constraint.outcome]
    if constraint.relation in ("<=", "<"):
        return Constraint(constraint.outcome, "<=", figure.high)
    return Constraint(constraint.outcome, ">=", figure.low)
