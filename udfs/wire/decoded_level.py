"""A level of decoded messages: rows for the elements of one array in the message, or for the frames themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints
from udfs.wire.layout import PARENT

NOWHERE = -1  # the first cell of a column that no frame has set


class ColumnCells(NamedTuple):
    """Where the columns of a level are in the output of the decoder.

    out: int64[cells]. first_cells: the first cell of a column or NOWHERE, by the column's number. columns: the numbers
    of the level's columns by name.
    """

    out: Ints
    first_cells: Sequence[int]
    columns: Mapping[str, int]


NO_CELLS = ColumnCells(np.empty(0, np.int64), (), {})


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """The rows at one path of arrays in a message, in wire order; every column is int64[rows].

    A number is a column with the field's name. A string, bytes, records or uuid is a span of the arena: the two columns
    NAME.start and NAME.length. An array has NAME.count here, and its own level. Fields of a struct have dotted names,
    as in `replica_state.replica_id`; a struct that can be null also has NAME.is_null.

    columns: those that have already been used. cells: where the others are. defaults: the values of columns that no row
    sets. The rows of the top level are the frames, so it has no PARENT.
    """

    path: str
    rows: int
    columns: dict[str, Ints]
    defaults: Mapping[str, int] = field(default_factory=dict)
    cells: ColumnCells = NO_CELLS

    @property
    def names(self) -> list[str]:
        """The names of all columns."""
        return [*dict.fromkeys((PARENT, *self.columns, *self.defaults))]

    @property
    def parent(self) -> Ints:
        """The row's parent in the level above, int64[rows]; at the top level, the frame."""
        return self.column(PARENT)

    def column(self, name: str) -> Ints:
        """A column of numbers, int64[rows]; a bool is 0 or 1, and the count of a null array is -1."""
        if name not in self.columns:
            self.columns[name] = self._read(name)
        return self.columns[name]

    def span(self, name: str) -> tuple[Ints, Ints]:
        """(starts, lengths) of spans in the arena, int64[rows] each.

        The length is -1 for null, and for a uuid that the frame lacks.
        """
        return self.column(name + ".start"), self.column(name + ".length")

    def _read(self, name: str) -> Ints:
        out, first_cells, columns = self.cells
        first = first_cells[columns[name]] if name in columns else NOWHERE
        if first != NOWHERE:
            return out[first : first + self.rows]
        return np.arange(self.rows) if name == PARENT else np.full(self.rows, self.defaults[name])
