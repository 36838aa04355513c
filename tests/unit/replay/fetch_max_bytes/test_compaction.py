"""A log that is compacted: batches that the capture showed become smaller or are gone, as later responses show."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.tables.event_kinds import LogEvent
from tests.unit.replay.fetch_max_bytes.captured_reader import (
    BEGIN,
    MS,
    READER_CONNECTION,
    SIZE,
    Rows,
    lanes_of,
    read_row,
)
from tests.unit.replay.fetch_max_bytes.test_closed_loop import gold
from udfs.replay.shared.lanes import AS_CAPTURED

PRODUCER, APP = 3, READER_CONNECTION
END = 40
BOUND = {"bound_low": END, "bound_high": END, "response_bound": END}
LIMIT = {"max_bytes": 1 << 30, "partition_max_bytes": 1 << 30} | BOUND


def batch(base: int, connection: int = APP, exchange: int = 0, **differs: Any) -> dict[str, Any]:
    """A batch of ten offsets in a response, or on the producer's connection in a produce request."""
    row = {
        "topic": "t", "topic_key": "t", "partition": 0, "kind": LogEvent.BATCH, "position": base,
        "last_offset": base + 9, "size_bytes": SIZE, "append_after": 0 if connection == PRODUCER else None,
        "append_before": 0, "is_old_format": False, "is_sparse": False, "connection_id": connection,
        "exchange_no": exchange,
    }  # fmt: skip
    return row | differs


def read(fetch: int, offset: int, returned: int, **differs: Any) -> dict[str, Any]:
    return read_row(fetch, 0, 0, 0, returned) | LIMIT | {"fetch_offset": offset} | differs


def verdicts(*events: dict[str, Any], rows: int = 10_000) -> tuple[int, int, dict[str, int]]:
    """How many fetches with records were checked, how many of them agree, and the reasons."""
    told = gold(list(events), lanes_of(AS_CAPTURED), rows)["fidelity"]
    (row,) = [row for row in told if row["metric"] == "fetches_with_records"]
    return row["checked"], row["agreed"], dict(row["reasons"])


PRODUCED: Rows = [batch(base, PRODUCER, base) for base in range(0, END, 10)]
"""Four batches. Compaction removes the second."""


def test_without_compaction_a_response_with_less_than_the_log_differs() -> None:
    assert verdicts(*PRODUCED, batch(0), read(0, 0, SIZE)) == (1, 0, {"fewer_bytes": 1})


def test_a_response_with_a_hole_between_its_batches_shows_that_a_batch_is_gone() -> None:
    shown = [batch(base) for base in (0, 20, 30)]
    assert verdicts(*PRODUCED, *shown, read(0, 0, 3 * SIZE)) == (1, 1, {})
    assert verdicts(*PRODUCED, *shown[:2], read(0, 0, 2 * SIZE)) == (0, 0, {"compacted": 1}), "the last may be gone"


def test_once_a_response_shows_a_hole_reads_of_the_log_that_differ_are_unknown() -> None:
    shown = [batch(base, exchange=1) for base in (0, 20)]
    reads = [read(0, 0, SIZE, partition_max_bytes=SIZE), read(1, 0, 2 * SIZE), read(2, 0, 3 * SIZE)]
    assert verdicts(*PRODUCED, *shown, *reads) == (2, 2, {"compacted": 1})


