"""Rows that belong together are found by key and time, and numbered, with the same results as plain loops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from udfs.columns.arrays import Ints
from udfs.columns.groups import greatest_before, group_numbers
from udfs.columns.records import GrowingRecords, int_fields, new_records
from udfs.columns.searches import earliest_from, place_of_first, place_of_last_before
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER

SMALL = st.integers(0, 5)
ROWS = st.lists(st.tuples(SMALL, SMALL, SMALL), max_size=20).map(sorted)
WANTED = st.lists(st.tuples(SMALL, SMALL), max_size=8)


def columns(rows: Sequence[tuple[int, ...]], count: int) -> list[Ints]:
    return [np.array([row[place] for row in rows], np.int64) for place in range(count)]


@given(rows=ROWS, wanted=WANTED)
def test_first_and_last_rows_are_found_by_key_and_time(
    rows: list[tuple[int, int, int]], wanted: list[tuple[int, int]]
) -> None:
    keys, times, events = columns(rows, 3)
    key, time = columns(wanted, 2)
    after = [[i for i, (k, t, _) in enumerate(rows) if k == of and t >= since] for of, since in wanted]
    before = [[i for i, (k, t, _) in enumerate(rows) if k == of and t < since] for of, since in wanted]
    assert place_of_first(keys, times, key, time).tolist() == [min(found, default=NONE) for found in after]
    assert place_of_last_before(keys, times, key, time).tolist() == [max(found, default=NONE) for found in before]
    assert earliest_from(keys, times, events, key, time).tolist() == [
        min((rows[i][2] for i in found), default=NEVER) for found in after
    ]


@given(st.lists(st.tuples(SMALL, SMALL), max_size=20))
def test_groups_are_numbered_in_the_order_of_their_keys(rows: list[tuple[int, int]]) -> None:
    numbers, firsts = group_numbers(*columns(rows, 2))
    distinct = sorted(set(rows))
    assert numbers.tolist() == [distinct.index(row) for row in rows]
    assert firsts.tolist() == [rows.index(key) for key in distinct]


@given(rows=st.lists(st.tuples(SMALL, SMALL), max_size=20), by=st.integers(1, 4))
def test_the_greatest_before_is_the_greatest_in_the_group_up_to_a_number_of_places_earlier(
    rows: list[tuple[int, int]], by: int
) -> None:
    rows = sorted(rows, key=lambda row: row[0])
    group, values = columns(rows, 2)
    expected = [
        max((rows[j][1] for j in range(i - by + 1) if rows[i - by][0] == rows[j][0] == rows[i][0]), default=0)
        if i >= by
        else 0
        for i in range(len(rows))
    ]
    assert greatest_before(group, values, by).tolist() == expected


def test_records_that_grow_stay_as_they_were_written() -> None:
    growing, kind = GrowingRecords(int_fields("number", "twice")), int_fields("number", "twice")
    for first in range(0, 100, 7):
        numbers = np.arange(first, min(first + 7, 100))
        growing.add(new_records(kind, len(numbers), number=numbers))
        growing.records["twice"] = 2 * growing.records["number"]
    assert len(growing) == 100
    assert growing.records["twice"].tolist() == list(range(0, 200, 2))
