"""Compiles a declared message into flat programs, one a version, for the interpreter in `udfs.wire.interpreter`.

A program is rows of eight int64: an operation and its operands. Arrays are loops, tagged fields are subroutines that a tag
section calls. All versions of a message share one table of code and one layout of columns, so that frames of mixed versions
decode in one pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby

import numpy as np

from schemas.wire.message import Field, Message
from udfs.wire.arrays import Ints
from udfs.wire.layout import INT_WIDTHS, Layout, element_fields, is_array, is_in, is_span, lay_out, newest_version
from udfs.wire.primitives import COMPACT, INT, SHORT

# Operations, and what is in columns 1.. of their row.
END = 0
INTS = 1  # number of fields, their bytes together; the next rows are one field each: column, width
BOOL = 2  # column
UUID = 3  # column of the start
SPAN = 4  # column of the start, prefix, nullable
ARRAY = 5  # column of the count, prefix, nullable, level of the elements, least bytes of one, row behind the loop
NEXT_ELEMENT = 6  # row of the loop's body
TAGS = 7  # row behind the tag section
NEXT_TAG = 8  # first and last + 1 of the known tags, row behind the tag section
END_TAG = 9  # row of NEXT_TAG
WIDTH = 8

UUID_BYTES = 16

Row = list[int]


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """All versions of one message, compiled.

    `code` int64[rows, 8]; `tags` int64[tags, 2]: tag, row of its subroutine; `entries` int64[versions]: first row by version;
    `depth`: how many loops and tag sections can be open at once.
    """

    layout: Layout
    code: Ints
    tags: Ints
    entries: Ints
    depth: int


@cache
def compile_message(message: Message) -> Program:
    """The program of every version of the message."""
    assembler = _Assembler(message, lay_out(message), [], [])
    entries = [assembler.version(version) for version in range(newest_version(message.versions) + 1)]
    return Program(
        layout=assembler.layout,
        code=np.array(assembler.code, np.int64),
        tags=np.array(assembler.tags, np.int64).reshape(-1, 2),
        entries=np.array(entries, np.int64),
        depth=_depth(message.fields),
    )


def least_bytes(fields: Sequence[Field], version: int, flexible: bool) -> int:
    """The fewest bytes a struct of these fields can have in this version."""
    present = [field for field in fields if is_in(version, field.versions) and not is_in(version, field.tagged)]
    return sum(_least_bytes(field, version, flexible) for field in present) + flexible


def _least_bytes(field: Field, version: int, flexible: bool) -> int:
    if is_array(field) or is_span(field):
        return UUID_BYTES if field.type == "uuid" else _prefix(field, flexible) or 1
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
    code: list[Row]
    tags: list[tuple[int, int]]

    def version(self, version: int) -> int:
        """Append the program of one version; its first row, -1 where the version was never declared."""
        if not is_in(version, self.message.versions):
            return -1
        entry = len(self.code)
        self._struct(self.message.fields, version, "", "")
        self._emit(END)
        return entry

    def _emit(self, *row: int) -> int:
        self.code.append([*row, *[0] * (WIDTH - len(row))])
        return len(self.code) - 1

    def _struct(self, fields: Sequence[Field], version: int, level: str, prefix: str) -> None:
        present = [field for field in fields if is_in(version, field.versions)]
        untagged = [field for field in present if not is_in(version, field.tagged)]
        for is_int, run in groupby(untagged, lambda field: field.type in INT_WIDTHS):
            if is_int:
                self._ints(list(run), level, prefix)
            else:
                for field in run:
                    self._field(field, version, level, prefix)
        if self._is_flexible(version):
            self._tag_section([field for field in present if is_in(version, field.tagged)], version, level, prefix)

    def _is_flexible(self, version: int) -> bool:
        return is_in(version, self.message.flexible)

    def _ints(self, fields: Sequence[Field], level: str, prefix: str) -> None:
        widths = [INT_WIDTHS[field.type] for field in fields]
        self._emit(INTS, len(fields), sum(widths))
        for field, width in zip(fields, widths, strict=True):
            self._emit(INTS, self.layout.column(level, prefix + field.name), width)

    def _field(self, field: Field, version: int, level: str, prefix: str) -> None:
        name = prefix + field.name
        if is_array(field):
            self._array(field, version, level, name)
        elif field.fields:
            self._struct(field.fields, version, level, name + ".")
        elif field.type in INT_WIDTHS:
            self._ints([field], level, prefix)
        elif field.type == "bool":
            self._emit(BOOL, self.layout.column(level, name))
        elif field.type == "uuid":
            self._emit(UUID, self.layout.column(level, name + ".start"))
        elif is_span(field):
            kind = _prefix(field, self._is_flexible(version))
            self._emit(SPAN, self.layout.column(level, name + ".start"), kind, is_in(version, field.nullable))
        else:
            raise TypeError(f"{self.message.name}: the decoder knows no type {field.type}, of {name}")

    def _array(self, field: Field, version: int, level: str, name: str) -> None:
        flexible = self._is_flexible(version)
        elements, child = element_fields(field), f"{level}.{name}".lstrip(".")
        least = least_bytes(elements, version, flexible and bool(field.fields))
        loop = self._emit(
            ARRAY,
            self.layout.column(level, name + ".count"),
            _prefix(field, flexible),
            is_in(version, field.nullable),
            self.layout.level(child),
            least,
        )
        if field.fields:
            self._struct(elements, version, child, "")
        else:
            self._field(elements[0], version, child, "")
        self._emit(NEXT_ELEMENT, loop + 1)
        self.code[loop][6] = len(self.code)

    def _tag_section(self, fields: Sequence[Field], version: int, level: str, prefix: str) -> None:
        section = self._emit(TAGS)
        next_tag = self._emit(NEXT_TAG)
        targets = []
        for field in fields:
            assert field.tag is not None, f"{self.message.name}.{field.name} is tagged but has no tag"
            targets.append((field.tag, len(self.code)))
            self._field(field, version, level, prefix)
            self._emit(END_TAG, next_tag)
        self.code[next_tag][1:4] = [len(self.tags), len(self.tags) + len(targets), len(self.code)]
        self.code[section][1] = len(self.code)
        self.tags.extend(targets)
