"""A window has the fetches that are sent in it, and closed loops begin with the first of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.replay.fetch_max_bytes.test_replay import LANES, Rows, gold, many_reads, open_loop, read
from udfs.replay.shared.window import Window

READS = many_reads()
SENT = sorted({row["request_time"] for row in READS})
COUNTED = {
    "fetch_consumers": ("requests", "bytes", "empty_though_available", "first_batch_overrides", "unknown_requests"),
    "fetch_fairness": ("requests", "bytes", "available_bytes", "cut_tail_bytes", "unknown_requests"),
    "fidelity": ("checked", "agreed", "unknown"),
}
KEY = ("scenario", "client_id", "client_address", "reader", "broker", "topic", "partition", "metric")


def found_in(begin: int | None, end: int | None, rows: Rows = READS) -> dict[str, Rows]:
    whole = Window()
    window = Window(whole.begin if begin is None else begin, whole.end if end is None else end)
    return gold(rows, lanes=replace(LANES, window=window))


def counts(found: dict[str, Rows]) -> Counter[tuple[Any, ...]]:
    """All counts of the open loop."""
    sums = Counter[tuple[Any, ...]]()
    for table, rows in open_loop(found).items():
        for row in rows if table in COUNTED else ():
            of = (table, *(row.get(key) for key in KEY))
            sums.update({(*of, name): row[name] for name in COUNTED[table]})
    return +sums


def test_a_window_over_everything_is_no_window() -> None:
    assert found_in(SENT[0], SENT[-1] + 1) == gold(READS)


@pytest.mark.parametrize("cut", SENT[1:])
def test_the_counts_before_a_time_and_from_it_on_add_up(cut: int) -> None:
    assert counts(found_in(None, cut)) + counts(found_in(cut, None)) == counts(gold(READS))


def test_a_window_has_the_same_rows_as_a_capture_of_that_window() -> None:
    begin, end = SENT[2], SENT[-2]
    of_window = [row for row in READS if begin <= row["request_time"] < end]
    assert found_in(begin, end) == gold(of_window)


def test_a_wait_counts_from_the_windows_first_fetch_on() -> None:
    """Five fetches in a row get nothing of partition 1 under the small limit, three of them in the window."""
    rows = [read(n, p, 200, [200]) for n in range(5) for p in (0, 1)]
    found = {row["scenario"]: row for row in open_loop(found_in(1_002_000, None, rows))["fetch_fairness"][2:]}
    waits = [
        row["longest_wait_requests"]
        for row in open_loop(found_in(1_002_000, None, rows))["fetch_fairness"]
        if (row["scenario"], row["partition"]) == ("small", 1)
    ]
    assert waits == [3]
    assert found
