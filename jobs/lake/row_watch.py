"""The interface of what watches rows on their way into a lake: it counts them, and takes some of them out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from pyspark.sql import DataFrame

from schemas.tables.table import Table


class RowWatch(Protocol):
    """Rules on the rows of tables that are being written. A gate implements this (`jobs/gates/row_rules.py`).

    lanes: the names of the lanes of the run that is written; rules may ask for them.
    """

    lanes: tuple[str, ...]

    def has_rules(self, table: Table) -> bool:
        """Whether there are rules on rows of this table."""

    def over(self, rows: DataFrame, table: Table) -> DataFrame:
        """The rows to write instead of these: without those that rules take out."""

    def note(self, table: Table, rows: int) -> None:
        """Count these rows of a table as written and not refused by any rule."""

    def with_rows_to_take_out(self, written: Mapping[Table, DataFrame], rows: Mapping[Table, int]) -> list[Table]:
        """The tables with rows that have to be taken out.

        written: the rows of tables whose files are already written, by table. rows: how many rows each table has.
        """


class Unwatched:
    """For tables without rules: all rows are written unchanged."""

    lanes: tuple[str, ...] = ()

    def has_rules(self, table: Table) -> bool:
        """False."""
        return False

    def over(self, rows: DataFrame, table: Table) -> DataFrame:
        """The rows themselves."""
        return rows

    def note(self, table: Table, rows: int) -> None:
        """Nothing: nobody counts."""

    def with_rows_to_take_out(self, written: Mapping[Table, DataFrame], rows: Mapping[Table, int]) -> list[Table]:
        """None of them."""
        return []
