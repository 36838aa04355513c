"""Rows of READS on their way through Spark: what it sorts by, and all else in two columns of bytes.

Spark takes every column of a row by itself, when it gets rows from a worker, moves them, and hands them to the next.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schemas.tables.steps import CARRIED_READS, READS
from udfs.columns.arrays import Bools, Bytes, Ints, edges
from udfs.columns.arrow_columns import array_of, binaries_of, binary_bytes, lists, valid
from udfs.facts.arrow_tables import rows_of
from udfs.replay.fetch_max_bytes.known_logs import LISTS

KEYS = tuple(c for c in READS.columns if c in CARRIED_READS.columns)
NUMBERS = tuple(c for c in READS.columns if c not in KEYS and "<" not in c.type)
"""What has no columns of its own: the order in which it stands in `numbers`."""
_WIDTHS = {"boolean": np.bool_, "tinyint": np.int8, "smallint": np.int16, "int": np.int32, "bigint": np.int64}
_KNOWN = "known"
_ROW = np.dtype([(_KNOWN, np.uint32), *((str(c), _WIDTHS[c.type]) for c in NUMBERS)])
"""A row's numbers. known: bit i is set where the one at place i is not null."""
_SIZE_BYTES, _BATCH_BYTES = 4, 8 * len(LISTS)
"""Bytes in `lists` of a read's batch, of which it has the size, and of a log's, of which it has all LISTS."""


def carried(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of CARRIED_READS for these of READS, which are all logs or all reads."""
    n = rows.num_rows
    numbers = np.zeros(n, _ROW)
    for place, column in enumerate(NUMBERS):
        values = rows[column]
        numbers[_KNOWN] |= np.where(valid(values), 1 << place, 0).astype(np.uint32)
        numbers[str(column)] = values.fill_null(_WIDTHS[column.type](0)).to_numpy(zero_copy_only=False)
    columns: dict[str, pa.Array[Any]] = {
        **{str(c): rows[c] for c in KEYS},
        CARRIED_READS.numbers: binaries_of(numbers.view(np.uint8), np.arange(n + 1) * _ROW.itemsize),
        CARRIED_READS.lists: binaries_of(*bytes_of_lists(rows)),
    }
    return rows_of(CARRIED_READS, columns)


def bytes_of_lists(rows: pa.RecordBatch) -> tuple[Bytes, Ints]:
    """The bytes of the lists, and where each row's begin: of reads their batch sizes, of logs each batch's numbers."""
    ends, sizes = lists(rows[READS.batch_sizes])
    if len(sizes):
        return sizes.astype(np.int32).view(np.uint8), ends * _SIZE_BYTES
    of_logs = [lists(rows[column]) for column in LISTS.values()]
    together = np.stack([values for _, values in of_logs], axis=1)
    return together.reshape(-1).view(np.uint8), of_logs[0][0] * _BATCH_BYTES


def is_log(rows: pa.RecordBatch) -> Bools:
    """The rows that have logs: bool[rows]."""
    return rows[READS.exchange_no].to_numpy() < 0


def reads_of(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of READS that these of CARRIED_READS are."""
    keys = {str(c): rows[c] for c in KEYS}
    return rows_of(READS, {**keys, **numbers_of_rows(rows), **lists_of_rows(rows)})


def numbers_of_rows(rows: pa.RecordBatch) -> dict[str, pa.Array[Any]]:
    """The columns NUMBERS."""
    starts, raw = binary_bytes(rows[CARRIED_READS.numbers])
    numbers = raw[starts[0] : starts[-1]].view(_ROW)
    found = {}
    for place, column in enumerate(NUMBERS):
        known = numbers[_KNOWN] & np.uint32(1 << place) != 0
        values = np.ascontiguousarray(numbers[str(column)])
        found[str(column)] = array_of(values, None if known.all() else known)
    return found


def lists_of_rows(rows: pa.RecordBatch) -> dict[str, pa.Array[Any]]:
    """The columns with lists."""
    ends, raw = binary_bytes(rows[CARRIED_READS.lists])
    lengths, of_log = np.diff(ends), is_log(rows)
    in_log = np.repeat(of_log, lengths)
    content = raw[ends[0] : ends[-1]]
    sizes, batches = content[~in_log].view(np.int32), content[in_log].view(np.int64).reshape(-1, len(LISTS))
    in_logs = np.where(of_log, lengths // _BATCH_BYTES, 0)
    logs = {str(column): list_column(in_logs, batches[:, place]) for place, column in enumerate(LISTS.values())}
    return {READS.batch_sizes: list_column(np.where(of_log, 0, lengths // _SIZE_BYTES), sizes), **logs}


def list_column(lengths: Ints, values: npt.NDArray[np.integer[Any]]) -> pa.Array[Any]:
    """Lists of these lengths, one behind the other in the values."""
    ends: Any = array_of(edges(lengths).astype(np.int32))  # an Int32Array
    return pa.ListArray.from_arrays(ends, array_of(values))
