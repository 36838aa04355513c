"""What is known of partitions' logs, on its way to their readers: rows of READS in front of the reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.steps import READS
from udfs.columns.arrays import Ints, edges
from udfs.columns.arrow_columns import array_of, concatenated
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.facts.arrow_tables import TYPES, nulls_besides, rows_of
from udfs.replay.fetch_max_bytes.partition_log import PartitionLog

READER_COLUMNS = (
    READS.client_id, READS.client_address, READS.reader, READS.broker, READS.topic, READS.partition,
    READS.connection_id,
)  # fmt: skip
BATCHES_A_ROW = 1 << 16
"""Most batches of a log in one row. The rows of one Arrow batch have less than twice as many together."""
LISTS = {"base": READS.log_base, "last": READS.log_last, "size": READS.log_size, "after": READS.log_after,
         "before": READS.log_before}  # fmt: skip
"""By part of a PartitionLog the column of READS that has it."""
BLANK: dict[str, Any] = {"int": 0, "bigint": ALWAYS, "boolean": False, "array<int>": []}
"""By a column's type, what stands in a row of a log where a read has something that cannot be null."""


def no_logs(rows: int) -> dict[str, pa.Array[Any]]:
    """The columns LISTS of so many reads, which have nothing there."""
    starts: Any = array_of(np.zeros(rows + 1, np.int32))  # an Int32Array
    nothing = pa.ListArray.from_arrays(starts, array_of(np.zeros(0, np.int64)))
    return {str(column): nothing for column in LISTS.values()}


@dataclass
class ReadBy:
    """The connections that read a partition. Each has a place: the number of those that `note_readers` met before it.

    place: each one's, by connection_id. lowest: by place the lowest offset that it read from, int64[connections].
    named: the columns READER_COLUMNS of its first read, a row for each connection, in the order of places.
    """

    place: dict[int, int] = field(default_factory=dict)
    lowest: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    named: list[pa.RecordBatch] = field(default_factory=list)


def note_readers(read_by: ReadBy, batch: pa.RecordBatch) -> None:
    """Add the connections of these reads of one partition."""
    connections, first, which = np.unique(batch[READS.connection_id].to_numpy(), return_index=True, return_inverse=True)
    before = len(read_by.place)
    places = np.array([read_by.place.setdefault(id_, len(read_by.place)) for id_ in connections.tolist()], np.int64)
    added = len(read_by.place) - before
    read_by.lowest = np.append(read_by.lowest, np.full(added, NEVER))
    np.minimum.at(read_by.lowest, places[which], batch[READS.fetch_offset].to_numpy())
    if added:
        read_by.named.append(batch.select([*map(str, READER_COLUMNS)]).take(array_of(first[places >= before])))


def log_rows(log: PartitionLog, read_by: ReadBy, most: int = BATCHES_A_ROW) -> Iterator[pa.RecordBatch]:
    """The log as rows of READS, once for each connection that reads it, from the lowest offset that this one read from.

    A row has at most `most` batches. Its request_time is ALWAYS, before all reads; its exchange_no, below 0, is another
    in each row of a connection.
    """
    if not len(log.base) or not read_by.named:
        return
    named = concatenated(read_by.named)
    first = np.searchsorted(log.last, read_by.lowest)
    pieces = -(-(len(log.base) - first) // most)
    reader = np.repeat(np.arange(len(first)), pieces)
    begin = first[reader] + (np.arange(len(reader)) - edges(pieces)[reader]) * most
    end = np.minimum(begin + most, len(log.base))
    together = np.cumsum(end - begin) // most
    cuts = [0, *(np.flatnonzero(np.diff(together)) + 1).tolist(), len(reader)]
    for a, b in pairwise(cuts):
        if a < b:  # no row where all of them read on from behind the log
            yield pieces_of(log, begin[a:b], end[a:b], named.take(array_of(reader[a:b])))


def pieces_of(log: PartitionLog, begin: Ints, end: Ints, named: pa.RecordBatch) -> pa.RecordBatch:
    """One row of READS for each begin, end and row of `named`: a reader with the batches [begin, end) of the log."""
    n = len(begin)
    only_value_n_times = array_of(np.zeros(n, np.int64))
    offsets = edges(end - begin)
    index = np.repeat(begin - offsets[:-1], end - begin) + np.arange(offsets[-1])
    columns: dict[str, pa.Array[Any] | Ints] = {
        str(c): pa.array([BLANK[c.type]], TYPES[c.type]).take(only_value_n_times)
        for c in READS.columns
        if not c.nullable and c not in (*READER_COLUMNS, *LISTS.values())
    }
    columns |= {name: named[name] for name in named.schema.names}
    columns[READS.exchange_no] = -1 - begin
    ends: Any = array_of(offsets.astype(np.int32))  # an Int32Array
    for part, column in LISTS.items():
        columns[str(column)] = pa.ListArray.from_arrays(ends, array_of(getattr(log, part)[index]))
    return rows_of(READS, {**columns, **nulls_besides(READS, columns, n)})
