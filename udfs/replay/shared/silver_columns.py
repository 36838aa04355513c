"""Columns of silver rows as columns of events. Texts are dictionary columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.silver import RECORD_BATCHES
from udfs.columns.arrays import Bools, Ints
from udfs.columns.arrow_columns import arrow_array, compute, us_since_1970
from udfs.columns.time_units import US_PER_MS

Column = Any
"""An Arrow array."""
NO_SEQUENCE = -1
DELIVERY_TIMEOUT_MS = 120_000
"""The default of delivery.timeout.ms: no batch waits longer between its first record and its request."""
NO_NUMBER = np.iinfo(np.int64).min
"""What `row_hash` takes for null."""


def event_rows(columns: Mapping[Any, Column]) -> pa.RecordBatch:
    """Rows of a step table from some of its columns."""
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(map(str, columns)))


def same_columns(columns: Iterable[str], rows: pa.RecordBatch) -> dict[str, Column]:
    """These columns of the rows, unchanged."""
    return {column: rows[column] for column in columns}


def constant_column(value: int | bool, rows: pa.RecordBatch, kind: pa.DataType) -> Column:
    """The same value in each of the rows, as a column of type `kind`."""
    make: Any = pa.repeat
    return make(pa.scalar(value, kind), rows.num_rows)


def null_unless(condition: Column, column: Column) -> Column:
    """The column where a condition holds, null elsewhere."""
    return compute.if_else(condition, column, pa.scalar(None, column.type))


def rows_where(rows: pa.RecordBatch, condition: Column) -> pa.RecordBatch:
    """The rows for which a condition holds. Null counts as not holding."""
    return rows if compute.all(compute.fill_null(condition, False)).as_py() else rows.filter(condition)


def is_known(column: Column) -> Column:
    """Where the column is not null."""
    return column.is_valid()


def is_text(column: Column, *texts: str) -> Column:
    """Where a text of a dictionary column is one of these: bool[n], null if there is no text."""
    chosen = [text in texts for text in column.dictionary.to_pylist()]
    return compute.take(pa.array(chosen, pa.bool_()), column.indices)


def text_or_empty(column: Column) -> Column:
    """The texts of a dictionary column, empty where there is none."""
    return first_text(column, pa.DictionaryArray.from_arrays(np.zeros(len(column), np.int32), pa.array([""])))


def first_text(one: Column, other: Column) -> Column:
    """Each row's text in the one column or, if that has none, in the other. The result has one dictionary."""
    if one.null_count == 0:
        return one
    shift = len(one.dictionary)
    texts = pa.concat_arrays([one.dictionary, other.dictionary]).dictionary_encode()
    places = compute.coalesce(one.indices, compute.add(other.indices, pa.scalar(shift, pa.int32())))
    return pa.DictionaryArray.from_arrays(compute.take(texts.indices, places), texts.dictionary)


def text_hash(column: Column) -> Column:
    """The hash of each text of a dictionary column, the same in every task: 64 bits of BLAKE2b as int64."""
    numbers = [
        int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big", signed=True)
        for text in column.dictionary.to_pylist()
    ]
    return compute.take(pa.array(numbers, pa.int64()), column.indices)


def sum_or_null(one: Column, other: Column) -> Column:
    """one + other, columns of int64, null where that overflows."""
    total = compute.add(one, other)  # wraps around
    is_too_large = compute.and_(compute.greater_equal(other, 0), compute.less(total, one))
    is_too_small = compute.and_(compute.less(other, 0), compute.greater(total, one))
    overflows = compute.or_(is_too_large, is_too_small)
    return null_unless(compute.invert(overflows), total)


def constant_text_column(text: str, rows: pa.RecordBatch) -> Column:
    """The same text in each of the rows, as a dictionary column."""
    return pa.DictionaryArray.from_arrays(np.zeros(rows.num_rows, np.int32), pa.array([text], pa.string()))


def row_hash(*columns: Column) -> Column:
    """The 64-bit hash of each row of several columns of numbers, the same in every task."""
    mixed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        values = column.cast(pa.int64()).fill_null(NO_NUMBER).to_numpy(zero_copy_only=False).view(np.uint64)
        mixed = (mixed ^ values) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(32)
    return pa.array(mixed.view(np.int64))


def partition_key(topic: Column, partition: Column) -> Column:
    """The hash of each topic and partition, the same in every task."""
    return row_hash(text_hash(topic), partition)


def text_bytes(column: Column) -> Column:
    """How many bytes each text of a dictionary column has in UTF-8: int32[n], null if there is no text."""
    return compute.take(compute.binary_length(column.dictionary), column.indices)


def list_or_empty(column: Column) -> Column:
    """The lists of a column, empty where there is none."""
    return pa.ListArray.from_arrays(column.offsets, column.values) if column.null_count else column


def base_sequences(rows: pa.RecordBatch) -> Column:
    """The base_sequence of each row of RECORD_BATCHES, int32, or NO_SEQUENCE without a producer id.

    The number means something only with a producer id (DefaultRecordBatch.hasProducerId): without one, aiokafka writes
    0 into every batch.
    """
    b = RECORD_BATCHES
    is_idempotent = compute.fill_null(compute.greater_equal(rows[b.producer_id], 0), False)
    return compute.if_else(is_idempotent, rows[b.base_sequence], pa.scalar(NO_SEQUENCE, pa.int32()))


def append_times(rows: pa.RecordBatch) -> Column:
    """When the first record of each row of RECORD_BATCHES was appended (us): its timestamp; null if that cannot be the
    time of the append, as when the application gives records its own timestamps.
    """
    b = RECORD_BATCHES
    requested, first_ms = us_since_1970(rows[b.request_time]), rows[b.base_timestamp]
    is_time = compute.less(compute.abs(first_ms), (1 << 62) // US_PER_MS)  # a client may write any number there
    first = compute.multiply(null_unless(is_time, first_ms), US_PER_MS)
    age = compute.subtract(requested, first)
    is_append = compute.and_(compute.greater_equal(age, 0), compute.less_equal(age, DELIVERY_TIMEOUT_MS * US_PER_MS))
    return null_unless(is_append, first)


class ByConnection(NamedTuple):
    """A number for each of some connections. connection_id, number: int64[connections], in the order of the ids."""

    connection_id: Ints
    number: Ints

    def of(self, connections: Column, unlisted: int | None) -> Column:
        """The number of each row's connection; `unlisted` for a connection without one, null if that is None."""
        ids = connections.to_numpy(zero_copy_only=False)
        place = np.minimum(np.searchsorted(self.connection_id, ids), max(len(self.connection_id) - 1, 0))
        listed: Bools = self.connection_id[place] == ids if len(self.connection_id) else np.zeros(len(ids), np.bool_)
        number = self.number[place] if len(self.number) else np.zeros(len(ids), np.int64)
        return arrow_array(number, listed) if unlisted is None else arrow_array(np.where(listed, number, unlisted))
