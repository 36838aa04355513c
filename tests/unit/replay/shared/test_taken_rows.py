"""Rows that are taken from several batches in another order keep their values."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from udfs.replay.shared.taken_rows import TEXT, taken_rows

KINDS: dict[str, pa.DataType] = {
    "small": pa.int8(),
    "large": pa.int64(),
    "flag": pa.bool_(),
    "text": TEXT,
    "raw": pa.binary(),
    "sizes": pa.list_(pa.int32()),
    "lacking": pa.int16(),
}
VALUES: dict[str, list[Any]] = {
    "small": [1, None, -3, 4, 5, 6, None, 8, 9],
    "large": [1 << 60, 2, 3, 4, 5, 6, 7, 8, -9],
    "flag": [True, None, False, True, None, None, False, False, True],
    "text": ["a", None, "b", "b", "", "c", "a", None, None],
    "raw": [b"", None, b"xyz", b"1", b"2", None, b"3", b"4", b"5"],
    "sizes": [[1], None, [], [2, 3], None, [4], [], [5], [6]],
    "lacking": [None] * 9,
}
REVERSED = list(range(9))[::-1]


def batch_of(first: int, end: int, without: tuple[str, ...] = ()) -> pa.RecordBatch:
    names = [name for name in KINDS if name not in ("lacking", *without)]
    columns = [pa.array(VALUES[name][first:end], pa.string() if name == "text" else KINDS[name]) for name in names]
    coded = [column.dictionary_encode() if pa.types.is_string(column.type) else column for column in columns]
    return pa.RecordBatch.from_arrays(coded, names=names)


def values(rows: pa.RecordBatch) -> dict[str, list[Any]]:
    assert dict(zip(rows.schema.names, rows.schema.types, strict=True)) == KINDS
    rows.validate(full=True)
    return rows.to_pydict()


@pytest.mark.parametrize("order", [list(range(9)), REVERSED, [3, 0, 8, 1, 7, 2, 6, 4, 5]], ids=str)
@pytest.mark.parametrize("edges", [(0, 9), (0, 4, 9), (0, 1, 1, 2, 9)], ids=str)
def test_rows_come_in_the_order_that_is_asked_for(order: list[int], edges: tuple[int, ...]) -> None:
    batches = [batch_of(first, end) for first, end in pairwise(edges)]
    taken = values(taken_rows(batches, np.array(order), KINDS))
    assert taken == {name: [VALUES[name][row] for row in order] for name in KINDS}


def test_slices_of_batches_are_rows_like_others() -> None:
    batches = [batch_of(0, 9).slice(1, 4), batch_of(0, 9).slice(6, 3)]
    taken = values(taken_rows(batches, np.arange(7)[::-1].copy(), KINDS))
    assert taken == {name: (VALUES[name][1:5] + VALUES[name][6:9])[::-1] for name in KINDS}


@pytest.mark.parametrize("name", [name for name in KINDS if name != "lacking"])
def test_a_column_is_null_in_rows_that_lack_it(name: str) -> None:
    batches = [batch_of(0, 4, without=(name,)), batch_of(4, 9)]
    taken = values(taken_rows(batches, np.array(REVERSED), KINDS))
    assert taken[name] == ([None] * 4 + VALUES[name][4:])[::-1]
