"""Rows that are dealt to tasks come to each task in order, however they are cut into parts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.tables.table import Spec as C
from schemas.tables.table import table
from udfs.replay.shared import dealing
from udfs.replay.shared.dealing import deal
from udfs.replay.shared.dealt_rows import DEALT, Step
from udfs.replay.shared.parts_in_order import PARTS_TOGETHER, rows_in_order

VISITS = table(
    "visits", "silver", "Rows that are dealt.", ("who",), "who",
    who=C("string", "A name"),
    where=C("int", "A place", nullable=True),
    time=C("bigint", "When", nullable=True),
    number=C("bigint", "Tells rows apart"),
    sizes=C("array<int>", "A list", nullable=True),
)  # fmt: skip
STEP = Step(VISITS, (VISITS.who, VISITS.where), (VISITS.time, VISITS.number))
Visit = tuple[str, int | None, int | None, int]


def batch_of(visits: Iterable[Visit]) -> pa.RecordBatch:
    columns = list(zip(*visits, strict=True)) or [(), (), (), ()]
    kinds = (pa.string(), pa.int32(), pa.int64(), pa.int64())
    arrays = [pa.array(list(column), kind) for column, kind in zip(columns, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=["who", "where", "time", "number"])


def by_task(batches: Iterable[pa.RecordBatch], shards: int) -> dict[int, list[pa.RecordBatch]]:
    """The parts that each task gets. Spark brings it the parts of its shard, ordered by their first unit and value."""
    parts = [row for dealt in deal(batches, STEP, shards) for row in dealt.to_pylist()]
    tasks: dict[int, list[pa.RecordBatch]] = {}
    for part in sorted(parts, key=lambda part: (part["unit"], part["first"])):
        tasks.setdefault(part["shard"], []).append(pa.RecordBatch.from_pylist([part], schema=DEALT))
    return tasks


def taken(batches: Iterable[pa.RecordBatch], shards: int) -> list[list[Visit]]:
    """The visits that each task takes, in the order in which they come."""
    return [
        [tuple(row[name] for name in ("who", "where", "time", "number")) for rows in rows_in_order(parts, STEP)
         for row in rows.to_pylist()]
        for parts in by_task(batches, shards).values()
    ]  # fmt: skip


def none_first(value: Any) -> tuple[bool, Any]:
    return value is not None, value or 0


@pytest.fixture(params=[(1, 1), (3, 100), (8192, 1 << 20)], ids=["a row a part", "three rows", "all rows"])
def parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many rows a part has, and how many bytes are sorted at a time."""
    part_rows, sorted_bytes = request.param
    monkeypatch.setattr(dealing, "PART_ROWS", part_rows)
    monkeypatch.setattr(dealing, "SORTED_BYTES", sorted_bytes)


VISITS_GIVEN = st.lists(
    st.tuples(
        st.sampled_from(["", "a", "a\0", "a\1", "\0", "b", "b\0a", "ü"]),
        st.sampled_from([None, -1, 0, 7, 1 << 30]),
        st.sampled_from([None, -5, 0, 1, 2, 1 << 60]),
    ),
    max_size=40,
)


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize("shards", [1, 3])
def test_each_task_takes_whole_units_one_after_the_other_and_each_in_order(shards: int) -> None:
    @given(VISITS_GIVEN, st.integers(1, 9))
    def check(given_visits: list[tuple[str, int | None, int | None]], batch_rows: int) -> None:
        visits = [(*visit, number) for number, visit in enumerate(given_visits)]
        batches = [batch_of(visits[at : at + batch_rows]) for at in range(0, len(visits), batch_rows)]
        of_tasks = taken(batches, shards)
        assert sorted(map(repr, visits)) == sorted(repr(visit) for task in of_tasks for visit in task)
        units = [list(dict.fromkeys(visit[:2] for visit in task)) for task in of_tasks]
        assert len({unit for task in units for unit in task}) == sum(map(len, units)), "a unit comes to one task"
        for task, of_task in zip(of_tasks, units, strict=True):
            place = {unit: number for number, unit in enumerate(of_task)}
            assert task == sorted(task, key=lambda v: (place[v[:2]], none_first(v[2]), none_first(v[3])))

    check()


def test_units_that_begin_with_the_same_text_come_to_one_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dealing, "PART_ROWS", 1)
    led = STEP._replace(leads=True)
    visits = [(who, where, 0, where) for where in range(40) for who in ("", "a", "b")]
    dealt = [row for part in deal([batch_of(visits)], led, 5) for row in part.to_pylist()]
    shards = {who: {part["shard"] for part in dealt if part["unit"].split("\0")[0] == who} for who in ("", "a", "b")}
    assert (len(shards["a"]), len(shards["b"])) == (1, 1)
    assert len(shards[""]) > 1, "units that begin with no text are dealt one by one"


def test_columns_that_some_rows_lack_are_null() -> None:
    full = batch_of([("a", 1, 5, 0)])
    narrow = batch_of([("a", 1, 3, 1)]).select(["who", "where", "number"])
    (parts,) = by_task([full, narrow], 1).values()
    rows = [row for batch in rows_in_order(parts, STEP) for row in batch.to_pylist()]
    assert [(row["time"], row["number"]) for row in rows] == [(None, 1), (5, 0)]
    assert [row["sizes"] for row in rows] == [None, None]


def test_a_task_holds_no_more_than_the_parts_that_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    """One unit has all rows. Many tasks deal them in the order of time, as for a capture in many files."""
    monkeypatch.setattr(dealing, "PART_ROWS", 10)
    monkeypatch.setattr(dealing, "SORTED_BYTES", 1)
    batches = [batch_of([("a", 1, time, time) for time in range(first, first + 10)]) for first in range(0, 500, 10)]
    (parts,) = by_task(batches, 1).values()
    handed_out = [rows.num_rows for rows in rows_in_order(parts, STEP)]
    assert sum(handed_out) == 500
    assert max(handed_out) <= 10 * PARTS_TOGETHER


@pytest.mark.usefixtures("parts")
def test_rows_of_a_unit_and_a_time_come_in_one_batch() -> None:
    """The partitions of a fetch are such rows. It holds wherever parts are cut and however many runs there are."""
    visits = [("ab"[number % 2], 1, number // 8, number) for number in range(200)]
    batches = [batch_of(visits[at::7]) for at in range(7)]
    (dealt,) = by_task(batches, 1).values()
    seen = [{(row["who"], row["time"]) for row in rows.to_pylist()} for rows in rows_in_order(dealt, STEP)]
    assert sum(map(len, seen)) == len(set().union(*seen))


def test_a_part_has_no_more_bytes_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = batch_of([("a", 1, time, time) for time in range(1000)])
    row_bytes = rows.get_total_buffer_size() // 1000
    most = 100 * (row_bytes - 1)
    monkeypatch.setattr(dealing, "PART_BYTES", most)
    (parts,) = by_task([rows], 1).values()
    counts = [batch.num_rows for part in parts for batch in pa.ipc.open_stream(part["rows"][0].as_buffer())]
    assert sum(counts) == 1000
    assert most // 2 < max(counts) * row_bytes <= most


def test_rows_of_a_step_without_order_come_to_one_task_as_they_are() -> None:
    step = Step(VISITS, (), ())
    (dealt,) = deal([batch_of([("b", 1, 5, 0), ("a", None, None, 1)])], step, 1)
    assert dealt["shard"].to_pylist() == [0]
    (rows,) = rows_in_order([dealt], step)
    assert rows["number"].to_pylist() == [0, 1]
