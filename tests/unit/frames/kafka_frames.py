"""Whole frames as clients and brokers send them, and the structs that they are decoded into."""

from __future__ import annotations

import struct
from typing import Any

from schemas.wire.message import Field, Message
from tests.unit.wire.reference import Struct, encode, expected, within
from udfs.facts.hashed_names import topic_id_text

API_VERSIONS = 18
CORRELATION_ID = 7


def is_request(message: Message) -> bool:
    return message.name.endswith("Request")


def sized(content: bytes) -> bytes:
    """A frame: its size and what follows."""
    return struct.pack(">i", len(content)) + content


def request(api_key: int, version: int, body: bytes, *, flexible: bool = False, client_id: bytes = b"app") -> bytes:
    """A request frame with header v1, or v2 where the version is flexible."""
    head = struct.pack(">hhih", api_key, version, CORRELATION_ID, len(client_id)) + client_id
    return sized(head + b"\0" * flexible + body)


def response(body: bytes, *, tags: bool = False) -> bytes:
    """A response frame with header v0, or v1 where it has tags."""
    return sized(struct.pack(">i", CORRELATION_ID) + b"\0" * tags + body)


def frame_of(message: Message, version: int, value: Struct) -> bytes:
    """The frame of a message's value."""
    body, flexible = encode(message, version, value), within(version, message.flexible)
    if is_request(message):
        return request(message.api_key, version, body, flexible=flexible)
    return response(body, tags=flexible and message.api_key != API_VERSIONS)


def decoded_struct(message: Message, version: int, value: Struct) -> Struct:
    """The struct that a value is decoded into: every declared field, opaque ones as their size, and no fault."""
    return _decoded_struct(message.fields, expected(message.fields, value, version)) | {"decode_fault": None}


def _decoded_struct(fields: tuple[Field, ...], value: Struct) -> Struct:
    return dict(_decoded_field(field, value[field.name]) for field in fields)


def _decoded_field(field: Field, value: Any) -> tuple[str, Any]:
    if field.type in ("records", "bytes"):
        return f"{field.name}_size_in_bytes", None if value is None else len(value)
    if isinstance(value, list):
        return field.name, [_decoded_element(field, element) for element in value]
    return field.name, _decoded_element(field, value)


def _decoded_element(field: Field, value: Any) -> Any:
    if isinstance(value, dict):
        return _decoded_struct(field.fields, value)
    if isinstance(value, bytes):
        if field.type.endswith("uuid"):
            return topic_id_text(value) if any(value) else None
        return value.decode("utf-8", "replace")
    return value
