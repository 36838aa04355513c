"""Decodes the frames of a batch one after the other, each by the function that reads its version.

Output is one flat int64 buffer. Columns that a row may leave out hold their defaults before the loop begins. A frame
that fails gives back the rows that it took. So does a frame for whose rows there is no room: the loop stops there, and
is called again when there is more.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, cast

from llvmlite import ir
from numba.core import config, types
from numba.extending import intrinsic

from udfs.wire.arrays import Bools, Bytes, Codes, Ints, Shorts
from udfs.wire.faults import DecodeFault
from udfs.wire.kernel import kernel
from udfs.wire.primitives import cell, put
from udfs.wire.reader_code import FAULT_AT, LEVEL_WIDTH, READER, USED, USED_BEFORE

_TRAILING_BYTES = -int(DecodeFault.TRAILING_BYTES)
_UNKNOWN_VERSION = -int(DecodeFault.UNKNOWN_VERSION)
_BAD_FRAME = -int(DecodeFault.BAD_FRAME)
_LEAST_FAULT = -max(DecodeFault)
DONE = 1

_config: Any = config  # its type hints leave out what the environment sets

# The addresses that readers are given.
ARENA, COLUMNS, LEVELS = range(3)


def _emit_call(
    typing_context: Any, reader: Any, arena: Any, offset: Any, limit: Any, row: Any, columns: Any, levels: Any
) -> Any:
    """The signature of calling a reader by its address, and the function that generates the call."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[Any]) -> Any:
        address, *given = values
        arguments = [
            builder.inttoptr(value, kind) if isinstance(kind, ir.PointerType) else value
            for value, kind in zip(given, READER.args, strict=True)
        ]
        return builder.call(builder.inttoptr(address, ir.PointerType(READER)), arguments)

    return types.int64(*[types.int64] * 7), generate


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
def _give_back(levels: Ints, level_of: Ints, first_cells: Ints, defaults: Ints, out: Ints) -> None:
    """Forget the rows that the last frame took below the top level, and set them to the defaults."""
    for column in range(first_cells.size):
        level = level_of[column] * LEVEL_WIDTH
        if level > 0 and first_cells[column] >= 0:
            before = cell(levels, level + USED_BEFORE)
            _fill(out, first_cells[column] + before, cell(levels, level + USED) - before, defaults[column])
    for level in range(LEVEL_WIDTH, levels.size, LEVEL_WIDTH):
        put(levels, level + USED, cell(levels, level + USED_BEFORE))


@kernel
def _reader(readers: Ints, version: int, start: int, end: int, arena_size: int) -> int:
    """The address of the function that reads a version, or a fault."""
    if start < 0 or start > end or end > arena_size:
        return _BAD_FRAME
    if version < 0 or version >= readers.size or readers[version] == 0:
        return _UNKNOWN_VERSION
    return cell(readers, version)


@kernel
def note_versions(versions: Shorts, asked: Bools) -> None:
    """Set in `asked`, bool[versions], those that are among the versions of some frames."""
    for frame in range(versions.size):
        version = versions[frame]
        if 0 <= version < asked.size:
            asked[version] = True


@kernel
def read_frames(
    readers: Ints, arena: Bytes, starts: Ints, ends: Ints, versions: Shorts, first_frame: int, addresses: Ints,
    levels: Ints, level_of: Ints, first_cells: Ints, defaults: Ints, out: Ints, fault: Codes, fault_at: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Decode frames from `first_frame` on.

    Returns (number of frames, DONE), or where room ran out (frame to go on from, FULL - level or LACKING - level).

    readers: int64[versions], the address of each version's reader, 0 where it is not read. starts, ends: int64[frames],
    where each frame lies in the arena. versions: int16[frames]. addresses: int64[3], of the arena, of the table of the
    columns' first rows, and of `levels`, the level table. level_of, first_cells, defaults: int64[columns], the level of
    each column, its first cell in `out` or -1 where it has none, and its default.

    Writes `levels` and `out`, and of a frame with a fault `fault`, int8[frames], and `fault_at`, int64[frames].
    """
    for frame in range(first_frame, starts.size):
        start, end = starts[frame], ends[frame]
        result = _reader(readers, versions[frame], start, end, arena.size)
        if result < 0:
            fault[frame], fault_at[frame] = -result, start
            _set_defaults(frame, level_of, first_cells, defaults, out)
            continue
        result = _read(result, addresses[ARENA], start, end, frame, addresses[COLUMNS], addresses[LEVELS])
        if result == end:
            continue
        at = levels[FAULT_AT]
        if result >= 0:
            result, at = _TRAILING_BYTES, result
        _set_defaults(frame, level_of, first_cells, defaults, out)
        _give_back(levels, level_of, first_cells, defaults, out)
        if result < _LEAST_FAULT:
            return frame, result
        fault[frame], fault_at[frame] = -result, at
    return starts.size, DONE
