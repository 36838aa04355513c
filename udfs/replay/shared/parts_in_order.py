"""How a task puts the parts that were dealt to it into order: it merges parts that overlap."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.table import Table
from udfs.columns.arrays import Ints
from udfs.columns.arrow_columns import concatenate_batches
from udfs.facts.arrow_tables import TYPES
from udfs.replay.shared.dealt_rows import FIRST, ROWS, UNIT, Step
from udfs.replay.shared.row_order import order_of_rows
from udfs.replay.shared.rows_by_key import key_boundaries
from udfs.replay.shared.taken_rows import TEXT, cast_column, taken_rows
from udfs.replay.shared.unit_rows import order_column, order_columns, unit_names

PARTS_TOGETHER = 4
"""After this many parts, all rows before the next part are merged: a merge takes time besides the time for its rows."""


@dataclass
class OrderedRows:
    """Rows that are in order; the first `done` have been handed out.

    begins: int64[units + 1], where each unit begins, and where the last one ends. units: their names. first:
    int64[rows], the first of the numbers by which a unit's rows are ordered.
    """

    rows: pa.RecordBatch
    begins: Ints
    units: list[str]
    first: Ints
    done: int = field(default=0)

    def rows_before(self, unit: str, first: int) -> int:
        """How many of the part's rows come before a row of this unit whose number in `first` is this one."""
        before = bisect_left(self.units, unit)
        if before == len(self.units) or self.units[before] != unit:
            return int(self.begins[before])
        begin, end = self.begins[before : before + 2]
        return int(begin + np.searchsorted(self.first[begin:end], first))

    def take(self, end: int) -> OrderedRows:
        """Hand out the rows up to `end` that have not been handed out before. There is at least one."""
        done, self.done = self.done, end
        unit = int(np.searchsorted(self.begins, done, side="right")) - 1
        behind = int(np.searchsorted(self.begins, end))
        begins = np.clip(self.begins[unit : behind + 1], done, end) - done
        rows = self.rows.slice(done, end - done)
        return OrderedRows(rows, begins, self.units[unit:behind], self.first[done:end])


def rows_of_part(rows: pa.RecordBatch, step: Step) -> OrderedRows:
    """The rows of one part."""
    begins = key_boundaries(rows, step.unit)
    names = unit_names([rows[column] for column in step.unit], begins[:-1])
    return OrderedRows(rows, begins, names, order_column(rows, step.order[0]))


def rows_in_order(batches: Iterable[pa.RecordBatch], step: Step) -> Iterator[pa.RecordBatch]:
    """A shard's rows of the step's table in order, from rows of DEALT that are sorted by `unit` and `first`.

    At once, PARTS_TOGETHER parts are held, and one part of each run that overlaps others. Rows of a unit with the same
    number in the first column of the order are never in two batches.
    """
    held: list[OrderedRows] = []
    new = 0
    for batch in batches:
        units: Any = batch[UNIT].to_pylist()
        firsts: Any = batch[FIRST].to_pylist()
        for unit, first, stream in zip(units, firsts, batch[ROWS], strict=True):
            rows = pa.ipc.open_stream(stream.as_buffer()).read_next_batch()
            if not step.order:
                yield whole_rows(rows, step.table)
                continue
            if new == PARTS_TOGETHER:
                yield from merged_before(held, step, (unit, first))
                new = 0
            held.append(rows_of_part(rows, step))
            new += 1
    yield from merged_before(held, step, None)


def whole_rows(rows: pa.RecordBatch, table: Table) -> pa.RecordBatch:
    """The rows with all of the table's columns, null where they have none; texts as dictionary columns."""
    names = set(rows.schema.names)
    nulls: Any = pa.nulls
    columns = [
        cast_column(rows[name], kind) if name in names else nulls(rows.num_rows, kind)
        for name, kind in _kinds(table).items()
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(_kinds(table)))


@cache
def _kinds(table: Table) -> dict[str, pa.DataType]:
    """The types of a step table's columns; texts are dictionary columns."""
    return {str(column): TEXT if column.type == "string" else TYPES[column.type] for column in table.columns}


def merged_before(held: list[OrderedRows], step: Step, until: tuple[str, int] | None) -> Iterator[pa.RecordBatch]:
    """Hand out, in order, the rows of the parts that come before a row of this unit and number; all rows if `until` is
    None.
    """
    pieces = []
    for part in held:
        end = part.rows.num_rows if until is None else part.rows_before(*until)
        if end > part.done:
            pieces.append(part.take(end))
    held[:] = [part for part in held if part.done < part.rows.num_rows]
    if len(pieces) == 1:
        yield whole_rows(pieces[0].rows, step.table)
    elif pieces:
        yield merge_pieces(pieces, step)


def merge_pieces(pieces: Sequence[OrderedRows], step: Step) -> pa.RecordBatch:
    """The rows of all pieces, sorted by unit, and within a unit by the step's order."""
    rank = {name: place for place, name in enumerate(sorted({name for piece in pieces for name in piece.units}))}
    alike: dict[tuple[pa.Field[Any], ...], list[OrderedRows]] = {}
    for piece in pieces:
        alike.setdefault(tuple(piece.rows.schema), []).append(piece)
    unit = [
        np.repeat([rank[name] for name in piece.units], np.diff(piece.begins))
        for of_columns in alike.values()
        for piece in of_columns
    ]
    batches = [concatenate_batches([piece.rows for piece in of_columns]) for of_columns in alike.values()]
    order = order_of_rows(np.concatenate(unit), order_columns(batches, step))
    return taken_rows(batches, order, _kinds(step.table))
