"""Decodes the frames of a batch: each run of neighbours of one version by the function that reads this version.

Output is one flat int64 buffer. Columns that some rows of a version leave out hold their defaults before the loop
begins; those that no row of a version sets are filled behind each of its runs. A frame that fails gives back the rows
that it took. So does a frame for whose rows there is no room: the loop stops there, and is called again when there is
more.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba.core import config, types
from numba.extending import intrinsic

from udfs.columns.arrays import Bools, Bytes, Codes, Ints, Shorts
from udfs.kernels.kernel import kernel
from udfs.wire.faults import DecodeFault
from udfs.wire.primitives import cell, put
from udfs.wire.reader_code import CELL_BYTES, DONE, FAULT_AT, FRAME, LEVEL_WIDTH, READER, USED, USED_BEFORE

_UNKNOWN_VERSION = int(DecodeFault.UNKNOWN_VERSION)
_BAD_FRAME = int(DecodeFault.BAD_FRAME)
_LEAST_FAULT = -max(DecodeFault)

MOST_VERSIONS = 63
"""Of a message; Fetch, which has most, has 19."""

_config: Any = config  # its type hints leave out what the environment sets


def _emit_call(
    typing_context: Any, reader: Any, arena: Any, starts: Any, ends: Any, first: Any, end: Any, columns: Any,
    levels: Any,
) -> Any:  # fmt: skip
    """The signature of calling a reader by its address, and the function that generates the call."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[Any]) -> Any:
        address, *given = values
        arguments = [
            builder.inttoptr(value, kind) if isinstance(kind, ir.PointerType) else value
            for value, kind in zip(given, READER.args, strict=True)
        ]
        return builder.call(builder.inttoptr(address, ir.PointerType(READER)), arguments)

    return types.int64(*[types.int64] * (1 + len(READER.args))), generate


def _called(address: int, *arguments: int) -> int:
    """The same call from plain Python, for when numba is told to compile nothing."""
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(READER.args))
    return int(function(int(address))(*map(int, arguments)))


_read = cast(Callable[..., int], _called if _config.DISABLE_JIT else intrinsic(_emit_call))


@kernel
def _fill(out: Ints, first: int, count: int, value: int) -> None:
    for index in range(first, first + count):
        put(out, index, value)


@kernel
def _set_defaults(frame: int, level_of: Ints, first_cells: Ints, defaults: Ints, out: Ints) -> None:
    """Set a frame's own row to the defaults."""
    for column in range(first_cells.size):
        if level_of[column] == 0 and first_cells[column] >= 0:
            put(out, first_cells[column] + frame, defaults[column])


@kernel
def _give_back(frame: int, levels: Ints, level_of: Ints, first_cells: Ints, defaults: Ints, out: Ints) -> None:
    """Forget the rows that the frame which failed took below the top level, and set them to the defaults."""
    for column in range(first_cells.size):
        level = level_of[column] * LEVEL_WIDTH
        if level > 0 and first_cells[column] >= 0 and cell(levels, level + FRAME) == frame:
            before = cell(levels, level + USED_BEFORE)
            _fill(out, first_cells[column] + before, cell(levels, level + USED) - before, defaults[column])
    for level in range(LEVEL_WIDTH, levels.size, LEVEL_WIDTH):
        if cell(levels, level + FRAME) == frame:
            put(levels, level + USED, cell(levels, level + USED_BEFORE))


@kernel
def _fault_of(readers: Ints, version: int, start: int, end: int, arena_size: int) -> int:
    """Why a frame cannot be read at all, 0 where it can be tried."""
    if start < 0 or start > end or end > arena_size:
        return _BAD_FRAME
    if version < 0 or version >= readers.size or readers[version] == 0:
        return _UNKNOWN_VERSION
    return 0


@kernel
def _run_end(readers: Ints, versions: Shorts, starts: Ints, ends: Ints, first: int, arena_size: int) -> int:
    """The frame behind those from `first` on that have its version and can be tried."""
    frame, version = first, versions[first]
    while (
        frame < starts.size
        and versions[frame] == version
        and _fault_of(readers, version, starts[frame], ends[frame], arena_size) == 0
    ):
        frame += 1
    return frame


