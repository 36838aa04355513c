"""The rules of gates: what a rule is, and all of them together with the faults of the files that declare them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from jobs.scenarios.located_yaml import Fault, Place
from schemas.tables.gold import GOLD
from schemas.tables.gold_gates import GATE_RESULTS
from schemas.tables.gold_predictions import PREDICTIONS_CHECKED
from schemas.tables.gold_trends import TRENDS
from schemas.tables.silver import SILVER
from schemas.tables.table import Table

Gate = Literal["silver", "gold"]
Severity = Literal["info", "warning", "critical"]
GATES: tuple[Gate, ...] = get_args(Gate)
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""From the least severe to the most severe."""

_OF_NO_RUN = (GATE_RESULTS, PREDICTIONS_CHECKED, TRENDS)
"""Tables that no gate checks: the results of gates, and tables whose rows are about several runs."""
CHECKED: Mapping[str, Table] = {table.name: table for table in (*SILVER, *GOLD) if table not in _OF_NO_RUN}
"""The tables that rules may be about, by name."""
OWN_TABLE, LANES = "table", "lanes"
"""Names in braces: in a query the rule's own table, in an expression the run's lanes."""
Extent = Literal["", "all.", "ids."]
OWN_ROWS, ALL_ROWS, IDENTITIES = EXTENTS = get_args(Extent)
"""What a table's name in braces stands for, by what is written before it: its rows of the subject that is checked, all
its rows, or the ids of the capture sets or, in gold, of the runs of which it has rows.
"""
PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class Rule:
    """One rule of a gate, about each of `tables`.

    in_pipeline: the jobs that write tables apply it, too, and not only the job `gate`. place: where it was declared.
    """

    name: str
    gate: Gate
    tables: tuple[Table, ...]
    severity: Severity
    reason: str
    in_pipeline: bool
    place: Place = field(compare=False)


@dataclass(frozen=True)
class RowRule(Rule):
    """A rule that a row satisfies if `expression` is true for it; false and null violate the rule."""

    expression: str


@dataclass(frozen=True)
class QueryRule(Rule):
    """A rule whose `query` gives the bad rows."""

    query: str


@dataclass(frozen=True)
class ExpectationRule(Rule):
    """A rule that a table satisfies if it meets an expectation of Great Expectations with these arguments."""

    expectation: str
    arguments: Mapping[str, Any] = field(hash=False)


@dataclass(frozen=True)
class Gates:
    """The rules of both gates, and what is wrong in the files that declare them."""

    rules: tuple[Rule, ...] = ()
    faults: tuple[Fault, ...] = ()

    def rules_of(self, gate: Gate) -> tuple[Rule, ...]:
        """A gate's rules."""
        return tuple(rule for rule in self.rules if rule.gate == gate)

    @property
    def in_pipeline(self) -> Gates:
        """The gates without the rules that only the job `gate` applies."""
        return Gates(tuple(rule for rule in self.rules if rule.in_pipeline), self.faults)

    def pairs(self, gate: Gate) -> list[tuple[Rule, Table]]:
        """A gate's rules with each of their tables."""
        return [(rule, table) for rule in self.rules_of(gate) for table in rule.tables]

    def row_rules(self, table: Table) -> tuple[RowRule, ...]:
        """The rules about single rows of a table."""
        return tuple(rule for rule in self.rules if isinstance(rule, RowRule) and table in rule.tables)

    @property
    def quarantine_id(self) -> str:
        """A hash of all that decides which rows are taken out of silver tables; empty if no rule takes rows out."""
        return _hash_of_rules(rule for rule in self.rules_of("silver") if isinstance(rule, RowRule))

    def rules_id(self, gate: Gate) -> str:
        """A hash of a gate's rules."""
        return _hash_of_rules(self.rules_of(gate))


def _hash_of_rules(rules: Iterable[Rule]) -> str:
    lines = [f"{_distinguishing_fields(rule)} {[table.name for table in rule.tables]}" for rule in rules]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16] if lines else ""


def _distinguishing_fields(rule: Rule) -> dict[str, Any]:
    """The fields that make two rules different. The place where a rule is written is not one of them."""
    return {name: value for name, value in vars(rule).items() if name not in ("place", "tables")}
