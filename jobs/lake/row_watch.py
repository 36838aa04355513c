"""What a table's rows pass on their way into a lake: something that counts them, and takes some of them out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from pyspark.sql import DataFrame

from schemas.tables.table import Table


class RowWatch(Protocol):
    """Rules on the rows of tables that are being written; a gate has them (`jobs/gates/row_rules.py`).

    lanes: the names of the lanes of the run that is written, which rules may ask for.
    """

    lanes: tuple[str, ...]

    def has_rules(self, table: Table) -> bool:
        """Whether there are rules on rows of this table."""

    def over(self, rows: DataFrame, table: Table) -> DataFrame:
        """The rows to be written in place of these, without those that rules take out."""

    def note(self, table: Table, rows: int) -> None:
        """Take note that so many rows of a table are written, of which no rule refuses any."""

    def with_rows_to_take_out(self, written: Mapping[Table, DataFrame], rows: Mapping[Table, int]) -> list[Table]:
        """The tables that hold rows which have to be taken out.

        written: by table its rows, whose files are written already. rows: how many rows each table has.
        """


class Unwatched:
    """For tables that no rule is about: all rows are written as they come."""

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
