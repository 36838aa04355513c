"""LLVM instructions that read frames: a cursor over bytes, checked before each read, and stores into columns.

The instructions are appended to a function

    int64 read(arena, starts, ends, first, end, columns, levels)

The function reads the frames from `first` up to `end`; there must be at least one. arena: address of uint8s; frame i is
[starts[i], ends[i]). starts, ends: int64s. columns: int64s, the address of each column's first row, 0 if there is no
room for the column. levels: the level table.
The result is DONE; the negative of a `DecodeFault`; FULL minus the number of the level that lacks room; or LACKING
minus the number of the column that lacks room. Unless it is DONE, the level table then has the frame in which reading
ended, and the place of a fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from llvmlite import ir

from udfs.wire.faults import DecodeFault
from udfs.wire.primitives import COMPACT, MAX_INT32, VARINT_BYTES

DONE = 0
# These results are not faults. FULL - l: level l has too few rows. LACKING - c: there is no room for column c, which
# only a tag sets.
FULL = -1000
LACKING = -2000

# The level table is flat, with LEVEL_WIDTH cells for each level: the rows used, the rows for which there is room, the
# last frame that may have used rows, and the rows used before that frame. For the top level, whose rows are the frames
# themselves, the last two are the frame in which reading ended, and the place where it ended.
USED = 0
CAPACITY = 1
FRAME = 2
USED_BEFORE = 3
LEVEL_WIDTH = 4
FAULT_AT = USED_BEFORE

CELL_BYTES = 8

_INT64, _BYTE, _ADDRESS = ir.IntType(64), ir.IntType(8), ir.PointerType()
READER = ir.FunctionType(_INT64, [_ADDRESS, _ADDRESS, _ADDRESS, _INT64, _INT64, _ADDRESS, _ADDRESS])
_LONG_VARINT = ir.FunctionType(_INT64, [_ADDRESS, _INT64, _INT64])
_NO_OVERFLOW = ("nsw",)  # of sums of offsets
_VALUE_BITS = 32  # of the result of `_long_varint`; the bits above them are the number of the varint's bytes


def int64_constant(value: int) -> Any:
    """A constant int64 in the code."""
    return ir.Constant(_INT64, value)


class ReaderCode:
    """The code of one function while it is written.

    limit: the end of the bytes that may be read. row: the row that is written. These and all other values are int64s of
    LLVM.
    """

    def __init__(self, module: ir.Module, name: str) -> None:
        """Begin a function of this name, and in it a loop over frames."""
        function = ir.Function(module, READER, name)
        for argument in function.args:
            if argument.type == _ADDRESS:
                argument.add_attribute("noalias")
        self._arena, starts, ends, first, self._end, self._columns, self._levels = function.args
        self._long_varint = _long_varint(module)
        self._is_constant = module.add_metadata([])
        self.builder = ir.IRBuilder(function.append_basic_block())
        self._cursor, self._frame = self.variable(int64_constant(0)), self.variable(first)
        self._next_frame = self.builder.append_basic_block()
        self.builder.branch(self._next_frame)
        self.builder.position_at_end(self._next_frame)
        self.row = self.value(self._frame)
        self._begun, self.limit = self._element(starts, self.row), self._element(ends, self.row)
        self.go_to(self._begun)

    def variable(self, value: Any) -> Any:
        """A new int64 variable with this value. LLVM keeps it in registers."""
        with self.builder.goto_entry_block():
            place = self.builder.alloca(_INT64)
        self.builder.store(value, place)
        return place

    def change(self, variable: Any, value: Any) -> None:
        """Set a variable."""
        self.builder.store(value, variable)

    def value(self, variable: Any) -> Any:
        """The value of a variable."""
        return self.builder.load(variable, typ=_INT64)

    @property
    def offset(self) -> Any:
        """Where the cursor is."""
        return self.value(self._cursor)

    def go_to(self, offset: Any) -> None:
        """Move the cursor."""
        self.builder.store(offset, self._cursor)

    def skip(self, size: Any) -> None:
        """Move the cursor past this many bytes: 0 or more, or -1 for null."""
        self.go_to(self.behind(self.builder.select(self.compare(size, "<", 0), int64_constant(0), size)))

    def behind(self, size: Any) -> Any:
        """The offset that is this many bytes after the cursor."""
        return self.builder.add(self.offset, size, flags=_NO_OVERFLOW)

    def compare(self, left: Any, comparison: str, right: Any) -> Any:
        """A comparison (==, <=, ...) of two values. The second may be a Python number.

        Its result is for `when`, `fail_unless` and `as_number`.
        """
        return self.builder.icmp_signed(comparison, left, int64_constant(right) if isinstance(right, int) else right)

    def as_number(self, condition: Any) -> Any:
        """1 if a condition holds, otherwise 0."""
        return self.builder.zext(condition, _INT64)

    def begin_field(self) -> None:
        """Make this offset the place of faults from here on."""
        self._begun = self.offset

    def require_room(self, count: Any, size: int, fault: DecodeFault) -> None:
        """End with a fault if fewer bytes remain than `count` times `size`; count is at most 2^31."""
        fits = self.compare(self.builder.mul(count, int64_constant(size)), "<=", self._remaining())
        self.fail_unless(fits, fault)

    def fail_unless(self, condition: Any, fault: DecodeFault) -> None:
        """End with a fault if a condition does not hold."""
        self._fail_if(self.builder.not_(condition), int64_constant(-int(fault)))

    def _fail_if(self, condition: Any, result: Any) -> None:
        with self.builder.if_then(condition, likely=False):
            self.builder.store(self._begun, self._level_cell(0, FAULT_AT))
            self._end_with(result)

    def _end_with(self, result: Any) -> None:
        self.builder.store(self.value(self._frame), self._level_cell(0, FRAME))
        self.builder.ret(result)

    def when(self, condition: Any, *, likely: bool) -> AbstractContextManager[Any]:
        """A context; the code that is appended in it runs if a condition holds."""
        return self.builder.if_then(condition, likely=likely)

    @contextmanager
    def each(self, first: Any, end: Any) -> Iterator[Any]:
        """A context; the code in it runs for first, first + 1, ... end - 1. There must be at least one."""
        index = self.variable(first)
        body = self.builder.append_basic_block()
        self.builder.branch(body)
        self.builder.position_at_end(body)
        yield self.value(index)
        after = self.builder.add(self.value(index), int64_constant(1))
        self.builder.store(after, index)
        behind = self.builder.append_basic_block()
        self.builder.cbranch(self.compare(after, "<", end), body, behind)
        self.builder.position_at_end(behind)

    @contextmanager
    def each_row(self, level: int, count: Any) -> Iterator[Any]:
        """A context; the code in it runs for each of `count` new rows of a level. There must be at least one.

        It yields the row of the outer level. The function ends with FULL if there is no room.
        """
        outside, first = self.row, self._take_rows(level, count)
        with self.each(first, self.builder.add(first, count)) as row:
            self.row = row
            yield outside
        self.row = outside

    @contextmanager
    def up_to(self, end: Any) -> Iterator[None]:
        """A context; the code in it reads no further than `end`, which must be inside the limit."""
        outside, self.limit = self.limit, end
        yield
        self.limit = outside

    def require(self, size: int) -> None:
        """End with TRUNCATED if fewer bytes than this remain."""
        self.fail_unless(self.compare(self._remaining(), ">=", size), DecodeFault.TRUNCATED)

    def take_int(self, width: int) -> Any:
        """Read a big-endian signed integer of 1, 2, 4 or 8 bytes; the caller has checked that they are there."""
        offset = self.offset
        value = self.builder.load(self._byte_at(self._arena, offset), typ=ir.IntType(8 * width), align=1)
        self.go_to(self.builder.add(offset, int64_constant(width), flags=_NO_OVERFLOW))
        return self.builder.sext(self.builder.bswap(value) if width > 1 else value, _INT64)

    def read_varint(self) -> Any:
        """Read an unsigned varint of at most five bytes and at most 2^31-1. Nearly all have one byte."""
        self.require(1)
        offset = self.offset
        byte = self.builder.load(self._byte_at(self._arena, offset), typ=_BYTE)
        value = self.variable(self.builder.zext(byte, _INT64))
        self.go_to(self.builder.add(offset, int64_constant(1), flags=_NO_OVERFLOW))
        with self.when(self.builder.icmp_signed("<", byte, ir.Constant(_BYTE, 0)), likely=False):
            packed = self.builder.call(self._long_varint, [self._arena, offset, self.limit])
            self._fail_if(self.compare(packed, "<", 0), packed)
            self.go_to(self.builder.add(offset, self.builder.lshr(packed, int64_constant(_VALUE_BITS))))
            self.builder.store(self.builder.and_(packed, int64_constant((1 << _VALUE_BITS) - 1)), value)
        return self.value(value)

    def read_length(self, prefix: int) -> Any:
        """Read a length or count with a COMPACT, SHORT or INT prefix; -1 is null, as for Kafka all negative ones."""
        if prefix == COMPACT:
            return self.builder.sub(self.read_varint(), int64_constant(1))
        self.require(prefix)
        value = self.take_int(prefix)
        return self.builder.select(self.compare(value, "<", 0), int64_constant(-1), value)

    def store(self, column: int, value: Any) -> None:
        """Set a column of the row."""
        at = self.builder.add(self._address_of(column), self.builder.mul(self.row, int64_constant(CELL_BYTES)))
        self.builder.store(value, self.builder.inttoptr(at, _ADDRESS), align=CELL_BYTES)

    def require_column(self, column: int) -> None:
        """End with LACKING if there is no room for a column."""
        with self.when(self.compare(self._address_of(column), "==", 0), likely=False):
            self._end_with(int64_constant(LACKING - column))

    def note_rows(self, level: int) -> None:
        """Note in the level table how many rows a level had before this frame."""
        self.builder.store(self.value(self._frame), self._level_cell(level, FRAME))
        self.builder.store(self.value(self._level_cell(level, USED)), self._level_cell(level, USED_BEFORE))

    def end(self) -> None:
        """End the code of a frame: with TRAILING_BYTES if bytes of it are left; else the next frame follows."""
        self.begin_field()
        self.fail_unless(self.compare(self.offset, "==", self.limit), DecodeFault.TRAILING_BYTES)
        following = self.builder.add(self.value(self._frame), int64_constant(1))
        self.change(self._frame, following)
        behind = self.builder.append_basic_block()
        self.builder.cbranch(self.compare(following, "<", self._end), self._next_frame, behind)
        self.builder.position_at_end(behind)
        self.builder.ret(int64_constant(DONE))

    def _remaining(self) -> Any:
        return self.builder.sub(self.limit, self.offset, flags=_NO_OVERFLOW)

    def _take_rows(self, level: int, count: Any) -> Any:
        used = self._level_cell(level, USED)
        first = self.value(used)
        end = self.builder.add(first, count)
        capacity = self.value(self._level_cell(level, CAPACITY))
        with self.when(self.compare(end, ">", capacity), likely=False):
            self._end_with(int64_constant(FULL - level))
        self.builder.store(end, used)
        return first

    def _address_of(self, column: int) -> Any:
        address = self.value(self._cell(self._columns, column))
        address.set_metadata("invariant.load", self._is_constant)
        return address

    def _element(self, table: Any, index: Any) -> Any:
        return self.builder.load(self.builder.gep(table, [index], source_etype=_INT64), typ=_INT64)

    def _level_cell(self, level: int, cell: int) -> Any:
        return self._cell(self._levels, level * LEVEL_WIDTH + cell)

    def _cell(self, table: Any, index: int) -> Any:
        return self._byte_at(table, int64_constant(index * CELL_BYTES))

    def _byte_at(self, start: Any, offset: Any) -> Any:
        return self.builder.gep(start, [offset], source_etype=_BYTE)


def _long_varint(module: ir.Module) -> ir.Function:
    """A function (arena, offset, limit) that reads a varint. It returns the value in the lowest _VALUE_BITS and the
    number of bytes above them, or the negative of a fault.
    """
    function = ir.Function(module, _LONG_VARINT, "long_varint")
    function.linkage = "internal"
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block())
    arena, offset, limit = function.args
    value: Any = int64_constant(0)
    for index in range(VARINT_BYTES):
        at = builder.add(offset, int64_constant(index))
        with builder.if_then(builder.icmp_signed(">=", at, limit)):
            builder.ret(int64_constant(-int(DecodeFault.TRUNCATED)))
        byte = builder.zext(builder.load(builder.gep(arena, [at], source_etype=_BYTE), typ=_BYTE), _INT64)
        bits = builder.and_(byte, int64_constant(0x7F))
        value = builder.or_(value, builder.shl(bits, int64_constant(7 * index)))
        with builder.if_then(builder.icmp_signed("<", byte, int64_constant(0x80))):
            packed = builder.or_(value, int64_constant((index + 1) << _VALUE_BITS))
            fits = builder.icmp_signed("<=", value, int64_constant(MAX_INT32))
            builder.ret(builder.select(fits, packed, int64_constant(-int(DecodeFault.BAD_VARINT))))
    builder.ret(int64_constant(-int(DecodeFault.BAD_VARINT)))
    return function
