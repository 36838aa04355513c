"""How the rows of units get to the tasks that replay them: always as columns, never one by one.

A task that deals rows sorts them by shard, unit and time, and splits them into parts; each part is an Arrow IPC stream
in a row of DEALT. Spark moves the parts of a shard to one task, and sorts them by their first unit and time. That task
merges parts that overlap. Whatever the size of a shard, the task holds only one part of each run that overlaps others,
and a few more.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from udfs.facts.arrow_tables import arrow_stream
from udfs.replay.shared.dealt_rows import DEALT, Step
from udfs.replay.shared.parts_in_order import rows_in_order
from udfs.replay.shared.row_order import order_of_rows
from udfs.replay.shared.taken_rows import TEXT, cast_column, taken_rows
from udfs.replay.shared.unit_rows import order_columns, unit_numbers

PART_ROWS = 8192
"""The most rows of a part, so that many parts can be held at once."""
PART_BYTES = 4 << 20
"""The most bytes of a part, if its rows have about the same size."""
SORTED_BYTES = 48 << 20
"""Bytes of rows that a task sorts at once. With more of them, fewer parts overlap when they are merged."""


Rows = Iterator[pa.RecordBatch]
Events = Callable[[Iterable[pa.RecordBatch]], Rows]
"""A function from rows to the rows that it makes of them."""


def deal(batches: Iterable[pa.RecordBatch], step: Step, shards: int) -> Iterator[pa.RecordBatch]:
    """Rows of DEALT from rows of the step's table, in any order. Columns that some rows lack are null."""
    held: dict[tuple[str, ...], list[pa.RecordBatch]] = {}
    held_bytes = Counter[tuple[str, ...]]()
    for batch in (with_texts_once(batch) for batch in batches if batch.num_rows):
        columns = tuple(batch.schema.names)
        held.setdefault(columns, []).append(batch)
        held_bytes[columns] += batch.get_total_buffer_size()
        if held_bytes[columns] >= SORTED_BYTES:
            yield cut_into_dealt_rows(held.pop(columns), step, shards)
            held_bytes[columns] = 0
    for rows in held.values():
        yield cut_into_dealt_rows(rows, step, shards)


def deal_events(events: Events, step: Step, shards: int, batches: Iterable[pa.RecordBatch]) -> Rows:
    """Rows of DEALT from the events that `events` makes of some rows."""
    yield from deal(events(batches), step, shards)


def deal_on(events: Events, step: Step, to: Step, shards: int, batches: Iterable[pa.RecordBatch]) -> Rows:
    """Rows of DEALT for the step `to`, from the events that `events` makes of a shard's rows of `step` in order."""
    yield from deal(events(rows_in_order(batches, step)), to, shards)


def replay_dealt(replay: Events, step: Step, batches: Iterable[pa.RecordBatch]) -> Rows:
    """What a replay makes of a shard's rows in order, from rows of DEALT that are sorted by `unit` and `first`."""
    yield from replay(rows_in_order(batches, step))


def cut_into_dealt_rows(batches: Sequence[pa.RecordBatch], step: Step, shards: int) -> pa.RecordBatch:
    """Some rows of the step's table, sorted and split into parts, as rows of DEALT. batches: with the same columns."""
    number, names = unit_numbers(batches, step.unit)
    shard_of_unit = np.array([zlib.crc32(step.dealt_by(name).encode()) % shards for name in names], np.int64)
    in_turn = np.array(sorted(range(len(names)), key=lambda unit: (shard_of_unit[unit], names[unit])), np.int64)
    place = np.zeros(len(names), np.int64)
    place[in_turn] = np.arange(len(names))
    order = order_columns(batches, step)
    sorting = order_of_rows(place[number], order)
    schema = batches[0].schema
    in_order = taken_rows(batches, sorting, dict(zip(schema.names, schema.types, strict=True)))
    unit = number[sorting]
    shard = shard_of_unit[unit]
    cuts = [0, *(np.flatnonzero(np.diff(shard)) + 1).tolist(), len(shard)]
    size = in_order.get_total_buffer_size() // max(len(shard), 1) + 1
    most = max(1, min(PART_ROWS, PART_BYTES // size))
    firsts = [first for begin, end in pairwise(cuts) for first in range(begin, end, most)]
    lengths = np.diff([*firsts, len(shard)])
    columns: list[pa.Array[Any]] = [
        pa.array(shard[firsts], pa.int32()),
        pa.array([names[unit] for unit in unit[firsts].tolist()], pa.string()),
        pa.array(order[0][sorting[firsts]] if order else np.zeros(len(firsts), np.int64), pa.int64()),
        pa.array(
            [
                arrow_stream(in_order.slice(first, length))
                for first, length in zip(firsts, lengths.tolist(), strict=True)
            ],
            pa.binary(),
        ),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=DEALT)


def with_texts_once(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows, each text column as a dictionary column."""
    columns = [c.dictionary_encode() if pa.types.is_string(c.type) else c for c in rows.columns]
    return pa.RecordBatch.from_arrays([_narrow(c) for c in columns], names=rows.schema.names)


def _narrow(column: Any) -> pa.Array[Any]:
    return cast_column(column, TEXT) if pa.types.is_dictionary(column.type) else column
