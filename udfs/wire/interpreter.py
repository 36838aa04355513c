"""The one kernel that runs compiled programs (`udfs.wire.program`) over a batch of frames.

Output is one flat int64 array: column c of level l has rows base[c] .. base[c] + capacity[l], prefilled with its default. The
rows of an array are taken at once when its count has been read; when they do not fit, the kernel stops and says which level to
make larger, to be called again from the same frame. A frame that fails gives its rows back.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from udfs.wire.arrays import Bytes, Codes, Ints, Shorts
from udfs.wire.faults import DecodeFault
from udfs.wire.primitives import length, signed, unsigned_varint
from udfs.wire.program import ARRAY, BOOL, END, INTS, NEXT_ELEMENT, NEXT_TAG, SPAN, TAGS, UUID, UUID_BYTES

_TRUNCATED = -int(DecodeFault.TRUNCATED)
_BAD_LENGTH = -int(DecodeFault.BAD_LENGTH)
_BAD_COUNT = -int(DecodeFault.BAD_COUNT)
_BAD_TAG = -int(DecodeFault.BAD_TAG)
_UNEXPECTED_NULL = -int(DecodeFault.UNEXPECTED_NULL)
_TRAILING_BYTES = -int(DecodeFault.TRAILING_BYTES)
_UNKNOWN_VERSION = -int(DecodeFault.UNKNOWN_VERSION)
_BAD_FRAME = -int(DecodeFault.BAD_FRAME)
# Not a fault: level l has no rows left is _NO_ROWS - l.
_NO_ROWS = -1000

# Columns of the stack. A loop keeps the elements to come and the row it was entered from, a tag section the tags to come, the
# tag before, and the limit to restore behind a tag.
_TO_COME = 0
_OUTER_ROW = 1
_TAG_BEFORE = 1
_OUTER_LIMIT = 2
STACK_WIDTH = 3


@njit(cache=True, nogil=True)
def _ints(code: Ints, pc: int, arena: Bytes, offset: int, limit: int, base: Ints, row: int, out: Ints) -> int:
    """Read a run of integers; the offset behind them or a fault."""
    if offset + code[pc, 2] > limit:
        return _TRUNCATED
    for field in range(pc + 1, pc + 1 + code[pc, 1]):
        width = code[field, 2]
        out[base[code[field, 1]] + row] = signed(arena, offset, width)
        offset += width
    return offset


@njit(cache=True, nogil=True)
def _bool(arena: Bytes, offset: int, limit: int, cell: int, out: Ints) -> int:
    if offset + 1 > limit:
        return _TRUNCATED
    out[cell] = arena[offset] != 0
    return offset + 1


@njit(cache=True, nogil=True)
def _uuid(offset: int, limit: int, start: int, size: int, out: Ints) -> int:
    """Keep where sixteen bytes are in cells `start` and `size`; the offset behind them or a fault."""
    if offset + UUID_BYTES > limit:
        return _TRUNCATED
    out[start] = offset
    out[size] = UUID_BYTES
    return offset + UUID_BYTES


@njit(cache=True, nogil=True)
def _span(code: Ints, pc: int, arena: Bytes, offset: int, limit: int, start: int, size: int, out: Ints) -> int:
    """Keep where a string, bytes or records are in cells `start` and `size`; the offset behind them or a fault."""
    offset, count = length(arena, offset, limit, code[pc, 2])
    if offset < 0:
        return offset
    if count < 0 and not code[pc, 3]:
        return _UNEXPECTED_NULL
    if count > limit - offset:
        return _BAD_LENGTH
    out[start] = offset
    out[size] = count
    return offset + max(count, 0)


@njit(cache=True, nogil=True)
def _open_array(
    code: Ints, pc: int, arena: Bytes, offset: int, limit: int, row: int, depth: int,
    base: Ints, first_column: Ints, capacity: Ints, used: Ints, stack: Ints, out: Ints,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Read a count and take the rows of its elements: (offset or fault, pc, row, depth)."""
    offset, count = length(arena, offset, limit, code[pc, 2])
    if offset < 0:
        return offset, pc, row, depth
    if count < 0 and not code[pc, 3]:
        return _UNEXPECTED_NULL, pc, row, depth
    if count * code[pc, 5] > limit - offset:
        return _BAD_COUNT, pc, row, depth
    level = code[pc, 4]
    first = used[level]
    if first + count > capacity[level]:
        return _NO_ROWS - level, pc, row, depth
    out[base[code[pc, 1]] + row] = count
    if count <= 0:
        return offset, code[pc, 6], row, depth
    used[level] = first + count
    parents = base[first_column[level]] + first
    out[parents : parents + count] = row
    stack[depth, _TO_COME] = count - 1
    stack[depth, _OUTER_ROW] = row
    return offset, pc + 1, first, depth + 1


@njit(cache=True, nogil=True)
def _next_element(code: Ints, pc: int, row: int, depth: int, stack: Ints) -> tuple[int, int, int]:
    """Go round a loop, or leave it: (pc, row, depth)."""
    if stack[depth - 1, _TO_COME] == 0:
        return pc + 1, stack[depth - 1, _OUTER_ROW], depth - 1
    stack[depth - 1, _TO_COME] -= 1
    return code[pc, 1], row + 1, depth


@njit(cache=True, nogil=True)
def _open_tags(
    code: Ints, pc: int, arena: Bytes, offset: int, limit: int, depth: int, stack: Ints
) -> tuple[int, int, int]:
    """Read the number of tags: (offset or fault, pc, depth)."""
    offset, count = unsigned_varint(arena, offset, limit)
    if offset < 0 or count == 0:
        return offset, code[pc, 1], depth
    if count * 2 > limit - offset:
        return _BAD_COUNT, pc, depth
    stack[depth, _TO_COME] = count
    stack[depth, _TAG_BEFORE] = -1
    stack[depth, _OUTER_LIMIT] = limit
    return offset, pc + 1, depth + 1


