"""Turns decoded columns into Arrow columns: numbers, texts, ids, lists and structs with the declared names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.wire.message import Field
from udfs.columns.arrays import Bytes, Ints, stretch_edges
from udfs.columns.arrow_columns import arrow_array, arrow_array_over
from udfs.facts.hashed_names import topic_id_text
from udfs.frames.message_types import OPAQUE, field_type, list_type, struct_type
from udfs.wire.byte_spans import gather_spans
from udfs.wire.decoded_level import Level
from udfs.wire.encoding import UUID_BYTES
from udfs.wire.layout import element_fields, element_path, is_array, is_nullable_struct

ZERO_UUID = bytes(UUID_BYTES)
"""Kafka's Uuid.ZERO_UUID, which stands for no id."""


class Decodings(NamedTuple):
    """The levels of decoded messages, and the arena with their spans."""

    levels: dict[str, Level]
    arena: Bytes


def columns_of_struct(
    decoded: Decodings, fields: tuple[Field, ...], level: str = "", prefix: str = ""
) -> list[pa.Array[Any]]:
    """The fields of a struct as columns, with a value for each row of its level."""
    return [_field_column(decoded, field, level, prefix + field.name) for field in fields]


def _field_column(decoded: Decodings, field: Field, level: str, name: str) -> pa.Array[Any]:
    if is_array(field):
        return _list_column(decoded, field, level, name)
    if field.fields:
        inner = columns_of_struct(decoded, field.fields, level, name + ".")
        rows = decoded.levels[level]
        absent = rows.column(name + ".is_null") != 0 if is_nullable_struct(field) else np.zeros(rows.rows, np.bool_)
        return struct_array(inner, struct_type(field.fields), absent)
    return _primitive_column(decoded, field, level, name)


def _list_column(decoded: Decodings, field: Field, level: str, name: str) -> pa.Array[Any]:
    """The lists in an array field. Their elements are one after the other, in the order of the rows."""
    counts, path, elements = decoded.levels[level].column(name + ".count"), element_path(level, name), field.fields
    if elements:
        rows = decoded.levels[path].rows
        values = struct_array(
            columns_of_struct(decoded, elements, path), struct_type(elements), np.zeros(rows, np.bool_)
        )
    else:
        (element,) = element_fields(field)
        values = _primitive_column(decoded, element, path, element.name)
    ends = stretch_edges(np.maximum(counts, 0))
    make: Any = pa.ListArray.from_arrays
    return make(arrow_array(ends.astype(np.int32)), values, type=list_type(values.type), mask=arrow_array(counts < 0))


def struct_array(inner: list[pa.Array[Any]], kind: pa.StructType, absent: np.ndarray[Any, Any]) -> pa.Array[Any]:
    """Structs of a type from the columns of their fields, `inner`; null where `absent`, bool[n]."""
    make: Any = pa.StructArray.from_arrays
    return make(inner, fields=list(kind), mask=arrow_array(absent))


def _primitive_column(decoded: Decodings, field: Field, level: str, name: str) -> pa.Array[Any]:
    rows, kind = decoded.levels[level], field_type(field)
    if field.type == "string":
        return texts_of_spans(decoded.arena, *rows.span(name))
    if field.type == "uuid":
        return ids_of_spans(decoded.arena, *rows.span(name))
    if field.type in OPAQUE:
        _, lengths = rows.span(name)
        return arrow_array(lengths.astype(np.int32), lengths >= 0)
    return arrow_array(rows.column(name).astype(kind.to_pandas_dtype()))


def texts_of_spans(arena: Bytes, starts: Ints, lengths: Ints) -> pa.Array[Any]:
    """Spans of the arena, uint8, as texts, null for a null span. Bytes that are not UTF-8 become U+FFFD.

    starts, lengths: int64[n]; the length is negative for null.
    """
    binaries = _binaries(arena, starts, lengths)
    try:
        return binaries.cast(pa.string())
    except pa.ArrowInvalid:
        return _each_once(binaries, lambda raw: raw.decode("utf-8", "replace"))


def ids_of_spans(arena: Bytes, starts: Ints, lengths: Ints) -> pa.Array[Any]:
    """Spans of sixteen bytes as Kafka prints ids; null if there is no id.

    arena: uint8[bytes]. starts, lengths: int64[n].
    """
    return _each_once(_binaries(arena, starts, lengths), lambda raw: None if raw == ZERO_UUID else topic_id_text(raw))


def _each_once(binaries: pa.Array[Any], text_of: Callable[[bytes], str | None]) -> pa.Array[Any]:
    """The text of each value of a binary column; `text_of` is called once for each distinct value."""
    distinct: Any = binaries.dictionary_encode()
    texts: Any = pa.array([text_of(raw) for raw in distinct.dictionary.to_pylist()], pa.string())
    return texts.take(distinct.indices)


def _binaries(arena: Bytes, starts: Ints, lengths: Ints) -> pa.Array[Any]:
    """Spans as a binary column; null where a length is below 0."""
    ends = stretch_edges(np.maximum(lengths, 0))
    content = gather_spans(arena, starts, ends)
    return arrow_array_over(pa.binary(), len(lengths), ends.astype(np.int32), content, known=lengths >= 0)
