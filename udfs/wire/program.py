"""Compiles a declared message into flat programs, one a version, for the kernel in `udfs.wire.interpreter`.

A program is one run of int64: operations, each followed by its operands. Arrays are loops; tagged fields are
subroutines that a tag section calls. All versions of a message share one code and one layout of columns, so that
frames of mixed versions decode in one pass. Operands that name a column are turned into cells of an output buffer by
`link`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby

import numpy as np

from schemas.wire.message import Field, Message
from udfs.wire.arrays import Bools, Ints
from udfs.wire.layout import (
    INT_WIDTHS,
    Layout,
    element_fields,
    element_path,
    is_array,
    is_in,
    is_nullable_struct,
    is_span,
    lay_out,
    newest_version,
)
from udfs.wire.primitives import COMPACT, INT, SHORT

# Operations, and the operands behind them.
END = 0
INTS = 1  # number of fields, their bytes together; then column, width of each
BOOL = 2  # column
UUID = 3  # columns of start and length
SPAN = 4  # columns of start and length, prefix, nullable
# column of the count, prefix, nullable, elements' row in the level table, least bytes of one, behind, what elements are
ARRAY = 5
NEXT_ELEMENT = 6  # the loop's body
TAGS = 7  # behind the tag section
NEXT_TAG = 8  # behind the tag section, number of known tags; then tag, subroutine of each
END_TAG = 9  # the section's NEXT_TAG
NULLABLE = 10  # column of is_null, behind the struct

UUID_BYTES = 16

# What elements are: one INTS and perhaps tags; such that their arrays are mostly null or empty; or any.
ANY, ALL_INTS, PLAIN = 0, 1, 2

# The level table is flat, LEVEL_WIDTH cells a level: rows used, rows there is room for, cell of the first row's parent.
USED = 0
CAPACITY = 1
PARENTS = 2
LEVEL_WIDTH = 3


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """All versions of one message, compiled.

    `code` int64; `column_operands` int64: where in it columns are named; `entries` int64[versions]: where a version
    begins, -1 where there is none; `can_set`, `always_sets` bool[versions, columns]: whether a row of a version can set
    a column, and whether all do; `depth`: how many loops and tag sections can be open at once.
    """

    layout: Layout
    code: Ints
    column_operands: Ints
    entries: Ints
    can_set: Bools
    always_sets: Bools
    depth: int


@cache
def compile_message(message: Message) -> Program:
    """The program of every version of the message."""
    layout, versions = lay_out(message), range(newest_version(message.versions) + 1)
    shape = len(versions), len(layout.columns)
    can_set, always_sets = np.zeros(shape, np.bool_), np.ones(shape, np.bool_)
    assembler = _Assembler(message, layout, [], [], can_set, always_sets)
    entries = [assembler.version(version) for version in versions]
    return Program(
        layout=layout,
        code=np.array(assembler.code, np.int64),
        column_operands=np.array(assembler.column_operands, np.int64),
        entries=np.array(entries, np.int64),
        can_set=can_set,
        always_sets=always_sets,
        depth=_depth(message.fields),
    )


def link(program: Program, first_cells: Ints) -> Ints:
    """The code with each column replaced by the cell of its first row, int64[columns]."""
    code = program.code.copy()
    code[program.column_operands] = first_cells[code[program.column_operands]]
    return code


def least_bytes(fields: Sequence[Field], version: int, flexible: bool) -> int:
    """The fewest bytes a struct of these fields can have in this version."""
    return sum(_least_bytes(field, version, flexible) for field in _untagged(fields, version)) + flexible


def _untagged(fields: Sequence[Field], version: int) -> list[Field]:
    return [field for field in fields if is_in(version, field.versions) and not is_in(version, field.tagged)]


def _always_set(untagged: Sequence[Field], version: int, prefix: str) -> Iterator[str]:
    """Columns that a struct sets whatever is in it."""
    for field in untagged:
        name = prefix + field.name
        if field.fields and not is_array(field) and not is_nullable_struct(field):
            yield from _always_set(_untagged(field.fields, version), version, name + ".")
        else:
            yield from (name, *(f"{name}.{part}" for part in ("count", "is_null", "start", "length")))


def _kind(untagged: Sequence[Field]) -> int:
    if untagged and all(field.type in INT_WIDTHS for field in untagged):
        return ALL_INTS
    arrays_have_elements = any(is_array(field) and field.nullable == "none" for field in untagged)
    return ANY if arrays_have_elements else PLAIN


def _least_bytes(field: Field, version: int, flexible: bool) -> int:
    if is_array(field) or is_span(field):
        return UUID_BYTES if field.type == "uuid" else _prefix(field, flexible) or 1
    if is_nullable_struct(field):
        return 1
    if field.fields:
        return least_bytes(field.fields, version, flexible)
    return INT_WIDTHS.get(field.type, 1)


def _prefix(field: Field, flexible: bool) -> int:
    if flexible:
        return COMPACT
    return SHORT if field.type == "string" else INT


def _depth(fields: Sequence[Field]) -> int:
    """Loops and tag sections open at once: two for every step down, and the top's tag section."""
    return 2 + max((_depth(field.fields) for field in fields), default=0)


