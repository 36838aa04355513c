"""Reads the records of batches, for runs that sample records, into columns of `record_batches`.

It reads the sizes and times of records in produced batches, but only the uncompressed size of batches that consumers
fetched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from schemas.tables.silver import RECORD_BATCHES
from schemas.tables.values import FROM_FETCH
from udfs.columns.arrays import Bools, Bytes
from udfs.columns.arrow_columns import arrow_array, compute
from udfs.columns.sentinels import NONE
from udfs.facts.arrow_tables import TYPES, nulls_besides
from udfs.facts.record_sampling import RecordSampling
from udfs.wire.compressed_sizes import compressed_parts
from udfs.wire.message_sets import FAULTS, Unwrapped
from udfs.wire.record_batches import MAGIC_VALUE_V2, RECORD_BATCH_OVERHEAD, RecordBatches
from udfs.wire.records import (
    Budget,
    BudgetOf,
    RecordsError,
    RecordsFault,
    RecordSizes,
    decompress_records,
    record_sizes,
)

CRC_AT = 17

SIZE_COLUMNS = (
    RECORD_BATCHES.uncompressed_bytes, RECORD_BATCHES.keyless_records, RECORD_BATCHES.record_sizes,
    RECORD_BATCHES.create_times, RECORD_BATCHES.recompressed_bytes, RECORD_BATCHES.records_fault,
)  # fmt: skip


HELD_BYTES = 64 << 20
"""Rows are made when the batches that were read have this many uncompressed bytes. This bounds memory."""
Columns: TypeAlias = "dict[str, pa.Array[Any]]"


def record_columns(
    arena: Bytes,
    content: Unwrapped,
    source: str,
    reads_records: Bools,
    sampling: RecordSampling | None,
    budget_of: BudgetOf,
) -> Iterator[tuple[range, Columns]]:
    """The columns in SIZE_COLUMNS, a range of rows at a time.

    They are null for a batch that is not read. They are also null for a batch that cannot be read, which has a fault
    instead. Wrappers of message sets have already been read. arena: uint8. source: FROM_PRODUCE or FROM_FETCH.
    reads_records: bool[batches], which batches are read if records are sampled. sampling: None if they are not.
    """
    t = RECORD_BATCHES
    of_wrappers = {
        t.uncompressed_bytes: arrow_array(content.uncompressed, content.uncompressed != NONE),
        t.records_fault: FAULT_NAMES.take(np.where(content.fault == NONE, len(FAULTS), content.fault)),
    }
    for rows, columns in sampled_columns(arena, content.batches, source, reads_records, sampling, budget_of):
        wrappers = {name: of_all.slice(rows.start, len(rows)) for name, of_all in of_wrappers.items()}
        yield rows, columns | {name: compute.coalesce(column, columns[name]) for name, column in wrappers.items()}


FAULT_NAMES = pa.array([*(fault.value for fault in FAULTS), None])


def sampled_columns(
    arena: Bytes,
    batches: RecordBatches,
    source: str,
    reads_records: Bools,
    sampling: RecordSampling | None,
    budget_of: BudgetOf,
) -> Iterator[tuple[range, Columns]]:
    """The columns in SIZE_COLUMNS for batches of magic 2, a range of rows at a time; see `record_columns`.

    arena: uint8[bytes]. reads_records: bool[batches].
    """
    n = len(batches.parent)
    if sampling is None:
        yield range(n), nulls_besides(RECORD_BATCHES, set(RECORD_BATCHES.columns) - set(SIZE_COLUMNS), n)
        return
    first, held = 0, 0
    read: dict[int, dict[str, Any]] = {}
    # A Python loop over batches, not over records: one call of a codec and one of a kernel for each batch.
    for row in batches_to_read(batches, source, reads_records):
        if held >= HELD_BYTES:
            yield range(first, row), columns_of_sizes(read, range(first, row))
            first, held, read = row, 0, {}
        budget = budget_of(row)
        if source == FROM_FETCH:
            read[row] = _fetched_sizes(arena, batches, row, budget)
        else:
            read[row] = _produced_sizes(arena, batches, row, budget, sampling)
        held += read[row].get(RECORD_BATCHES.uncompressed_bytes, 0)
    yield range(first, n), columns_of_sizes(read, range(first, n))


def columns_of_sizes(read: Mapping[int, Mapping[str, Any]], rows: range) -> Columns:
    """The columns in SIZE_COLUMNS for a range of rows, null for rows that were not read.

    read: values by row and column.
    """
    return {
        str(column): pa.array([read.get(row, {}).get(column) for row in rows], TYPES[column.type])
        for column in SIZE_COLUMNS
    }


def batches_to_read(batches: RecordBatches, source: str, reads_records: Bools) -> list[int]:
    """The row numbers of the batches to read. Of fetched batches these are the ones that a consumer decompresses, which
    are not cut.

    reads_records: bool[batches], as for `record_columns`.
    """
    if source == FROM_FETCH:
        reads_records = reads_records & (batches.codec > 0) & (batches.is_cut == 0) & (batches.magic == MAGIC_VALUE_V2)
    return np.flatnonzero(reads_records).tolist()


def _produced_sizes(
    arena: Bytes, batches: RecordBatches, row: int, budget: Budget, sampling: RecordSampling
) -> dict[str, Any]:
    """The values of a produced batch, by column; the fault if it cannot be read."""
    t = RECORD_BATCHES
    try:
        records, sizes = read_records(arena, batches, row, budget)
    except RecordsError as fault:
        return {t.records_fault: fault.fault.value}
    start = int(batches.start[row])
    stored_crc = int.from_bytes(arena[start + CRC_AT : start + CRC_AT + 4].tobytes(), "big")
    again = stored_crc % sampling.every == 0
    return {
        t.uncompressed_bytes: sizes.uncompressed,
        t.keyless_records: sizes.keyless,
        t.record_sizes: sizes.content,
        t.create_times: sizes.timestamp_deltas + batches.base_timestamp[row],
        t.recompressed_bytes: compressed_parts(records, sizes.ends) if again else None,
    }


def _fetched_sizes(arena: Bytes, batches: RecordBatches, row: int, budget: Budget) -> dict[str, Any]:
    """The uncompressed size of a fetched batch, by its column; the fault if it cannot be read."""
    t = RECORD_BATCHES
    try:
        return {t.uncompressed_bytes: len(read_bytes(arena, batches, row, budget))}
    except RecordsError as fault:
        return {t.records_fault: fault.fault.value}


def read_records(arena: Bytes, batches: RecordBatches, row: int, budget: Budget) -> tuple[bytes, RecordSizes]:
    """(the uncompressed records of a batch in the arena; their sizes). Raises RecordsError. arena: uint8[bytes]."""
    records = read_bytes(arena, batches, row, budget)
    return records, record_sizes(records, int(batches.record_count[row]))


def read_bytes(arena: Bytes, batches: RecordBatches, row: int, budget: Budget) -> bytes:
    """The uncompressed records of a batch in the arena. Raises RecordsError. arena: uint8[bytes]."""
    _check_readable(batches, row)
    start, size = int(batches.start[row]), int(batches.size[row])
    return decompress_records(
        int(batches.codec[row]), arena[start + RECORD_BATCH_OVERHEAD : start + size].tobytes(), budget
    )


def _check_readable(batches: RecordBatches, row: int) -> None:
    """Raise RecordsError if the batch is cut, corrupt or not of magic 2."""
    if batches.fault[row] != 0 or batches.is_cut[row] != 0:
        raise RecordsError(RecordsFault.CUT)
    if batches.magic[row] != MAGIC_VALUE_V2:
        raise RecordsError(RecordsFault.OLD_FORMAT)
    if batches.crc_valid[row] != 1:
        raise RecordsError(RecordsFault.CORRUPT)
