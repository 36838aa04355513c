"""How a version encodes fields: which exist, which are tagged, how lengths are written, the fewest bytes they take."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.wire.message import Field
from udfs.wire.layout import INT_WIDTHS, is_array, is_nullable_struct, is_span, is_version_in
from udfs.wire.primitives import COMPACT, INT, SHORT

UUID_BYTES = 16


def untagged_fields(fields: Sequence[Field], version: int) -> list[Field]:
    """The fields that every struct of this version has."""
    return [
        field for field in fields if is_version_in(version, field.versions) and not is_version_in(version, field.tagged)
    ]


def tag_of(field: Field) -> int:
    """The tag of a tagged field."""
    if field.tag is None:
        raise ValueError(f"{field.name} is tagged and has no tag")
    return field.tag


def length_prefix(field: Field, flexible: bool) -> int:
    """How the length of a string, bytes or array is written: COMPACT, SHORT or INT."""
    if flexible:
        return COMPACT
    return SHORT if field.type == "string" else INT


def least_bytes(fields: Sequence[Field], version: int, flexible: bool) -> int:
    """The fewest bytes that a struct of these fields can have in this version."""
    return sum(_least_bytes(field, version, flexible) for field in untagged_fields(fields, version)) + flexible


def _least_bytes(field: Field, version: int, flexible: bool) -> int:
    if is_array(field) or is_span(field):
        return UUID_BYTES if field.type == "uuid" else length_prefix(field, flexible) or 1
    if is_nullable_struct(field):
        return 1
    if field.fields:
        return least_bytes(field.fields, version, flexible)
    return INT_WIDTHS.get(field.type, 1)
