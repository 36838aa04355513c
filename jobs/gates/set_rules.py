"""Rules about sets of rows: queries that return bad rows, counted in one Spark job, and examples of refused rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.gates.rules import ExpectationRule, QueryRule
from jobs.gates.views import query_on_views
from jobs.terminal.screen import printable_text
from schemas.tables.table import Table

MOST_EXAMPLES = 3
_LONGEST_EXAMPLE = 300

SetRule = QueryRule | ExpectationRule


@dataclass(frozen=True)
class Finding:
    """How many rows a rule refuses in a table, and up to MOST_EXAMPLES of them as text, if they were looked up."""

    refused: int
    examples: tuple[str, ...] = ()


def refused_by_queries(spark: SparkSession, rules: Sequence[QueryRule]) -> dict[tuple[str, str], Finding]:
    """How many rows each rule's query returns, by rule and table. Needs the views of `views_of_tables`."""
    queries = [(rule, table) for rule in rules for table in rule.tables]
    if not queries:
        return {}
    counts = [
        bad_rows(spark, rule, table).agg(F.count(F.lit(1))).select(F.lit(rule.name), F.lit(table.name), "*")
        for rule, table in queries
    ]
    return {(rule, table): Finding(count) for rule, table, count in reduce(DataFrame.unionAll, counts).collect()}


def bad_rows(spark: SparkSession, rule: QueryRule, table: Table) -> DataFrame:
    """The rows that a rule's query returns for a table. Needs the views of `views_of_tables`."""
    return spark.sql(query_on_views(rule, table))


def example_texts(rows: DataFrame) -> list[str]:
    """Up to three rows as `column=value, ...`. They do not depend on the partitioning."""
    first = rows.select(F.struct("*").alias("row")).orderBy(F.to_json("row")).limit(MOST_EXAMPLES).collect()
    return [example_text(row[0].asDict()) for row in first]


def example_text(values: Mapping[str, object]) -> str:
    """A row in one line. Texts from the wire are escaped, so that they cannot control the terminal."""
    listed = ", ".join(f"{name}={printable_text(str(value))}" for name, value in values.items())
    return listed if len(listed) <= _LONGEST_EXAMPLE else f"{listed[:_LONGEST_EXAMPLE]}..."
