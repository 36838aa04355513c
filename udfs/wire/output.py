"""What a batch of frames decodes into: one flat int64 buffer, where each column is in it, and the levels made of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from udfs.wire.arrays import Bools, Ints
from udfs.wire.layout import PARENT, Layout
from udfs.wire.program import CAPACITY, LEVEL_WIDTH, PARENTS, USED

NOWHERE = -1  # the cell of a column that no frame of the batch can set
# How much more room to take than the bytes so far make probable, and from what share of them on they say anything.
_MARGIN = 1.1
_LEAST_SHARE = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """The rows of one array path, in wire order; every column is int64[rows].

    Numbers are columns of their name; a string, bytes, records or uuid is the pair NAME.start, NAME.length of offsets
    into the arena; an array is NAME.count here and a level of its own. Fields of a struct are dotted:
    `replica_state.replica_id`; one that can be null as a whole has NAME.is_null as well. `defaults` are the values of
    the columns that no row sets.
    """

    path: str
    columns: dict[str, Ints]
    defaults: dict[str, int] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.parent.size

    @property
    def names(self) -> list[str]:
        """Of all columns."""
        return [*self.columns, *(name for name in self.defaults if name not in self.columns)]

    @property
    def parent(self) -> Ints:
        """The row this one belongs to in the level above; in the top level, the frame."""
        return self.columns[PARENT]

    def column(self, name: str) -> Ints:
        """A number, 0 or 1 for a bool, or NAME.count of an array (-1: null)."""
        if name not in self.columns:
            self.columns[name] = np.full(self.rows, self.defaults[name])
        return self.columns[name]

    def span(self, name: str) -> tuple[Ints, Ints]:
        """(starts, lengths) in the arena; length -1: null, or a uuid that the frame does not have."""
        return self.column(name + ".start"), self.column(name + ".length")


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """Room for the rows of a batch.

    `levels`: the kernel's level table; `columns` int64[columns, 2]: level and first cell of each, NOWHERE where the
    batch cannot set it; `left_out`: columns that have their default beforehand, because a row may not set them.
    """

    layout: Layout
    levels: Ints
    columns: Ints
    left_out: Ints
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
        first = self.columns[:, 1]
        return zip(first.tolist(), (first + self.used[self.columns[:, 0]]).tolist(), strict=True)

    def grown(self, level: int, share_done: float) -> Output:
        """The same rows with more room in one level: twice as much, or what the share of bytes done makes probable."""
        capacity = self.capacity.copy()
        capacity[level] = max(2 * capacity[level], int(_MARGIN * self.used[level] / max(share_done, _LEAST_SHARE)))
        more = allocate(self.layout, capacity, self.columns[:, 1] != NOWHERE, self.left_out)
        more.used[:] = self.used
        for to, (first, end) in zip(more.columns[:, 1].tolist(), self.used_cells(), strict=True):
            if first != NOWHERE:
                more.out[to : to + end - first] = self.out[first:end]
        return more

    def decoded(self) -> dict[str, Level]:
        """The levels as far as they are used, by path; nothing is copied."""
        found: dict[str, Level] = {path: Level(path, {}) for path in self.layout.levels}
        for column, (first, end) in zip(self.layout.columns, self.used_cells(), strict=True):
            if first == NOWHERE:
                found[column.level].defaults[column.name] = column.default
            else:
                found[column.level].columns[column.name] = self.out[first:end]
        return found


def allocate(layout: Layout, capacity: Ints, can_be_set: Bools, left_out: Ints) -> Output:
    """Room for `capacity` int64[levels] rows, none used, with the columns that `can_be_set`, bool[columns].

    left_out: numbers of the columns to have their default beforehand.
    """
    level = np.repeat(np.arange(len(capacity)), np.diff(layout.first_column))
    rows = np.where(can_be_set, capacity[level], 0)
    cells = np.where(can_be_set, np.cumsum(rows) - rows, NOWHERE)
    levels = np.zeros(len(capacity) * LEVEL_WIDTH, np.int64)
    levels[CAPACITY::LEVEL_WIDTH] = capacity
    levels[PARENTS::LEVEL_WIDTH] = cells[layout.first_column[:-1]]
    # Of Arrow's pool, which keeps what is given back: memory new to a process costs as much as decoding into it.
    out = np.frombuffer(memoryview(pa.allocate_buffer(int(rows.sum()) * np.int64().itemsize)), np.int64)
    for column in left_out.tolist():
        out[cells[column] : cells[column] + rows[column]] = layout.defaults[column]
    return Output(layout, levels, np.stack([level, cells], axis=1), left_out, out)
