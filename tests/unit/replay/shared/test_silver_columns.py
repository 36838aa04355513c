"""Columns of silver rows become columns of events, also where values are null, hostile or texts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.tables.silver import RECORD_BATCHES
from tests.gate_rows import TIME, Row
from tests.silver_rows import TIME_US, row_of, silver_rows
from udfs.replay.shared.silver_columns import (
    DELIVERY_TIMEOUT_MS,
    ByConnection,
    append_times,
    base_sequences,
    first_text,
    is_text,
    list_or_empty,
    null_unless,
    partition_key,
    row_hash,
    rows_where,
    sum_or_null,
    text_bytes,
    text_hash,
    text_or_empty,
)
from udfs.replay.shared.silver_work import kept_rows

B = RECORD_BATCHES
TIME_MS = TIME_US // 1000
INT64 = np.iinfo(np.int64)
NUMBERS = st.integers(-9, 9) | st.sampled_from([INT64.min, INT64.min + 1, INT64.max - 1, INT64.max])


def texts(*values: str | None) -> pa.DictionaryArray[Any, Any]:
    return pa.array(values, pa.string()).dictionary_encode()


def record_batches(columns: list[str], *rows: Row) -> pa.RecordBatch:
    (batch,) = silver_rows(B, columns, [row_of(B, **row) for row in rows])
    return batch


@pytest.mark.parametrize(
    ("late_us", "is_append"),
    [(0, True), (-1000, False), (1000 * DELIVERY_TIMEOUT_MS, True), (1000 * (DELIVERY_TIMEOUT_MS + 1), False)],
)
def test_a_records_timestamp_is_its_append_if_it_is_not_after_the_request_nor_too_long_before(
    late_us: int, is_append: bool
) -> None:
    rows = record_batches(
        [B.request_time, B.base_timestamp],
        {"request_time": TIME + timedelta(microseconds=late_us), "base_timestamp": TIME_MS},
    )
    assert append_times(rows).to_pylist() == [TIME_US if is_append else None]


def test_timestamps_that_no_clock_shows_are_no_appends() -> None:
    """A client may write any number. This one, in microseconds, would be the time of the request modulo 2^64."""
    hostile = [(TIME_US + (1 << 64)) // 1000, None, -1, INT64.max, INT64.min]
    rows = [{"request_time": TIME, "base_timestamp": number} for number in hostile]
    assert append_times(record_batches([B.request_time, B.base_timestamp], *rows)).to_pylist() == [None] * len(rows)


def test_a_sequence_counts_only_with_a_producer_id() -> None:
    rows = [{"producer_id": of, "base_sequence": 5} for of in (0, 7, -1, None)]
    assert base_sequences(record_batches([B.producer_id, B.base_sequence], *rows)).to_pylist() == [5, 5, -1, -1]


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1))
def test_a_sum_that_int64_cannot_hold_is_null(pairs: list[tuple[int, int]]) -> None:
    one, other = (pa.array([pair[place] for pair in pairs], pa.int64()) for place in (0, 1))
    exact = [a + b if INT64.min <= a + b <= INT64.max else None for a, b in pairs]
    assert sum_or_null(one, other).to_pylist() == exact


def test_numbers_of_rows_are_the_same_in_every_task_and_release() -> None:
    """Tasks deal rows by them, and seeds come from them."""
    columns = pa.array([0, 1, None], pa.int32()), pa.array([0, -7, 2], pa.int64())
    assert row_hash(*columns).to_pylist() == [0, 4513763376113747782, -1413836885945048840]
    assert text_hash(texts("orders", None)).to_pylist() == [-3049803464231846067, None]
    assert partition_key(texts("orders"), pa.array([3])).to_pylist() == [6903129411130179788]


def test_texts_are_chosen_counted_and_filled_where_they_are_null() -> None:
    names = texts("a", None, "ü", "a")
    assert is_text(names, "a", "b").to_pylist() == [True, None, False, True]
    assert text_bytes(names).to_pylist() == [1, None, 2, 1]
    assert text_or_empty(names).to_pylist() == ["a", "", "ü", "a"]
    filled = first_text(names, texts("x", "ü", "y", None))
    assert (filled.to_pylist(), len(filled.dictionary)) == (["a", "ü", "ü", "a"], 4)
    assert first_text(texts(None, None), texts(None, "x")).to_pylist() == [None, "x"]


def test_rows_and_values_are_kept_where_a_condition_holds() -> None:
    condition, rows = pa.array([True, False, None]), pa.record_batch({"number": [1, 2, 3]})
    assert null_unless(pa.array([True, False, True]), rows["number"]).to_pylist() == [1, None, 3]
    assert rows_where(rows, condition)["number"].to_pylist() == [1]
    assert rows_where(rows, pa.array([True] * 3)) is rows
    assert list_or_empty(pa.array([[1], None, []])).to_pylist() == [[1], [], []]


def test_a_connection_has_its_number_and_one_that_is_not_listed_has_none() -> None:
    listed = ByConnection(np.array([3, 5, 9]), np.array([30, 50, 90]))
    connections = pa.array([9, 2, 3, 4, 5, 10])
    assert listed.of(connections, None).to_pylist() == [90, None, 30, None, 50, None]
    assert listed.of(connections, -1).to_pylist() == [90, -1, 30, -1, 50, -1]
    nobody = ByConnection(np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert nobody.of(connections, -1).to_pylist() == [-1] * 6
    assert nobody.of(connections, None).to_pylist() == [None] * 6


@pytest.mark.parametrize(("connections", "kept"), [(None, [1, 2, 1]), ([1, 7], [1, 1])])
def test_a_task_takes_the_rows_of_the_connections_that_are_asked_for(
    connections: list[int] | None, kept: list[int]
) -> None:
    rows = pa.RecordBatch.from_pydict({"connection_id": [1, 2, 1], "topic": ["a", "b", None]})
    without = rows.select(["topic"])
    asked = None if connections is None else pa.array(connections)
    found = list(kept_rows(iter, asked, [rows, without]))
    assert found[0]["connection_id"].to_pylist() == kept
    assert found[1]["topic"].to_pylist() == ["a", "b", None], "rows of no connection are needed by all"
