"""What a batch of frames decodes into: one flat int64 buffer, and where each column is in it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa

from udfs.columns.arrays import Bools, Ints
from udfs.kernels.kernel import kernel
from udfs.wire.decoded_level import NOWHERE, Cells, Level
from udfs.wire.decoding_plan import Program
from udfs.wire.reader_code import CAPACITY, CELL_BYTES, LEVEL_WIDTH, USED

_LEAST_ROWS = 1024
_CACHE_LINE = 64 // CELL_BYTES
# How much more room to take than the bytes so far make probable, and from what share of them on they say anything.
_MARGIN = 1.1
_LEAST_SHARE = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """Room for the rows of a batch.

    `out` int64[cells]: the columns one behind the other. `levels`: the readers' level table; `has_room` bool[columns]:
    which columns are in `out`; `first_cells` int64[columns]: where each of these begins, NOWHERE for the others.
    """

    program: Program
    levels: Ints
    has_room: Bools
    first_cells: Ints
    out: Ints

    @property
    def used(self) -> Ints:
        """How many rows each level has: int64[levels], to be changed in place."""
        return self.levels[USED::LEVEL_WIDTH]

    @property
    def capacity(self) -> Ints:
        """How many rows each level has room for: int64[levels]."""
        return self.levels[CAPACITY::LEVEL_WIDTH]

    def used_cells(self) -> Iterator[tuple[int, int]]:
        """First cell of each column and the cell behind its last row."""
        ends = self.first_cells + self.used[self.program.layout.level_of]
        return zip(self.first_cells.tolist(), ends.tolist(), strict=True)

    def with_field_of(self, column: int) -> Output:
        """The same rows with room for all columns of the field of the level that a column is of."""
        layout = self.program.layout
        level, field = layout.columns[column].level, layout.columns[column].name.partition(".")[0]
        numbers = [n for name, n in layout.numbers[layout.level(level)].items() if name.partition(".")[0] == field]
        of_field = np.isin(np.arange(len(layout.columns)), numbers)
        return self._moved(self.capacity, self.has_room | (self.program.settable & of_field))

    def grown(self, level: int, share_done: float) -> Output:
        """The same rows with more room in one level: twice as much, or what the share of bytes done makes probable."""
        capacity = self.capacity.copy()
        probable = int(_MARGIN * self.used[level] / max(share_done, _LEAST_SHARE))
        capacity[level] = max(2 * capacity[level], probable, _LEAST_ROWS)
        return self._moved(capacity, self.has_room | (self._of(level) & self.program.tagged_level[level]))

    def _of(self, level: int) -> Bools:
        """The columns of a level that a frame can set."""
        return self.program.settable & (self.program.layout.level_of == level)

    def _moved(self, capacity: Ints, has_room: Bools) -> Output:
        more = allocate(self.program, capacity, has_room)
        more.used[:] = self.used
        for to, (first, end) in zip(more.first_cells.tolist(), self.used_cells(), strict=True):
            if first != NOWHERE:
                more.out[to : to + end - first] = self.out[first:end]
        return more

    def remember(self, size: int) -> None:
        """Note what this batch of `size` bytes has needed: the program's next batch begins with that room."""
        if self.used[0]:
            needed = experience(self.program)
            needed.rows, needed.size, needed.columns = self.used, size, self.has_room

    def decoded(self) -> dict[str, Level]:
        """The levels as far as they are used, by path; nothing is copied."""
        layout, first_cells = self.program.layout, self.first_cells.tolist()
        levels = zip(layout.levels, self.used.tolist(), layout.numbers, layout.defaults_by_name, strict=True)
        return {
            path: Level(path, rows, {}, defaults, Cells(self.out, first_cells, numbers))
            for path, rows, numbers, defaults in levels
        }


@dataclass(slots=True, eq=False)
class Experience:
    """What the last batch of a program needed, so that the next has room at once: `rows` int64[levels], the first those
    of the frames, for `size` bytes, in the `columns` that any batch has set, bool[columns].
    """

    rows: Ints
    size: int
    columns: Bools


@cache
def experience(program: Program) -> Experience:
    """A program's: before its first batch, a row a frame in every level that is not of tags alone."""
    rows = np.where(program.tagged_level, 0, 1)
    rows[0] = 1
    return Experience(rows, 1, program.untagged)


def output_for(program: Program, frames: int, size: int) -> Output:
    """Room for a batch of so many frames and bytes, with the frames' rows of the top level taken."""
    needed = experience(program)
    times_as_much = min(frames / int(needed.rows[0]), size / max(needed.size, 1))
    probable = (_MARGIN * times_as_much * needed.rows[1:]).tolist()
    below = [max(math.ceil(rows), _LEAST_ROWS) if rows else 0 for rows in probable]
    output = allocate(program, np.array([frames, *below]), needed.columns)
    output.used[0] = frames
    return output


def allocate(program: Program, capacity: Ints, has_room: Bools) -> Output:
    """Room for `capacity` int64[levels] rows, none used, of the columns that have room, bool[columns]."""
    layout = program.layout
    first_cells, levels = np.empty(len(layout.columns), np.int64), np.zeros(len(capacity) * LEVEL_WIDTH, np.int64)
    levels[CAPACITY::LEVEL_WIDTH] = capacity
    out = unwritten(lay_columns(levels, layout.level_of, has_room, first_cells))
    for column in program.left_out:
        if has_room[column]:
            first, level = first_cells[column], layout.level_of[column]
            out[first : first + capacity[level]] = layout.defaults[column]
    return Output(program, levels, has_room, first_cells, out)


@kernel
def lay_columns(levels: Ints, level_of: Ints, has_room: Bools, first_cells: Ints) -> int:
    """Write where each column begins, NOWHERE for those without room: the number of cells of all."""
    cells = 0
    for column in range(first_cells.size):
        first_cells[column] = cells if has_room[column] else NOWHERE
        if has_room[column]:
            lines = (levels[level_of[column] * LEVEL_WIDTH + CAPACITY] + _CACHE_LINE - 1) // _CACHE_LINE
            # An odd number of them: were it a power of two, all columns' same row would have one place in the cache.
            cells += (lines | 1) * _CACHE_LINE
    return cells


def unwritten(cells: int) -> Ints:
    """int64[cells] that hold anything.

    They are of Arrow's pool, which keeps what is given back: memory new to a process costs as much as decoding into it.
    """
    return np.frombuffer(memoryview(pa.allocate_buffer(cells * CELL_BYTES)), np.int64)
