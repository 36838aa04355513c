"""The text of a rule in a file of gate rules: its keys, and what is wrong with each of them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from jobs.gates.rules import SEVERITIES, Severity
from jobs.scenarios.located_yaml import Address, Fault, LocatedYaml, Plain, Texts
from jobs.scenarios.settings import did_you_mean


class RuleText(BaseModel):
    """The keys of a rule before its tables are looked up."""

    model_config = ConfigDict(extra="forbid")

    table: Texts | None = None
    every_table_with: Texts | None = None
    expression: str | None = None
    query: str | None = None
    expectation: dict[str, dict[str, Any] | None] | None = None
    severity: Severity
    reason: str
    in_pipeline: bool = True


KEYS = frozenset(RuleText.model_fields)
ABOUT = frozenset({"table", "every_table_with"})
_KINDS = {
    "bool_parsing": "true or false",
    "string_type": "a text",
    "dict_type": "a mapping: of an expectation's name to its arguments",
}
"""What is expected, by pydantic's error type."""
_STAND_INS = {"severity": SEVERITIES[0], "reason": ""}
"""Values that replace wrong or missing keys, so that the rest of a rule is still checked."""


def read_rule_text(
    located: LocatedYaml, address: Address, written: Plain, faults: list[Fault]
) -> tuple[RuleText | None, frozenset[str]]:
    """(the rule's text without the wrong keys, these keys). The text is None if it is not a mapping.

    What is wrong is added to `faults`.
    """
    try:
        return RuleText.model_validate(written), frozenset()
    except ValidationError as fault:
        errors = fault.errors()
    for error in errors:
        faults.append(Fault(located.at((*address, *error["loc"])), f"{address[-1]}: {_key_fault_text(error)}"))
    if not isinstance(written, dict):
        return None, frozenset()
    wrong = frozenset(str(error["loc"][0]) for error in errors)
    sound = {key: value for key, value in written.items() if key not in wrong}
    return RuleText.model_validate({**_STAND_INS, **sound}), wrong


def _key_fault_text(error: ErrorDetails) -> str:
    key = ".".join(map(str, error["loc"])) or "the rule"
    if error["type"] == "extra_forbidden":
        return f"unknown key `{key}`{did_you_mean(key, RuleText.model_fields)}"
    if error["type"] == "missing":
        return f"`{key}` is missing"
    if error["type"] == "list_type":
        return (
            f"`{key}` is a name or a list of names; every table with some columns is `every_table_with: [...]` instead"
        )
    if error["type"] == "literal_error":
        return f"`{key}` is one of {', '.join(SEVERITIES)}, and not `{error['input']}`"
    if error["type"] == "model_type":
        return f"a rule is a mapping with the keys {', '.join(RuleText.model_fields)}"
    if error["type"] in _KINDS:
        return f"`{key}` is {_KINDS[error['type']]}, and not `{error['input']}`"
    return f"`{key}`: {error['msg'].lower()}"
