"""Makes the function that reads frames of one version of a message, field by field, with `udfs.wire.reader_code`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any

from llvmlite import ir

from schemas.wire.message import Field, Message
from udfs.wire.encoding import UUID_BYTES, least_bytes, length_prefix, tag_of, untagged_fields
from udfs.wire.faults import DecodeFault
from udfs.wire.layout import (
    INT_WIDTHS,
    PARENT,
    MessageLayout,
    element_fields,
    element_path,
    is_array,
    is_nullable_struct,
    is_span,
    is_version_in,
    message_layout,
)
from udfs.wire.machine_code import function_address
from udfs.wire.reader_code import ReaderCode, int64_constant
from udfs.wire.version_columns import first_column_set

_LEAST_TAG_BYTES = 2  # the tag and its size


@cache
def reader_address(message: Message, version: int) -> int:
    """The address of the function that reads one version of a message; the message must declare this version.

    Raises TypeError if a field has a type that the decoder does not know.
    """

    def write(module: ir.Module, name: str) -> None:
        layout = message_layout(message)
        _MessageReader(message, version, layout, ReaderCode(module, name)).read_message()

    return function_address(f"{message.name}_{version}", repr(message), write)


@dataclass(frozen=True, slots=True)
class _MessageReader:
    """Appends to `code` the instructions that read each field.

    In the methods, `level` is the level of a field's columns, and `prefix` is the beginning of their names.
    """

    message: Message
    version: int
    layout: MessageLayout
    code: ReaderCode

    @property
    def _flexible(self) -> bool:
        return is_version_in(self.version, self.message.flexible)

    def read_message(self) -> None:
        self._struct(self.message.fields, "", "")
        self.code.end()

    def _store(self, level: str, name: str, value: Any) -> None:
        self.code.store(self.layout.column(level, name), value)

    def _struct(self, fields: Sequence[Field], level: str, prefix: str) -> None:
        for is_int, run in groupby(untagged_fields(fields, self.version), lambda field: field.type in INT_WIDTHS):
            if is_int:
                self._ints(list(run), level, prefix)
            else:
                for field in run:
                    self._field(field, level, prefix)
        if self._flexible:
            self._tag_section([field for field in fields if is_version_in(self.version, field.tagged)], level, prefix)

    def _ints(self, fields: Sequence[Field], level: str, prefix: str) -> None:
        self.code.begin_field()
        self.code.require(sum(INT_WIDTHS[field.type] for field in fields))
        for field in fields:
            self._store(level, prefix + field.name, self.code.take_int(INT_WIDTHS[field.type]))

    def _field(self, field: Field, level: str, prefix: str) -> None:
        name = prefix + field.name
        if is_array(field):
            self._array(field, level, name)
        elif is_nullable_struct(field):
            self._nullable_struct(field, level, name)
        elif field.fields:
            self._struct(field.fields, level, name + ".")
        elif field.type in INT_WIDTHS:
            self._ints([field], level, prefix)
        elif field.type == "bool":
            self._store(level, name, self._byte_is("!=", 0))
        elif is_span(field):
            self._span(field, level, name)
        else:
            raise TypeError(f"{self.message.name}: {name} has the type {field.type}, which the decoder does not know")

    def _byte_is(self, comparison: str, other: int) -> Any:
        """Read a byte and compare it: 1 if the comparison holds, otherwise 0."""
        self.code.begin_field()
        self.code.require(1)
        return self.code.as_number(self.code.compare(self.code.take_int(1), comparison, other))

    def _span(self, field: Field, level: str, name: str) -> None:
        """Read a string, bytes, records or uuid: store its start and length."""
        code = self.code
        code.begin_field()
        if field.type == "uuid":
            length = int64_constant(UUID_BYTES)
            code.require(UUID_BYTES)
        else:
            length = self._length(field)
            code.require_room(length, 1, DecodeFault.BAD_LENGTH)
        self._store(level, name + ".start", code.offset)
        self._store(level, name + ".length", length)
        code.skip(length)

    def _length(self, field: Field) -> Any:
        """Read the length or count before a field: -1 for null, if null is allowed."""
        length = self.code.read_length(length_prefix(field, self._flexible))
        if not is_version_in(self.version, field.nullable):
            self.code.fail_unless(self.code.compare(length, ">=", 0), DecodeFault.UNEXPECTED_NULL)
        return length

    def _nullable_struct(self, field: Field, level: str, name: str) -> None:
        """Read a struct that may be null; a negative byte means null (KIP-893)."""
        is_null = self._byte_is("<", 0)
        self._store(level, name + ".is_null", is_null)
        with self.code.when(self.code.compare(is_null, "==", 0), likely=True):
            self._struct(field.fields, level, name + ".")

    def _array(self, field: Field, level: str, name: str) -> None:
        code = self.code
        elements, child = element_fields(field), element_path(level, name)
        code.begin_field()
        count = self._length(field)
        least = least_bytes(elements, self.version, self._flexible and bool(field.fields))
        self._store(level, name + ".count", count)
        with code.when(code.compare(count, ">", 0), likely=True):
            code.require_room(count, least, DecodeFault.BAD_COUNT)
            if not level:
                self._note_rows(child)
            with code.each_row(self.layout.level(child), count) as parent:
                self._store(child, PARENT, parent)
                if field.fields:
                    self._struct(elements, child, "")
                else:
                    self._field(elements[0], child, "")

    def _note_rows(self, level: str) -> None:
        """Note how many rows a level and the levels in it have, before an array is read that adds rows to it."""
        for number_of_it, path in enumerate(self.layout.levels):
            if f"{path}.".startswith(f"{level}."):
                self.code.note_rows(number_of_it)

    def _tag_section(self, known: Sequence[Field], level: str, prefix: str) -> None:
        code = self.code
        code.begin_field()
        count = code.read_varint()
        with code.when(code.compare(count, "!=", 0), likely=False):
            code.require_room(count, _LEAST_TAG_BYTES, DecodeFault.BAD_COUNT)
            before = code.variable(int64_constant(-1))
            with code.each(int64_constant(0), count):
                self._tag(known, before, level, prefix)

    def _tag(self, known: Sequence[Field], before: Any, level: str, prefix: str) -> None:
        """Read one tag, which must be greater than the tag before. Read its field if that is known, else skip it."""
        code = self.code
        code.begin_field()
        tag = code.read_varint()
        code.fail_unless(code.compare(tag, ">", code.value(before)), DecodeFault.BAD_TAG)
        code.change(before, tag)
        size = code.read_varint()
        code.require_room(size, 1, DecodeFault.BAD_LENGTH)
        end = code.behind(size)
        for field in known:
            with code.when(code.compare(tag, "==", tag_of(field)), likely=True), code.up_to(end):
                code.require_column(first_column_set(self.layout, field, self.version, level, prefix))
                self._field(field, level, prefix)
                code.begin_field()
                code.fail_unless(code.compare(code.offset, "==", end), DecodeFault.BAD_LENGTH)
        code.go_to(end)
