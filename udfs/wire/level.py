"""The rows of a batch that are elements of one array, or the frames themselves."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from udfs.wire.arrays import Ints
from udfs.wire.layout import PARENT


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """The rows of one array path, in wire order; every column is int64[rows].

    Numbers are columns of their name; a string, bytes, records or uuid is the pair NAME.start, NAME.length of offsets
    into the arena; an array is NAME.count here and a level of its own. Fields of a struct are dotted:
    `replica_state.replica_id`; one that can be null as a whole has NAME.is_null as well. `defaults` are the values of
    the columns that no row sets.
    """

    path: str
    columns: dict[str, Ints]
    defaults: dict[str, int] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.parent.size

    @property
    def names(self) -> list[str]:
        """The names of all columns."""
        return [*self.columns, *(name for name in self.defaults if name not in self.columns)]

    @property
    def parent(self) -> Ints:
        """The row of the level above that each row belongs to; in the top level, the frame."""
        return self.columns[PARENT]

    def column(self, name: str) -> Ints:
        """A number, 0 or 1 for a bool, or NAME.count of an array (-1: null)."""
        if name not in self.columns:
            self.columns[name] = np.full(self.rows, self.defaults[name])
        return self.columns[name]

    def span(self, name: str) -> tuple[Ints, Ints]:
        """(starts, lengths) in the arena; length -1: null, or a uuid that the frame does not have."""
        return self.column(name + ".start"), self.column(name + ".length")