@kernel
def _begin_run(levels: Ints, rows_before: Ints) -> None:
    """Note how many rows each level has."""
    for level in range(rows_before.size):
        put(rows_before, level, cell(levels, level * LEVEL_WIDTH + USED))


@kernel
def _fill_unset(
    unset: Bools, first: int, end: int, rows_before: Ints,
    levels: Ints, level_of: Ints, first_cells: Ints, defaults: Ints, out: Ints,
) -> None:  # fmt: skip
    """Set the columns that no row of a version sets, bool[columns], in the rows of the frames from `first` to `end`."""
    for column in range(first_cells.size):
        if unset[column] and first_cells[column] >= 0:
            level = level_of[column]
            from_row = first if level == 0 else rows_before[level]
            to_row = end if level == 0 else cell(levels, level * LEVEL_WIDTH + USED)
            _fill(out, first_cells[column] + from_row, to_row - from_row, defaults[column])


@kernel
def versions_asked(versions: Shorts, starts: Ints, ends: Ints) -> tuple[int, int]:
    """(the versions of some frames as bits of a number, those beyond the 63rd left out; the bytes of all frames)."""
    asked, size = np.int64(0), 0
    for frame in range(versions.size):
        version = np.int64(versions[frame])
        if 0 <= version < MOST_VERSIONS:
            asked |= np.int64(1) << version
        size += ends[frame] - starts[frame]
    return int(asked), size


@kernel
def read_frames(
    readers: Ints, unset: Bools, arena: Bytes, starts: Ints, ends: Ints, versions: Shorts, first_frame: int,
    columns: Ints, levels: Ints, rows_before: Ints, level_of: Ints, first_cells: Ints, defaults: Ints, out: Ints,
    fault: Codes, places: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Decode frames from `first_frame` on.

    Returns (number of frames, DONE), or where room ran out (frame to go on from, FULL - level or LACKING - column).

    readers: int64[versions], the address of each version's reader, 0 where it is not read. unset: bool[versions,
    columns], those that no row of a version sets, though other rows of their level do. starts, ends: int64[frames],
    where each frame lies in the arena. versions: int16[frames]. levels: the level table. level_of, first_cells,
    defaults: int64[columns], the level of each column, its first cell in `out` or -1 where it has none, and its
    default. columns, rows_before: int64[columns] and int64[levels], room to work in.

    Writes `levels` and `out`, and of a frame with a fault `fault`, int8[frames], and `places`, int64[frames].
    """
    for column in range(columns.size):
        has_room = first_cells[column] >= 0
        columns[column] = out.ctypes.data + CELL_BYTES * first_cells[column] if has_room else 0
    frame = first_frame
    while frame < starts.size:
        version, end = versions[frame], _run_end(readers, versions, starts, ends, frame, arena.size)
        if end == frame:
            fault[frame] = _fault_of(readers, version, starts[frame], ends[frame], arena.size)
            places[frame] = starts[frame]
            _set_defaults(frame, level_of, first_cells, defaults, out)
            frame += 1
            continue
        _begin_run(levels, rows_before)
        result = _read(
            readers[version], arena.ctypes.data, starts.ctypes.data, ends.ctypes.data, frame, end,
            columns.ctypes.data, levels.ctypes.data,
        )  # fmt: skip
        failed = end if result == DONE else cell(levels, FRAME)
        if result != DONE:
            _set_defaults(failed, level_of, first_cells, defaults, out)
            _give_back(failed, levels, level_of, first_cells, defaults, out)
        _fill_unset(unset[version], frame, failed, rows_before, levels, level_of, first_cells, defaults, out)
        frame = failed
        if result < _LEAST_FAULT:
            return frame, result
        if result != DONE:
            fault[frame], places[frame] = -result, levels[FAULT_AT]
            frame += 1
    return starts.size, DONE
