"""How the rows of units come to the tasks that replay them: as columns all the way, never one by one.

A task that deals rows sorts them by shard, unit and time, and cuts them into parts, each an Arrow IPC stream in a row
of DEALT. Spark moves the parts of a shard to one task and sorts them by their first unit and time. That task merges
parts that overlap. However much a shard has, the task holds no more than one part of each run that overlaps others.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.table import Table
from udfs.columns.arrays import Ints
from udfs.columns.arrow_columns import concatenate_batches
from udfs.facts.arrow_tables import TYPES, arrow_stream
from udfs.replay.shared.columns import codes_of, int_column, rows_alike

SHARD, UNIT, FIRST, ROWS = "shard", "unit", "first", "rows"
_DEALT: list[pa.Field[Any]] = [
    pa.field(SHARD, pa.int32()),
    pa.field(UNIT, pa.string()),
    pa.field(FIRST, pa.int64()),
    pa.field(ROWS, pa.binary()),
]
DEALT = pa.schema(_DEALT)
"""A part of a shard's rows: the task that takes it, the unit of its first row, and what orders that row in its unit."""
PART_ROWS = 8192
"""Most rows of a part, so that many parts can be held at a time."""
PART_BYTES = 4 << 20
"""Most bytes of a part, as far as its rows are of about one size."""
SORTED_BYTES = 48 << 20
"""Bytes of rows that a task sorts at a time. The more, the fewer parts overlap where they are merged."""
FIRST_OF_ALL = np.iinfo(np.int64).min
"""In place of null where rows are ordered: nulls come first."""
TEXT = pa.dictionary(pa.int32(), pa.string())
"""Texts that are dealt: each is kept once in a part."""


Rows = Iterator[pa.RecordBatch]
Events = Callable[[Iterable[pa.RecordBatch]], Rows]
"""A function from rows to the rows that it makes of them."""


class Step(NamedTuple):
    """The rows of a step table, on their way to the tasks that replay them.

    unit: the columns whose values tell units apart; all rows of a unit come to one task. order: the columns, numbers
    all, by which a unit's rows are ordered. Where `order` is empty there is one unit, whose rows come in any order.
    leads: units with the same text in the first column of `unit` come to one task, unless it is empty.
    """

    table: Table
    unit: tuple[str, ...]
    order: tuple[str, ...]
    leads: bool = False

    def dealt_by(self, unit: str) -> str:
        """The text that decides which task a unit comes to. unit: its name."""
        return (unit.split("\0", 1)[0] if self.leads else "") or unit


def deal(batches: Iterable[pa.RecordBatch], step: Step, shards: int) -> Iterator[pa.RecordBatch]:
    """Rows of DEALT from rows of the step's table, which come in any order. Columns that some of them lack are null."""
    held: dict[tuple[str, ...], list[pa.RecordBatch]] = {}
    held_bytes = Counter[tuple[str, ...]]()
    for batch in map(with_texts_once, batches):
        columns = tuple(batch.schema.names)
        held.setdefault(columns, []).append(batch)
        held_bytes[columns] += batch.get_total_buffer_size()
        if held_bytes[columns] >= SORTED_BYTES:
            yield cut_into_dealt_rows(concatenate_batches(held.pop(columns)), step, shards)
            held_bytes[columns] = 0
    for rows in held.values():
        yield cut_into_dealt_rows(concatenate_batches(rows), step, shards)


def deal_events(events: Events, step: Step, shards: int, batches: Iterable[pa.RecordBatch]) -> Rows:
    """Rows of DEALT from the events that `events` makes of some rows."""
    yield from deal(events(batches), step, shards)


def deal_on(events: Events, step: Step, to: Step, shards: int, batches: Iterable[pa.RecordBatch]) -> Rows:
    """Rows of DEALT for the step `to`, from the events that `events` makes of a shard's rows of `step` in order."""
    yield from deal(events(rows_in_order(batches, step)), to, shards)


