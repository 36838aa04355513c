"""Whether the closed loop at the captured settings holds as much memory as the capture shows, and when."""

from __future__ import annotations

import pytest

from schemas.tables.memory_reasons import HELD
from tests.unit.replay.consumer_memory.traces import Exchange, trace_of
from udfs.replay.consumer_memory.fidelity import held_alike
from udfs.replay.shared.captured_pieces import PIECES
from udfs.replay.shared.fidelity_rows import NO_REASON

CAPTURED: list[Exchange] = [(0, 0, 1_000_000, 1000, 2_000_000), (0, 3_000_000, 8_000_000, 500, 0)]
MOVED: list[Exchange] = [(0, 0, 1_050_000, 1000, 1_900_000), (0, 3_000_000, 8_050_000, 500, 0)]
LONGER: list[Exchange] = [(0, 0, 1_000_000, 1000, 4_000_000), (0, 5_000_000, 8_000_000, 500, 0)]


def verdicts(captured: list[Exchange], in_loop: list[Exchange], given_up_at: int | None = None) -> dict[str, int]:
    """How often each verdict was given, without those that never were."""
    found = held_alike(trace_of(captured).messages, trace_of(in_loop).messages, given_up_at)
    return {reason: count for reason, count in found.items() if count}


def test_the_closed_loop_holds_as_much_as_the_capture_a_little_earlier_or_later() -> None:
    assert verdicts(CAPTURED, MOVED) == {NO_REASON: PIECES}


def test_the_closed_loop_may_hold_more_or_less_than_the_capture() -> None:
    """A piece is 250 ms. Of the eight from 3 s to 5 s the first agrees: times may differ by 160 ms, 2 % of all."""
    assert verdicts(CAPTURED, LONGER) == {NO_REASON: PIECES - 7, HELD.more_held: 7}
    assert verdicts(LONGER, CAPTURED) == {NO_REASON: PIECES - 7, HELD.less_held: 7}


@pytest.mark.parametrize(
    ("captured", "in_loop", "reason"), [(CAPTURED, LONGER, HELD.more_held), (LONGER, CAPTURED, HELD.less_held)]
)
def test_differences_after_records_were_given_up_have_that_reason(
    captured: list[Exchange], in_loop: list[Exchange], reason: str
) -> None:
    """A piece is 250 ms: seven differ, from 3.25 s to 5 s."""
    found = verdicts(captured, in_loop, given_up_at=4_000_000)
    assert found == {NO_REASON: PIECES - 7, reason: 3, HELD.after_giving_up: 4}
