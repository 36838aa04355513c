"""The times that show a reader's pace, beside plain loops over its fetches and in small exact examples."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from udfs.columns.time_units import NEVER
from udfs.replay.fetch_max_bytes.closed_loop.pace import (
    LONG_AGO,
    PacedFetches,
    answer_times,
    busy_before,
    followed_rows,
    lateness,
    no_slower_than,
    quick_byte_times,
    quick_times,
    quickest_rows,
    taking_times,
    waited_longest,
)
from udfs.replay.fetch_max_bytes.closed_loop.pace_fits import PaceCurves, Timings, time_for_more, time_until
from udfs.replay.fetch_max_bytes.closed_loop.state import POINT

MAX_WAIT = 50
Fetch = tuple[int, int, int, int, int, bool]
"""(gap before it, us to its response, records, bytes, us from the request until they were there, a stop before)."""
FETCHES = st.lists(
    st.lists(
        st.tuples(
            st.integers(-3, 9), st.sampled_from([0, 4, 49, 50, 51, 60]), st.integers(0, 3), st.sampled_from([0, 1, 30]),
            st.sampled_from([-5, 0, 1, 50, 51, NEVER]), st.booleans(),
        ),
        max_size=5,
    ),
    min_size=1,
    max_size=3,
)  # fmt: skip
"""The fetches of each node."""


def paced(nodes: list[list[Fetch]]) -> PacedFetches:
    rows: list[dict[str, Any]] = []
    for node, fetches in enumerate(nodes):
        now = 1000 + node
        for gap, took, records, size, ready, is_stopped in fetches:
            now += gap
            ready_at = NEVER if ready == NEVER else now + ready
            rows.append({"node": node, "request": now, "response": now + took, "records": records, "size": size,
                         "ready_at": ready_at, "is_stopped": is_stopped, "max_wait_us": MAX_WAIT})  # fmt: skip
            now += took
    kinds = {name: np.bool_ if name == "is_stopped" else np.int64 for name in PacedFetches._fields}
    return PacedFetches(**{name: np.array([row[name] for row in rows], kinds[name]) for name in kinds})


def rows_of(fetches: PacedFetches) -> list[dict[str, int]]:
    return [
        dict(zip(PacedFetches._fields, row, strict=True)) for row in zip(*map(np.ndarray.tolist, fetches), strict=True)
    ]


def has_waited(row: dict[str, int]) -> bool:
    over_at = row["request"] + MAX_WAIT
    return (row["size"] == 0 or row["ready_at"] > over_at) and row["response"] >= over_at


@given(FETCHES, st.booleans())
def test_the_time_for_records_is_from_their_response_or_the_end_of_earlier_work_to_the_next_fetch(
    nodes: list[list[Fetch]], is_one_process: bool
) -> None:
    fetches = paced(nodes)
    rows = rows_of(fetches)
    pairs = [
        (one, other)
        for one, other in pairwise(rows)
        if one["node"] == other["node"] and other["request"] >= max(one["request"], one["response"])
    ]
    assert followed_rows(fetches).tolist() == [rows.index(one) for one, _ in pairs]
    pairs = sorted(((a, b) for a, b in pairs if not b["is_stopped"]), key=lambda pair: pair[0]["response"])
    expected, busy_until = list[tuple[int, int, int, bool]](), LONG_AGO
    for one, other in pairs:
        came, done = one["response"], other["request"]
        begins = max(came, busy_until) if is_one_process else came
        expected.append((one["node"], one["records"], max(done - begins, 0), is_one_process and busy_until > came))
        busy_until = max(busy_until, done) if one["records"] else busy_until
    found = taking_times(fetches, is_one_process)
    assert list(zip(*(column.tolist() for column in found), strict=True)) == expected


@given(FETCHES, st.booleans())
def test_answers_show_their_time_if_records_were_there_or_at_the_logs_end_if_the_wait_was_over(
    nodes: list[list[Fetch]], is_at_log_end: bool
) -> None:
    fetches = paced(nodes)
    rows, expected = rows_of(fetches), list[tuple[int, int, int]]()
    at_once = [row["size"] > 0 and row["ready_at"] <= row["request"] for row in rows]
    for row, is_at_once in zip(rows, at_once, strict=True):
        took = row["response"] - row["request"]
        if is_at_once:
            expected.append((row["node"], row["size"], took))
        elif is_at_log_end and has_waited(row):
            expected.append((row["node"], row["size"], took - MAX_WAIT))
    found = answer_times(fetches, np.array(at_once, np.bool_), is_at_log_end)
    assert list(zip(found.node.tolist(), found.amount.tolist(), found.time.tolist(), strict=True)) == expected
    assert not found.is_behind.any()
    assert waited_longest(fetches).tolist() == list(map(has_waited, rows))


@given(FETCHES)
def test_quick_and_late_times_are_those_of_each_nodes_own_fetches(nodes: list[list[Fetch]]) -> None:
    fetches = paced(nodes)
    rows, count = rows_of(fetches), len(nodes) + 1
    quick, by_byte, late = quick_times(fetches, count), quick_byte_times(fetches, count), lateness(fetches, count)
    for node in range(count):
        own = [(row["response"] - row["request"], row["size"]) for row in rows if row["node"] == node and row["size"]]
        waits = [row["response"] - row["request"] - MAX_WAIT for row in rows if row["node"] == node and has_waited(row)]
        assert late[node] == (np.median(waits) if waits else 0)
        if not own:
            assert (quick[node], by_byte[node]) == (np.inf, np.inf)
            continue
        assert quick[node] == np.quantile([took for took, _ in own], 0.25)
        paces = sorted((took / size, size) for took, size in own)
        total = sum(size for _, size in own)
        reached = (pace for place, (pace, _) in enumerate(paces) if 4 * sum(s for _, s in paces[: place + 1]) >= total)
        assert by_byte[node] == next(reached)


def test_an_application_is_busy_until_it_is_done_with_the_last_records() -> None:
    assert busy_before(np.array([5, 9, 7, 20]), np.array([1, 2, 0, 1])).tolist() == [LONG_AGO, 5, 9, 9]
    assert busy_before(np.array([5, 9]), np.array([0, 2])).tolist() == [LONG_AGO, LONG_AGO]
    assert busy_before(np.zeros(0, np.int64), np.zeros(0, np.int64)).tolist() == []


def test_the_quickest_quarter_of_each_nodes_responses_by_the_time_for_a_byte() -> None:
    node, amount, time = [0, 0, 0, 0, 0, 1], [10, 10, 10, 0, 10, 10], [40, 10, 30, 15, 20, 90]
    sending = Timings(np.array(node), np.array(amount), np.array(time), np.zeros(6, np.bool_))
    assert quickest_rows(sending, np.arange(6), 3).tolist() == [1, 4, 5]
    assert quickest_rows(sending, np.array([0, 2, 3]), 3).tolist() == [2]


def curves(*points: list[tuple[int, float]]) -> PaceCurves:
    first = np.cumsum([0, *map(len, points)])
    return PaceCurves(np.array([point for curve in points for point in curve], POINT), first)


def test_a_curve_is_made_quicker_as_a_whole_if_its_average_is_slower_than_the_most() -> None:
    found = no_slower_than(curves([(0, 0), (10, 60), (20, 80)], [(0, 0), (10, 20)], []), np.array([2.0, 2.0, 2.0]))
    assert found.points["time"].tolist() == [0, 30, 40, 0, 20]
    assert found.points["amount"].tolist() == [0, 10, 20, 0, 10]


@pytest.mark.parametrize(
    ("amount", "time"), [(0, 0), (5, 30), (10, 60), (15, 70), (20, 80), (30, 120)],
    ids=["nothing", "within", "at a point", "the next stretch", "the end", "beyond: the average counts"],
)  # fmt: skip
def test_a_curve_says_how_long_an_amount_takes(amount: int, time: float) -> None:
    curve = curves([(0, 0), (10, 60), (20, 80)]).points
    assert time_until(curve, amount) == time
    assert time_for_more(curve, 5, amount) == time_until(curve, amount + 5) - 30


def test_a_curve_without_amounts_takes_no_time() -> None:
    assert time_until(curves([(0, 0)]).points, 7) == 0
