"""What is in batches as columns of `record_batches`, for a replay that asks for it.

Of produced ones the sizes and times of their records, of those that consumers fetched only their size uncompressed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from schemas.tables.silver import RECORD_BATCHES
from schemas.tables.values import FROM_FETCH
from udfs.columns.arrays import Bools, Bytes
from udfs.columns.arrow_columns import array_of, compute
from udfs.facts.arrow_tables import TYPES, nulls_besides
from udfs.facts.record_sampling import RecordSampling
from udfs.wire.compressed_sizes import compressed_parts
from udfs.wire.message_sets import FAULTS, Unwrapped
from udfs.wire.record_batches import MAGIC_VALUE_V2, RECORD_BATCH_OVERHEAD, UNKNOWN, RecordBatches
from udfs.wire.records import Budget, BudgetOf, RecordsError, RecordsFault, RecordSizes, sizes_of, uncompressed

CRC_AT = 17

COLUMNS = (
    RECORD_BATCHES.uncompressed_bytes, RECORD_BATCHES.keyless_records, RECORD_BATCHES.record_sizes,
    RECORD_BATCHES.create_times, RECORD_BATCHES.recompressed_bytes, RECORD_BATCHES.records_fault,
)  # fmt: skip


HELD_BYTES = 64 << 20
"""Uncompressed bytes of batches of whose records the sizes are held, before rows are made of them."""
Columns: TypeAlias = "dict[str, pa.Array[Any]]"


def record_columns(
    arena: Bytes, content: Unwrapped, source: str, is_learnt: Bools, asked: RecordSampling | None, budget_of: BudgetOf
) -> Iterator[tuple[range, Columns]]:
    """The columns of COLUMNS, of some rows after the others: of wrappers what was found in them, of other batches what
    is asked for.

    Null where nothing is asked for, and where a batch cannot be read, which then has a fault. source: produce or fetch.
    is_learnt: bool[batches], those to learn of.
    """
    t = RECORD_BATCHES
    of_wrappers = {
        t.uncompressed_bytes: array_of(content.uncompressed, content.uncompressed != UNKNOWN),
        t.records_fault: FAULT_NAMES.take(np.where(content.fault == UNKNOWN, len(FAULTS), content.fault)),
    }
    for rows, columns in asked_columns(arena, content.batches, source, is_learnt, asked, budget_of):
        known = {name: of_all.slice(rows.start, len(rows)) for name, of_all in of_wrappers.items()}
        yield rows, columns | {name: compute.coalesce(told, columns[name]) for name, told in known.items()}


FAULT_NAMES = pa.array([*(fault.value for fault in FAULTS), None])


def asked_columns(
    arena: Bytes, found: RecordBatches, source: str, is_learnt: Bools, asked: RecordSampling | None, budget_of: BudgetOf
) -> Iterator[tuple[range, Columns]]:
    """The columns of COLUMNS as far as they are asked for, of batches of magic 2, of some rows after the others."""
    n = len(found.parent)
    if asked is None:
        yield range(n), nulls_besides(RECORD_BATCHES, set(RECORD_BATCHES.columns) - set(COLUMNS), n)
        return
    first, held = 0, 0
    told: dict[int, dict[str, Any]] = {}
    for row in learnt(found, source, is_learnt):  # a batch, not a record: one call of a codec and one of a kernel
        if held >= HELD_BYTES:
            yield range(first, row), columns_of(told, range(first, row))
            first, held, told = row, 0, {}
        is_fetched, budget = source == FROM_FETCH, budget_of(row)
        told[row] = _fetched(arena, found, row, budget) if is_fetched else _produced(arena, found, row, budget, asked)
        held += told[row].get(RECORD_BATCHES.uncompressed_bytes, 0)
    yield range(first, n), columns_of(told, range(first, n))


def columns_of(told: Mapping[int, Mapping[str, Any]], rows: range) -> Columns:
    """The columns of COLUMNS of some rows, null where nothing is told of one."""
    return {
        str(column): pa.array([told.get(row, {}).get(column) for row in rows], TYPES[column.type]) for column in COLUMNS
    }


def learnt(found: RecordBatches, source: str, is_learnt: Bools) -> list[int]:
    """The batches to learn of; a consumer decompresses what is compressed and not cut."""
    if source == FROM_FETCH:
        is_learnt = is_learnt & (found.codec > 0) & (found.is_cut == 0) & (found.magic == MAGIC_VALUE_V2)
    return np.flatnonzero(is_learnt).tolist()


def _produced(arena: Bytes, found: RecordBatches, row: int, budget: Budget, asked: RecordSampling) -> dict[str, Any]:
    """What there is to know of a produced batch; of one that cannot be read, why."""
    t = RECORD_BATCHES
    try:
        records, sizes = read_records(arena, found, row, budget)
    except RecordsError as fault:
        return {t.records_fault: fault.fault.value}
    start = int(found.start[row])
    stored_crc = int.from_bytes(arena[start + CRC_AT : start + CRC_AT + 4].tobytes(), "big")
    again = stored_crc % asked.every == 0
    return {
        t.uncompressed_bytes: sizes.uncompressed,
        t.keyless_records: sizes.keyless,
        t.record_sizes: sizes.content,
        t.create_times: sizes.timestamp_deltas + found.base_timestamp[row],
        t.recompressed_bytes: compressed_parts(records, sizes.ends) if again else None,
    }


def _fetched(arena: Bytes, found: RecordBatches, row: int, budget: Budget) -> dict[str, Any]:
    """What a fetched batch is without compression; of one that cannot be read, why."""
    t = RECORD_BATCHES
    try:
        return {t.uncompressed_bytes: len(read_bytes(arena, found, row, budget))}
    except RecordsError as fault:
        return {t.records_fault: fault.fault.value}


def read_records(arena: Bytes, found: RecordBatches, row: int, budget: Budget) -> tuple[bytes, RecordSizes]:
    """A batch's records without compression, and their sizes. Raises RecordsError."""
    records = read_bytes(arena, found, row, budget)
    return records, sizes_of(records, int(found.record_count[row]))


def read_bytes(arena: Bytes, found: RecordBatches, row: int, budget: Budget) -> bytes:
    """A batch's records without compression. Raises RecordsError."""
    _check(found, row)
    start, size = int(found.start[row]), int(found.size[row])
    return uncompressed(int(found.codec[row]), arena[start + RECORD_BATCH_OVERHEAD : start + size].tobytes(), budget)


def _check(found: RecordBatches, row: int) -> None:
    """Raises RecordsError where the batch is not whole, or not of magic 2."""
    if found.fault[row] != 0 or found.is_cut[row] != 0:
        raise RecordsError(RecordsFault.CUT)
    if found.magic[row] != MAGIC_VALUE_V2:
        raise RecordsError(RecordsFault.OLD_FORMAT)
    if found.crc_valid[row] != 1:
        raise RecordsError(RecordsFault.CORRUPT)
