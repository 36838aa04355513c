"""The one kernel that runs compiled programs (`udfs.wire.program`) over a batch of frames.

Output is one flat int64 buffer; linked code names the cell of a column's first row. What a row may leave out has its
default when the kernel begins. The rows of an array are taken at once when its count has been read. When they do not
fit, the kernel stops and says which level to make larger, to be called again from the same frame. A frame that fails
gives its rows back.
"""

from __future__ import annotations

from udfs.wire.arrays import Bytes, Codes, Ints, Shorts
from udfs.wire.faults import DecodeFault
from udfs.wire.kernel import called_kernel, kernel
from udfs.wire.primitives import cell, length, put, signed, unsigned_varint
from udfs.wire.program import (
    ALL_INTS,
    ARRAY,
    BOOL,
    CAPACITY,
    END,
    INTS,
    LEVEL_WIDTH,
    NEXT_ELEMENT,
    NEXT_TAG,
    NULLABLE,
    PARENTS,
    PLAIN,
    SPAN,
    TAGS,
    USED,
    UUID,
    UUID_BYTES,
)

_TRUNCATED = -int(DecodeFault.TRUNCATED)
_BAD_LENGTH = -int(DecodeFault.BAD_LENGTH)
_BAD_COUNT = -int(DecodeFault.BAD_COUNT)
_BAD_TAG = -int(DecodeFault.BAD_TAG)
_UNEXPECTED_NULL = -int(DecodeFault.UNEXPECTED_NULL)
_TRAILING_BYTES = -int(DecodeFault.TRAILING_BYTES)
_UNKNOWN_VERSION = -int(DecodeFault.UNKNOWN_VERSION)
_BAD_FRAME = -int(DecodeFault.BAD_FRAME)
# Not faults: an element that is not plain; and the level at row l of the level table is full, as _FULL - l.
_NOT_PLAIN = -999
_FULL = -1000

# The stack is flat, STACK_WIDTH cells an entry. A loop keeps the elements to come and the row it was entered from; a
# tag section the tags to come, the tag before, and the limit to restore behind a tag.
_TO_COME = 0
_OUTER_ROW = 1
_TAG_BEFORE = 1
_OUTER_LIMIT = 2
STACK_WIDTH = 3


@kernel
def _ints(code: Ints, pc: int, arena: Bytes, offset: int, limit: int, row: int, out: Ints) -> int:
    """Read a run of integers; the offset behind them or a fault."""
    if cell(code, pc + 2) > limit - offset:
        return _TRUNCATED
    for operand in range(pc + 3, pc + 3 + 2 * cell(code, pc + 1), 2):
        width = cell(code, operand + 1)
        put(out, cell(code, operand) + row, signed(arena, offset, width))
        offset += width
    return offset


@kernel
def _byte(code: Ints, pc: int, arena: Bytes, offset: int, limit: int, row: int, out: Ints) -> tuple[int, int]:
    """Read a bool, or whether a struct is there: a negative byte for null (KIP-893). (offset or fault, pc)."""
    if offset >= limit:
        return _TRUNCATED, pc
    value = signed(arena, offset, 1)
    if cell(code, pc) == BOOL:
        put(out, cell(code, pc + 1) + row, value != 0)
        return offset + 1, pc + 2
    put(out, cell(code, pc + 1) + row, value < 0)
    return offset + 1, cell(code, pc + 2) if value < 0 else pc + 3


@kernel
def _uuid(code: Ints, pc: int, offset: int, limit: int, row: int, out: Ints) -> int:
    if limit - offset < UUID_BYTES:
        return _TRUNCATED
    put(out, cell(code, pc + 1) + row, offset)
    put(out, cell(code, pc + 2) + row, UUID_BYTES)
    return offset + UUID_BYTES


@kernel
def _span(code: Ints, pc: int, arena: Bytes, offset: int, limit: int, row: int, out: Ints) -> int:
    """Keep where a string, bytes or records are; the offset behind them or a fault."""
    offset, count = length(arena, offset, limit, cell(code, pc + 3))
    if offset < 0:
        return offset
    if count < 0 and cell(code, pc + 4) == 0:
        return _UNEXPECTED_NULL
    if count > limit - offset:
        return _BAD_LENGTH
    put(out, cell(code, pc + 1) + row, offset)
    put(out, cell(code, pc + 2) + row, count)
    return offset + max(count, 0)


@kernel
def _fill(out: Ints, first: int, count: int, value: int) -> None:
    for index in range(first, first + count):
        put(out, index, value)


@kernel
def _int_elements(code: Ints, ints: int, arena: Bytes, offset: int, row: int, count: int, width: int, out: Ints) -> int:
    """Read an array column by column: the offset behind it, or -1 where an element has tags. Its bytes are there."""
    end = offset + count * width
    if width > cell(code, ints + 2):  # each ends in the number of its tags
        for tags in range(offset + width - 1, end, width):
            if cell(arena, tags) != 0:
                return -1
    for operand in range(ints + 3, ints + 3 + 2 * cell(code, ints + 1), 2):
        column, bytes_each = cell(code, operand) + row, cell(code, operand + 1)
        for element in range(count):
            put(out, column + element, signed(arena, offset + element * width, bytes_each))
        offset += bytes_each
    return end


