"""Decoded columns as Arrow's: numbers, texts, ids, lists and structs of the declared names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.wire.message import Field
from udfs.columns.arrays import Bytes, Ints, edges
from udfs.columns.arrow_columns import array_of, array_over
from udfs.facts.hashed_names import topic_id_text
from udfs.frames.message_types import OPAQUE, field_type, list_type, struct_type
from udfs.wire.byte_spans import gathered
from udfs.wire.decoded_level import Level
from udfs.wire.encoding import UUID_BYTES
from udfs.wire.layout import element_fields, element_path, is_array, is_nullable_struct

ZERO_UUID = bytes(UUID_BYTES)
"""Kafka's Uuid.ZERO_UUID, which stands for no id."""


class Decodings(NamedTuple):
    """The levels of a decoded message and the arena that their spans are in."""

    levels: dict[str, Level]
    arena: Bytes


def columns(decoded: Decodings, fields: tuple[Field, ...], level: str = "", prefix: str = "") -> list[pa.Array[Any]]:
    """The fields of a struct, each with a value for every row of its level."""
    return [_column(decoded, field, level, prefix + field.name) for field in fields]


def _column(decoded: Decodings, field: Field, level: str, name: str) -> pa.Array[Any]:
    if is_array(field):
        return _lists(decoded, field, level, name)
    if field.fields:
        inner = columns(decoded, field.fields, level, name + ".")
        rows = decoded.levels[level]
        absent = rows.column(name + ".is_null") != 0 if is_nullable_struct(field) else np.zeros(rows.rows, np.bool_)
        return structs(inner, struct_type(field.fields), absent)
    return _plain(decoded, field, level, name)


def _lists(decoded: Decodings, field: Field, level: str, name: str) -> pa.Array[Any]:
    """The arrays of a level; the elements of all lie one behind the other, in the order of their rows."""
    counts, path, elements = decoded.levels[level].column(name + ".count"), element_path(level, name), field.fields
    if elements:
        rows = decoded.levels[path].rows
        values = structs(columns(decoded, elements, path), struct_type(elements), np.zeros(rows, np.bool_))
    else:
        (element,) = element_fields(field)
        values = _plain(decoded, element, path, element.name)
    ends = edges(np.maximum(counts, 0))
    make: Any = pa.ListArray.from_arrays
    return make(array_of(ends.astype(np.int32)), values, type=list_type(values.type), mask=array_of(counts < 0))


def structs(inner: list[pa.Array[Any]], kind: pa.StructType, absent: np.ndarray[Any, Any]) -> pa.Array[Any]:
    """Structs of a type from their fields' columns; null where `absent`, bool[n]."""
    make: Any = pa.StructArray.from_arrays
    return make(inner, fields=list(kind), mask=array_of(absent))


def _plain(decoded: Decodings, field: Field, level: str, name: str) -> pa.Array[Any]:
    rows, kind = decoded.levels[level], field_type(field)
    if field.type == "string":
        return texts(decoded.arena, *rows.span(name))
    if field.type == "uuid":
        return ids(decoded.arena, *rows.span(name))
    if field.type in OPAQUE:
        _, lengths = rows.span(name)
        return array_of(lengths.astype(np.int32), lengths >= 0)
    return array_of(rows.column(name).astype(kind.to_pandas_dtype()))


def texts(arena: Bytes, starts: Ints, lengths: Ints) -> pa.Array[Any]:
    """Spans as texts, null for a null one; bytes that are not UTF-8 become U+FFFD."""
    found = _binaries(arena, starts, lengths)
    try:
        return found.cast(pa.string())
    except pa.ArrowInvalid:
        return _each_once(found, lambda raw: raw.decode("utf-8", "replace"))


def ids(arena: Bytes, starts: Ints, lengths: Ints) -> pa.Array[Any]:
    """Spans of sixteen bytes as Kafka prints its ids; null for no id."""
    return _each_once(_binaries(arena, starts, lengths), lambda raw: None if raw == ZERO_UUID else topic_id_text(raw))


def _each_once(found: pa.Array[Any], told: Callable[[bytes], str | None]) -> pa.Array[Any]:
    """`told` of each value of a binary column, called once for each distinct value."""
    distinct: Any = found.dictionary_encode()
    known: Any = pa.array([told(raw) for raw in distinct.dictionary.to_pylist()], pa.string())
    return known.take(distinct.indices)


def _binaries(arena: Bytes, starts: Ints, lengths: Ints) -> pa.Array[Any]:
    """A binary column of the spans; null where a length is below 0."""
    ends = edges(np.maximum(lengths, 0))
    content = gathered(arena, starts, ends)
    return array_over(pa.binary(), len(lengths), ends.astype(np.int32), content, known=lengths >= 0)
