"""What a task reads of silver tables, and the rows that it makes of them. Workers need no Spark modules for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from schemas.tables.silver import CONNECTIONS
from schemas.tables.table import Table
from udfs.facts.arrow_tables import arrow_schema
from udfs.facts.metadata_log import without_metadata_log
from udfs.replay.shared.dealing import Events, Rows, with_texts_once
from udfs.replay.shared.parts_in_order import whole_rows
from udfs.replay.shared.silver_files import FilePart, columns_in

_WORK: list[pa.Field[Any]] = [
    pa.field("task", pa.int32()),
    pa.field("read", pa.int32()),
    pa.field("path", pa.string()),
    pa.field("groups", pa.list_(pa.int32())),
]
WORK = pa.schema(_WORK)
"""Row groups of a file, the number of the read that needs them, and the task that reads them."""


def rows_of_table(mapped: Events, table: Table, batches: Iterable[pa.RecordBatch]) -> Rows:
    """The rows with all of the table's columns, in the types that Spark takes."""
    for rows in mapped(batches):
        yield whole_rows(rows, table).cast(arrow_schema(table))


def rows_of_work(
    tables: Sequence[tuple[Table, tuple[str, ...]]], mapped: Sequence[Events], batches: Iterable[pa.RecordBatch]
) -> Rows:
    """The rows that a task makes of the parts that it reads, one table after the other."""
    rows = sorted((row for batch in batches for row in batch.to_pylist()), key=itemgetter("read", "path", "groups"))
    for number, of_read in groupby(rows, itemgetter("read")):
        table, columns = tables[number]
        parts = (FilePart(row["path"], tuple(row["groups"]), 0) for row in of_read)
        yield from mapped[number](chain.from_iterable(columns_in(part, table, columns) for part in parts))


def outside_metadata_log(mapped: Events, topic: str, batches: Iterable[pa.RecordBatch]) -> Rows:
    """The rows that `mapped` makes of rows of other topics than the metadata log. topic: the column with the topic."""
    yield from mapped(without_metadata_log(batch, topic) for batch in batches)


def kept_rows(mapped: Events, connections: pa.Array[pa.Int64Scalar] | None, batches: Iterable[pa.RecordBatch]) -> Rows:
    """The rows that `mapped` makes of the rows of these connections, or of all rows if `connections` is None."""
    if connections is None:
        yield from mapped(map(with_texts_once, batches))
        return
    c = CONNECTIONS.connection_id
    yield from mapped(
        batch.filter(pc.is_in(batch[c], value_set=connections)) if c in batch.schema.names else batch
        for batch in map(with_texts_once, batches)
    )
