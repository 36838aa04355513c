"""A read ends with its segment (LogSegment.read): two reads that end at one place show it, and no lane reads beyond."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.tables.event_kinds import LogEvent
from tests.unit.replay.fetch_max_bytes.captured_reader import SIZE, lanes_of
from tests.unit.replay.fetch_max_bytes.test_closed_loop import gold
from tests.unit.replay.fetch_max_bytes.test_compaction import APP, PRODUCED, read, verdicts
from udfs.replay.shared.lanes import AS_CAPTURED

WHOLE = {"partition_max_bytes": 1 << 20, "max_bytes": 1 << 20}


def shown(fetch: int, offset: int, returned: int, **differs: Any) -> list[dict[str, Any]]:
    """A read of a log of four batches of ten offsets, as the two events that it gives."""
    row = read(fetch, offset, returned, connection_id=APP, response_record_bytes=returned, **WHOLE) | differs
    return [row | {"kind": LogEvent.WITNESS}, row]


def test_two_reads_that_end_below_their_limits_at_one_place_end_with_their_segment() -> None:
    assert verdicts(*PRODUCED, *shown(0, 0, 2 * SIZE), *shown(1, 0, 2 * SIZE)) == (2, 2, {})
    assert verdicts(*PRODUCED, *shown(0, 0, 3 * SIZE), *shown(1, 10, 2 * SIZE)) == (2, 2, {})


def test_one_read_alone_that_ends_before_the_log_does_is_unknown() -> None:
    assert verdicts(*PRODUCED, *shown(0, 0, 2 * SIZE)) == (0, 0, {"segment_end": 1})


def test_a_read_beyond_the_place_refutes_that_a_segment_ends_there() -> None:
    short = [*shown(0, 0, 2 * SIZE), *shown(1, 0, 2 * SIZE)]
    assert verdicts(*PRODUCED, *short, *shown(2, 10, 3 * SIZE)) == (3, 1, {"fewer_bytes": 2})
    assert verdicts(*PRODUCED, *short, *shown(2, 10, SIZE + 5, partition_max_bytes=SIZE + 5)) == (
        3, 1, {"fewer_bytes": 2},
    )  # fmt: skip


@pytest.mark.parametrize(
    "limit", [{"partition_max_bytes": 2 * SIZE}, {"max_bytes": 2 * SIZE}, {"bound_low": 20, "bound_high": 20}]
)
def test_a_read_that_its_limit_ended_shows_no_end_of_a_segment(limit: dict[str, int]) -> None:
    limited = [*shown(0, 0, 2 * SIZE, **limit), *shown(1, 0, 2 * SIZE, **limit)]
    assert verdicts(*PRODUCED, *limited, *shown(2, 0, 3 * SIZE)) == (2, 2, {"segment_end": 1})


def test_a_first_batch_that_came_alone_shows_no_end_because_a_broker_may_have_limited_it() -> None:
    assert verdicts(*PRODUCED, *shown(0, 0, SIZE), *shown(1, 0, SIZE)) == (2, 0, {"fewer_bytes": 2})


@pytest.mark.parametrize(("connection", "verdict"), [(APP, (3, 3, {})), (APP + 1, (3, 1, {"fewer_bytes": 2}))])
def test_a_first_batch_alone_shows_an_end_if_a_larger_response_shows_that_no_limit_ended_it(
    connection: int, verdict: tuple[int, int, dict[str, int]]
) -> None:
    larger = shown(2, 20, 2 * SIZE, connection_id=connection)
    assert verdicts(*PRODUCED, *shown(0, 0, SIZE), *shown(1, 0, SIZE), *larger) == verdict


def test_reads_that_returned_nothing_show_no_end_of_a_segment() -> None:
    """They may have been answered at once because another partition had records."""
    limited = shown(2, 0, SIZE, max_bytes=SIZE)
    events = [*PRODUCED, *shown(0, 10, 0, bound_high=10), *shown(1, 10, 0, bound_high=10), *limited]
    rows = gold(events, lanes_of(AS_CAPTURED, 1 << 30), 10_000)["fetch_fairness"]
    assert [row["bytes"] for row in rows if row["mode"] == "open"] == [SIZE, 4 * SIZE]


def test_a_read_to_the_end_of_the_log_shows_no_end_of_a_segment() -> None:
    assert verdicts(*PRODUCED, *shown(0, 0, 4 * SIZE), *shown(1, 20, 2 * SIZE)) == (2, 2, {})


def test_no_lane_reads_beyond_the_end_of_a_segment() -> None:
    events = [*PRODUCED, *shown(0, 0, 2 * SIZE), *shown(1, 0, 2 * SIZE)]
    rows = gold(events, lanes_of(AS_CAPTURED, 1 << 30), 10_000)["fetch_fairness"]
    assert [row["bytes"] for row in rows if row["mode"] == "open"] == [2 * 2 * SIZE] * 2
