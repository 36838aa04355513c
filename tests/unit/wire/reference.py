"""A slow, obvious encoder of declared messages, and a reader that gets their values back from decoded columns.

A struct is a dict by field name; UNKNOWN_TAGS in it holds (tag, bytes) of tags nobody declared. Fields that a version
lacks are left out when encoding, and have Kafka's default when read back.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from schemas.wire.declared import DECLARED
from schemas.wire.message import Field, Message
from udfs.columns.arrays import read_only
from udfs.wire import column_buffer
from udfs.wire.messages import DecodedFrames, decode_bodies

MESSAGES = tuple(message for declared in DECLARED for message in declared)
MESSAGE_VERSIONS = [
    (message, version) for message in MESSAGES for version in range(int(message.versions.split("-")[1]) + 1)
]
UNKNOWN_TAGS = "unknown tags"
SPANS = ("string", "bytes", "records", "uuid")
JUNK = -77
WIDTHS = {"int8": 1, "int16": 2, "int32": 4, "int64": 8}
Struct = dict[str, Any]


def within(version: int, versions: str) -> bool:
    if versions == "none":
        return False
    first, _, last = versions.replace("+", "-99").partition("-")
    return int(first) <= version <= int(last or first)


def default(field: Field) -> Any:
    if field.type.startswith("[]"):
        return None if field.default == "null" else []
    if field.fields:
        return None if field.default == "null" else {inner.name: default(inner) for inner in field.fields}
    if field.type in SPANS:
        # A uuid's default, sixteen zeros, is nowhere in the arena: such a span is null.
        return None if field.default == "null" or field.type in ("records", "uuid") else b""
    return field.default == "true" if field.type == "bool" else int(field.default or "0", 0)


def uvarint(value: int) -> bytes:
    return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80]) + uvarint(value >> 7)


def encode_length(length: int, width: int, flexible: bool) -> bytes:
    return uvarint(length + 1) if flexible else length.to_bytes(width, "big", signed=True)


def encode_value(kind: str, fields: tuple[Field, ...], value: Any, version: int, flexible: bool) -> bytes:
    if kind.startswith("[]"):
        elements = [] if value is None else value
        count = encode_length(-1 if value is None else len(value), 4, flexible)
        return count + b"".join(encode_value(kind[2:], fields, element, version, flexible) for element in elements)
    if fields:
        return encode_struct(fields, value, version, flexible)
    if kind in WIDTHS:
        return int(value).to_bytes(WIDTHS[kind], "big", signed=True)
    if kind == "bool":
        return bytes([value])
    if kind == "uuid":
        return bytes(value)
    length = encode_length(-1 if value is None else len(value), 2 if kind == "string" else 4, flexible)
    return length + (value or b"")


def encode_field(field: Field, value: Any, version: int, flexible: bool) -> bytes:
    if not is_nullable_struct(field, version):
        return encode_value(field.type, field.fields, value, version, flexible)
    return b"\xff" if value is None else b"\1" + encode_struct(field.fields, value, version, flexible)


def is_nullable_struct(field: Field, version: int) -> bool:
    return bool(field.fields) and not field.type.startswith("[]") and within(version, field.nullable)


def encode_struct(fields: tuple[Field, ...], value: Struct, version: int, flexible: bool) -> bytes:
    out, tagged = b"", list(value.get(UNKNOWN_TAGS, []))
    for field in fields:
        is_tagged = within(version, field.tagged)
        if not within(version, field.versions) or (is_tagged and value[field.name] == default(field)):
            continue
        encoded = encode_field(field, value[field.name], version, flexible)
        if is_tagged:
            tagged.append((field.tag, encoded))
        else:
            out += encoded
    if flexible:
        out += uvarint(len(tagged))
        for tag, content in sorted(tagged):
            out += uvarint(tag) + uvarint(len(content)) + content
    return out


def encode(message: Message, version: int, value: Struct) -> bytes:
    return encode_struct(message.fields, value, version, within(version, message.flexible))


def values(field_type: str, field: Field, version: int, flexible: bool) -> st.SearchStrategy[Any]:
    # If an array is nullable, the array can be null, but its elements cannot.
    nullable = within(version, field.nullable) and field_type == field.type
    if field_type.startswith("[]"):
        elements = st.lists(values(field_type[2:], field, version, flexible), max_size=3)
        return st.none() | elements if nullable else elements
    if field.fields:
        struct_values = structs(field.fields, version, flexible)
        return st.none() | struct_values if nullable else struct_values
    if field_type in WIDTHS:
        bits = 8 * WIDTHS[field_type] - 1
        return st.integers(-(2**bits), 2**bits - 1)
    if field_type == "bool":
        return st.booleans()
    if field_type == "uuid":
        # All zeros in a tagged uuid would be its default, and so not be sent.
        return st.binary(min_size=16, max_size=16).filter(any)
    text = st.binary(max_size=200) if field_type in ("bytes", "records") else st.text(max_size=40).map(str.encode)
    return st.none() | text if nullable else text


def structs(fields: tuple[Field, ...], version: int, flexible: bool) -> st.SearchStrategy[Struct]:
    members: dict[str, st.SearchStrategy[Any]] = {}
    for field in fields:
        if within(version, field.versions):
            drawn = values(field.type, field, version, flexible)
            members[field.name] = st.just(default(field)) | drawn if within(version, field.tagged) else drawn
    if flexible:
        tags = st.dictionaries(st.integers(100, 2**31 - 2), st.binary(max_size=20), max_size=2)
        members[UNKNOWN_TAGS] = tags.map(lambda found: sorted(found.items()))
    return st.fixed_dictionaries(members)


def message_values(message: Message, version: int) -> st.SearchStrategy[Struct]:
    return structs(message.fields, version, within(version, message.flexible))


def filled(field_type: str, field: Field, version: int) -> Any:
    """A value with nothing missing: two elements in every array, and every tag."""
    if field_type.startswith("[]"):
        return [filled(field_type[2:], field, version)] * 2
    if field.fields:
        return filled_struct(field.fields, version)
    if field_type in SPANS:
        return b"sixteen bytes or" if field_type == "uuid" else b"ab"
    return True if field_type == "bool" else 1


def filled_struct(fields: tuple[Field, ...], version: int) -> Struct:
    """A struct of which no field is missing."""
    return {field.name: filled(field.type, field, version) for field in fields}


def expected(fields: tuple[Field, ...], value: Struct, version: int) -> Struct:
    """The struct that is read back: every declared field, with defaults, and no unknown tag."""
    found: Struct = {}
    for field in fields:
        known = value.get(field.name, default(field)) if within(version, field.versions) else default(field)
        if field.fields and field.type.startswith("[]"):
            found[field.name] = known and [expected(field.fields, element, version) for element in known]
        elif field.fields:
            found[field.name] = expected(field.fields, known, version) if value.get(field.name) else known
        else:
            found[field.name] = known
    return found


def read_back(message: Message, decoded: DecodedFrames, arena: np.ndarray, frame: int) -> Struct:
    """The values of one frame from the columns."""
    return _read_struct(message.fields, decoded, arena, "", frame, "")


def _read_struct(
    fields: tuple[Field, ...], decoded: DecodedFrames, arena: np.ndarray, level: str, row: int, prefix: str
) -> Struct:
    return {field.name: _read(field, decoded, arena, level, row, prefix + field.name) for field in fields}


def _read(field: Field, decoded: DecodedFrames, arena: np.ndarray, level: str, row: int, name: str) -> Any:
    rows = decoded.levels[level]
    if field.type.startswith("[]"):
        return _read_array(field, decoded, arena, level, row, name)
    if field.fields:
        if field.nullable != "none" and rows.column(name + ".is_null")[row]:
            return None
        return _read_struct(field.fields, decoded, arena, level, row, name + ".")
    if field.type in SPANS:
        return _read_span(*rows.span(name), arena, row)
    value = int(rows.column(name)[row])
    return bool(value) if field.type == "bool" else value


def _read_array(field: Field, decoded: DecodedFrames, arena: np.ndarray, level: str, row: int, name: str) -> Any:
    path = f"{level}.{name}" if level else name
    elements = np.flatnonzero(decoded.levels[path].parent == row)
    count = int(decoded.levels[level].column(name + ".count")[row])
    assert len(elements) == max(count, 0)
    if count < 0:
        return None
    if field.fields:
        return [_read_struct(field.fields, decoded, arena, path, int(element), "") for element in elements]
    if field.type.removeprefix("[]") in SPANS:
        return [_read_span(*decoded.levels[path].span("value"), arena, int(element)) for element in elements]
    return [int(value) for value in decoded.levels[path].column("value")[elements]]


def _read_span(starts: np.ndarray, lengths: np.ndarray, arena: np.ndarray, row: int) -> bytes | None:
    start, length = int(starts[row]), int(lengths[row])
    return None if length < 0 else arena[start : start + length].tobytes()


def lay_in_arena(frames: list[bytes], between: bytes = b"") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(arena, starts, ends) of frames one after the other, with `between` around each."""
    sizes = np.array([len(frame) for frame in frames], np.int64)
    starts = np.cumsum(sizes) - sizes + len(between) * np.arange(1, len(frames) + 1)
    arena = np.frombuffer(between + between.join(frames) + between, np.uint8)
    return arena, starts, starts + sizes


def in_arena(frame: bytes) -> tuple[np.ndarray, int, int]:
    """(arena, start, end) of a frame amid other bytes, so that offsets are the arena's."""
    arena, starts, ends = lay_in_arena([frame], between=b"\xee" * 16)
    return read_only(arena), int(starts[0]), int(ends[0])


@contextmanager
def junk_in_memory() -> Iterator[None]:
    """Columns that nobody has written to are full of junk, like memory that was used before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_buffer, "unwritten_array", lambda cells, dtype: np.full(cells, JUNK, dtype))
        yield


def decode_frames(message: Message, version: int, frames: list[bytes]) -> tuple[np.ndarray, DecodedFrames]:
    arena, starts, ends = lay_in_arena(frames)
    return arena, decode_bodies(message, arena, starts, ends, np.full(len(frames), version, np.int16))


def be(layout: str, *numbers: int) -> bytes:
    return struct.pack(">" + layout, *numbers)
