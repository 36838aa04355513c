"""How replays read silver tables: workers that see the lake read its files; Spark sends the rows to other workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial, reduce
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from jobs.captures.capture_plan import pack_shards
from jobs.lake.delta_tables import rows_of_driver, stored_rows, table_to_read
from jobs.replays.algorithm import Source
from jobs.session.driver import driver_of
from schemas.tables.silver import CONNECTIONS, EXCHANGES, FETCH_PARTITIONS
from schemas.tables.table import Table
from udfs.facts.arrow_tables import arrow_schema
from udfs.replay.shared.client_software import (
    SOFTWARE,
    SOFTWARE_COLUMNS,
    Software,
    software_by_connection,
    software_rows,
)
from udfs.replay.shared.dealing import Events, deal_events
from udfs.replay.shared.dealt_rows import DEALT, Step
from udfs.replay.shared.silver_files import FilePart, columns_in, file_parts, may_have
from udfs.replay.shared.silver_work import WORK, kept_rows, outside_metadata_log, rows_of_table, rows_of_work

PART_BYTES = 4 << 20
"""The least bytes of a part of a file that a task reads: rows for about a second of work."""


class Read(NamedTuple):
    """Columns of a silver table that a replay reads. mapped: turns batches of these rows into rows of the replay."""

    table: Table
    columns: tuple[str, ...]
    mapped: Events


def read_small_table(source: Source, table: Table, columns: Sequence[str]) -> pa.Table:
    """Columns of the rows that the run replays. The silver table must be small, however long the capture is."""
    parts = parts_of_files(source, table)
    if parts is None or source.run.cluster_id is not None:
        return source.rows(table).select(*columns).toArrow()
    kinds = arrow_schema(table)
    batches = [batch for part in parts for batch in columns_in(part, table, columns)]
    schema = pa.schema([kinds.field(column) for column in columns])
    return pa.Table.from_batches(batches).cast(schema) if batches else schema.empty_table()


def mapped_silver(source: Source, reads: Sequence[Read], schema: pa.Schema) -> DataFrame:
    """Rows of the schema, in no order, that tasks make from the rows of silver tables that the run replays.

    If only the connections of one cluster are replayed, the columns of each read must include connection_id.
    """
    parts = [parts_of_files(source, read.table) for read in reads]
    connections = connections_of_cluster(source)
    mapped = [partial(kept_rows, mapped_of_brokers(read), connections) for read in reads]
    if any(of_table is None for of_table in parts):
        sent = (
            stored_rows(source.spark, source.run.lake, read.table, source.capture_id).select(*read.columns)
            for read in reads
        )
        frames = [rows.mapInArrow(kept, from_arrow_schema(schema)) for rows, kept in zip(sent, mapped, strict=True)]
        return reduce(DataFrame.unionByName, frames)
    work = [(number, part) for number, of_table in enumerate(parts) for part in of_table or ()]
    read_parts = partial(rows_of_work, [(read.table, read.columns) for read in reads], mapped)
    return dealt_work(source, work).mapInArrow(read_parts, from_arrow_schema(schema))


def mapped_of_brokers(read: Read) -> Events:
    """What turns a read's rows into rows of the replay. Fetches of the metadata log are left out: controllers answer
    them, and by other rules.
    """
    f = FETCH_PARTITIONS
    return partial(outside_metadata_log, read.mapped, str(f.topic)) if read.table == f else read.mapped


def rows_of_step_table(source: Source, table: Table, reads: Sequence[Read]) -> DataFrame:
    """Rows of a step table that tasks make from the rows of silver tables, in Spark's own types and not yet dealt."""
    plain = [read._replace(mapped=partial(rows_of_table, read.mapped, table)) for read in reads]
    return mapped_silver(source, plain, arrow_schema(table))


def dealt_silver(source: Source, step: Step, reads: Sequence[Read], shards: int) -> DataFrame:
    """Rows of DEALT for the step, from rows of the step's table that tasks make from the rows of silver tables."""
    dealing = [read._replace(mapped=partial(deal_events, read.mapped, step, shards)) for read in reads]
    return mapped_silver(source, dealing, DEALT)


def parts_of_files(source: Source, table: Table) -> list[FilePart] | None:
    """The parts of a table's files with the capture set's rows, looked up once for all replays; None if workers do not
    see the files.
    """
    known = source.lookups.parts
    if table not in known:
        local = table_to_read(source.spark, source.run.lake, table)
        paths = None if local is None else local.all_files((str(table.replaced_by), source.capture_id))
        known[table] = None if paths is None else [part for path in paths for part in file_parts(path, PART_BYTES)]
    return known[table]


def may_have_rows(source: Source, table: Table, column: str, least: int | str) -> bool:
    """Whether a row of the capture set may have at least this value in a column. The files' statistics decide; if
    workers do not see the files, a query does.
    """
    parts = parts_of_files(source, table)
    if parts is None:
        return not source.rows(table).where(F.col(column) >= least).isEmpty()
    return any(may_have(path, column, least) for path in sorted({part.path for part in parts}))


def dealt_work(source: Source, work: Sequence[tuple[int, FilePart]]) -> DataFrame:
    """A row of WORK for each part to be read, in the partition of the task that reads it.

    work: the index of the read, and the part.
    """
    spark = source.spark
    tasks = max(1, min(len(work), 2 * driver_of(spark).cores()))
    task = pack_shards(np.array([part.size for _, part in work], np.int64), tasks)
    rows = [
        {"task": task_of_part, "read": number, "path": part.path, "groups": list(part.groups)}
        for task_of_part, (number, part) in zip(task.tolist(), work, strict=True)
    ]
    frame = rows_of_driver(spark, pa.Table.from_pylist(rows, schema=WORK))
    return frame.repartitionById(tasks, "task")


def connections_of_cluster(source: Source) -> pa.Array[pa.Int64Scalar] | None:
    """The ids of the connections of the cluster that is replayed, looked up once for all replays; None if all are."""
    if source.run.cluster_id is not None and source.lookups.connections is None:
        c = CONNECTIONS
        ids = source.rows(c).select(c.connection_id).toArrow()[c.connection_id]
        source.lookups.connections = ids.combine_chunks()
    return source.lookups.connections


def client_software(source: Source) -> Mapping[int, Software]:
    """The software of each connection's client, looked up once for all replays."""
    if source.lookups.software is None:
        rows = mapped_silver(source, [Read(EXCHANGES, SOFTWARE_COLUMNS, software_rows)], SOFTWARE)
        source.lookups.software = software_by_connection(rows.toArrow())
    return source.lookups.software
