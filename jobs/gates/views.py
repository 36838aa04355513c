"""The tables that rules query, as temporary views, and the rules' SQL with its placeholders filled in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from jobs.gates.rules import (
    ALL_ROWS,
    CHECKED,
    EXTENTS,
    IDENTITIES,
    LANES,
    OWN_ROWS,
    OWN_TABLE,
    PLACEHOLDER,
    Extent,
    Gate,
    QueryRule,
    RowRule,
    Rule,
)
from jobs.lake.delta_tables import has_table, identities_in, read_table, rows_for_queries, table_without_rows
from schemas.tables.table import Table

TableAndExtent = tuple[Table, Extent]
"""A table, and what its name stands for."""
_VIEWS = {OWN_ROWS: "", ALL_ROWS: "all_", IDENTITIES: "ids_"}


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
    spark: SparkSession, lake: str, subject: Subject, table: Table, extent: Extent = OWN_ROWS
) -> DataFrame:
    """A table's rows that belong to the subject, or another extent of the table; none if the lake lacks the table."""
    if not has_table(spark, lake, table):
        return without_rows(spark, table, extent)
    if extent == ALL_ROWS:
        return read_table(spark, lake, table)
    if extent == IDENTITIES:
        return identities_in(spark, lake, table)
    return rows_for_queries(spark, lake, table, subject.run_id if table.layer == "gold" else subject.capture_id)


def without_rows(spark: SparkSession, table: Table, extent: Extent) -> DataFrame:
    """An extent of a table that has no rows."""
    empty = table_without_rows(spark, table)
    return empty.select(table.replaced_by) if extent == IDENTITIES else empty


@contextmanager
def views_of_tables(
    spark: SparkSession, rules: Iterable[Rule], rows: Callable[[Table, Extent], DataFrame]
) -> Iterator[None]:
    """While the block runs, there is a temporary view of every table that the rules' queries name.

    rows: from a table and its extent to the rows.
    """
    pairs = {pair for rule in rules if isinstance(rule, QueryRule) for pair in _tables_in_query(rule)}
    try:
        for table, extent in pairs:
            rows(table, extent).createOrReplaceTempView(view_name(table, extent))
        yield
    finally:
        for table, extent in pairs:
            spark.catalog.dropTempView(view_name(table, extent))


def _tables_in_query(rule: QueryRule) -> Iterator[TableAndExtent]:
    """The tables that a rule's query names, each with its extent."""
    yield from ((table, OWN_ROWS) for table in rule.tables)
    for placeholder in PLACEHOLDER.findall(rule.query):
        extent, name = _placeholder_parts(placeholder)
        yield from ((table, extent) for table in (rule.tables if name == OWN_TABLE else (CHECKED[name],)))


def _placeholder_parts(placeholder: str) -> tuple[Extent, str]:
    """(the extent, the name of the table) of a placeholder."""
    name = placeholder.strip()
    extent = next((of for of in EXTENTS if of and name.startswith(of)), OWN_ROWS)
    return extent, name.removeprefix(extent)


def view_name(table: Table, extent: Extent = OWN_ROWS) -> str:
    """The name of the view that stands for an extent of a table in SQL."""
    return f"refetch_{_VIEWS[extent]}{table.name}"


def query_on_views(rule: QueryRule, table: Table, own_rows: str | None = None) -> str:
    """The rule's SQL about a table, with names of views instead of placeholders.

    own_rows: the name for the table's own rows; None for its view.
    """

    def filled(placeholder: str) -> str:
        extent, name = _placeholder_parts(placeholder)
        if name == OWN_TABLE and extent == OWN_ROWS:
            return own_rows or view_name(table)
        return view_name(table if name == OWN_TABLE else CHECKED[name], extent)

    # A query may end with a semicolon, as on a command line, but in brackets it must not.
    return PLACEHOLDER.sub(lambda found: filled(found[1]), rule.query).rstrip("; \n")


def expression_with_lanes(rule: RowRule, lanes: Iterable[str]) -> str:
    """The rule's SQL with the run's lanes instead of their placeholder."""
    quoted = ", ".join("'" + lane.replace("\\", "\\\\").replace("'", "\\'") + "'" for lane in lanes)
    return rule.expression.replace(f"{{{LANES}}}", f"array({quoted})")
