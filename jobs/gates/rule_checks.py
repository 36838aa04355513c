"""Checks whether Spark and Great Expectations can read rules, and whether the columns in rules exist."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial, reduce
from pathlib import Path
from typing import TypeGuard

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.gates.rule_failures import spark_message
from jobs.gates.rules import GATES, ExpectationRule, Gates, QueryRule, RowRule, Rule
from jobs.gates.views import expression_with_lanes, query_on_views, views_of_tables, without_rows
from jobs.lake.delta_tables import table_without_rows
from jobs.scenarios.located_yaml import Fault
from jobs.scenarios.scenario import CAPTURED_LANE
from schemas.tables.table import Table
from udfs.errors import RuleError

_ANY_LANE = (CAPTURED_LANE,)


def check_rules(spark: SparkSession, gates: Gates) -> None:
    """Have Spark and Great Expectations read every rule, without any data. Raises RuleError with everything that is
    wrong in the rules' files.

    Spark needs four seconds to read the rules when it has just started. So a file notes that it had no objection, and
    unchanged rules are not read again.
    """
    noted = _mark_of_checked(gates)
    of_spark = [] if noted.exists() else _faults_by_spark(spark, gates.rules)
    faults = [*gates.faults, *of_spark, *_faults_by_expectations(gates.rules)]
    if faults:
        in_order = sorted(faults, key=lambda fault: (fault.place.name, fault.place.line))
        raise RuleError("gates", tuple(map(str, in_order)))
    with suppress(OSError):  # a full cache only means that the rules are read again
        noted.parent.mkdir(parents=True, exist_ok=True)
        noted.touch()


def _mark_of_checked(gates: Gates) -> Path:
    """The file that exists if this Spark has read these rules about this version's tables without objection. It is in
    the kernels' folder, whose name has the version.
    """
    name = "-".join(("rules", pyspark.__version__, *map(gates.rules_id, GATES)))
    return Path(os.environ["NUMBA_CACHE_DIR"]) / f"{name}.read"


def _faults_by_spark(spark: SparkSession, rules: Sequence[Rule]) -> list[Fault]:
    """Each rule's first fault, in the first table where it has one."""
    with views_of_tables(spark, rules, partial(without_rows, spark)):
        # Usually nothing is wrong, and reading all rules together is faster than one by one.
        if not _objection_of_spark(partial(_read_together, spark, rules)):
            return []
        faults = [
            (rule, _objection_of_spark(partial(_read_rule, spark, rule, table)))
            for rule in rules
            for table in rule.tables
        ]
    first = {rule.name: Fault(rule.place, f"{rule.name}: {fault}") for rule, fault in reversed(faults) if fault}
    return list(first.values())


def _read_together(spark: SparkSession, rules: Sequence[Rule]) -> None:
    """Have Spark read all rules; rules on single rows are read together for each table."""
    for table in dict.fromkeys(table for rule in rules for table in rule.tables):
        about = [F.expr(expression_with_lanes(rule, _ANY_LANE)) for rule in rules if _is_about(rule, table)]
        if about:
            _read_columns(table_without_rows(spark, table).where(reduce(Column.__and__, about)))
    queries = [_counting_query(rule, table) for rule in rules if isinstance(rule, QueryRule) for table in rule.tables]
    if queries:
        _read_columns(spark.sql("\nUNION ALL\n".join(queries)))


def _is_about(rule: Rule, table: Table) -> TypeGuard[RowRule]:
    return isinstance(rule, RowRule) and table in rule.tables


def _read_rule(spark: SparkSession, rule: Rule, table: Table) -> None:
    """Have Spark read one rule about one table."""
    if isinstance(rule, RowRule):
        _read_columns(table_without_rows(spark, table).where(expression_with_lanes(rule, _ANY_LANE)))
    elif isinstance(rule, QueryRule):
        _read_columns(spark.sql(_counting_query(rule, table)))


def _read_columns(rows: DataFrame) -> None:
    """Have Spark analyse the rows' query. Spark Connect does that only when somebody asks for the columns."""
    rows.schema  # noqa: B018


def _counting_query(rule: QueryRule, table: Table) -> str:
    """A count over the rule's query in brackets: there only a query can be read, and no statement that changes data."""
    return f"SELECT count(*) FROM (\n{query_on_views(rule, table)}\n)"  # noqa: S608


def _objection_of_spark(read: Callable[[], None]) -> str:
    """Spark's objection when `read` is called, as text; empty if there is none."""
    try:
        read()
    except PySparkException as fault:
        return spark_message(str(fault))
    return ""


def _faults_by_expectations(rules: Iterable[Rule]) -> Iterator[Fault]:
    """What Great Expectations objects to in expectations. It is loaded only if there are any."""
    wanted = [rule for rule in rules if isinstance(rule, ExpectationRule)]
    if wanted:
        from jobs.gates.expectation_faults import expectation_faults

        for rule in wanted:
            yield from (Fault(rule.place, f"{rule.name}: {fault}") for fault in dict.fromkeys(expectation_faults(rule)))
