"""Decodes the frames of a batch: the reader of a version decodes each run of neighbouring frames with that version.

The output is one flat int64 buffer. Columns that some rows of a version leave out have their defaults in it before the
loop begins. Columns that no row of a version sets are filled after each run of that version. A frame that cannot be
decoded gives back the rows that it took. So does a frame for whose rows there is no room: the loop stops there, and is
called again with more room.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from llvmlite import ir
from numba.core import config, types
from numba.extending import intrinsic

from udfs.columns.arrays import Bools, Bytes, Codes, Ints, Shorts
from udfs.kernels.kernel import kernel
from udfs.wire.faults import DecodeFault
from udfs.wire.primitives import cell, set_cell
from udfs.wire.reader_code import CELL_BYTES, DONE, FAULT_AT, FRAME, LEVEL_WIDTH, READER, USED, USED_BEFORE

_UNKNOWN_VERSION = int(DecodeFault.UNKNOWN_VERSION)
_BAD_FRAME = int(DecodeFault.BAD_FRAME)
_LEAST_FAULT = -max(DecodeFault)

MOST_VERSIONS = 63
"""The most versions that a message can have. Fetch has the most of all messages, 19."""

_config: Any = config  # its type hints leave out what the environment sets


# Numba passes each argument of the call as a separate parameter, so there are as many as a reader takes.
def _emit_call(
    typing_context: Any, reader: Any, arena: Any, starts: Any, ends: Any, first: Any, end: Any, columns: Any,
    levels: Any,
) -> Any:  # fmt: skip
    """The signature of a call of a reader by its address, and the function that generates the call."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[Any]) -> Any:
        address, *given = values
        arguments = [
            builder.inttoptr(value, kind) if isinstance(kind, ir.PointerType) else value
            for value, kind in zip(given, READER.args, strict=True)
        ]
        return builder.call(builder.inttoptr(address, ir.PointerType(READER)), arguments)

    return types.int64(*[types.int64] * (1 + len(READER.args))), generate


def _call_reader(address: int, *arguments: int) -> int:
    """Call a reader by its address from plain Python. This is used if numba compiles nothing (NUMBA_DISABLE_JIT)."""
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(READER.args))
    return int(function(int(address))(*map(int, arguments)))


_read = cast(Callable[..., int], _call_reader if _config.DISABLE_JIT else intrinsic(_emit_call))


class VersionReaders(NamedTuple):
    """The machine code for some versions of a message.

    addresses: int64[versions], the address of each version's reader, 0 for a version that is not read. unset:
    bool[versions, columns], the columns that no row of a version sets, although rows of their level set others.
    """

    addresses: Ints
    unset: Bools


class FrameBatch(NamedTuple):
    """Frames to decode: frame i is arena[starts[i]:ends[i]], in version versions[i]. starts, ends: int64[n]. versions:
    int16[n].
    """

    arena: Bytes
    starts: Ints
    ends: Ints
    versions: Shorts


class OutputColumns(NamedTuple):
    """Where the columns are in the output buffer `out`.

    levels: the level table (`udfs.wire.reader_code`). level_of, first_cells, defaults: int64[columns], each column's
    level, its first cell in `out` or -1 if it has none, and its default.
    """

    levels: Ints
    level_of: Ints
    first_cells: Ints
    defaults: Ints
    out: Ints


class Faults(NamedTuple):
    """The DecodeFault of each frame, int8[n], and the place of the fault in the arena, int64[n]."""

    codes: Codes
    places: Ints


class WorkingMemory(NamedTuple):
    """Memory that the loop overwrites: int64[columns], addresses of the columns; int64[levels], rows before a run."""

    addresses: Ints
    rows_before: Ints


@kernel
def _fill(out: Ints, first: int, count: int, value: int) -> None:
    for index in range(first, first + count):
        set_cell(out, index, value)


@kernel
def _set_defaults(frame: int, output: OutputColumns) -> None:
    """Set a frame's row at the top level to the defaults."""
    for column in range(output.first_cells.size):
        if output.level_of[column] == 0 and output.first_cells[column] >= 0:
            set_cell(output.out, output.first_cells[column] + frame, output.defaults[column])


