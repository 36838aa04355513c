"""Reads files of gate rules, conf/gates and those of --gates, into rules, and into faults with file and line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from jobs.gates.rule_text import ABOUT, KEYS, RuleText, read_rule_text
from jobs.gates.rules import (
    CHECKED,
    EXTENTS,
    GATES,
    LANES,
    OWN_TABLE,
    PLACEHOLDER,
    ExpectationRule,
    Gate,
    Gates,
    QueryRule,
    RowRule,
    Rule,
)
from jobs.paths import CONF, SHOWN_DOCS
from jobs.scenarios.located_yaml import Address, Fault, LocatedYaml, Place, Plain, read_located_yaml
from jobs.scenarios.settings import did_you_mean
from schemas.tables.silver import QUARANTINE
from schemas.tables.table import Table
from udfs.errors import ArgumentError

_NAME = re.compile(r"[a-z][a-z0-9_]*")
TABLES_PAGE = f"{SHOWN_DOCS}/tables.md"
_FORMS = ("expression", "query", "expectation")


@cache
def default_gates() -> Gates:
    """The rules of conf/gates."""
    return read_gates(())


def read_gates(paths: Sequence[str]) -> Gates:
    """The rules of conf/gates and of these files and folders. A rule replaces an earlier one with the same name.

    Raises ArgumentError if a path does not exist, ScenarioError if a file is not YAML.
    """
    rules: dict[str, Rule] = {}
    faults: list[Fault] = []
    for file in [file for path in (str(CONF / "gates"), *paths) for file in _yaml_files(path)]:
        located = read_located_yaml(str(file), "a file of gate rules")
        faults += located.faults
        rules |= {rule.name: rule for rule in _rules_in_file(located, faults)}
    return Gates(tuple(rules.values()), tuple(faults))


def _yaml_files(path: str) -> list[Path]:
    """The file, or a folder's YAML files in the order of their names."""
    if Path(path).is_file():
        return [Path(path)]
    files = sorted(file for pattern in ("*.yaml", "*.yml") for file in Path(path).glob(pattern))
    if not files:
        raise ArgumentError(f"--gates {path}: no such file, and no folder with *.yaml in it")
    return files


def _rules_in_file(located: LocatedYaml, faults: list[Fault]) -> Iterable[Rule]:
    """The well-formed rules of a file. What is wrong with the others is added to `faults`."""
    data = located.data
    if not isinstance(data, dict):
        expected = "a file of gates is a mapping with the keys silver and gold, and rules by name in each"
        faults.append(Fault(located.at(()), expected))
        return
    for gate, rules in data.items():
        if gate not in GATES:
            faults.append(Fault(located.at((gate,)), f"unknown key `{gate}`{did_you_mean(gate, GATES)}"))
        elif not isinstance(rules, dict):
            faults.append(Fault(located.at((gate,)), f"`{gate}` must be a mapping of rules by name"))
        else:
            for name, written in rules.items():
                rule = _rule_under_name(located, gate, name, written, faults)
                if rule is not None:
                    yield rule


def _rule_under_name(located: LocatedYaml, gate: Gate, name: str, written: Plain, faults: list[Fault]) -> Rule | None:
    """The rule with this name; None if it is so wrong that Spark or Great Expectations cannot read it.

    What is wrong is added to `faults`.
    """
    address = (gate, name)
    if not _NAME.fullmatch(name):
        faults.append(Fault(located.at(address), f"{name}: a rule's name is of a-z, 0-9 and _, and begins with a-z"))
    text, wrong = read_rule_text(located, address, written, faults)
    if text is None:
        return None
    before = len(faults)
    tables = () if wrong & ABOUT else _tables_of_rule(located, address, text, faults, is_sure=wrong <= KEYS)
    forms = [form for form in _FORMS if getattr(text, form) is not None]
    if len(forms) > 1 or not (forms or wrong.intersection(_FORMS) or wrong - KEYS):
        fault = f"{name}: give one of {', '.join(_FORMS)}, and not {' and '.join(forms) or 'none'}"
        faults.append(Fault(located.at(address), fault))
    if len(forms) != 1:
        return None
    told_wrong = _form_faults(gate, text, tables)
    faults += [Fault(located.at((*address, forms[0])), f"{name}: {fault}") for fault in told_wrong]
    if len(faults) > before or not tables:
        return None
    return _make_rule(name, gate, tables, text, located.at((*address, forms[0])))


