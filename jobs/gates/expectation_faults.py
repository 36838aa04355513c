"""What is wrong with the expectations of rules, in refetch's words. This is imported only if a rule has an expectation:
Great Expectations takes seconds to load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import great_expectations.expectations as gxe
from great_expectations.compatibility.pydantic import ValidationError
from great_expectations.expectations.expectation import Expectation

from jobs.gates.expectations import COMMON, expectation_named, expectation_of
from jobs.gates.rule_files import TABLES_PAGE
from jobs.gates.rules import ExpectationRule
from jobs.scenarios.settings import did_you_mean
from schemas.tables.table import Table

COLUMN_ARGUMENTS, COLUMN_LIST = ("column", "column_A", "column_B"), "column_list"
_OWN_DOCS = "Great Expectations' own documentation"
_EXPECTED: Mapping[str, str] = {
    "type_error": "a time",
    "type_error.bool": "true or false",
    "type_error.float": "a number",
    "type_error.integer": "a whole number",
    "type_error.list": "a list",
    "type_error.sequence": "a list",
    "type_error.set": "a list",
    "type_error.tuple": "a list",
    "type_error.str": "a text",
    "type_error.none.not_allowed": "a value",
    "value_error.date": "a time",
    "value_error.datetime": "a time",
    "value_error.number.not_ge": "at least {limit_value}",
    "value_error.number.not_le": "at most {limit_value}",
}
"""What is expected of an argument, by pydantic's error type."""
_OF_SUITES = ("type_error.dict", "type_error.invalidparametertype")
"""Error types about parameters of suites. Rules do not have such parameters."""
_LONGEST = 60


def expectation_faults(rule: ExpectationRule) -> Iterator[str]:
    """What is wrong with an expectation's name, its arguments, and the columns that they name."""
    of = expectation_named(rule.expectation)
    if of is None:
        hint = did_you_mean(rule.expectation, _expectation_names(), _OWN_DOCS)
        yield f"Great Expectations has no `{rule.expectation}`{hint}"
        return
    for table in rule.tables:
        yield from _column_faults(rule.arguments, table)
    known = [name for name in of.__fields__ if name not in COMMON]
    own = [name for name in known if name not in Expectation.__fields__]
    for key in rule.arguments:
        if key in COMMON:
            yield f"`{key}` is no argument of an expectation here: a rule has `severity` and `reason` beside it"
        elif key not in known:
            yield f"{rule.expectation} has no argument `{key}`{did_you_mean(key, own, _OWN_DOCS)}"
    arguments = {key: value for key, value in rule.arguments.items() if key in known}
    try:
        expectation_of(rule, arguments)
    except ValidationError as fault:
        yield from _argument_faults(fault.errors(), arguments)


def _expectation_names() -> list[str]:
    """The name of every expectation, as in rules."""
    classes = [name for name in dir(gxe) if name.startswith("Expect") and name != Expectation.__name__]
    return [getattr(gxe, name).expectation_type for name in classes if hasattr(getattr(gxe, name), "expectation_type")]


def _column_faults(arguments: Mapping[str, Any], table: Table) -> Iterator[str]:
    listed = arguments.get(COLUMN_LIST)
    named = [arguments.get(key) for key in COLUMN_ARGUMENTS] + (listed if isinstance(listed, list) else [])
    for column in named:
        if isinstance(column, str) and column not in table.columns:
            yield f"{table.name} has no column `{column}`{did_you_mean(column, map(str, table.columns), TABLES_PAGE)}"


def _argument_faults(errors: Sequence[Mapping[str, Any]], arguments: Mapping[str, Any]) -> Iterator[str]:
    """One line for each wrong argument, even if pydantic names several types that it could have."""
    by_argument: dict[str, list[Mapping[str, Any]]] = {}
    for error in errors:
        by_argument.setdefault(str(error["loc"][0]), []).append(error)
    for key, of_key in by_argument.items():
        if of_key[0]["type"] == "value_error.missing":
            yield f"`{key}` is missing"
        elif key in arguments:
            expected = [_expected_text(error) for error in of_key if error["type"] not in _OF_SUITES] or [
                "another value"
            ]
            yield f"`{key}` is {_short_repr(arguments[key])}; expected {' or '.join(dict.fromkeys(expected))}"
        else:
            yield of_key[0]["msg"]


def _expected_text(error: Mapping[str, Any]) -> str:
    context = error.get("ctx", {})
    if error["type"] == "value_error.const":
        return f"one of {', '.join(map(str, context['permitted']))}"
    expected = _EXPECTED.get(error["type"])
    return str(error["msg"]) if expected is None else expected.format(**context)


def _short_repr(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
