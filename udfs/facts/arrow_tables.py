"""Arrow schemas of the declared tables, and packing of rows, so that rows of several tables go through Spark together.

A worker makes rows of several tables from the same frames, but `mapInArrow` has a single output schema. So the rows of
each table are sent as Arrow IPC messages in a binary column, and are unpacked where their table is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.tables.table import Table
from udfs.columns.arrays import Ints
from udfs.columns.arrow_columns import concatenate_batches, offsets_and_bytes
from udfs.columns.sentinels import UNKNOWN
from udfs.columns.time_units import NS_PER_US
from udfs.facts.number_columns import Picked

TYPES: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "timestamp": pa.timestamp("us", "UTC"),
    "array<int>": pa.list_(pa.int32()),
    "array<bigint>": pa.list_(pa.int64()),
    "array<string>": pa.list_(pa.string()),
    "map<string,bigint>": pa.map_(pa.string(), pa.int64()),
    "map<string,double>": pa.map_(pa.string(), pa.float64()),
    "map<string,string>": pa.map_(pa.string(), pa.string()),
}

Values: TypeAlias = "pa.Array[Any] | npt.NDArray[np.generic] | Picked"
"""The values of a column."""

_PACKED: list[pa.Field[Any]] = [pa.field("table", pa.string()), pa.field("rows", pa.binary())]
PACKED = pa.schema(_PACKED)
MOST_TEXT_BYTES = int(np.iinfo(np.int32).max)
"""The most bytes that an Arrow column of texts can have."""
PACKED_ROWS = 50_000
"""The most rows of a table in one row of PACKED. Even texts as long as Kafka allows then stay below MOST_TEXT_BYTES."""
PACKED_TOGETHER = 10_000
"""Small batches of a table are collected until they have this many rows; then they are packed together."""
HELD_BYTES = 16 << 20
"""They are also packed if the collected batches have this many bytes."""
HELD_BATCHES = 64
"""This many collected batches are joined into one, because each takes memory in addition to its rows."""
_WRITTEN = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)  # a worker has one core
_READ = pa.ipc.IpcReadOptions(use_threads=False)


@cache
def arrow_schema(table: Table) -> pa.Schema:
    """The table's columns as Arrow fields. Which columns may be null is checked where the table is written."""
    return pa.schema([pa.field(str(column), TYPES[column.type]) for column in table.columns])


@cache
def empty_batch(table: Table) -> pa.RecordBatch:
    """An empty batch of the table."""
    return pa.RecordBatch.from_pylist([], arrow_schema(table))


