"""What only Spark and Great Expectations can tell of rules: whether they can be read, and name columns there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from jobs.gate_rules import ExpectationRule, Gates, QueryRule, RowRule, Rule
from jobs.gate_views import asked_tables, expression_of, no_rows, query_of
from jobs.located_yaml import Fault
from schemas.tables.table import Table
from udfs.errors import RuleError

_ANY_LANE = ("captured",)
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Where pyspark logs an exception that it raises as well."""


def check_rules(spark: SparkSession, gates: Gates) -> None:
    """Have every rule read, without any data. Raises RuleError with all that is wrong in the files that have them."""
    with asked_tables(spark, gates.rules, lambda table, _: no_rows(spark, table)):
        faults = [*gates.faults, *_of_spark(spark, gates.rules), *_of_expectations(gates.rules)]
    if faults:
        in_order = sorted(faults, key=lambda fault: (fault.place.name, fault.place.line))
        raise RuleError("gates", tuple(map(str, in_order)))


def _of_spark(spark: SparkSession, rules: Iterable[Rule]) -> Iterator[Fault]:
    """Each rule's first fault, in the first table where it has one."""
    for name in _LOGGERS:
        PySparkLogger.getLogger(name).disabled = True
    try:
        for rule in rules:
            told = next(filter(None, (_fault(spark, rule, table) for table in rule.tables)), None)
            if told:
                yield Fault(rule.place, f"{rule.name}: {told}")
    finally:
        for name in _LOGGERS:
            PySparkLogger.getLogger(name).disabled = False


def _fault(spark: SparkSession, rule: Rule, table: Table) -> str:
    """What Spark says against the rule's SQL; empty where nothing."""
    if isinstance(rule, RowRule):
        read = partial(no_rows(spark, table).where, expression_of(rule, _ANY_LANE))
    elif isinstance(rule, QueryRule):
        # In brackets, nothing but a query can be read: no statement that would change something.
        read = partial(spark.sql, f"SELECT count(*) FROM (\n{query_of(rule, table)}\n)")  # noqa: S608
    else:
        return ""
    try:
        read()
    except PySparkException as fault:
        first = next(line for line in str(fault).splitlines() if line.strip())
        return first.partition(" SQLSTATE")[0]
    return ""


def _of_expectations(rules: Iterable[Rule]) -> Iterator[Fault]:
    """What Great Expectations says against expectations; it is loaded where there are any."""
    wanted = [rule for rule in rules if isinstance(rule, ExpectationRule)]
    if wanted:
        from jobs.expectations import expectation_fault

        for rule in wanted:
            if told := expectation_fault(rule):
                yield Fault(rule.place, f"{rule.name}: {told}")
