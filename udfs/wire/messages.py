"""Decoding a batch of message bodies into columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schemas.wire.message import Message
from udfs.columns.arrays import Bytes, Codes, Ints, Shorts, int64s, read_only
from udfs.wire.column_buffer import output_for
from udfs.wire.decoded_level import Level
from udfs.wire.decoding_plan import program_for
from udfs.wire.frame_loop import read_frames, versions_asked
from udfs.wire.reader_code import DONE, FULL, LACKING


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """A batch of frames, decoded.

    `fault` int8[frames] holds DecodeFault codes, `places` int64[frames] where faults were found, anything elsewhere.
    `levels[""]` has a row for every frame; a frame with a fault has defaults there and no rows in other levels.
    """

    fault: Codes
    places: Ints
    levels: dict[str, Level]

    @property
    def fault_at(self) -> Ints:
        """The arena offset of the field that could not be read, or of the first of neighbouring integers; -1 without a
        fault: int64[frames].
        """
        return np.where(self.fault == 0, -1, self.places)


def decode(message: Message, arena: Bytes, starts: Ints, ends: Ints, versions: Shorts) -> Decoded:
    """Decode the bodies of frames of one message, each in its own version.

    arena: uint8; starts, ends: int64[frames], body i is arena[starts[i]:ends[i]]; versions: int16[frames].

    The columns do not depend on the versions: they are those of all versions, with Kafka's default where a frame's
    version has no such field. Nothing in a frame raises, nor does any place or version. Raises ValueError for arrays of
    different lengths, and TypeError for versions that are not int16, since a cast could turn one into another.
    """
    frames = len(starts)
    if not frames == len(ends) == len(versions):
        raise ValueError(f"{frames} starts, {len(ends)} ends and {len(versions)} versions: expected as many of each")
    if versions.dtype != np.int16:
        raise TypeError(f"versions are {versions.dtype}, expected int16")
    batch = read_only(arena), int64s(starts), int64s(ends), np.ascontiguousarray(versions)
    asked, size = versions_asked(batch[3], *batch[1:3])
    program = program_for(message, asked)
    fault, places = np.zeros(frames, np.int8), np.empty(frames, np.int64)
    layout, output, frame, outcome = program.layout, output_for(program, frames, size), 0, FULL
    columns, rows_before = np.empty(len(layout.columns), np.int64), np.empty(len(layout.levels), np.int64)
    while outcome != DONE:
        frame, outcome = read_frames(
            program.readers, program.unset, *batch, frame, columns, output.levels, rows_before,
            layout.level_of, output.first_cells, layout.defaults, output.out, fault, places,
        )  # fmt: skip
        if outcome <= LACKING:
            output = output.with_field_of(LACKING - outcome)
        elif outcome <= FULL:
            done = int(batch[2][:frame].sum() - batch[1][:frame].sum())
            output = output.grown(FULL - outcome, done / max(size, 1))
    output.remember(size)
    return Decoded(fault, places, output.decoded())