@kernel
def _give_back(frame: int, output: OutputColumns) -> None:
    """Give back the rows that a failed frame took below the top level, and set them to the defaults."""
    levels, first_cells = output.levels, output.first_cells
    for column in range(first_cells.size):
        level = output.level_of[column] * LEVEL_WIDTH
        if level > 0 and first_cells[column] >= 0 and cell(levels, level + FRAME) == frame:
            before = cell(levels, level + USED_BEFORE)
            count = cell(levels, level + USED) - before
            _fill(output.out, first_cells[column] + before, count, output.defaults[column])
    for level in range(LEVEL_WIDTH, levels.size, LEVEL_WIDTH):
        if cell(levels, level + FRAME) == frame:
            set_cell(levels, level + USED, cell(levels, level + USED_BEFORE))


@kernel
def _fault_of(readers: VersionReaders, batch: FrameBatch, frame: int) -> int:
    """Why a frame cannot be read at all, 0 if its reader can try it."""
    start, end, version = batch.starts[frame], batch.ends[frame], batch.versions[frame]
    if start < 0 or start > end or end > batch.arena.size:
        return _BAD_FRAME
    if version < 0 or version >= readers.addresses.size or readers.addresses[version] == 0:
        return _UNKNOWN_VERSION
    return 0


@kernel
def _run_end(readers: VersionReaders, batch: FrameBatch, first: int) -> int:
    """The end of the run of frames from `first` on that have the same version and can be tried."""
    frame, version = first, batch.versions[first]
    while frame < batch.starts.size and batch.versions[frame] == version and _fault_of(readers, batch, frame) == 0:
        frame += 1
    return frame


@kernel
def _begin_run(levels: Ints, rows_before: Ints) -> None:
    """Note how many rows each level has."""
    for level in range(rows_before.size):
        set_cell(rows_before, level, cell(levels, level * LEVEL_WIDTH + USED))


@kernel
def _fill_unset(unset: Bools, first: int, end: int, rows_before: Ints, output: OutputColumns) -> None:
    """Set the columns in `unset`, bool[columns], to their defaults in all rows of the frames [first, end)."""
    for column in range(output.first_cells.size):
        if unset[column] and output.first_cells[column] >= 0:
            level = output.level_of[column]
            from_row = first if level == 0 else rows_before[level]
            to_row = end if level == 0 else cell(output.levels, level * LEVEL_WIDTH + USED)
            _fill(output.out, output.first_cells[column] + from_row, to_row - from_row, output.defaults[column])


@kernel
def versions_in(versions: Shorts, starts: Ints, ends: Ints) -> tuple[int, int]:
    """(the versions of some frames as bits of a number, only those below MOST_VERSIONS; the total bytes of the frames).

    versions: int16[frames]. starts, ends: int64[frames], offsets in the arena.
    """
    bits, size = np.int64(0), 0
    for frame in range(versions.size):
        version = np.int64(versions[frame])
        if 0 <= version < MOST_VERSIONS:
            bits |= np.int64(1) << version
        size += ends[frame] - starts[frame]
    return int(bits), size


@kernel
def decode_frames(
    readers: VersionReaders,
    batch: FrameBatch,
    first_frame: int,
    output: OutputColumns,
    faults: Faults,
    memory: WorkingMemory,
) -> tuple[int, int]:
    """Decode the frames of a batch from `first_frame` on into `output`, and write their faults.

    Returns (number of frames, DONE); if room ran out, (the frame to go on from, FULL - level or LACKING - column).
    """
    levels, out, addresses = output.levels, output.out, memory.addresses
    for column in range(addresses.size):
        has_room = output.first_cells[column] >= 0
        addresses[column] = out.ctypes.data + CELL_BYTES * output.first_cells[column] if has_room else 0
    frame = first_frame
    while frame < batch.starts.size:
        version, end = batch.versions[frame], _run_end(readers, batch, frame)
        if end == frame:
            faults.codes[frame] = _fault_of(readers, batch, frame)
            faults.places[frame] = batch.starts[frame]
            _set_defaults(frame, output)
            frame += 1
            continue
        _begin_run(levels, memory.rows_before)
        result = _read(
            readers.addresses[version], batch.arena.ctypes.data, batch.starts.ctypes.data, batch.ends.ctypes.data,
            frame, end, addresses.ctypes.data, levels.ctypes.data,
        )  # fmt: skip
        failed = end if result == DONE else cell(levels, FRAME)
        if result != DONE:
            _set_defaults(failed, output)
            _give_back(failed, output)
        _fill_unset(readers.unset[version], frame, failed, memory.rows_before, output)
        frame = failed
        if result < _LEAST_FAULT:
            return frame, result
        if result != DONE:
            faults.codes[frame], faults.places[frame] = -result, levels[FAULT_AT]
            frame += 1
    return batch.starts.size, DONE
