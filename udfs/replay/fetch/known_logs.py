"""What is known of partitions' logs, on its way to their readers: rows of READS in front of the reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.steps import READS
from udfs.facts.arrow_tables import nulls_besides, rows_of
from udfs.replay.fetch.partition_log import ALWAYS, PartitionLog

READER_COLUMNS = (READS.client_id, READS.client_address, READS.reader, READS.broker, READS.topic, READS.partition)
ReadBy = dict[int, tuple[int, dict[str, Any]]]
"""By connection, the lowest offset it read a partition from, and the reader's columns."""

BATCHES_A_ROW = 1 << 16
LISTS = {"base": READS.log_base, "last": READS.log_last, "size": READS.log_size, "after": READS.log_after,
         "before": READS.log_before}  # fmt: skip


def note_readers(read_by: ReadBy, batch: pa.RecordBatch) -> None:
    """Add the connections of these reads of one partition."""
    connections = batch[READS.connection_id].to_numpy()
    offsets = batch[READS.fetch_offset].to_numpy()
    for connection in np.unique(connections).tolist():
        rows = np.flatnonzero(connections == connection)
        lowest = int(offsets[rows].min())
        if connection not in read_by:
            named = {str(name): batch[name][int(rows[0])].as_py() for name in READER_COLUMNS}
            read_by[connection] = lowest, named
        elif lowest < read_by[connection][0]:
            read_by[connection] = lowest, read_by[connection][1]


def log_rows(log: PartitionLog, read_by: ReadBy) -> Iterator[pa.RecordBatch]:
    """The log for each of its readers, from where it read on; pieces are told apart by exchange_no, below 0."""
    for connection, (lowest, named) in read_by.items():
        first = int(np.searchsorted(log.last, lowest))
        for begin in range(first, len(log.base), BATCHES_A_ROW):
            piece = slice(begin, min(begin + BATCHES_A_ROW, len(log.base)))
            yield log_row(log, piece, {**named, READS.connection_id: connection, READS.exchange_no: -1 - begin})


def log_row(log: PartitionLog, piece: slice, named: dict[str, Any]) -> pa.RecordBatch:
    """One row of READS with some batches of a log."""
    blank: dict[str, Any] = {"int": 0, "bigint": ALWAYS, "boolean": False, "array<int>": []}
    columns: dict[str, pa.Array[Any]] = {str(c): pa.array([blank.get(c.type)]) for c in READS.columns if not c.nullable}
    columns |= {name: pa.array([value]) for name, value in named.items()}
    columns |= {
        str(column): pa.array([getattr(log, part)[piece]], pa.list_(pa.int64())) for part, column in LISTS.items()
    }
    return rows_of(READS, columns | nulls_besides(READS, columns, 1))
