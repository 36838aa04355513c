"""The unit of each row of a step, and the columns that order the rows of a unit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from udfs.columns.arrays import Ints
from udfs.columns.arrow_columns import arrow_array
from udfs.replay.shared.columns import int_column, rows_alike
from udfs.replay.shared.dealt_rows import Step
from udfs.replay.shared.rows_by_key import key_boundaries

FIRST_OF_ALL = np.iinfo(np.int64).min
"""Stands for null when rows are ordered: nulls come first."""


def order_columns(batches: Sequence[pa.RecordBatch], step: Step) -> list[Ints]:
    """The numbers that order the rows of a unit, over all batches: int64[rows] for each column. A column that a batch
    lacks is null in its rows. A column that all batches lack is left out, except the first one.
    """
    there = {name for batch in batches for name in batch.schema.names}
    columns = [column for place, column in enumerate(step.order) if not place or column in there]
    return [np.concatenate([order_column(batch, column) for batch in batches]) for column in columns]


def order_column(rows: pa.RecordBatch, column: str) -> Ints:
    """A column by which rows are ordered: int64[rows], null where the rows lack it."""
    is_there = column in rows.schema.names
    return int_column(rows, column, FIRST_OF_ALL) if is_there else np.full(rows.num_rows, FIRST_OF_ALL)


def unit_numbers(batches: Sequence[pa.RecordBatch], unit: Sequence[str]) -> tuple[Ints, list[str]]:
    """(the number of each row's unit, int64[rows] of all batches; the name of each unit by its number).

    batches: at least one, and none is empty.
    """
    begins = [key_boundaries(batch, unit) for batch in batches]
    chosen = [
        [batch[column].take(arrow_array(of[:-1])) for column in unit] for batch, of in zip(batches, begins, strict=True)
    ]
    stretches = [pa.concat_arrays(parts) for parts in zip(*chosen, strict=True)]
    number, first = rows_alike(sum(len(of) - 1 for of in begins), *stretches)
    lengths = np.concatenate([np.diff(of) for of in begins])
    return np.repeat(number, lengths), unit_names(stretches, first)


def unit_names(columns: Sequence[pa.Array[Any]], places: Ints) -> list[str]:
    """The names of the units of the rows at these indices, int64[n]. Different units have different names.

    columns: the columns that tell units apart. Without any there is one unit, whose name is empty.
    """
    chosen = [column.take(arrow_array(places)).to_pylist() for column in columns]
    return ["\0".join(map(_escaped, values)) for values in zip(*chosen, strict=True)] if chosen else [""] * len(places)


def _escaped(value: object) -> str:
    text = "" if value is None else str(value)
    return text.replace("\1", "\1\1").replace("\0", "\1\2") if "\0" in text or "\1" in text else text
