"""The buffer that a batch of frames is decoded into: one flat int64 array, and where each column is in it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from udfs.columns.arrays import Bools, Ints
from udfs.columns.arrow_columns import unwritten_array
from udfs.kernels.kernel import kernel
from udfs.wire.decoded_level import NOWHERE, ColumnCells, Level
from udfs.wire.decoding_plan import DecodingPlan
from udfs.wire.frame_loop import OutputColumns
from udfs.wire.reader_code import CAPACITY, CELL_BYTES, LEVEL_WIDTH, USED

_LEAST_ROWS = 1024
_CACHE_LINE = 64 // CELL_BYTES
# The room that a batch probably needs is estimated from the bytes that are already decoded, with this margin. If they
# are a smaller share of the batch than _LEAST_SHARE, they count as that share.
_MARGIN = 1.1
_LEAST_SHARE = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class ColumnBuffer:
    """Room for the rows of a batch.

    levels: the level table (`udfs.wire.reader_code`). has_room: bool[columns], which columns are in `out`. first_cells:
    int64[columns], where each of these begins, NOWHERE for the others. out: int64[cells], the columns one after the
    other.
    """

    plan: DecodingPlan
    levels: Ints
    has_room: Bools
    first_cells: Ints
    out: Ints

    @property
    def columns(self) -> OutputColumns:
        """The columns for the frame loop."""
        layout = self.plan.layout
        return OutputColumns(self.levels, layout.level_of, self.first_cells, layout.defaults, self.out)

    @property
    def used(self) -> Ints:
        """How many rows each level has: int64[levels], a writable view."""
        return self.levels[USED::LEVEL_WIDTH]

    @property
    def capacity(self) -> Ints:
        """For how many rows each level has room: int64[levels], a writable view."""
        return self.levels[CAPACITY::LEVEL_WIDTH]

    def used_cells(self) -> Iterator[tuple[int, int]]:
        """(first cell, cell after the last row) of each column."""
        ends = self.first_cells + self.used[self.plan.layout.level_of]
        return zip(self.first_cells.tolist(), ends.tolist(), strict=True)

    def with_field_of(self, column: int) -> ColumnBuffer:
        """A buffer with these rows, and room for all columns of the field to which a column belongs."""
        layout = self.plan.layout
        level, field = layout.columns[column].level, layout.columns[column].name.partition(".")[0]
        numbers = [n for name, n in layout.numbers[layout.level(level)].items() if name.partition(".")[0] == field]
        of_field = np.isin(np.arange(len(layout.columns)), numbers)
        return self._moved(self.capacity, self.has_room | (self.plan.settable & of_field))

    def grown(self, level: int, share_done: float) -> ColumnBuffer:
        """A buffer with these rows, and more room in one level: twice as much, or more if that is probably needed.

        share_done: the share of the batch's bytes that is already decoded.
        """
        capacity = self.capacity.copy()
        probable = int(_MARGIN * self.used[level] / max(share_done, _LEAST_SHARE))
        capacity[level] = max(2 * capacity[level], probable, _LEAST_ROWS)
        of_level = self.plan.settable & (self.plan.layout.level_of == level)
        return self._moved(capacity, self.has_room | (of_level & self.plan.tagged_level[level]))

    def _moved(self, capacity: Ints, has_room: Bools) -> ColumnBuffer:
        more = new_column_buffer(self.plan, capacity, has_room)
        more.used[:] = self.used
        for to, (first, end) in zip(more.first_cells.tolist(), self.used_cells(), strict=True):
            if first != NOWHERE:
                more.out[to : to + end - first] = self.out[first:end]
        return more

    def remember(self, size: int) -> None:
        """Note the room that this batch of `size` bytes has needed. The plan's next batch begins with that room."""
        if self.used[0]:
            needed = room_needed(self.plan)
            needed.rows, needed.size, needed.columns = self.used, size, self.has_room

    def decoded(self) -> dict[str, Level]:
        """The rows of each level, by its path; nothing is copied."""
        layout, first_cells = self.plan.layout, self.first_cells.tolist()
        levels = zip(layout.levels, self.used.tolist(), layout.numbers, layout.defaults_by_name, strict=True)
        return {
            path: Level(path, rows, {}, defaults, ColumnCells(self.out, first_cells, numbers))
            for path, rows, numbers, defaults in levels
        }


@dataclass(slots=True, eq=False)
class RoomNeeded:
    """The room that the last batch of a plan needed. The next batch begins with it.

    rows: int64[levels]; the rows of the top level are the frames. size: bytes of the frames. columns: bool[columns],
    which columns any batch of the plan has set.
    """

    rows: Ints
    size: int
    columns: Bools


@cache
def room_needed(plan: DecodingPlan) -> RoomNeeded:
    """The room that a plan's last batch needed. Before the first batch: one row for each frame in every level, except
    levels that are only for tags.
    """
    rows = np.where(plan.tagged_level, 0, 1)
    rows[0] = 1
    return RoomNeeded(rows, 1, plan.untagged)


def buffer_for(plan: DecodingPlan, frames: int, size: int) -> ColumnBuffer:
    """A buffer for a batch with this many frames and bytes. The frames already have their rows at the top level."""
    needed = room_needed(plan)
    times_as_much = min(frames / int(needed.rows[0]), size / max(needed.size, 1))
    probable = (_MARGIN * times_as_much * needed.rows[1:]).tolist()
    below = [max(math.ceil(rows), _LEAST_ROWS) if rows else 0 for rows in probable]
    output = new_column_buffer(plan, np.array([frames, *below]), needed.columns)
    output.used[0] = frames
    return output


def new_column_buffer(plan: DecodingPlan, capacity: Ints, has_room: Bools) -> ColumnBuffer:
    """An empty buffer; capacity: int64[levels], for how many rows; has_room: bool[columns], for which columns."""
    layout = plan.layout
    first_cells, levels = np.empty(len(layout.columns), np.int64), np.zeros(len(capacity) * LEVEL_WIDTH, np.int64)
    levels[CAPACITY::LEVEL_WIDTH] = capacity
    # Arrow keeps this memory: getting new memory from the system costs as much as decoding into it.
    out = unwritten_array(lay_columns(levels, layout.level_of, has_room, first_cells), np.int64)
    for column in plan.left_out:
        if has_room[column]:
            first, level = first_cells[column], layout.level_of[column]
            out[first : first + capacity[level]] = layout.defaults[column]
    return ColumnBuffer(plan, levels, has_room, first_cells, out)


@kernel
def lay_columns(levels: Ints, level_of: Ints, has_room: Bools, first_cells: Ints) -> int:
    """Write where each column begins, NOWHERE for columns without room. Returns how many cells all columns take.

    levels, has_room, first_cells: as in ColumnBuffer; first_cells is written. level_of: int64[columns].
    """
    cells = 0
    for column in range(first_cells.size):
        first_cells[column] = cells if has_room[column] else NOWHERE
        if has_room[column]:
            lines = (levels[level_of[column] * LEVEL_WIDTH + CAPACITY] + _CACHE_LINE - 1) // _CACHE_LINE
            # A column takes an odd number of cache lines. With a power of two, the same row of every column would have
            # the same place in the cache.
            cells += (lines | 1) * _CACHE_LINE
    return cells
