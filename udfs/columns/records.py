"""Arrays of records: how they are declared, made of columns, and added to."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from udfs.columns.arrays import Records

Kind = np.dtype[np.void]
"""What fields a record has."""


def int_fields(*names: str) -> Kind:
    """A record whose fields have these names and are int64."""
    return np.dtype([(name, np.int64) for name in names])


def records_of(kind: Kind, rows: int, **columns: npt.ArrayLike) -> Records:
    """So many records; fields that are not given are 0. Raises ValueError for a field that `kind` does not have.

    >>> records_of(int_fields("size", "time"), 2, size=[5, 6]).tolist()
    [(5, 0), (6, 0)]
    """
    found = np.zeros(rows, kind)
    for name, values in columns.items():
        found[name] = values
    return found


class GrowingRecords:
    """Records to which others are added at the end, in memory that doubles where it is used up."""

    def __init__(self, kind: Kind) -> None:
        self._room = np.zeros(0, kind)
        self._count = 0

    @property
    def records(self) -> Records:
        """Those there are, to be read and written until others are added."""
        return self._room[: self._count]

    def add(self, records: Records) -> None:
        """Add records of the same kind."""
        needed = self._count + len(records)
        if needed > len(self._room):
            room = np.zeros(max(needed, 2 * len(self._room)), self._room.dtype)
            room[: self._count] = self.records
            self._room = room
        self._room[self._count : needed] = records
        self._count = needed
