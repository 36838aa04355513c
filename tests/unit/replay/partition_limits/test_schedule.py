"""Limits as people write them."""

from __future__ import annotations

import pytest

from udfs.replay.partition_limits.schedule import UNLIMITED, Schedule, format_schedule, parse_schedule

NOON_US = 1_769_860_800_000_000
CHANGING = "4000 until 2026-01-31T12:00:00Z then 6000"


@pytest.mark.parametrize("text", ["4000", "4_000", " 4000.0 "])
def test_a_number_holds_for_all_time(text: str) -> None:
    assert parse_schedule(text) == Schedule((-UNLIMITED,), (4000,))


def test_a_limit_may_change_at_a_time() -> None:
    assert parse_schedule(CHANGING) == Schedule((-UNLIMITED, NOON_US), (4000, 6000))
    assert parse_schedule("none until 2026-01-31T13:00:00+01:00 then 5").values == (UNLIMITED, 5)


@pytest.mark.parametrize("text", ["4000", "none", CHANGING, f"{CHANGING} until 2026-02-01T00:00:00.000001Z then none"])
def test_a_limit_reads_back_from_its_spelling(text: str) -> None:
    assert format_schedule(parse_schedule(text)) == text


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("many", "is not a limit such as 4000, none"),
        ("40_00", "is not a limit such as"),
        ("4.5", "is not a limit such as"),
        ("0", "between 1 and"),
        ("9223372036854775807", "between 1 and"),
        ("5 until noon then 6", "`noon` is no ISO 8601 time"),
        ("5 until 2026-01-31T12:00:00 then 6", "has no time zone"),
        ("5 until 9999-12-31T23:59:59-12:00 then 6", "is no ISO 8601 time"),
        (f"{CHANGING} until 2026-01-31T12:00:00Z then 7", "times do not ascend"),
        ("5 until 2026-01-31T12:00:00Z", "is not a limit such as"),
    ],
)
def test_text_that_is_no_limit_is_refused_with_examples_of_limits(text: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault) as raised:
        parse_schedule(text)
    assert CHANGING in str(raised.value).partition("a limit such as 4000, none, or ")[2]
