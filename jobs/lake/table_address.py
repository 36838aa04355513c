"""How a table is addressed: by the path of its folder or, where the lake is a schema of a catalog, by its name there.

The rest of jobs/lake uses an address without knowing which kind it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from jobs.lake.lake_storage import quoted_name
from jobs.places import CATALOG, is_in_catalog
from schemas.tables.table import Table

_NOT_THERE = ("PATH_NOT_FOUND", "DELTA_TABLE_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND")
"""Spark's error classes for a missing folder, a folder that is no table, and a name that no table has."""

NEW_TABLE: Mapping[str, str] = {"delta.checkpointInterval": "10", "delta.logRetentionDuration": "interval 7 days"}
"""Delta's properties of a table that is made. Readers begin a log at its last checkpoint: ten is Delta's own default,
and delta-rs's is a hundred. Whoever writes a checkpoint removes the log files before it that are older than the second
time, by default a month. Files of older versions go after a week, too (`prune`)."""


@dataclass(frozen=True)
class TableAddress:
    """Where a table is.

    text: as in messages. path: the path of its folder, or its URI; None where it has a name. sql: as in SQL.
    """

    text: str
    path: str | None
    sql: str

    def __str__(self) -> str:
        return self.text

    def rows(self, spark: SparkSession) -> DataFrame:
        """The table's rows as Delta reads them. Raises AnalysisException if it is not there, either at once or when the
        columns are looked at.
        """
        return spark.read.table(self.sql) if self.path is None else spark.read.format("delta").load(self.path)

    def columns(self, spark: SparkSession) -> StructType | None:
        """The table's columns; None if it is not there."""
        try:
            return self.rows(spark).schema
        except AnalysisException as fault:
            if fault.getCondition() in _NOT_THERE:
                return None
            raise

    def replace_rows(self, rows: DataFrame, column: str, value: str) -> None:
        """Replace the rows that have this value in the column by which the table is partitioned. A missing table is
        made, with the rows' columns and comments.
        """
        if self.path is not None:
            written = rows.write.format("delta").mode("overwrite").partitionBy(column).options(**NEW_TABLE)
            written.option("replaceWhere", f"{column} = '{value}'").save(self.path)
            return
        # `saveAsTable` would replace another table of this name, and fails if it replaces rows.
        self._make(rows.sparkSession, rows.schema, column)
        rows.writeTo(self.sql).overwrite(F.col(column) == value)

    def _make(self, spark: SparkSession, columns: StructType, column: str) -> None:
        """Make a table that has a name, and its schema, if they are missing."""
        if spark.catalog.tableExists(self.sql):
            return
        schema = self.sql.rpartition(".")[0]
        if not spark.catalog.databaseExists(schema):
            spark.sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        listed = columns_as_ddl(columns)
        properties = ", ".join(f"'{key}' = '{value}'" for key, value in NEW_TABLE.items())
        spark.sql(
            f"CREATE TABLE IF NOT EXISTS {self.sql} ({listed}) USING delta PARTITIONED BY (`{column}`) "
            f"TBLPROPERTIES ({properties})"
        )


def address_of(lake: str, table: Table) -> TableAddress:
    """The address of a table in a lake.

    >>> from schemas.tables.silver import EXCHANGES
    >>> address_of("/lake", EXCHANGES)
    TableAddress(text='/lake/silver/exchanges', path='/lake/silver/exchanges', sql='delta.`/lake/silver/exchanges`')
    >>> address_of("catalog:main.refetch", EXCHANGES)
    TableAddress(text='main.refetch.exchanges', path=None, sql='`main`.`refetch`.`exchanges`')
    """
    if is_in_catalog(lake):
        name = f"{lake.removeprefix(CATALOG)}.{table.name}"
        return TableAddress(name, None, quoted_name(name))
    return address_of_folder(table_path(lake, table))


def address_of_folder(path: str) -> TableAddress:
    """The address of a table in this folder, or at this URI."""
    quoted = path.replace("`", "``")
    return TableAddress(path, path, f"delta.`{quoted}`")


def table_path(lake: str, table: Table) -> str:
    """The path of the table's folder, or its URI, in a lake that is not a schema of a catalog."""
    return f"{lake.rstrip('/')}/{table.layer}/{table.name}"


def place_of_layers(lake: str, *tables: Table) -> list[str]:
    """Where the layers of these tables are, for messages: each folder once, or the schema."""
    return [*dict.fromkeys(address_of(lake, table).text.removesuffix(table.name)[:-1] for table in tables)]


def columns_as_ddl(columns: StructType) -> str:
    """Columns with their comments, as a declaration in SQL."""
    return ", ".join(
        f"`{column.name}` {column.dataType.simpleString()} COMMENT '{_quoted(column.metadata.get('comment', ''))}'"
        for column in columns
    )


def _quoted(comment: str) -> str:
    return comment.replace("\\", "\\\\").replace("'", "\\'")
