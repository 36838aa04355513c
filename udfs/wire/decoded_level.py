"""The rows of a batch that are elements of one array, or the frames themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints
from udfs.wire.layout import PARENT

NOWHERE = -1  # the cell of a column that no frame has set yet


class Cells(NamedTuple):
    """Where columns are kept until they are asked for: `out` int64[cells], and by column the first cell or NOWHERE.

    `columns`: the number of each of a level's columns.
    """

    out: Ints
    first_cells: Sequence[int]
    columns: Mapping[str, int]


NO_CELLS = Cells(np.empty(0, np.int64), (), {})


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """The rows of one array path, in wire order; every column is int64[rows].

    Numbers are columns of their name; a string, bytes, records or uuid is the pair NAME.start, NAME.length of offsets
    into the arena; an array is NAME.count here and a level of its own. Fields of a struct are dotted:
    `replica_state.replica_id`; one that can be null as a whole has NAME.is_null as well.

    `columns` are those at hand, `cells` where others are, and `defaults` the values of those that no row sets. The top
    level, whose rows are the frames, has no PARENT.
    """

    path: str
    rows: int
    columns: dict[str, Ints]
    defaults: Mapping[str, int] = field(default_factory=dict)
    cells: Cells = NO_CELLS

    @property
    def names(self) -> list[str]:
        """The names of all columns."""
        return [*dict.fromkeys((PARENT, *self.columns, *self.defaults))]

    @property
    def parent(self) -> Ints:
        """The row of the level above that each row belongs to; in the top level, the frame."""
        return self.column(PARENT)

    def column(self, name: str) -> Ints:
        """A number, 0 or 1 for a bool, or NAME.count of an array (-1: null)."""
        if name not in self.columns:
            self.columns[name] = self._found(name)
        return self.columns[name]

    def span(self, name: str) -> tuple[Ints, Ints]:
        """(starts, lengths) in the arena; length -1: null, or a uuid that the frame does not have."""
        return self.column(name + ".start"), self.column(name + ".length")

    def _found(self, name: str) -> Ints:
        out, first_cells, columns = self.cells
        first = first_cells[columns[name]] if name in columns else NOWHERE
        if first != NOWHERE:
            return out[first : first + self.rows]
        return np.arange(self.rows) if name == PARENT else np.full(self.rows, self.defaults[name])
