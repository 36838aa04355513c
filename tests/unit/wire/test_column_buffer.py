"""Room for decoded rows: where columns are, and how much more room a level gets."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.wire.message import Field, Message
from udfs.columns.arrays import Bools, Ints
from udfs.wire.column_buffer import ColumnBuffer, buffer_for, lay_columns, new_column_buffer, room_needed
from udfs.wire.decoding_plan import DecodingPlan, plan_of_versions
from udfs.wire.reader_code import CAPACITY, LEVEL_WIDTH

LINE = 8  # cells of 8 bytes in a cache line of 64 bytes


def new_plan() -> DecodingPlan:
    """The plan of a message with two arrays, of which one is in a tag, and with a struct that only a tag has."""
    number = Field("n", "int32", "0+")
    inner = (number, Field("id", "string", "0+"))
    return plan_of_versions(Message("Roomy", 0, "0-1", "0+", (
        Field("xs", "[]X", "0+", fields=inner),
        Field("last", "int64", "0"),
        Field("ys", "[]Y", "1+", tagged="1+", tag=0, fields=inner),
        Field("s", "S", "0+", tagged="0+", tag=1, fields=inner),
    )), (0, 1))  # fmt: skip


@given(st.lists(st.integers(0, 40), min_size=1, max_size=4), st.data())
def test_each_column_with_room_has_an_odd_number_of_cache_lines_behind_the_one_before(
    capacity: list[int], data: st.DataObject
) -> None:
    levels = np.zeros(len(capacity) * LEVEL_WIDTH, np.int64)
    levels[CAPACITY::LEVEL_WIDTH] = capacity
    columns = data.draw(st.lists(st.tuples(st.integers(0, len(capacity) - 1), st.booleans()), max_size=6))
    level_of = np.array([level for level, _ in columns], np.int64)
    has_room = np.array([is_there for _, is_there in columns], np.bool_)
    first_cells = np.zeros(len(columns), np.int64)
    cells = lay_columns(levels, level_of, has_room, first_cells)
    at, expected = 0, []
    for level, is_there in columns:
        expected.append(at if is_there else -1)
        lines = ceil(capacity[level] / LINE)
        at += LINE * (lines + 1 - lines % 2) if is_there else 0
    assert (first_cells.tolist(), cells) == (expected, at)


def filled(plan: DecodingPlan, capacity: list[int], used: list[int], has_room: Bools) -> ColumnBuffer:
    """A buffer in which each used cell has a number of its own."""
    buffer = new_column_buffer(plan, np.array(capacity), has_room)
    buffer.used[:] = used
    buffer.out[:] = np.arange(buffer.out.size)
    return buffer


def columns_of(buffer: ColumnBuffer) -> dict[int, list[int]]:
    """The rows of each column that has room, by its number."""
    cells = enumerate(buffer.used_cells())
    return {column: buffer.out[first:end].tolist() for column, (first, end) in cells if buffer.has_room[column]}


@pytest.mark.parametrize(
    ("capacity", "used", "share_done", "room"),
    [
        (5, 5, 0.5, 1024),  # the least that a level gets
        (5000, 5000, 0.9, 10_000),  # twice as much
        (5000, 5000, 0.1, 55_000),  # what the rest of the bytes needs at the same rate, and a tenth more
        (5000, 5000, 0.0, 550_000),  # a share below a hundredth counts as a hundredth
        (5000, 3000, 0.25, 13_200),
    ],
)
def test_a_level_that_lacks_room_gets_what_the_rest_of_the_batch_probably_needs(
    capacity: int, used: int, share_done: float, room: int
) -> None:
    plan = new_plan()
    level = plan.layout.level("xs")
    sizes, rows = [3] * len(plan.layout.levels), [2] * len(plan.layout.levels)
    sizes[level], rows[level] = capacity, used
    before = filled(plan, sizes, rows, plan.untagged)
    after = before.grown(level, share_done)
    assert after.capacity.tolist() == [room if number == level else 3 for number in range(len(sizes))]
    assert after.used.tolist() == rows
    assert columns_of(after) == columns_of(before)
    assert after.has_room.tolist() == before.has_room.tolist()


def test_a_level_that_only_a_tag_has_gets_all_its_columns_with_its_first_room() -> None:
    plan = new_plan()
    level = plan.layout.level("ys")
    assert plan.tagged_level[level]
    before = filled(plan, [3] * len(plan.layout.levels), [2] * len(plan.layout.levels), plan.untagged)
    after = before.grown(level, 0.5)
    added = np.flatnonzero(after.has_room & ~before.has_room).tolist()
    assert added == [number for number, column in enumerate(plan.layout.columns) if column.level == "ys"]
    kept = columns_of(before)
    assert {column: rows for column, rows in columns_of(after).items() if column in kept} == kept


def test_a_tagged_field_gets_room_in_its_level_for_all_columns_of_the_field() -> None:
    plan = new_plan()
    before = filled(plan, [3] * len(plan.layout.levels), [2] * len(plan.layout.levels), plan.untagged)
    after = before.with_field_of(plan.layout.column("", "s.id.start"))
    added = [plan.layout.columns[number] for number in np.flatnonzero(after.has_room & ~before.has_room)]
    assert {(column.level, column.name) for column in added} == {("", "s.n"), ("", "s.id.start"), ("", "s.id.length")}
    kept = columns_of(before)
    assert {column: rows for column, rows in columns_of(after).items() if column in kept} == kept
    assert after.capacity.tolist() == before.capacity.tolist()


def test_a_column_that_some_rows_leave_out_has_its_default_from_the_start() -> None:
    plan = new_plan()
    buffer = new_column_buffer(plan, np.array([4] * len(plan.layout.levels)), plan.settable)
    left_out = [column for column in plan.left_out if buffer.has_room[column]]
    assert left_out
    for column in left_out:
        first = buffer.first_cells[column]
        assert buffer.out[first : first + 4].tolist() == [plan.layout.defaults[column]] * 4


def room_of(buffer: ColumnBuffer) -> list[int]:
    return [int(rows) for rows in buffer.capacity]


@pytest.mark.parametrize(
    ("frames", "size", "times_as_much"),
    [(10, 500, 1.0), (20, 1000, 2.0), (20, 500, 1.0), (10, 1000, 1.0), (5, 500, 0.5)],
)
def test_a_batch_begins_with_the_room_that_the_batch_before_needed_in_proportion(
    frames: int, size: int, times_as_much: float
) -> None:
    plan = new_plan()
    xs, ys = plan.layout.level("xs"), plan.layout.level("ys")
    first = buffer_for(plan, 7, 70)
    assert room_of(first) == [7 if level == 0 else 0 if level == ys else 1024 for level in range(len(first.used))]
    assert first.used.tolist() == [7] + [0] * (len(first.used) - 1)
    used = np.zeros(len(first.used), np.int64)
    used[0], used[xs] = 10, 3003
    seen = filled(plan, [4000] * len(used), used.tolist(), plan.settable)
    seen.remember(500)
    following = buffer_for(plan, frames, size)
    expected = [frames] + [0] * (len(used) - 1)
    expected[xs] = max(ceil(1.1 * times_as_much * 3003), 1024)
    assert room_of(following) == expected
    assert following.used.tolist() == [frames] + [0] * (len(used) - 1)
    assert following.has_room.tolist() == plan.settable.tolist()


def test_a_batch_without_frames_says_nothing_of_the_room_that_the_next_one_needs() -> None:
    plan = new_plan()
    empty: Ints = np.zeros(len(plan.layout.levels), np.int64)
    filled(plan, [4] * len(empty), empty.tolist(), plan.settable).remember(0)
    assert (room_needed(plan).rows[0], room_needed(plan).size) == (1, 1)