EARLIER, LATER = BEGIN + 2 * MS, BEGIN + 12 * MS
"""When the fetches 0 and 1 are answered."""
FETCHED: Rows = [
    *(batch(base, append_before=EARLIER) for base in range(0, END, 10)),
    *(batch(base, exchange=1, append_before=LATER, size_bytes=SIZE // 2, is_sparse=True) for base in (0, 20, 30)),
]
"""The log is read before and after it was compacted: then its second batch is gone, and the others are smaller."""
BEFORE_AND_AFTER: Rows = [read(0, 0, 4 * SIZE), read(1, 0, 3 * SIZE // 2)]


@pytest.mark.parametrize("rows", [1, 7, 10_000])
@pytest.mark.parametrize("is_produced", [False, True])
def test_each_read_finds_the_log_as_it_was_then(is_produced: bool, rows: int) -> None:
    events = [*(PRODUCED if is_produced else []), *FETCHED, *BEFORE_AND_AFTER]
    assert verdicts(*events, rows=rows) == (2, 2, {})
    consumers = gold(events, lanes_of(AS_CAPTURED), rows)["fetch_consumers"]
    assert [row["bytes"] for row in consumers if row["mode"] == "open"] == [4 * SIZE + 3 * SIZE // 2]


def test_a_read_that_ends_at_a_gone_batch_goes_on_with_the_next_one() -> None:
    """Limits count the bytes that are there, and an offset of a gone batch is followed by the next batch."""
    within = {"partition_max_bytes": SIZE}
    reads = [read(0, 0, 4 * SIZE), read(1, 0, SIZE, **within), read(2, 10, SIZE, **within), read(3, 15, SIZE, **within)]
    shown = [*FETCHED, *(batch(20, exchange=n, size_bytes=SIZE // 2, is_sparse=True) for n in (2, 3))]
    late = [row | {"append_before": BEGIN + (10 * row["exchange_no"] + 2) * MS} for row in shown]
    assert verdicts(*PRODUCED, *late, *reads) == (4, 4, {})


def test_what_a_compacted_log_lacks_for_an_unknown_reason_no_lane_gets() -> None:
    """The last batch may be gone, or in another segment."""
    shown = [batch(base) for base in (0, 20)]
    events = [*PRODUCED, *shown, read(0, 0, 2 * SIZE)]
    for lane in (AS_CAPTURED, 1 << 20):
        consumers = gold(events, lanes_of(lane))["fetch_consumers"]
        assert {row["bytes"] for row in consumers if row["mode"] == "open"} == {2 * SIZE}
    limited = [*PRODUCED, *shown, read(0, 0, 2 * SIZE, partition_max_bytes=2 * SIZE)]
    consumers = gold(limited, lanes_of(AS_CAPTURED))["fetch_consumers"]
    assert {row["bytes"] for row in consumers if row["mode"] == "open"} == {2 * SIZE}


@pytest.mark.parametrize("rows", [1, 7, 10_000])
def test_a_response_that_begins_after_the_fetch_offset_shows_a_hole_from_then_on(rows: int) -> None:
    larger = {"size_bytes": 2 * SIZE}
    produced = [PRODUCED[0], PRODUCED[1] | larger, *PRODUCED[2:]]
    reads = [
        read(0, 0, 3 * SIZE, partition_max_bytes=2 * SIZE),  # nothing shows yet why it has more than its limit
        read(1, 10, SIZE, partition_max_bytes=SIZE),
        read(2, 0, SIZE),
    ]
    shown = [batch(0), batch(20, exchange=1), batch(0, exchange=2)]
    told = verdicts(*produced, *shown, *reads, rows=rows)
    assert told == (1, 0, {"more_bytes": 1, "compacted": 2})


def test_batches_of_different_responses_show_no_hole() -> None:
    shown = batch(0, exchange=0), batch(20, exchange=1), batch(30, connection=APP + 1)
    assert verdicts(*PRODUCED, *shown, read(0, 0, 3 * SIZE)) == (1, 0, {"fewer_bytes": 1})


def test_batches_of_a_produce_request_and_of_old_formats_show_no_hole() -> None:
    sent = [batch(base, PRODUCER, 9) for base in (0, 20)]
    assert verdicts(*PRODUCED, *sent, read(0, 0, 3 * SIZE)) == (1, 0, {"fewer_bytes": 1})
    old = [batch(base, is_old_format=True) for base in (0, 20)]
    assert verdicts(*PRODUCED, *old, read(0, 0, 3 * SIZE, api_version=4)) == (1, 0, {"fewer_bytes": 1})


def test_a_response_shows_no_hole_if_it_is_not_known_what_was_asked_for() -> None:
    asked = read(0, 10, SIZE, readable_known=False)
    assert verdicts(*PRODUCED, batch(20), asked, read(1, 10, SIZE)) == (
        1, 0, {"session_unknown": 1, "fewer_bytes": 1}
    )  # fmt: skip
