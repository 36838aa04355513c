"""Decoding a batch of message bodies into columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schemas.wire.message import Message
from udfs.wire.arrays import Bytes, Codes, Ints, Shorts, read_only
from udfs.wire.interpreter import run
from udfs.wire.layout import PARENT, Layout
from udfs.wire.program import compile_message

_LEAST_ROWS = 64


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """The rows of one array path, in wire order; every column is int64[rows].

    Numbers are columns of their name; a string, bytes, records or uuid is the pair NAME.start, NAME.length of offsets into
    the arena; an array is NAME.count here and a level of its own. Fields of a struct are dotted: `replica_state.replica_id`.
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

    `fault` int8[frames] holds DecodeFault codes, `fault_at` int64[frames] the arena offset of the field that could not be
    read, -1 without fault. `levels[""]` has a row for every frame; a frame with a fault has defaults there and no rows elsewhere.
    """

    fault: Codes
    fault_at: Ints
    levels: dict[str, Level]


def decode(message: Message, arena: Bytes, starts: Ints, ends: Ints, versions: Shorts) -> Decoded:
    """Decode the bodies [start, end) of frames of one message, each in its own version.

    The columns are the same whatever the versions are: those of all versions, with Kafka's default where a frame has none.
    """
    program = compile_message(message)
    layout, frames = program.layout, len(starts)
    capacity = np.full(len(layout.levels), max(frames, _LEAST_ROWS), np.int64)
    used = np.zeros(len(layout.levels), np.int64)
    used[0] = frames
    base, out = _allocate(layout, capacity)
    fault, fault_at = np.zeros(frames, np.int8), np.full(frames, -1, np.int64)
    batch = read_only(arena), _as(starts), _as(ends), np.ascontiguousarray(versions, np.int16)
    frame = 0
    while frame < frames:
        frame, level = run(
            program.code, program.tags, program.entries, program.depth, layout.first_column, layout.defaults,
            *batch, frame, base, capacity, used, out, fault, fault_at,
        )  # fmt: skip
        if frame < frames:
            capacity[level] *= 2
            base, out = _grow(layout, capacity, used, base, out)
    out[base[0] : base[0] + frames] = np.arange(frames)
    return Decoded(fault, fault_at, _levels(layout, used, base, out))


def _as(values: Ints) -> Ints:
    return np.ascontiguousarray(values, np.int64)


def _allocate(layout: Layout, capacity: Ints) -> tuple[Ints, Ints]:
    """(first cell of each column, all cells), the cells filled with their column's default."""
    rows = np.repeat(capacity, np.diff(layout.first_column))
    return np.cumsum(rows) - rows, np.repeat(layout.defaults, rows)


def _grow(layout: Layout, capacity: Ints, used: Ints, old_base: Ints, old: Ints) -> tuple[Ints, Ints]:
    base, out = _allocate(layout, capacity)
    rows = np.repeat(used, np.diff(layout.first_column))
    for to, origin, count in zip(base, old_base, rows, strict=True):
        out[to : to + count] = old[origin : origin + count]
    return base, out


def _levels(layout: Layout, used: Ints, base: Ints, out: Ints) -> dict[str, Level]:
    found: dict[str, Level] = {path: Level(path, {}) for path in layout.levels}
    rows = np.repeat(used, np.diff(layout.first_column))
    for column, start, count in zip(layout.columns, base, rows, strict=True):
        found[column.level].columns[column.name] = out[start : start + count]
    return found
