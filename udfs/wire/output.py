"""What a batch of frames decodes into: one flat int64 buffer, and where each column is in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa

from udfs.wire.arrays import Bools, Floats, Ints
from udfs.wire.level import Level
from udfs.wire.program import Program
from udfs.wire.reader_code import CAPACITY, CELL_BYTES, LEVEL_WIDTH, USED

NOWHERE = -1  # the cell of a column that no frame has set yet
_LEAST_ROWS = 1024
_CACHE_LINE = 64 // CELL_BYTES
# How much more room to take than the bytes so far make probable, and from what share of them on they say anything.
_MARGIN = 1.1
_LEAST_SHARE = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """Room for the rows of a batch.

    `out` int64[cells]: the columns one behind the other. `levels`: the readers' level table; `first_cells`
    int64[columns]: where in `out` each column begins, NOWHERE for one that has no room yet.
    """

    program: Program
    levels: Ints
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

    def addresses(self) -> Ints:
        """Of the first row of each column, int64[columns]; 0 where it has no room."""
        return np.where(self._has_room, self.out.ctypes.data + CELL_BYTES * self.first_cells, 0)

    def used_cells(self) -> Iterator[tuple[int, int]]:
        """First cell of each column and the cell behind its last row."""
        ends = self.first_cells + self.used[self.program.layout.level_of]
        return zip(self.first_cells.tolist(), ends.tolist(), strict=True)

    def with_all_columns(self, level: int) -> Output:
        """The same rows with room for what tagged fields set in a level."""
        return self._moved(self.capacity, self._has_room | self._of(level))

    def grown(self, level: int, share_done: float) -> Output:
        """The same rows with more room in one level: twice as much, or what the share of bytes done makes probable."""
        capacity = self.capacity.copy()
        probable = int(_MARGIN * self.used[level] / max(share_done, _LEAST_SHARE))
        capacity[level] = max(2 * capacity[level], probable, _LEAST_ROWS)
        return self._moved(capacity, self._has_room | (self._of(level) & self.program.tagged_level[level]))

    @property
    def _has_room(self) -> Bools:
        has_room: Bools = self.first_cells != NOWHERE
        return has_room

    def _of(self, level: int) -> Bools:
        """The columns of a level that a frame can set."""
        found: Bools = self.program.settable & (self.program.layout.level_of == level)
        return found

    def _moved(self, capacity: Ints, has_room: Bools) -> Output:
        more = allocate(self.program, capacity, has_room)
        more.used[:] = self.used
        for to, (first, end) in zip(more.first_cells.tolist(), self.used_cells(), strict=True):
            if first != NOWHERE:
                more.out[to : to + end - first] = self.out[first:end]
        return more

    def remember(self, size: int) -> None:
        """Note what this batch of `size` bytes has needed: the program's next batch begins with that room."""
        needed = experience(self.program)
        needed.rows_per_frame, needed.rows_per_byte = self.used / max(self.used[0], 1), self.used / max(size, 1)
        needed.columns = self._has_room

    def decoded(self) -> dict[str, Level]:
        """The levels as far as they are used, by path; nothing is copied."""
        layout = self.program.layout
        self.out[: self.used[0]] = np.arange(self.used[0])
        found: dict[str, Level] = {path: Level(path, {}) for path in layout.levels}
        for column, (first, end) in zip(layout.columns, self.used_cells(), strict=True):
            if first != NOWHERE:
                found[column.level].columns[column.name] = self.out[first:end]
            else:
                found[column.level].defaults[column.name] = column.default
        return found


@dataclass(slots=True, eq=False)
class Experience:
    """What batches of a program needed, so that the next has room at once: `rows_per_frame` and `rows_per_byte` of the
    last one, float64[levels], and the `columns` that any has set, bool[columns].
    """

    rows_per_frame: Floats
    rows_per_byte: Floats
    columns: Bools


@cache
def experience(program: Program) -> Experience:
    """A program's: before its first batch, a row a frame in every level that is not of tags alone."""
    once = np.where(program.tagged_level, 0.0, 1.0)
    return Experience(once, once, program.untagged)


def output_for(program: Program, frames: int, size: int) -> Output:
    """Room for a batch of so many frames and bytes, with the frames' rows of the top level taken."""
    needed = experience(program)
    rows = _MARGIN * np.minimum(frames * needed.rows_per_frame, size * needed.rows_per_byte)
    capacity = np.where(rows > 0, np.maximum(rows, _LEAST_ROWS), 0).astype(np.int64)
    capacity[0] = frames
    output = allocate(program, capacity, needed.columns)
    output.used[0] = frames
    return output


def allocate(program: Program, capacity: Ints, has_room: Bools) -> Output:
    """Room for `capacity` int64[levels] rows, none used, of the columns that have room, bool[columns]."""
    # An odd number of cache lines: were it a power of two, all columns' same row would have one place in the cache.
    cells_each = ((capacity + _CACHE_LINE - 1) // _CACHE_LINE | 1)[program.layout.level_of] * (_CACHE_LINE * has_room)
    behind = np.cumsum(cells_each)
    first_cells = np.where(has_room, behind - cells_each, NOWHERE)
    levels = np.zeros(len(capacity) * LEVEL_WIDTH, np.int64)
    levels[CAPACITY::LEVEL_WIDTH] = capacity
    out = unwritten(int(behind[-1]))
    for column in program.left_out:
        if has_room[column]:
            out[first_cells[column] : behind[column]] = program.layout.defaults[column]
    return Output(program, levels, first_cells, out)


def unwritten(cells: int) -> Ints:
    """int64[cells] that hold anything.

    They are of Arrow's pool, which keeps what is given back: memory new to a process costs as much as decoding into it.
    """
    return np.frombuffer(memoryview(pa.allocate_buffer(cells * CELL_BYTES)), np.int64)