def _make_rule(name: str, gate: Gate, tables: tuple[Table, ...], text: RuleText, place: Place) -> Rule:
    common = (name, gate, tables, text.severity, " ".join(text.reason.split()), text.in_pipeline, place)
    if text.expression is not None:
        return RowRule(*common, text.expression)
    if text.query is not None:
        return QueryRule(*common, text.query)
    ((expectation, arguments),) = (text.expectation or {}).items()
    return ExpectationRule(*common, expectation, _typed_arguments(arguments or {}))


def _typed_arguments(arguments: Any) -> Any:
    """The arguments of an expectation with their scalars as YAML reads them: numbers, booleans, null."""
    if isinstance(arguments, dict):
        return {key: _typed_arguments(value) for key, value in arguments.items()}
    if isinstance(arguments, list):
        return [_typed_arguments(value) for value in arguments]
    return yaml.safe_load(arguments) if isinstance(arguments, str) else arguments


def _tables_of_rule(
    located: LocatedYaml, address: Address, text: RuleText, faults: list[Fault], *, is_sure: bool
) -> tuple[Table, ...]:
    """The tables that a rule is about. is_sure: it has no unknown key that could be meant to name the tables."""
    gate, name = address
    own = {table.name: table for table in CHECKED.values() if table.layer == gate}
    if text.table is None and text.every_table_with is None and not is_sure:
        return ()
    if (text.table is None) == (text.every_table_with is None):
        faults.append(Fault(located.at(address), f"{name}: give `table` or `every_table_with`, one of them"))
        return ()
    if text.every_table_with is not None:
        wanted = set(text.every_table_with)
        tables = tuple(table for table in own.values() if wanted <= set(table.columns))
        if not tables:
            fault = f"{name}: no {gate} table has the columns {', '.join(text.every_table_with)}"
            faults.append(Fault(located.at((*address, "every_table_with")), fault))
        return tables
    for table in text.table or ():
        if table not in own:
            fault = f"{name}: unknown {gate} table `{table}`{did_you_mean(table, own, TABLES_PAGE)}"
            faults.append(Fault(located.at((*address, "table")), fault))
    return tuple(own[table] for table in text.table or () if table in own)


def _form_faults(gate: Gate, text: RuleText, tables: tuple[Table, ...]) -> Iterable[str]:
    """What is wrong with the rule's form, as far as that is known without Spark and Great Expectations."""
    if text.expression is not None:
        if QUARANTINE in tables:
            yield f"rows of {QUARANTINE.name} cannot be put there; ask by a query"
        known = {LANES} if gate == "gold" else set()
        yield from (
            f"unknown {{{name}}} in an expression" for name in _placeholder_names(text.expression) if name not in known
        )
    elif text.query is not None:
        tables_known = [name for name, table in CHECKED.items() if gate == "gold" or table.layer == gate]
        known = {f"{extent}{name}" for extent in EXTENTS for name in (OWN_TABLE, *tables_known)}
        if not {extent + OWN_TABLE for extent in EXTENTS} & set(_placeholder_names(text.query)):
            yield f"the query does not ask {{{OWN_TABLE}}}"
        for name in _placeholder_names(text.query):
            if name not in known:
                yield f"unknown table {{{name}}}{did_you_mean(name, sorted(known), TABLES_PAGE)}"
    elif len(text.expectation or {}) != 1:
        yield "give one expectation, with its arguments"


def _placeholder_names(sql: str) -> list[str]:
    return [name.strip() for name in PLACEHOLDER.findall(sql)]
