"""Aims: which outcome or setting is minimised or maximised, under which constraints, and over which settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

from jobs.scenarios.settings import Value, setting_of
from jobs.units import format_bytes, format_ms, format_number, parse_bytes, parse_ms, parse_number
from schemas.tables.gold import FETCH_RANGES
from schemas.tables.gold_splits import BATCH_SPLIT
from schemas.tables.outcomes import Outcome, outcomes_of
from schemas.tables.values import OF_CLIENT, OF_TOPIC

Relation = Literal["<=", ">=", "<", ">", "="]
DEFAULT_STEP, DEFAULT_ROUNDS = 0.01, 8


class Span(NamedTuple):
    """All values of a setting from `least` to `most`, both included."""

    least: int
    most: int


class Constraint(NamedTuple):
    """A bound that an outcome must meet, in the outcome's unit."""

    outcome: str
    relation: Relation
    bound: float


Over = Mapping[str, Span | tuple[Value, ...]]
"""The values that `find` searches, by setting."""
Whom = Mapping[str, tuple[str, ...]]
"""The clients or topics whose outcomes count, by kind of scope: names, in which `*` stands for any text and `?` for any
character."""
COLUMNS: Mapping[str, str] = {OF_CLIENT: str(FETCH_RANGES.client_id), OF_TOPIC: str(BATCH_SPLIT.topic)}
"""The column with the names of clients or topics, by kind of scope. All tables that count by these have it."""
_FOR = re.compile(r" for (.+?)(?: where | over |$)")


@dataclass(frozen=True)
class Aim:
    """What `find` looks for in one replay.

    target: what is minimised or maximised: an outcome's name, or the key of a setting in `over`. is_least: whether it
    is minimised. where: the constraints. step: outcomes that differ by a smaller share are equally good, and values in
    bytes that differ by less count as the same. rounds: the most rounds in which lanes are replayed. whom: the clients
    or topics that it is for; empty for all.
    """

    algorithm: str
    target: str
    is_least: bool
    where: tuple[Constraint, ...]
    over: Over
    step: float = DEFAULT_STEP
    rounds: int = DEFAULT_ROUNDS
    whom: Whom = field(default_factory=dict)

    @property
    def is_of_setting(self) -> bool:
        """Whether a setting itself is minimised or maximised, and not an outcome."""
        return self.target not in outcomes_of(self.algorithm)

    def __str__(self) -> str:
        """The aim as for --find."""
        where = " and ".join(constraint_text(self.algorithm, constraint) for constraint in self.where)
        over = " and ".join(f"{key}={values_text(key, values)}" for key, values in self.over.items())
        best = f"{self.algorithm}: {'least' if self.is_least else 'most'} {self.target}"
        whom = " and ".join(f"{kind}={','.join(names)}" for kind, names in self.whom.items())
        return f"{best}{f' for {whom}' if whom else ''}{f' where {where}' if where else ''} over {over}"

    def to_json_value(self) -> Mapping[str, object]:
        """The aim for the scenario's canonical form."""
        return {"aim": str(self), "step": self.step, "rounds": self.rounds}


def whom_in(text: str) -> Whom:
    """The clients or topics that an aim is for. text: `str` of the aim."""
    spelt = _FOR.search(text)
    parts = (part.partition("=") for part in spelt[1].split(" and ")) if spelt else ()
    return {kind: tuple(names.split(",")) for kind, _, names in parts}


def is_meant(name: str, patterns: Sequence[str]) -> bool:
    """Whether a client or topic is among those that an aim is for.

    >>> is_meant("orders-7", ["billing", "orders-*"]), is_meant("Orders-7", ["orders-*"])
    (True, False)
    """
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def values_text(key: str, values: Span | tuple[Value, ...]) -> str:
    """The values of a setting as for --find: `64KiB..100MiB`, `100,500`."""
    setting = setting_of(key)
    if isinstance(values, Span):
        return "..".join(setting.format(setting.parse(str(end))) for end in values)
    return ",".join(map(setting.format, values))


def constraint_text(algorithm: str, constraint: Constraint) -> str:
    """A constraint as for --find: `held <= 64MiB`."""
    name, relation, bound = constraint
    return f"{name} {relation} {bound_text(outcomes_of(algorithm)[name], bound)}"


def bound_text(outcome: Outcome, figure: float) -> str:
    """A figure as text for a constraint. `parse_bound` reads it back if it is a whole number or a share."""
    if outcome.unit == "bytes" and float(figure).is_integer():
        return format_bytes(int(figure))
    if outcome.unit == "ms" and float(figure).is_integer():
        return format_ms(int(figure)) if figure % 1000 or not figure else f"{int(figure) // 1000}s"
    return format_number(figure)


def parse_bound(outcome: Outcome, text: str) -> float:
    """The bound in a text, in the outcome's unit. Raises ValueError with what is wrong."""
    if outcome.unit == "bytes":
        return float(parse_bytes(text))
    if outcome.unit == "ms":
        return float(parse_ms(text))
    if outcome.unit == "share" and text.endswith("%"):
        return parse_number(text.removesuffix("%").strip()) / 100
    return parse_number(text)
