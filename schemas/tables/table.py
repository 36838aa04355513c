"""What a declaration of a table consists of.

A table is declared once. Its Spark type, Arrow type, DDL, comments and section in docs/tables.md are derived from that.
A column is a string, its name, so that code says `EXCHANGES.api_key` instead of repeating a literal.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Type = Literal[
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "double",
    "string",
    "binary",
    "timestamp",
    "array<int>",
    "array<bigint>",
    "array<string>",
    "map<string,bigint>",
    "map<string,double>",
    "map<string,string>",
]


Naming = Literal["", "topic", "client", "host", "endpoint", "principal", "group", "member"]
"""What the values of a column name; an endpoint is a host and its port."""


class Column(str):
    """A column's name, with its type (as in Spark SQL), its meaning, its unit, and whether it can be null.

    names: what its values name, if they are names that users gave and that may have to be replaced.
    """

    type: Type
    doc: str
    unit: str
    nullable: bool
    names: Naming

    def __new__(
        cls, name: str, kind: Type, doc: str, unit: str = "", nullable: bool = False, names: Naming = ""
    ) -> Column:
        self = super().__new__(cls, name)
        self.type, self.doc, self.unit, self.nullable, self.names = kind, doc, unit, nullable, names
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return Column, (str(self), self.type, self.doc, self.unit, self.nullable, self.names)


@dataclass(frozen=True)
class Spec:
    """A column that has no name yet. It gets the name of its keyword in `table`."""

    type: Type
    doc: str
    unit: str = ""
    nullable: bool = False
    names: Naming = ""


@dataclass(frozen=True)
class Table:
    """A table of a layer: what a row is, its columns in order, and the key that makes a row unique.

    replaced_by: a run that writes again replaces the rows with its value in this column. Columns are also attributes.
    """

    name: str
    layer: Literal["silver", "gold"]
    doc: str
    key: tuple[str, ...]
    replaced_by: str
    columns: tuple[Column, ...]
    _by_name: dict[str, Column] = field(repr=False, compare=False)

    def __getattr__(self, name: str) -> Column:
        try:
            return self._by_name[name]
        except KeyError:
            known = ", ".join(self._by_name)
            raise AttributeError(f"table {self.name} has no column {name!r}; it has {known}") from None

    def __reduce__(self) -> tuple[object, ...]:
        return (Table, (self.name, self.layer, self.doc, self.key, self.replaced_by, self.columns, self._by_name))


def table(
    name: str, layer: Literal["silver", "gold"], doc: str, key: tuple[str, ...], replaced_by: str, **columns: Spec
) -> Table:
    """Declare a table; columns: in the table's order."""
    named = {n: Column(n, spec.type, spec.doc, spec.unit, spec.nullable, spec.names) for n, spec in columns.items()}
    unknown = [part for part in (*key, replaced_by) if part not in named]
    if unknown:
        raise ValueError(f"table {name}: key names {', '.join(unknown)}, which is no column")
    return Table(name, layer, doc, key, replaced_by, columns=tuple(named.values()), _by_name=named)
