"""The tables that rules query, as temporary views, and the rules' SQL with its placeholders filled in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from jobs.gates.rules import CHECKED, EVERYTHING, LANES, OWN_TABLE, PLACEHOLDER, Gate, QueryRule, RowRule, Rule
from jobs.lake.delta_tables import has_table, read_table, rows_for_queries, table_without_rows
from schemas.tables.table import Table

TableAndExtent = tuple[Table, bool]
"""A table, and whether it stands for all its rows or only for those of the subject that is checked."""


@dataclass(frozen=True)
class Subject:
    """What a gate checks: a capture set, and for the gold gate a run of it with its lanes."""

    gate: Gate
    capture_id: str
    run_id: str = ""
    lanes: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The id under which its results are stored: that of the run or of the capture set."""
        return self.run_id if self.gate == "gold" else self.capture_id

    def __str__(self) -> str:
        return f"run {self.run_id}" if self.gate == "gold" else f"capture {self.capture_id}"


def rows_to_check(
    spark: SparkSession, lake: str, subject: Subject, table: Table, everything: bool = False
) -> DataFrame:
    """A table's rows that belong to the subject, or all its rows if `everything`; none if the lake lacks the table."""
    if not has_table(spark, lake, table):
        return table_without_rows(spark, table)
    if everything:
        return read_table(spark, lake, table)
    return rows_for_queries(spark, lake, table, subject.run_id if table.layer == "gold" else subject.capture_id)


@contextmanager
def views_of_tables(
    spark: SparkSession, rules: Iterable[Rule], rows: Callable[[Table, bool], DataFrame]
) -> Iterator[None]:
    """While the block runs, there is a temporary view of every table that the rules' queries name.

    rows: from a table, and whether it stands for all its rows, to the rows.
    """
    pairs = {pair for rule in rules if isinstance(rule, QueryRule) for pair in _tables_in_query(rule)}
    try:
        for table, everything in pairs:
            rows(table, everything).createOrReplaceTempView(view_name(table, everything))
        yield
    finally:
        for table, everything in pairs:
            spark.catalog.dropTempView(view_name(table, everything))


def _tables_in_query(rule: QueryRule) -> Iterator[TableAndExtent]:
    """The tables that a rule's query names, each with whether it stands for all its rows."""
    yield from ((table, False) for table in rule.tables)
    for placeholder in PLACEHOLDER.findall(rule.query):
        everything, name = _placeholder_parts(placeholder)
        yield from ((table, everything) for table in (rule.tables if name == OWN_TABLE else (CHECKED[name],)))


def _placeholder_parts(placeholder: str) -> tuple[bool, str]:
    """(whether the placeholder stands for all rows in the lake, the name of the table)."""
    name = placeholder.strip()
    return name.startswith(EVERYTHING), name.removeprefix(EVERYTHING)


def view_name(table: Table, everything: bool = False) -> str:
    """The name of the view that stands for a table in SQL."""
    return f"refetch_{'all_' if everything else ''}{table.name}"


def query_on_views(rule: QueryRule, table: Table, own_rows: str | None = None) -> str:
    """The rule's SQL about a table, with names of views instead of placeholders.

    own_rows: the name for the table's own rows; None for its view.
    """

    def filled(placeholder: str) -> str:
        everything, name = _placeholder_parts(placeholder)
        if name == OWN_TABLE and not everything:
            return own_rows or view_name(table)
        return view_name(table if name == OWN_TABLE else CHECKED[name], everything)

    # A query may end with a semicolon, as on a command line, but in brackets it must not.
    return PLACEHOLDER.sub(lambda found: filled(found[1]), rule.query).rstrip("; \n")


def expression_with_lanes(rule: RowRule, lanes: Iterable[str]) -> str:
    """The rule's SQL with the run's lanes instead of their placeholder."""
    quoted = ", ".join("'" + lane.replace("\\", "\\\\").replace("'", "\\'") + "'" for lane in lanes)
    return rule.expression.replace(f"{{{LANES}}}", f"array({quoted})")
