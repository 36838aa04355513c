"""Decoding a batch of message bodies into columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from schemas.wire.message import Message
from udfs.wire.arrays import Bytes, Codes, Ints, Shorts, read_only
from udfs.wire.interpreter import STACK_WIDTH, run
from udfs.wire.layout import PARENT, Layout
from udfs.wire.program import CAPACITY, LEVEL_WIDTH, PARENTS, USED, compile_message, link

_LEAST_ROWS = 64
# How much more room to take than the bytes so far make probable, and from what share of them on they say anything.
_MARGIN = 1.1
_LEAST_SHARE = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """The rows of one array path, in wire order; every column is int64[rows].

    Numbers are columns of their name; a string, bytes, records or uuid is the pair NAME.start, NAME.length of offsets
    into the arena; an array is NAME.count here and a level of its own. Fields of a struct are dotted:
    `replica_state.replica_id`; one that can be null as a whole has NAME.is_null as well.
    """

    path: str
    columns: dict[str, Ints]

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.parent.size

    @property
    def parent(self) -> Ints:
        """The row this one belongs to in the level above; in the top level, the frame."""
        return self.columns[PARENT]

    def column(self, name: str) -> Ints:
        """A number, 0 or 1 for a bool, or NAME.count of an array (-1: null)."""
        return self.columns[name]

    def span(self, name: str) -> tuple[Ints, Ints]:
        """(starts, lengths) in the arena; length -1: null, or a uuid that the frame does not have."""
        return self.columns[name + ".start"], self.columns[name + ".length"]


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """A batch of frames, decoded.

    `fault` int8[frames] holds DecodeFault codes, `fault_at` int64[frames] the arena offset of the field that could
    not be read, -1 without fault. `levels[""]` has a row for every frame; a frame with a fault has defaults there and
    no rows elsewhere.
    """

    fault: Codes
    fault_at: Ints
    levels: dict[str, Level]


def decode(message: Message, arena: Bytes, starts: Ints, ends: Ints, versions: Shorts) -> Decoded:
    """Decode the bodies [start, end) of frames of one message, each in its own version.

    The columns are the same whatever the versions are: those of all versions, with Kafka's default where a frame has
    none.
    """
    program, frames = compile_message(message), len(starts)
    batch = read_only(arena), _as(starts), _as(ends), np.ascontiguousarray(versions, np.int16)
    fault, fault_at = np.zeros(frames, np.int8), np.full(frames, -1, np.int64)
    buffer = _allocate(program.layout, np.full(len(program.layout.levels), max(frames, _LEAST_ROWS), np.int64))
    buffer.used[0] = frames
    work = np.empty(program.depth * STACK_WIDTH, np.int64), np.empty(len(program.layout.levels), np.int64)
    sizes = batch[2] - batch[1]
    frame, top = 0, program.layout.first_column[1]
    while frame < frames:
        frame, level = run(
            link(program, buffer.cells), program.entries, *batch, frame,
            buffer.levels, buffer.cells[:top], program.layout.defaults[:top], buffer.out, fault, fault_at, *work,
        )  # fmt: skip
        if frame < frames:
            buffer = _grow(program.layout, buffer, level, sizes[:frame].sum() / max(sizes.sum(), 1))
    buffer.out[:frames] = np.arange(frames)
    return Decoded(fault, fault_at, _columns(program.layout, buffer))


@dataclass(frozen=True, slots=True, eq=False)
class _Buffer:
    """Output of a batch: `levels` is the kernel's level table, `cells` int64[columns] the first cell of each column."""

    levels: Ints
    cells: Ints
    out: Ints

    @property
    def used(self) -> Ints:
        return self.levels[USED::LEVEL_WIDTH]

    @property
    def capacity(self) -> Ints:
        return self.levels[CAPACITY::LEVEL_WIDTH]

    def used_cells(self, layout: Layout) -> Iterator[tuple[int, int]]:
        """First cell of each column and the cell behind its last row."""
        ends = self.cells + np.repeat(self.used, np.diff(layout.first_column))
        return zip(self.cells.tolist(), ends.tolist(), strict=True)


def _as(values: Ints) -> Ints:
    return np.ascontiguousarray(values, np.int64)


def _allocate(layout: Layout, capacity: Ints) -> _Buffer:
    """Room for `capacity` int64[levels] rows, none used; those of the top level have their defaults."""
    rows = np.repeat(capacity, np.diff(layout.first_column))
    cells = np.cumsum(rows) - rows
    levels = np.zeros(len(capacity) * LEVEL_WIDTH, np.int64)
    levels[CAPACITY::LEVEL_WIDTH] = capacity
    levels[PARENTS::LEVEL_WIDTH] = cells[layout.first_column[:-1]]
    out = np.empty(rows.sum(), np.int64)
    top = layout.first_column[1]
    out[: capacity[0] * top].reshape(top, capacity[0])[:] = layout.defaults[:top, None]
    return _Buffer(levels, cells, out)


def _grow(layout: Layout, old: _Buffer, level: int, share_done: float) -> _Buffer:
    """The same rows with more room in one level: twice as much, or what the share of bytes done makes probable."""
    capacity = old.capacity.copy()
    capacity[level] = max(2 * capacity[level], int(_MARGIN * old.used[level] / max(share_done, _LEAST_SHARE)))
    new = _allocate(layout, capacity)
    new.used[:] = old.used
    for to, (first, end) in zip(new.cells.tolist(), old.used_cells(layout), strict=True):
        new.out[to : to + end - first] = old.out[first:end]
    return new


def _columns(layout: Layout, buffer: _Buffer) -> dict[str, Level]:
    found: dict[str, Level] = {path: Level(path, {}) for path in layout.levels}
    for column, (first, end) in zip(layout.columns, buffer.used_cells(layout), strict=True):
        found[column.level].columns[column.name] = buffer.out[first:end]
    return found
