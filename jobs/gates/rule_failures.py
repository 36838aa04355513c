"""Rules that Spark can read but not apply, because a division or a cast fails for some row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.errors import PySparkException

from jobs.gates.rules import QueryRule, RowRule, Rule
from jobs.gates.views import query_on_views
from udfs.errors import EvaluationError

_ENDS = " SQLSTATE"
"""The text that Spark appends to a message."""


@contextmanager
def readable_rule_failures(rules: Sequence[Rule]) -> Iterator[None]:
    """Raise EvaluationError with the rule's name and place if Spark fails in a rule's SQL during the block."""
    try:
        yield
    except PySparkException as fault:
        failed = [rule for rule in rules if _is_of(rule, _sql_fragments(fault))]
        if not failed:
            raise
        named = " or ".join(f"{rule.place}: {rule.name}" for rule in failed)
        raise EvaluationError(f"{named} could not be applied: {spark_message(str(fault))}") from fault


def spark_message(text: str) -> str:
    """The first line of Spark's message, without SQLSTATE."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    return first.partition(_ENDS)[0]


def _sql_fragments(fault: PySparkException) -> list[str]:
    """The parts of SQL at which Spark says that it failed."""
    fragments = [context.fragment() for context in fault.getQueryContext() if context.contextType().name == "SQL"]
    return [fragment for fragment in fragments if fragment]


def _is_of(rule: Rule, fragments: Sequence[str]) -> bool:
    if isinstance(rule, RowRule):
        texts = [rule.expression]
    elif isinstance(rule, QueryRule):
        texts = [query_on_views(rule, table) for table in rule.tables]
    else:
        return False
    return any(fragment in text for fragment in fragments for text in texts)
