"""Decoding a batch of message bodies into columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schemas.wire.message import Message
from udfs.wire.arrays import Bools, Bytes, Codes, Ints, Shorts, read_only
from udfs.wire.interpreter import STACK_WIDTH, run
from udfs.wire.output import Level, Output, allocate
from udfs.wire.program import Program, compile_message, link

_LEAST_ROWS = 1024


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
    output = _room(program, frames, batch[3])
    work = np.empty(program.depth * STACK_WIDTH, np.int64), np.empty(len(program.layout.levels), np.int64)
    sizes, frame = batch[2] - batch[1], 0
    while frame < frames:
        frame, level = run(
            link(program, output.columns[:, 1]), program.entries, *batch, frame,
            output.levels, output.columns, program.layout.defaults, output.out, fault, fault_at, *work,
        )  # fmt: skip
        if frame < frames:
            output = output.grown(level, sizes[:frame].sum() / max(sizes.sum(), 1))
    output.out[:frames] = np.arange(frames)
    return Decoded(fault, fault_at, output.decoded())


def _as(values: Ints) -> Ints:
    return np.ascontiguousarray(values, np.int64)


def _room(program: Program, frames: int, versions: Shorts) -> Output:
    """Room for frames of these versions: for what they can set, with defaults where not all of them do."""
    asked = np.zeros(1 << 16, np.bool_)
    asked[versions] = True  # a negative one, which nobody declares, counts from the end
    known = asked[: len(program.entries)] & (program.entries >= 0)
    can_be_set: Bools = np.any(program.can_set[known], axis=0)
    can_be_set[program.layout.first_column[:-1]] = True  # the PARENTs
    left_out = np.flatnonzero(can_be_set & ~np.all(program.always_sets[known], axis=0))
    capacity = np.full(len(program.layout.levels), max(frames, _LEAST_ROWS), np.int64)
    output = allocate(program.layout, capacity, can_be_set, left_out)
    output.used[0] = frames
    return output
