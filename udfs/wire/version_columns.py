"""Which columns the rows of each version set. It decides where a batch needs room, and where it needs defaults."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

from schemas.wire.message import Field, Message
from udfs.columns.arrays import Codes
from udfs.wire.layout import (
    PARENT,
    MessageLayout,
    element_fields,
    element_path,
    field_columns,
    is_array,
    is_nullable_struct,
    is_version_in,
    message_layout,
    newest_version,
)

# Which rows of a level set a column: none; those with a tag; those in which the column's struct is not null; or all.
NO_ROWS, IF_TAGGED, IF_THERE, ALL_ROWS = range(4)


@cache
def columns_set(message: Message) -> Codes:
    """Which rows set each column in each version: int8[versions, columns].

    The column PARENT of a level has NO_ROWS in versions without rows in that level.
    """
    layout = message_layout(message)
    rows_that_set = np.full((newest_version(message.versions) + 1, len(layout.columns)), NO_ROWS, np.int8)
    for version in range(len(rows_that_set)):
        if is_version_in(version, message.versions):
            rows_that_set[version, layout.column("", PARENT)] = ALL_ROWS
            for level, name, rows in _columns_set(message.fields, version, "", "", ALL_ROWS):
                rows_that_set[version, layout.column(level, name)] = rows
    return rows_that_set


def first_column_set(layout: MessageLayout, field: Field, version: int, level: str, prefix: str) -> int:
    """The number of the first column that a field sets in its level; level, prefix: those of the field."""
    level, name, _ = next(_columns_set([field], version, level, prefix, ALL_ROWS))
    return layout.column(level, name)


def _columns_set(
    fields: Sequence[Field], version: int, level: str, prefix: str, rows: int
) -> Iterator[tuple[str, str, int]]:
    """(level, column, which rows set it) for the fields of a struct; rows: which rows have the struct."""
    for field in fields:
        if not is_version_in(version, field.versions):
            continue
        name, of_field = prefix + field.name, IF_TAGGED if is_version_in(version, field.tagged) else rows
        yield from ((level, column, of_field) for column in field_columns(field, name))
        if is_array(field):
            child, of_child = element_path(level, name), IF_TAGGED if of_field == IF_TAGGED else ALL_ROWS
            yield child, PARENT, of_child
            yield from _columns_set(element_fields(field), version, child, "", of_child)
        elif field.fields:
            of_inner = min(of_field, IF_THERE) if is_nullable_struct(field) else of_field
            yield from _columns_set(field.fields, version, level, name + ".", of_inner)
