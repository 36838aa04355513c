"""Rows are put together by their key, wherever their batches are cut."""

from __future__ import annotations

import pyarrow as pa
import pytest

from udfs.replay.shared.rows_by_key import FETCH_KEY, by_key, whole_fetches

ROWS = [(1, 0), (1, 0), (1, 0), (1, 1), (2, 1), (2, 1), (3, 0), (1, 0)]
"""(connection, number of the fetch) of each row."""


def batches(size: int) -> list[pa.RecordBatch]:
    columns = [[row[place] for row in ROWS] for place in range(2)]
    whole = pa.RecordBatch.from_pydict({**dict(zip(FETCH_KEY, columns, strict=True)), "row": list(range(len(ROWS)))})
    return [whole.slice(0, 0), *(whole.slice(at, size) for at in range(0, len(ROWS), size))]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10_000])
def test_rows_that_follow_each_other_with_the_same_key_are_together(size: int) -> None:
    together = [
        (key, [row for part in parts for row in part["row"].to_pylist()])
        for key, parts in by_key(batches(size), FETCH_KEY)
    ]
    assert together == [((1, 0), [0, 1, 2]), ((1, 1), [3]), ((2, 1), [4, 5]), ((3, 0), [6]), ((1, 0), [7])]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10_000])
def test_no_fetch_is_in_two_batches(size: int) -> None:
    cut = [batch["row"].to_pylist() for batch in whole_fetches(batches(size))]
    assert [row for rows in cut for row in rows] == list(range(len(ROWS)))
    assert {rows[0] for rows in cut} <= {0, 3, 4, 6, 7}


def test_batches_of_whole_fetches_are_not_copied() -> None:
    (whole,) = (batch for batch in batches(10_000) if batch.num_rows)
    parts = [whole.slice(0, 4), whole.slice(4, 3), whole.slice(7)]
    assert all(cut is part for cut, part in zip(whole_fetches(parts), parts, strict=True))
