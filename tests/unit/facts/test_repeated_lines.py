"""Lines of request logs that overlapping files share count once."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from udfs.capture.request_log import LOGGED_REQUESTS
from udfs.facts.repeated_lines import LastRequest, find_repeated_lines, repeated_rows
from udfs.facts.rows_from_log import LINE_ORDER

Line = tuple[str, int, int, int]
"""Connection, time, correlation id, file."""


def lines(*told: Line) -> pa.RecordBatch:
    rows: list[dict[str, Any]] = [
        {"connection": connection, "completed": time, "correlation_id": number, "file_no": file_no, "line_no": line_no}
        for line_no, (connection, time, number, file_no) in enumerate(told)
    ]
    table = pa.Table.from_pylist(rows, schema=LOGGED_REQUESTS)
    return table.sort_by([(name, "ascending") for name in LINE_ORDER]).combine_chunks().to_batches()[0]


def left_out(batch: pa.RecordBatch, most: int) -> list[Line]:
    kept, found = LastRequest(), []
    for first in range(0, batch.num_rows, most):
        part = batch.slice(first, most)
        again = part.filter(pa.array(find_repeated_lines(part, kept)))
        found += [
            (row["connection"], row["completed"], row["correlation_id"], row["file_no"]) for row in again.to_pylist()
        ]
    return found


@pytest.mark.parametrize("most", [1, 2, 7, 10_000])
def test_a_line_that_an_earlier_file_has_is_left_out_of_the_later_one(most: int) -> None:
    earlier = [("a", time, time, 1) for time in range(1, 8)]
    later = [("a", time, time, 2) for time in range(5, 12)]
    assert left_out(lines(*earlier, *later), most) == [("a", time, time, 2) for time in (5, 6, 7)]


@pytest.mark.parametrize("most", [1, 10_000])
def test_one_file_may_have_equal_requests(most: int) -> None:
    """A client that gives all requests the same correlation id may send two in a millisecond."""
    twice = [("a", 1, 0, 1), ("a", 1, 0, 1)]
    assert left_out(lines(*twice), most) == []
    assert left_out(lines(*twice, *[(*line[:3], 2) for line in twice]), most) == [("a", 1, 0, 2)] * 2


@pytest.mark.parametrize("other", [("b", 1, 1, 2), ("a", 2, 1, 2), ("a", 1, 2, 2)], ids=["connection", "time", "id"])
def test_requests_that_differ_all_count(other: Line) -> None:
    assert left_out(lines(("a", 1, 1, 1), other), 10) == []


def test_lines_that_are_left_out_are_counted_by_file() -> None:
    rows = repeated_rows(lines(("a", 1, 1, 2), ("a", 2, 2, 3), ("b", 2, 2, 3)))
    assert rows.to_pylist() == [{"file_no": 2, "lines": 1}, {"file_no": 3, "lines": 2}]
