"""The Arrow type of a message, derived from its declaration: the union of the fields of all its versions."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from schemas.wire.message import Field, Message
from udfs.wire.layout import element_fields, is_array

DECODE_FAULT = "decode_fault"
"""The field beside the message's own: why the frame could not be decoded, null where it could."""
SIZE_IN_BYTES = "_size_in_bytes"
OPAQUE = frozenset({"records", "bytes"})
"""Types whose content is nobody's business: NAME_size_in_bytes is told, as Kafka's request log does of records."""

_PLAIN: dict[str, pa.DataType] = {
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "bool": pa.bool_(),
    "string": pa.string(),
    "uuid": pa.string(),  # as Kafka prints it
    **dict.fromkeys(OPAQUE, pa.int32()),
}


def message_type(message: Message) -> pa.StructType:
    """The struct that a frame of the message becomes."""
    fault: pa.Field[Any] = pa.field(DECODE_FAULT, pa.string())
    return pa.struct([*struct_type(message.fields), fault])


def struct_type(fields: tuple[Field, ...]) -> pa.StructType:
    """The struct of these fields; each can be null."""
    return pa.struct([pa.field(told_name(field), field_type(field)) for field in fields])


def told_name(field: Field) -> str:
    """What a field is called here: Kafka's name, with SIZE_IN_BYTES behind it where the field is opaque."""
    return field.name + SIZE_IN_BYTES if field.type in OPAQUE else field.name


def field_type(field: Field) -> pa.DataType:
    """The type of one field. Raises KeyError for a primitive type that no declared message has."""
    if is_array(field):
        return list_type(field_type(element_fields(field)[0]) if not field.fields else struct_type(field.fields))
    return struct_type(field.fields) if field.fields else _PLAIN[field.type]


def list_type(element: pa.DataType) -> pa.DataType:
    """A list as Spark names its parts."""
    return pa.list_(pa.field("element", element))
