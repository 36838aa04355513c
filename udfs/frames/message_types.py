"""The Arrow type of a message, derived from its declaration. It has the fields of all versions."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from schemas.wire.message import Field, Message
from udfs.wire.layout import element_fields, is_array

DECODE_FAULT = "decode_fault"
"""An additional field of each message: why the frame could not be decoded, null if it could."""
SIZE_IN_BYTES = "_size_in_bytes"
OPAQUE = frozenset({"records", "bytes"})
"""Types whose content is never shown. There is NAME_size_in_bytes instead, as for records in Kafka's request log."""

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
    """The type of the struct into which a frame of the message is decoded."""
    fault: pa.Field[Any] = pa.field(DECODE_FAULT, pa.string())
    return pa.struct([*struct_type(message.fields), fault])


def struct_type(fields: tuple[Field, ...]) -> pa.StructType:
    """The type of a struct with these fields; each can be null."""
    return pa.struct([pa.field(column_name(field), field_type(field)) for field in fields])


def column_name(field: Field) -> str:
    """The name of a field in a struct: Kafka's name, with SIZE_IN_BYTES appended if the field is opaque."""
    return field.name + SIZE_IN_BYTES if field.type in OPAQUE else field.name


def field_type(field: Field) -> pa.DataType:
    """The type of one field. Raises KeyError for a primitive type that no declared message has."""
    if is_array(field):
        return list_type(field_type(element_fields(field)[0]) if not field.fields else struct_type(field.fields))
    return struct_type(field.fields) if field.fields else _PLAIN[field.type]


def list_type(element: pa.DataType) -> pa.DataType:
    """The type of a list whose elements have the name that Spark gives them."""
    return pa.list_(pa.field("element", element))
