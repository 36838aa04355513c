"""The columns into which a message is decoded: a level for each array in it, with the fields of all versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from schemas.wire.message import Field, Message
from udfs.columns.arrays import Ints

INT_WIDTHS = {"int8": 1, "int16": 2, "int32": 4, "int64": 8}
_SPANS = frozenset({"string", "bytes", "records", "uuid"})

PARENT = "parent"
VALUE = "value"


@dataclass(frozen=True, slots=True)
class LevelColumn:
    """One int64 column: the path of its level, its name in the level, and its value if a frame does not set it."""

    level: str
    name: str
    default: int


@dataclass(frozen=True, slots=True, eq=False)
class MessageLayout:
    """The levels and columns of a message; the columns of a level are neighbours, PARENT first.

    first_column: int64[levels + 1], where each level's columns begin. level_of: int64[columns], the number of each
    column's level. defaults: int64[columns]. numbers: the numbers of each level's columns by name. defaults_by_name:
    the defaults of each level's columns by name, without PARENT.
    """

    levels: tuple[str, ...]
    columns: tuple[LevelColumn, ...]
    first_column: Ints
    level_of: Ints
    defaults: Ints
    numbers: tuple[Mapping[str, int], ...]
    defaults_by_name: tuple[Mapping[str, int], ...]

    def level(self, path: str) -> int:
        """The number of the level of this path."""
        return self.levels.index(path)

    def column(self, level: str, name: str) -> int:
        """The number of a column."""
        return next(n for n, column in enumerate(self.columns) if (column.level, column.name) == (level, name))


@cache
def message_layout(message: Message) -> MessageLayout:
    """The layout of a message."""
    in_order = [LevelColumn("", PARENT, -1), *_message_columns(message.fields, "", "")]
    levels = tuple(dict.fromkeys(column.level for column in in_order))
    columns = tuple(column for level in levels for column in in_order if column.level == level)
    first = [next(n for n, column in enumerate(columns) if column.level == level) for level in levels]
    of_level = [[(n, column) for n, column in enumerate(columns) if column.level == level] for level in levels]
    return MessageLayout(
        levels=levels,
        columns=columns,
        first_column=np.array([*first, len(columns)], np.int64),
        level_of=np.array([levels.index(column.level) for column in columns], np.int64),
        defaults=np.array([column.default for column in columns], np.int64),
        numbers=tuple({column.name: n for n, column in level} for level in of_level),
        defaults_by_name=tuple({c.name: c.default for _, c in level if c.name != PARENT} for level in of_level),
    )


def _message_columns(fields: Sequence[Field], level: str, prefix: str) -> Iterator[LevelColumn]:
    for field in fields:
        name = prefix + field.name
        yield from (LevelColumn(level, column, default) for column, default in field_columns(field, name).items())
        if is_array(field):
            child = element_path(level, name)
            yield LevelColumn(child, PARENT, -1)
            yield from _message_columns(element_fields(field), child, "")
        elif field.fields:
            yield from _message_columns(field.fields, level, name + ".")


def field_columns(field: Field, name: str) -> dict[str, int]:
    """The columns of a field itself, without those of fields in it, and their defaults. name: its path in the level.

    A struct that cannot be null has no columns itself.
    """
    is_null = field.default == "null"
    if is_array(field):
        return {f"{name}.count": -1 if is_null else 0}
    if field.fields:
        return {f"{name}.is_null": int(is_null)} if is_nullable_struct(field) else {}
    if is_span(field):
        return {f"{name}.start": 0, f"{name}.length": _default_length(field)}
    return {name: default_value(field)}


def _default_length(field: Field) -> int:
    """-1 for null. Also -1 for a uuid, because its default of sixteen zero bytes is not in the arena."""
    return -1 if field.default == "null" or field.type in ("uuid", "records") else 0


def default_value(field: Field) -> int:
    """The value of a number or bool if a frame does not set it."""
    if field.type == "bool":
        return int(field.default == "true")
    return int(field.default or "0", 0)


def element_fields(field: Field) -> tuple[Field, ...]:
    """The fields of an array's elements; primitive elements have the single field VALUE."""
    return field.fields or (Field(VALUE, field.type.removeprefix("[]"), field.versions),)


def element_path(level: str, name: str) -> str:
    """The path of the level of an array's elements; level, name: those of the array."""
    return f"{level}.{name}" if level else name


def is_array(field: Field) -> bool:
    """Whether the field is an array."""
    return field.type.startswith("[]")


def is_span(field: Field) -> bool:
    """Whether the field is a span of the arena and not a number."""
    return field.type in _SPANS


def is_nullable_struct(field: Field) -> bool:
    """Whether the field is a struct that can be null as a whole."""
    return bool(field.fields) and not is_array(field) and field.nullable != "none"


def is_version_in(version: int, versions: str) -> bool:
    """Whether a version is in a range, in Kafka's spelling: "3+", "0-12", "7" or "none"."""
    if versions == "none":
        return False
    first, last = _version_bounds(versions)
    return first <= version and (last is None or version <= last)


def newest_version(versions: str) -> int:
    """The last version of a closed range."""
    last = _version_bounds(versions)[1]
    if last is None:
        raise ValueError(f"{versions} has no last version")
    return last


def _version_bounds(versions: str) -> tuple[int, int | None]:
    if versions.endswith("+"):
        return int(versions[:-1]), None
    first, _, last = versions.partition("-")
    return int(first), int(last or first)