@called_kernel
def _plain_elements(
    code: Ints, body: int, arena: Bytes, offset: int, limit: int, row: int, end_row: int, out: Ints
) -> tuple[int, int]:
    """Read elements as far as their arrays and tag sections are empty and nothing is wrong with them: (offset behind
    them, row of the first that is to be read otherwise).

    It has few enough numbers to keep them all in registers, as `_run_frame` has not.
    """
    while row < end_row:
        pc, at = body, offset
        operation = cell(code, pc)
        while operation != NEXT_ELEMENT:
            if operation == INTS:
                at = _ints(code, pc, arena, at, limit, row, out)
                pc += 3 + 2 * cell(code, pc + 1)
            elif operation == SPAN:
                at = _span(code, pc, arena, at, limit, row, out)
                pc += 5
            elif operation == TAGS:
                at = at + 1 if at < limit and cell(arena, at) == 0 else _NOT_PLAIN
                pc = cell(code, pc + 1)
            elif operation == ARRAY:
                at = _no_elements(code, pc, arena, at, limit, row, out)
                pc = cell(code, pc + 6)
            elif operation == UUID:
                at = _uuid(code, pc, at, limit, row, out)
                pc += 3
            else:
                at = _NOT_PLAIN
            if at < 0:
                return offset, row
            operation = cell(code, pc)
        offset = at
        row += 1
    return offset, row


@kernel
def _no_elements(code: Ints, pc: int, arena: Bytes, offset: int, limit: int, row: int, out: Ints) -> int:
    """Read the count of an array that is empty or, where it may be, null: the offset behind it, or below 0."""
    offset, count = length(arena, offset, limit, cell(code, pc + 2))
    if count > 0 or (count < 0 and cell(code, pc + 3) == 0):
        return _NOT_PLAIN
    put(out, cell(code, pc + 1) + row, count)
    return offset


@kernel
def _open_array(
    code: Ints,
    pc: int,
    arena: Bytes,
    offset: int,
    limit: int,
    row: int,
    depth: int,
    levels: Ints,
    stack: Ints,
    out: Ints,
) -> tuple[int, int, int, int]:
    """Read a count and take the rows of its elements: (offset or fault, pc, row, depth)."""
    offset, count = length(arena, offset, limit, cell(code, pc + 2))
    if offset < 0:
        return offset, pc, row, depth
    if count < 0 and cell(code, pc + 3) == 0:
        return _UNEXPECTED_NULL, pc, row, depth
    if count * cell(code, pc + 5) > limit - offset:
        return _BAD_COUNT, pc, row, depth
    level = cell(code, pc + 4)
    first = cell(levels, level + USED)
    if count > cell(levels, level + CAPACITY) - first:
        return _FULL - level, pc, row, depth
    put(out, cell(code, pc + 1) + row, count)
    if count <= 0:
        return offset, cell(code, pc + 6), row, depth
    put(levels, level + USED, first + count)
    _fill(out, cell(levels, level + PARENTS) + first, count, row)
    body = pc + 8
    next_row = first
    if cell(code, pc + 7) == ALL_INTS:
        end = _int_elements(code, body, arena, offset, first, count, cell(code, pc + 5), out)
        if end >= 0:
            return end, cell(code, pc + 6), row, depth
    elif cell(code, pc + 7) == PLAIN:
        offset, next_row = _plain_elements(code, body, arena, offset, limit, first, first + count, out)
        if next_row == first + count:
            return offset, cell(code, pc + 6), row, depth
    put(stack, depth + _TO_COME, first + count - next_row - 1)
    put(stack, depth + _OUTER_ROW, row)
    return offset, body, next_row, depth + STACK_WIDTH


@kernel
def _next_element(code: Ints, pc: int, row: int, depth: int, stack: Ints) -> tuple[int, int, int]:
    """Go round a loop, or leave it: (pc, row, depth)."""
    top = depth - STACK_WIDTH
    to_come = cell(stack, top + _TO_COME)
    if to_come == 0:
        return pc + 2, cell(stack, top + _OUTER_ROW), top
    put(stack, top + _TO_COME, to_come - 1)
    return cell(code, pc + 1), row + 1, depth


@kernel
def _open_tags(
    code: Ints, pc: int, arena: Bytes, offset: int, limit: int, depth: int, stack: Ints
) -> tuple[int, int, int]:
    """Read the number of tags: (offset or fault, pc, depth)."""
    offset, count = unsigned_varint(arena, offset, limit)
    if offset < 0 or count == 0:
        return offset, cell(code, pc + 1), depth
    if count * 2 > limit - offset:
        return _BAD_COUNT, pc, depth
    put(stack, depth + _TO_COME, count)
    put(stack, depth + _TAG_BEFORE, -1)
    put(stack, depth + _OUTER_LIMIT, limit)
    return offset, pc + 2, depth + STACK_WIDTH


