"""Sets of consumers, brokers or producers that are replayed together, so that many small units cost little each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.steps_memory import MEMORY_EVENTS
from udfs.columns.arrays import Array, Bools, Ints
from udfs.columns.picking import position_among
from udfs.replay.shared.rows_by_key import key_boundaries

UNIT = (MEMORY_EVENTS.side, MEMORY_EVENTS.unit, MEMORY_EVENTS.unit_address)
ROWS_TOGETHER = 1 << 14
"""Once a set of units has this many rows, no further unit is added to it."""
OUTCOMES_TOGETHER = 1 << 12
"""The most outcomes, units times lanes, of a set. Each outcome has up to 256 slots and 8,192 steps of 40 bytes."""


@dataclass(eq=False)
class Units:
    """Units of one side, numbered from 0 in the order of their rows.

    names: the client.id, empty if there is none, or the broker. addresses: of clients. rows: how many rows they have.
    """

    side: str
    run_id: str
    names: list[str] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)
    rows: int = 0

    def __len__(self) -> int:
        return len(self.names)

    def ends_with(self, unit: tuple[str, str, str]) -> bool:
        """Whether `unit` is the last of them."""
        return bool(self.names) and unit == (self.side, self.names[-1], self.addresses[-1])


Parts = Iterator[tuple[pa.RecordBatch, Ints]]
"""(rows of MEMORY_EVENTS; the number of each row's unit, int64[rows])."""


def units_together(batches: Iterable[pa.RecordBatch], run_id: str, lanes: int) -> Iterator[tuple[Units, Parts]]:
    """(some units of one side, all of their rows). batches: sorted by UNIT, split anywhere. lanes: their number."""
    parts = _cut_into_units(batches, run_id, max(OUTCOMES_TOGETHER // lanes, 1))
    for units, group in groupby(parts, key=itemgetter(0)):
        yield units, ((rows, unit) for _, rows, unit in group)


def _cut_into_units(
    batches: Iterable[pa.RecordBatch], run_id: str, most_units: int
) -> Iterator[tuple[Units, pa.RecordBatch, Ints]]:
    """(the units of a set, a part of their rows, the number of each row's unit)."""
    units = Units("", run_id)
    for batch in batches:
        if not batch.num_rows:
            continue
        edges, numbers, begin = key_boundaries(batch, UNIT).tolist(), np.zeros(batch.num_rows, np.int64), 0
        columns = [batch[name] for name in UNIT]
        for start, end in pairwise(edges):
            side, name, address = (str(column[start]) for column in columns)
            if not units.ends_with((side, name, address)):
                if side != units.side or units.rows >= ROWS_TOGETHER or len(units) >= most_units:
                    if start > begin:
                        yield units, batch.slice(begin, start - begin), numbers[begin:start]
                    units, begin = Units(side, run_id), start
                units.names.append(name)
                units.addresses.append(address)
            units.rows += end - start
            numbers[start:end] = len(units) - 1
        yield units, batch.slice(begin), numbers[begin:]


@dataclass
class Counted:
    """How many rows of each unit have been counted. counts: int64[units]."""

    counts: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def places(self, unit: Ints, is_counted: Bools) -> Ints:
        """How many rows of its unit are counted up to each row, minus one: int64[rows]. For a counted row, this is its
        index among the unit's counted rows.

        unit: int64[rows], rising, and not below the units of earlier calls. is_counted: bool[rows].
        """
        self.counts = resize_to_units(self.counts, int(unit[-1]) + 1, 0)
        counted, begins = np.cumsum(is_counted), np.arange(len(unit)) - position_among(unit)
        before: Ints = counted[begins] - is_counted[begins]
        places = counted - before + self.counts[unit] - 1
        self.counts += np.bincount(unit[is_counted], minlength=len(self.counts))
        return places

    def beyond(self, most: int, units: int) -> Ints:
        """How many rows of each of `units` units were counted beyond the first `most`: int64[units]."""
        return np.maximum(resize_to_units(self.counts, units, 0) - most, 0)


def resize_to_units(values: Array, units: int, fill: Any) -> Array:
    """The values of `units` units, with `fill` for units that have none yet: [units, ...]."""
    missing = np.full((units - len(values), *values.shape[1:]), fill, values.dtype)
    return np.concatenate([values, missing])  # type: ignore[return-value]  # of the same kind, which stubs do not say
