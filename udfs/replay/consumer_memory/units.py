"""Consumers, brokers and producers whose rows are taken together, so that what is done once a batch is done for many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schemas.tables.steps import MEMORY_EVENTS
from udfs.columns.arrays import Bools, Ints
from udfs.columns.picking import position_among
from udfs.replay.shared.rows_by_key import boundaries

_Scalar = TypeVar("_Scalar", bound=np.generic)

UNIT = (MEMORY_EVENTS.side, MEMORY_EVENTS.unit, MEMORY_EVENTS.unit_address)
ROWS_TOGETHER = 1 << 14
"""From so many rows on, the next unit's are not taken with them."""
OUTCOMES_TOGETHER = 1 << 12
"""Units that are taken together, times lanes; each has up to 256 slots and 8,192 steps, of some 40 bytes."""


def together(batches: Iterable[pa.RecordBatch], lanes: int) -> Iterator[tuple[str, Iterator[pa.RecordBatch]]]:
    """The rows of whole units of one side, in parts: (the side, the parts). batches: sorted by UNIT, cut anywhere."""
    for _, parts in groupby(_numbered_parts(batches, max(OUTCOMES_TOGETHER // lanes, 1)), key=itemgetter(0)):
        _, first = next(parts)
        yield str(first[MEMORY_EVENTS.side][0]), _with_first(first, parts)


def _with_first(first: pa.RecordBatch, rest: Iterator[tuple[int, pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from (part for _, part in rest)


def _numbered_parts(batches: Iterable[pa.RecordBatch], most_units: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows, each part with a number that parts have in common whose units are taken together."""
    number, rows, units, last = 0, 0, 0, None
    for batch in batches:
        begin = 0
        for start in boundaries(batch, UNIT)[:-1].tolist() if batch.num_rows else ():
            unit = unit_at(batch, start)
            if unit == last:
                continue
            is_enough = rows + start - begin >= ROWS_TOGETHER or units >= most_units
            if last is not None and (is_enough or unit[0] != last[0]):
                if start > begin:
                    yield number, batch.slice(begin, start - begin)
                number, rows, units, begin = number + 1, 0, 0, start
            last, units = unit, units + 1
        if batch.num_rows > begin:
            yield number, batch.slice(begin)
            rows += batch.num_rows - begin


def unit_at(batch: pa.RecordBatch, row: int) -> tuple[str, str, str]:
    """(side, name, address) of a row's unit."""
    side, name, address = (str(batch[column][row]) for column in UNIT)
    return side, name, address


@dataclass
class Units:
    """Units of one side, numbered from 0 in the order of their rows.

    names: the client.id, empty for none, or the broker. addresses: of clients.
    """

    side: str
    run_id: str
    names: list[str] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.names)

    def numbers(self, batch: pa.RecordBatch) -> Ints:
        """The unit of each row, int64[rows]; the rows follow those of the batches before."""
        edges = boundaries(batch, UNIT)
        numbers = []
        for start in edges[:-1].tolist():
            _, name, address = unit_at(batch, start)
            if not self.names or (name, address) != (self.names[-1], self.addresses[-1]):
                self.names.append(name)
                self.addresses.append(address)
            numbers.append(len(self.names) - 1)
        return np.repeat(np.array(numbers, np.int64), np.diff(edges))


@dataclass
class Counted:
    """How many of each unit have come: int64[units]."""

    counts: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def places(self, unit: Ints, is_counted: Bools) -> Ints:
        """The place, in its unit, of the last row up to each that counts, -1 before the first: int64[rows].

        unit: int64[rows], rising, not below those of the calls before.
        """
        self.counts = resized(self.counts, int(unit[-1]) + 1, 0)
        counted = np.cumsum(is_counted)
        before = (counted - is_counted)[np.arange(len(unit)) - position_among(unit)]
        places = counted - before + self.counts[unit] - 1
        self.counts += np.bincount(unit[is_counted], minlength=len(self.counts))
        return places

    def beyond(self, most: int, units: int) -> Ints:
        """How many of each of so many units there are beyond the first `most`: int64[units]."""
        return np.maximum(resized(self.counts, units, 0) - most, 0)


def resized(values: npt.NDArray[_Scalar], units: int, fill: Any) -> npt.NDArray[_Scalar]:
    """The values of so many units, `fill` for those that have none yet: [units, ...]."""
    missing = np.full((units - len(values), *values.shape[1:]), fill, values.dtype)
    return np.concatenate([values, missing])