@kernel
def _next_tag(
    code: Ints, pc: int, arena: Bytes, offset: int, limit: int, depth: int, stack: Ints
) -> tuple[int, int, int, int]:
    """Enter the subroutine of a known tag, skip an unknown one, or leave: (offset or fault, pc, limit, depth)."""
    top = depth - STACK_WIDTH
    if stack[top + _TO_COME] == 0:
        return offset, cell(code, pc + 1), limit, top
    stack[top + _TO_COME] -= 1
    offset, tag = unsigned_varint(arena, offset, limit)
    if offset < 0:
        return offset, pc, limit, depth
    if tag <= stack[top + _TAG_BEFORE]:
        return _BAD_TAG, pc, limit, depth
    put(stack, top + _TAG_BEFORE, tag)
    offset, size = unsigned_varint(arena, offset, limit)
    if offset < 0:
        return offset, pc, limit, depth
    if size > limit - offset:
        return _BAD_LENGTH, pc, limit, depth
    for known in range(pc + 3, pc + 3 + 2 * cell(code, pc + 2), 2):
        if cell(code, known) == tag:
            return offset, cell(code, known + 1), offset + size, depth
    return offset + size, pc, limit, depth


@kernel
def _run_frame(
    code: Ints, pc: int, arena: Bytes, offset: int, limit: int, row: int, levels: Ints, stack: Ints, out: Ints
) -> tuple[int, int]:
    """Run a program over one frame: (offset behind it or a fault, offset of the field that failed)."""
    depth, at, operation = 0, offset, cell(code, pc)
    while offset >= 0 and operation != END:
        at = offset
        if operation == INTS:
            offset = _ints(code, pc, arena, offset, limit, row, out)
            pc += 3 + 2 * cell(code, pc + 1)
        elif operation == TAGS:
            offset, pc, depth = _open_tags(code, pc, arena, offset, limit, depth, stack)
        elif operation == ARRAY:
            offset, pc, row, depth = _open_array(code, pc, arena, offset, limit, row, depth, levels, stack, out)
        elif operation == NEXT_ELEMENT:
            pc, row, depth = _next_element(code, pc, row, depth, stack)
        elif operation == SPAN:
            offset = _span(code, pc, arena, offset, limit, row, out)
            pc += 5
        elif operation == UUID:
            offset = _uuid(code, pc, offset, limit, row, out)
            pc += 3
        elif operation in (BOOL, NULLABLE):
            offset, pc = _byte(code, pc, arena, offset, limit, row, out)
        elif operation == NEXT_TAG:
            offset, pc, limit, depth = _next_tag(code, pc, arena, offset, limit, depth, stack)
        else:  # END_TAG
            offset = offset if offset == limit else _BAD_LENGTH
            limit = stack[depth - STACK_WIDTH + _OUTER_LIMIT]
            pc = cell(code, pc + 1)
        operation = cell(code, pc)
    return offset, at


@kernel
def _give_back(frame: int, levels: Ints, mark: Ints, columns: Ints, defaults: Ints, out: Ints) -> None:
    """Forget what a frame wrote: the rows it took, and all but the defaults in them and in its own."""
    mark[0] = frame
    for column in range(columns.shape[0]):
        level, first_cell = columns[column, 0], columns[column, 1]
        end = frame + 1 if level == 0 else cell(levels, level * LEVEL_WIDTH + USED)
        if first_cell >= 0:
            _fill(out, first_cell + mark[level], end - mark[level], defaults[column])
    for level in range(1, mark.size):
        put(levels, level * LEVEL_WIDTH + USED, mark[level])


@kernel
def _entry(entries: Ints, version: int, start: int, end: int, arena_size: int) -> int:
    """Where the program of a version begins, or a fault."""
    if start < 0 or start > end or end > arena_size:
        return _BAD_FRAME
    if version < 0 or version >= entries.size or entries[version] < 0:
        return _UNKNOWN_VERSION
    return cell(entries, version)


@kernel
def run(
    code: Ints, entries: Ints, arena: Bytes, starts: Ints, ends: Ints, versions: Shorts, first_frame: int,
    levels: Ints, columns: Ints, defaults: Ints, out: Ints, fault: Codes, fault_at: Ints, stack: Ints, mark: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Decode frames from `first_frame` on; (frame to go on from, level to make larger), or (their number, -1) at the
    end.

    `code` is linked to `out`; `columns` int64[columns, 2] are each column's level and first cell, -1 where it has none.
    `stack` and `mark` are room to work in: STACK_WIDTH cells for each loop and tag section that can be open, one for
    each level.
    """
    for frame in range(first_frame, starts.size):
        for level in range(mark.size):
            mark[level] = levels[level * LEVEL_WIDTH + USED]
        start, end = starts[frame], ends[frame]
        result, at = _entry(entries, versions[frame], start, end, arena.size), start
        if result >= 0:
            result, at = _run_frame(code, result, arena, start, end, frame, levels, stack, out)
        if result == end:
            continue
        if result >= 0:
            result, at = _TRAILING_BYTES, result
        _give_back(frame, levels, mark, columns, defaults, out)
        if result <= _FULL:
            return frame, (_FULL - result) // LEVEL_WIDTH
        fault[frame], fault_at[frame] = -result, at
    return starts.size, -1