def replay_dealt(replay: Events, step: Step, batches: Iterable[pa.RecordBatch]) -> Rows:
    """What a replay makes of a shard's rows in order, from rows of DEALT that are sorted by `unit` and `first`."""
    yield from replay(rows_in_order(batches, step))


def cut_into_dealt_rows(rows: pa.RecordBatch, step: Step, shards: int) -> pa.RecordBatch:
    """Some rows of the step's table, sorted and cut into parts, as rows of DEALT."""
    number, names = unit_numbers(rows, step.unit)
    shard_of_unit = np.array([zlib.crc32(step.dealt_by(name).encode()) % shards for name in names], np.int64)
    in_turn = np.array(sorted(range(len(names)), key=lambda unit: (shard_of_unit[unit], names[unit])), np.int64)
    place = np.zeros(len(names), np.int64)
    place[in_turn] = np.arange(len(names))
    order = order_columns(rows, step)
    sorting = np.lexsort([*order[::-1], place[number]])
    in_order = rows.take(sorting)
    shard = shard_of_unit[number[sorting]]
    cuts = [0, *(np.flatnonzero(np.diff(shard)) + 1).tolist(), len(shard)]
    size = rows.get_total_buffer_size() // max(rows.num_rows, 1) + 1
    most = max(1, min(PART_ROWS, PART_BYTES // size))
    firsts = [first for begin, end in pairwise(cuts) for first in range(begin, end, most)]
    lengths = np.diff([*firsts, len(shard)])
    columns: list[pa.Array[Any]] = [
        pa.array(shard[firsts], pa.int32()),
        pa.array([names[unit] for unit in number[sorting][firsts].tolist()], pa.string()),
        pa.array(order[0][sorting][firsts] if order else np.zeros(len(firsts), np.int64), pa.int64()),
        pa.array(
            [
                arrow_stream(in_order.slice(first, length))
                for first, length in zip(firsts, lengths.tolist(), strict=True)
            ],
            pa.binary(),
        ),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=DEALT)


def order_columns(rows: pa.RecordBatch, step: Step) -> list[Ints]:
    """The numbers that order the rows of a unit: int64[rows] for each column. A column that the rows lack is null."""
    names = set(rows.schema.names)
    nulls = np.full(rows.num_rows, FIRST_OF_ALL)
    return [int_column(rows, column, FIRST_OF_ALL) if column in names else nulls for column in step.order]


def unit_numbers(rows: pa.RecordBatch, unit: Sequence[str]) -> tuple[Ints, list[str]]:
    """(the number of each row's unit, int64[rows]; the name of each unit by its number)."""
    number, first = rows_alike(rows.num_rows, *(rows[column] for column in unit))
    return number, unit_names(rows, unit, first)


def unit_names(rows: pa.RecordBatch, unit: Sequence[str], places: Ints) -> list[str]:
    """The names of the units of the rows at these places, int64[n]: texts, each of which is one unit's alone.

    unit: the columns that tell units apart; without any there is one unit, whose name is empty.
    """
    chosen = [rows[column].take(pa.array(places, pa.int64())).to_pylist() for column in unit]
    return ["\0".join(map(_escaped, values)) for values in zip(*chosen, strict=True)] if unit else [""] * len(places)


def _escaped(value: object) -> str:
    text = "" if value is None else str(value)
    return text.replace("\1", "\1\1").replace("\0", "\1\2") if "\0" in text or "\1" in text else text


def with_texts_once(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows, each text column as a dictionary column."""
    columns = [c.dictionary_encode() if pa.types.is_string(c.type) else c for c in rows.columns]
    return pa.RecordBatch.from_arrays([_narrow(c) for c in columns], names=rows.schema.names)


def _narrow(column: Any) -> pa.Array[Any]:
    return cast_column(column, TEXT) if pa.types.is_dictionary(column.type) else column


def cast_column(column: pa.Array[Any], kind: pa.DataType) -> pa.Array[Any]:
    """The column as one of this type."""
    return column if column.type == kind else column.cast(kind)


@dataclass
class OrderedRows:
    """Rows that are in order, of which the first `done` have been handed out.

    begins: int64[units + 1], where each unit begins, and the end of the last one. units: their names. first:
    int64[rows], the number by which a unit's rows are ordered in the first place.
    """

    rows: pa.RecordBatch
    begins: Ints
    units: list[str]
    first: Ints
    done: int = field(default=0)

    def rows_before(self, unit: str, first: int) -> int:
        """How many of the part's rows come before a row of this unit whose number in `first` is this one."""
        before = sum(name < unit for name in self.units)
        if before == len(self.units) or self.units[before] != unit:
            return int(self.begins[before])
        begin, end = self.begins[before : before + 2]
        return int(begin + np.searchsorted(self.first[begin:end], first))


def rows_of_part(rows: pa.RecordBatch, step: Step) -> OrderedRows:
    """The rows of one part."""
    changed = np.zeros(max(rows.num_rows - 1, 0), np.bool_)
    for column in step.unit:
        changed |= np.diff(codes_of(rows[column])[0]) != 0
    begins = np.concatenate([np.zeros(1, np.int64), np.flatnonzero(changed) + 1, np.full(1, rows.num_rows)])
    first = int_column(rows, step.order[0], FIRST_OF_ALL) if step.order else np.zeros(rows.num_rows, np.int64)
    return OrderedRows(rows, begins, unit_names(rows, step.unit, begins[:-1]), first)


def rows_in_order(batches: Iterable[pa.RecordBatch], step: Step) -> Iterator[pa.RecordBatch]:
    """A shard's rows of the step's table in order, from rows of DEALT that are sorted by `unit` and `first`."""
    held: list[OrderedRows] = []
    for batch in batches:
        units: Any = batch[UNIT].to_pylist()
        firsts: Any = batch[FIRST].to_pylist()
        for unit, first, stream in zip(units, firsts, batch[ROWS], strict=True):
            rows = whole_rows(pa.ipc.open_stream(stream.as_buffer()).read_next_batch(), step.table)
            if not step.order:
                yield rows
                continue
            yield from merged_before(held, step, (unit, first))
            held.append(rows_of_part(rows, step))
    yield from merged_before(held, step, None)


def whole_rows(rows: pa.RecordBatch, table: Table) -> pa.RecordBatch:
    """The rows with all of the table's columns, null where they have none; texts as dictionary columns."""
    names = set(rows.schema.names)
    kinds = {str(column): TEXT if column.type == "string" else TYPES[column.type] for column in table.columns}
    nulls: Any = pa.nulls
    columns = [
        cast_column(rows[name], kind) if name in names else nulls(rows.num_rows, kind) for name, kind in kinds.items()
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(kinds))


def merged_before(held: list[OrderedRows], step: Step, until: tuple[str, int] | None) -> Iterator[pa.RecordBatch]:
    """Hand out, in order, the rows of the parts that come before a row of this unit and number; all rows if `until` is
    None.
    """
    pieces = []
    for part in held:
        end = part.rows.num_rows if until is None else part.rows_before(*until)
        if end > part.done:
            pieces.append(part.rows.slice(part.done, end - part.done))
            part.done = end
    held[:] = [part for part in held if part.done < part.rows.num_rows]
    if len(pieces) == 1:
        yield pieces[0]
    elif pieces:
        yield sort_rows_of_units(concatenate_batches(pieces), step)


def sort_rows_of_units(rows: pa.RecordBatch, step: Step) -> pa.RecordBatch:
    """The rows sorted by unit, and within a unit by the step's order."""
    number, names = unit_numbers(rows, step.unit)
    rank = np.zeros(len(names), np.int64)
    rank[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    order = order_columns(rows, step)
    return rows.take(np.lexsort([*order[::-1], rank[number]]))