def ns_to_us(ns: Ints) -> Ints:
    """Times in `ns` as microseconds, rounded down; UNKNOWN stays UNKNOWN: int64[n] both."""
    return np.where(ns == UNKNOWN, UNKNOWN, ns // NS_PER_US)


def make_rows(table: Table, columns: Mapping[str, Values]) -> pa.RecordBatch:
    """A batch of the table's rows, from its columns by name, in any order. Numbers are cast to the declared width.

    A whole number that is UNKNOWN becomes null. Times are whole numbers, microseconds since 1970. A dictionary column
    stays one until the rows are unpacked. Raises ValueError, which names every column that is missing or that the table
    does not have.
    """
    schema = arrow_schema(table)
    wrong = sorted(set(schema.names) ^ {str(name) for name in columns})
    if wrong:
        raise ValueError(f"rows of table {table.name}: columns missing or unknown: {', '.join(wrong)}")
    if not _row_count(next(iter(columns.values()))):
        return empty_batch(table)
    return pa.RecordBatch.from_arrays([_cast(columns[f.name], f.type) for f in schema], names=schema.names)


def _row_count(values: Values) -> int:
    return values.rows_picked if isinstance(values, Picked) else len(values)


def nulls_besides(table: Table, given: Iterable[str], rows: int) -> dict[str, pa.Array[Any]]:
    """The columns of the table that are not among `given`, all null."""
    there = set(given)
    nulls = cache(partial(pa.nulls, rows))
    return {f.name: nulls(f.type) for f in arrow_schema(table) if f.name not in there}


def _cast(values: Values, kind: pa.DataType) -> pa.Array[Any]:
    if isinstance(values, Picked):
        return values.of_type(kind)
    if isinstance(values, np.ndarray) and values.dtype == np.int64 and not pa.types.is_floating(kind):
        return Picked(values.view(np.int64)).of_type(kind)
    array = values if isinstance(values, pa.Array) else pa.array(values)
    of = array.type.value_type if isinstance(array, pa.DictionaryArray) else array.type
    return array if of == kind else pc.cast(array, kind)


def pack_rows(table: Table, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch as rows of PACKED, each with at most PACKED_ROWS of its rows."""
    for rows in cut_rows(batch):
        packed: list[pa.Array[Any]] = [pa.array([table.name], pa.string()), pa.array([arrow_stream(rows)], pa.binary())]
        yield pa.RecordBatch.from_arrays(packed, schema=PACKED)


def cut_rows(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The rows of a batch, at most PACKED_ROWS at a time."""
    for first in range(0, batch.num_rows, PACKED_ROWS):
        yield batch.slice(first, PACKED_ROWS)


def arrow_stream(batch: pa.RecordBatch) -> bytes:
    """The rows as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_WRITTEN) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def pack_tables(
    rows: Iterable[tuple[Table, pa.RecordBatch]], together: int = PACKED_TOGETHER
) -> Iterator[pa.RecordBatch]:
    """Rows of several tables as rows of PACKED. A table's batches are collected up to `together` rows or HELD_BYTES."""
    held: dict[Table, list[pa.RecordBatch]] = {}
    count: Counter[Table] = Counter()
    size: Counter[Table] = Counter()
    for table, batch in rows:
        if not batch.num_rows:
            continue
        of_table = held.setdefault(table, [])
        if of_table and of_table[-1].schema != batch.schema:  # only one of them has dictionary columns
            yield from pack_rows(table, concatenate_batches(held.pop(table)))
            of_table, count[table], size[table] = held.setdefault(table, []), 0, 0
        of_table.append(batch)
        count[table] += batch.num_rows
        size[table] += batch.get_total_buffer_size()  # much cheaper than `nbytes`
        if count[table] >= together or size[table] >= HELD_BYTES:
            yield from pack_rows(table, concatenate_batches(held.pop(table)))
            count[table], size[table] = 0, 0
        elif len(of_table) >= HELD_BATCHES:
            of_table[:] = [concatenate_batches(of_table)]
    for table, of_table in held.items():
        yield from pack_rows(table, concatenate_batches(of_table))


def unpack_rows(packed: pa.BinaryScalar) -> Iterator[pa.RecordBatch]:
    """The rows in one value of PACKED's column `rows`, or in another Arrow IPC stream."""
    yield from map(without_dictionaries, pa.ipc.open_stream(packed.as_buffer(), options=_READ))


def unpack_columns(packed: pa.BinaryScalar, table: Table, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Some columns of the rows in one value of PACKED's column `rows`, in the table's order. Other columns are not
    decompressed.
    """
    places = [place for place, name in enumerate(arrow_schema(table).names) if name in columns]
    options = pa.ipc.IpcReadOptions(use_threads=False, included_fields=places)
    yield from map(without_dictionaries, pa.ipc.open_stream(packed.as_buffer(), options=options))


def plain_rows(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The rows of a batch without dictionary columns; in several batches if texts might exceed MOST_TEXT_BYTES."""
    longest = max((_longest(c.dictionary) for c in batch.columns if isinstance(c, pa.DictionaryArray)), default=0)
    yield from map(without_dictionaries, [batch] if longest * batch.num_rows <= MOST_TEXT_BYTES else cut_rows(batch))


def _longest(texts: pa.Array[Any]) -> int:
    """The bytes of the longest text."""
    return int(np.diff(offsets_and_bytes(texts)[0]).max(initial=0))


def without_dictionaries(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows without dictionary columns, which Spark does not take."""
    columns = [c.dictionary_decode() if isinstance(c, pa.DictionaryArray) else c for c in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
