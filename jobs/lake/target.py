"""Where a job's rows go: into the tables of a lake.

Workers or this process write the files if they see the lake as a folder; if not, Spark does. For small tables a write
by Spark takes longer than all other work on them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from jobs.lake.declared_columns import check_declared_columns, described_schema
from jobs.lake.delta_tables import rows_of_driver, table_to_write, write_table
from jobs.lake.local_log import DataFile, LocalTable, has_files
from jobs.lake.row_watch import RowWatch, Unwatched
from schemas.tables.table import Table
from udfs.columns.arrow_columns import gather_batches
from udfs.errors import LakeError
from udfs.facts.arrow_tables import PACKED_ROWS, arrow_schema
from udfs.facts.cluster_names import ClusterNames
from udfs.facts.table_files import FILES, write_files

Files = Mapping[Table, Sequence[DataFile]]
FILE_COLUMNS = from_arrow_schema(FILES)


@dataclass(frozen=True)
class Target:
    """Where rows go.

    identity: the capture set or run whose rows they replace. watch: the rules on rows. names: the names of brokers
    and topics, where they are known. filled: the tables to which files with rows of this identity were added.
    """

    lake: str
    identity: str
    watch: RowWatch = field(default_factory=Unwatched)
    names: ClusterNames | None = None
    filled: dict[Table, LocalTable] = field(default_factory=dict, compare=False)

    def write(self, rows: DataFrame, table: Table) -> None:
        """Write a DataFrame's rows, without those that rules take out. Raises LakeError if their columns are not the
        table's.
        """
        spark, accepted, identity = rows.sparkSession, self.watch.over(rows, table), self.identity
        local = table_to_write(spark, self.lake, table)
        if local is None:
            write_table(accepted, self.lake, table, identity)
            return
        path = local.path
        check_declared_columns(rows.schema, table, f"what is to be written to {path}")

        def write_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield write_files(((table, rows) for rows in gather_batches(batches, PACKED_ROWS)), {table: path}, identity)

        written = accepted.select(*table.columns).mapInArrow(write_rows, FILE_COLUMNS).toArrow()
        keep_files(local, table, self, files_by_table(written, [table])[table])

    def write_here(self, spark: SparkSession, rows: pa.Table, table: Table) -> None:
        """Write an Arrow table's rows. Raises LakeError if their columns are not the table's."""
        local = table_to_write(spark, self.lake, table)
        if local is None or self.watch.has_rules(table):
            self.write(rows_of_driver(spark, rows), table)
            return
        check_declared_columns(from_arrow_schema(rows.schema), table, f"what is to be written to {local.path}")
        written = write_files(((table, batch) for batch in rows.to_batches()), {table: local.path}, self.identity)
        keep_files(local, table, self, files_by_table(pa.Table.from_batches([written]), [table])[table])
        self.watch.note(table, rows.num_rows)

    def clear(self, spark: SparkSession, table: Table) -> None:
        """Delete the table's rows of this identity, and make the table if it is missing. Rules are not applied."""
        Target(self.lake, self.identity).write_here(spark, arrow_schema(table).empty_table(), table)

    def check_there(self) -> None:
        """Check that what was written is still there, before it is listed as complete. Raises LakeError if not."""
        gone = [
            table.name
            for table, local in self.filled.items()
            if not has_files(local.path, (str(table.replaced_by), self.identity))
        ]
        if gone:
            raise LakeError(
                f"{self.lake}: rows of {self.identity} in {', '.join(gone)} went while they were written, as `prune` "
                "removes them, so it is not listed: run the command again"
            )


def files_by_table(written: pa.Table, tables: Collection[Table]) -> Files:
    """The files that rows of FILES describe, by table; each of these tables has an entry."""
    columns = (written[name].to_pylist() for name in FILES.names)
    files = [(name, DataFile(*values)) for name, *values in zip(*columns, strict=True)]
    return {table: [file for name, file in files if name == table.name] for table in tables}


def keep_files(local: LocalTable, table: Table, to: Target, files: Sequence[DataFile]) -> None:
    """Add the files to the table's log, where they replace those of the same capture set or run."""
    local.replace(described_schema(table), (str(table.replaced_by), to.identity), files)
    to.filled.pop(table, None)
    if files:
        to.filled[table] = local