@njit(cache=True, nogil=True)
def _next_tag(
    code: Ints, pc: int, tags: Ints, arena: Bytes, offset: int, limit: int, depth: int, stack: Ints
) -> tuple[int, int, int, int]:
    """Enter the subroutine of a known tag, skip an unknown one, or leave the section: (offset or fault, pc, limit, depth)."""
    top = depth - 1
    if stack[top, _TO_COME] == 0:
        return offset, code[pc, 3], limit, top
    stack[top, _TO_COME] -= 1
    offset, tag = unsigned_varint(arena, offset, limit)
    if offset < 0:
        return offset, pc, limit, depth
    if tag <= stack[top, _TAG_BEFORE]:
        return _BAD_TAG, pc, limit, depth
    stack[top, _TAG_BEFORE] = tag
    offset, size = unsigned_varint(arena, offset, limit)
    if offset < 0 or size > limit - offset:
        return min(offset, 0) or _BAD_LENGTH, pc, limit, depth
    for known in range(code[pc, 1], code[pc, 2]):
        if tags[known, 0] == tag:
            return offset, tags[known, 1], offset + size, depth
    return offset + size, pc, limit, depth


@njit(cache=True, nogil=True)
def _run_frame(
    code: Ints, tags: Ints, pc: int, arena: Bytes, offset: int, limit: int, row: int,
    base: Ints, first_column: Ints, capacity: Ints, used: Ints, stack: Ints, out: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Run a program over one frame: (0 or a fault, offset of the field that failed)."""
    depth, at = 0, offset
    while offset >= 0 and code[pc, 0] != END:
        at = offset
        operation = code[pc, 0]
        if operation == INTS:
            offset = _ints(code, pc, arena, offset, limit, base, row, out)
            pc += 1 + code[pc, 1]
        elif operation == TAGS:
            offset, pc, depth = _open_tags(code, pc, arena, offset, limit, depth, stack)
        elif operation == ARRAY:
            offset, pc, row, depth = _open_array(
                code, pc, arena, offset, limit, row, depth, base, first_column, capacity, used, stack, out
            )
        elif operation == NEXT_ELEMENT:
            pc, row, depth = _next_element(code, pc, row, depth, stack)
        elif operation == SPAN:
            start, size = base[code[pc, 1]] + row, base[code[pc, 1] + 1] + row
            offset = _span(code, pc, arena, offset, limit, start, size, out)
            pc += 1
        elif operation == UUID:
            start, size = base[code[pc, 1]] + row, base[code[pc, 1] + 1] + row
            offset = _uuid(offset, limit, start, size, out)
            pc += 1
        elif operation == BOOL:
            offset = _bool(arena, offset, limit, base[code[pc, 1]] + row, out)
            pc += 1
        elif operation == NEXT_TAG:
            offset, pc, limit, depth = _next_tag(code, pc, tags, arena, offset, limit, depth, stack)
        else:  # END_TAG
            offset = offset if offset == limit else _BAD_LENGTH
            limit = stack[depth - 1, _OUTER_LIMIT]
            pc = code[pc, 1]
    if offset < 0:
        return offset, at
    return (0, offset) if offset == limit else (_TRAILING_BYTES, offset)


@njit(cache=True, nogil=True)
def _give_back(frame: int, mark: Ints, base: Ints, first_column: Ints, defaults: Ints, used: Ints, out: Ints) -> None:
    """Forget what a frame wrote: its own row and those it took in other levels."""
    for level in range(used.size):
        first, end = (frame, frame + 1) if level == 0 else (mark[level], used[level])
        for column in range(first_column[level] + 1, first_column[level + 1]):
            out[base[column] + first : base[column] + end] = defaults[column]
        used[level] = mark[level]


@njit(cache=True, nogil=True)
def _entry(entries: Ints, version: int, start: int, end: int, arena_size: int) -> int:
    """Where the program of a version begins, or a fault."""
    if start < 0 or start > end or end > arena_size:
        return _BAD_FRAME
    if version < 0 or version >= entries.size or entries[version] < 0:
        return _UNKNOWN_VERSION
    return entries[version]


@njit(cache=True, nogil=True)
def run(
    code: Ints, tags: Ints, entries: Ints, depth: int, first_column: Ints, defaults: Ints,
    arena: Bytes, starts: Ints, ends: Ints, versions: Shorts, first_frame: int,
    base: Ints, capacity: Ints, used: Ints, out: Ints, fault: Codes, fault_at: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Decode frames from `first_frame` on; (frame to go on from, level to make larger), or (their number, -1) at the end."""
    stack = np.zeros((depth, STACK_WIDTH), np.int64)
    mark = used.copy()
    for frame in range(first_frame, starts.size):
        mark[:] = used
        entry = _entry(entries, versions[frame], starts[frame], ends[frame], arena.size)
        result, at = entry, starts[frame]
        if entry >= 0:
            result, at = _run_frame(
                code, tags, entry, arena, starts[frame], ends[frame], frame,
                base, first_column, capacity, used, stack, out,
            )  # fmt: skip
        if result < 0:
            _give_back(frame, mark, base, first_column, defaults, used, out)
        if result <= _NO_ROWS:
            return frame, _NO_ROWS - result
        fault[frame] = -result
        fault_at[frame] = at if result < 0 else -1
    return starts.size, -1