@dataclass(frozen=True, slots=True)
class _Assembler:
    message: Message
    layout: Layout
    code: list[int]
    column_operands: list[int]
    can_set: Bools
    always_sets: Bools

    def version(self, version: int) -> int:
        """Append the program of one version and say where it begins; -1 where the version was never declared."""
        if not is_in(version, self.message.versions):
            return -1
        entry, columns_before = len(self.code), len(self.column_operands)
        self._note_left_out("", _untagged(self.message.fields, version), version)
        self._struct(self.message.fields, version, "", "")
        self._emit(END)
        self.can_set[version, [self.code[operand] for operand in self.column_operands[columns_before:]]] = True
        return entry

    def _note_left_out(self, level: str, untagged: Sequence[Field], version: int) -> None:
        set_by_all = set(_always_set(untagged, version, ""))
        for column in self.layout.of_level(level):
            self.always_sets[version, column] = self.layout.columns[column].name in set_by_all

    def _emit(self, *cells: int) -> int:
        self.code.extend(cells)
        return len(self.code)

    def _emit_column(self, level: str, name: str) -> None:
        self.column_operands.append(len(self.code))
        self._emit(self.layout.column(level, name))

    def _emit_span(self, operation: int, level: str, name: str) -> None:
        self._emit(operation)
        self._emit_column(level, name + ".start")
        self._emit_column(level, name + ".length")

    def _is_flexible(self, version: int) -> bool:
        return is_in(version, self.message.flexible)

    def _struct(self, fields: Sequence[Field], version: int, level: str, prefix: str) -> None:
        for is_int, run in groupby(_untagged(fields, version), lambda field: field.type in INT_WIDTHS):
            if is_int:
                self._ints(list(run), level, prefix)
            else:
                for field in run:
                    self._field(field, version, level, prefix)
        if self._is_flexible(version):
            self._tag_section([field for field in fields if is_in(version, field.tagged)], version, level, prefix)

    def _ints(self, fields: Sequence[Field], level: str, prefix: str) -> None:
        widths = [INT_WIDTHS[field.type] for field in fields]
        self._emit(INTS, len(fields), sum(widths))
        for field, width in zip(fields, widths, strict=True):
            self._emit_column(level, prefix + field.name)
            self._emit(width)

    def _field(self, field: Field, version: int, level: str, prefix: str) -> None:
        name = prefix + field.name
        if is_array(field):
            self._array(field, version, level, name)
        elif is_nullable_struct(field):
            self._nullable_struct(field, version, level, name)
        elif field.fields:
            self._struct(field.fields, version, level, name + ".")
        elif field.type in INT_WIDTHS:
            self._ints([field], level, prefix)
        elif field.type == "bool":
            self._emit(BOOL)
            self._emit_column(level, name)
        elif field.type == "uuid":
            self._emit_span(UUID, level, name)
        elif is_span(field):
            self._emit_span(SPAN, level, name)
            self._emit(_prefix(field, self._is_flexible(version)), is_in(version, field.nullable))
        else:
            raise TypeError(f"{self.message.name}: the decoder knows no type {field.type}, of {name}")

    def _nullable_struct(self, field: Field, version: int, level: str, name: str) -> None:
        self._emit(NULLABLE)
        self._emit_column(level, name + ".is_null")
        body = self._emit(0)
        self._struct(field.fields, version, level, name + ".")
        self.code[body - 1] = len(self.code)

    def _array(self, field: Field, version: int, level: str, name: str) -> None:
        flexible = self._is_flexible(version)
        elements, child = element_fields(field), element_path(level, name)
        untagged = _untagged(elements, version)
        self._emit(ARRAY)
        self._emit_column(level, name + ".count")
        self._emit(_prefix(field, flexible), is_in(version, field.nullable), self.layout.level(child) * LEVEL_WIDTH)
        behind = self._emit(least_bytes(elements, version, flexible and bool(field.fields)))
        self._emit(0, _kind(untagged))
        self._note_left_out(child, untagged, version)
        body = len(self.code)
        if field.fields:
            self._struct(elements, version, child, "")
        else:
            self._field(elements[0], version, child, "")
        self.code[behind] = self._emit(NEXT_ELEMENT, body)

    def _tag_section(self, fields: Sequence[Field], version: int, level: str, prefix: str) -> None:
        next_tag = self._emit(TAGS, 0)
        subroutines = self._emit(NEXT_TAG, 0, len(fields)) + 1
        for field in fields:
            self._emit(_tag(field), 0)
        for number, field in enumerate(fields):
            self.code[subroutines + 2 * number] = len(self.code)
            self._field(field, version, level, prefix)
            self._emit(END_TAG, next_tag)
        self.code[next_tag - 1] = self.code[next_tag + 1] = len(self.code)


def _tag(field: Field) -> int:
    if field.tag is None:
        raise ValueError(f"{field.name} is tagged and has no tag")
    return field.tag
