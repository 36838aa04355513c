"""Decodes a batch of message bodies into columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schemas.wire.message import Message
from udfs.columns.arrays import Bytes, Codes, Ints, Shorts, as_int64s, read_only
from udfs.wire.column_buffer import buffer_for
from udfs.wire.decoded_level import Level
from udfs.wire.decoding_plan import plan_for
from udfs.wire.frame_loop import Faults, FrameBatch, WorkingMemory, decode_frames, versions_in
from udfs.wire.reader_code import DONE, FULL, LACKING


@dataclass(frozen=True, slots=True, eq=False)
class DecodedFrames:
    """A decoded batch of frames.

    fault: int8[frames], DecodeFault codes. places: int64[frames], the place of a fault in the arena; undefined without
    a fault. levels: by path; `levels[""]` has a row for every frame. A frame with a fault has defaults there, and no
    rows in other levels.
    """

    fault: Codes
    places: Ints
    levels: dict[str, Level]

    @property
    def fault_at(self) -> Ints:
        """Arena offset of the field that could not be read, or -1 if there is no fault: int64[frames].

        Neighbouring integers are read together; the offset is then that of the first one.
        """
        return np.where(self.fault == 0, -1, self.places)


def decode_bodies(message: Message, arena: Bytes, starts: Ints, ends: Ints, versions: Shorts) -> DecodedFrames:
    """Decode the bodies of frames of one message, each in its own version.

    arena: uint8; starts, ends: int64[frames], body i is arena[starts[i]:ends[i]]; versions: int16[frames].

    The columns do not depend on the versions: they are those of all versions, with Kafka's default if a frame's version
    has no such field. No frame raises an error, whatever its content, place or version. Raises ValueError for arrays of
    different lengths, and TypeError for versions that are not int16, because a cast could turn one version into
    another.
    """
    frames = len(starts)
    if not frames == len(ends) == len(versions):
        raise ValueError(f"{frames} starts, {len(ends)} ends and {len(versions)} versions: expected equally many")
    if versions.dtype != np.int16:
        raise TypeError(f"versions are {versions.dtype}, expected int16")
    batch = FrameBatch(read_only(arena), as_int64s(starts), as_int64s(ends), np.ascontiguousarray(versions))
    version_bits, size = versions_in(batch.versions, batch.starts, batch.ends)
    plan = plan_for(message, version_bits)
    layout, buffer, frame, outcome = plan.layout, buffer_for(plan, frames, size), 0, FULL
    faults = Faults(np.zeros(frames, np.int8), np.empty(frames, np.int64))
    memory = WorkingMemory(np.empty(len(layout.columns), np.int64), np.empty(len(layout.levels), np.int64))
    while outcome != DONE:
        frame, outcome = decode_frames(plan.readers, batch, frame, buffer.columns, faults, memory)
        if outcome <= LACKING:
            buffer = buffer.with_field_of(LACKING - outcome)
        elif outcome <= FULL:
            done = int(batch.ends[:frame].sum() - batch.starts[:frame].sum())
            buffer = buffer.grown(FULL - outcome, done / max(size, 1))
    buffer.remember(size)
    return DecodedFrames(faults.codes, faults.places, buffer.decoded())
