"""Which columns the rows of a version set: how much room a batch needs, and where defaults must be set beforehand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

from schemas.wire.message import Field, Message
from udfs.columns.arrays import Codes
from udfs.wire.layout import (
    PARENT,
    Layout,
    element_fields,
    element_path,
    is_array,
    is_in,
    is_nullable_struct,
    lay_out,
    newest_version,
    own_columns,
)

# Which rows of a level set a column: none, those with a tag, those that have the struct it is in, or all.
NO_ROWS, IF_TAGGED, IF_THERE, ALL_ROWS = range(4)


@cache
def columns_set(message: Message) -> Codes:
    """Which rows set each column, int8[versions, columns]; NO_ROWS for the PARENT of a level without rows."""
    layout = lay_out(message)
    found = np.full((newest_version(message.versions) + 1, len(layout.columns)), NO_ROWS, np.int8)
    for version in range(len(found)):
        if is_in(version, message.versions):
            found[version, layout.column("", PARENT)] = ALL_ROWS
            for level, name, rows in _columns_set(message.fields, version, "", "", ALL_ROWS):
                found[version, layout.column(level, name)] = rows
    return found


def first_column_set(layout: Layout, field: Field, version: int, level: str, prefix: str) -> int:
    """The number of the first column that a field sets in its own level."""
    level, name, _ = next(_columns_set([field], version, level, prefix, ALL_ROWS))
    return layout.column(level, name)


def _columns_set(
    fields: Sequence[Field], version: int, level: str, prefix: str, rows: int
) -> Iterator[tuple[str, str, int]]:
    """(level, column, which rows set it) of fields in a struct that `rows` have."""
    for field in fields:
        if not is_in(version, field.versions):
            continue
        name, of_field = prefix + field.name, IF_TAGGED if is_in(version, field.tagged) else rows
        yield from ((level, own, of_field) for own in own_columns(field, name))
        if is_array(field):
            child, of_child = element_path(level, name), IF_TAGGED if of_field == IF_TAGGED else ALL_ROWS
            yield child, PARENT, of_child
            yield from _columns_set(element_fields(field), version, child, "", of_child)
        elif field.fields:
            of_inner = min(of_field, IF_THERE) if is_nullable_struct(field) else of_field
            yield from _columns_set(field.fields, version, level, name + ".", of_inner)
