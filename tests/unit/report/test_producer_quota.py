"""What screen and page say about lanes in which brokers limit what producers may send per second."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyspark.sql import Row

from jobs.replays.fetch_max_bytes.producer_answers import (
    RANGES_ARE_TOO_NARROW,
    producer_lanes_rows,
    producer_table,
)
from jobs.report_page.advice.floors import metrics_below_floor
from jobs.report_page.cards import quota_cards
from jobs.report_page.fetch_max_bytes.producer_quota import (
    MADE_AS_CAPTURED,
    producers_by_lane,
    producers_sureness,
)
from jobs.report_page.question import Findings
from jobs.report_page.verdict import quota_lines
from schemas.tables import algorithms
from tests.unit.report.findings import findings

BLOCKED = Row(blocked_ms=2_000.0, client_id="app", blocked_ms_range=None)
SLOW, OF_USERS = "producer_byte_rate=100kB", "user.producer_byte_rate=1MB"


def producers_row(name: str, throttled: int = 0, ms: int = 0, sends: float = 12_000.0, **other: Any) -> Row:
    """The results of three producers in a lane. sends: how long the slowest one sends, ms; 12 s in the capture."""
    sending = Row(
        longer=sends - 12_000.0, sending_ms=sends, captured_sending_ms=12_000.0, client_id="app", sending_ms_range=None
    )  # fmt: skip
    columns = {
        "scenario": name, "requests": 900, "throttled_requests": 10 * throttled, "throttle_time_ms": 2 * ms,
        "expired_requests": 0, "captured_throttled_requests": 0, "captured_throttle_time_ms": 0,
        "replayed_throttle_time_ms": 0, "producers": 3, "throttled": throttled, "unknown_users": 0,
        "longest": Row(throttle_time_ms=ms, captured_throttle_time_ms=0, client_id="app", throttle_time_ms_range=None),
        "slowest": sending, "quickest": sending, "blocked": Row(blocked_ms=0.0, client_id="app", blocked_ms_range=None),
        "shown_least": None, "shown_most": None, "throttled_requests_range": None, "throttle_time_ms_range": None,
        "expired_requests_range": None,
    }  # fmt: skip
    return Row(**columns | other)


def of_producers(*rows: Row) -> Findings:
    names = tuple(row["scenario"] for row in rows)
    return findings({producer_lanes_rows: list(rows)}, {algorithms.FETCH_MAX_BYTES: names})


def test_throttled_producers_are_shown_with_how_long_sending_takes() -> None:
    slow = producers_row(SLOW, 2, 31_000, 43_000.0, blocked=BLOCKED, expired_requests=3)
    found = of_producers(producers_row("captured"), slow, producers_row("producer_byte_rate=9MB"))
    assert [*producers_by_lane(found)] == [
        (
            "producer_byte_rate=100 kB",
            "2 of 3 producers are throttled, app for 31 s over its brokers; app sends for 43 s instead of 12 s; app "
            "waits 2 s for buffer.memory; 3 requests would wait longer than delivery.timeout.ms",
        ),
        ("producer_byte_rate=9 MB", "none of 3 producers is throttled"),
    ]


def test_throttle_times_under_the_captured_quota_are_compared_with_the_capture() -> None:
    stated = producers_row("captured", 1, 9_000, captured_throttle_time_ms=10_000, replayed_throttle_time_ms=9_900)
    lighter = producers_row("producer_byte_rate=none", sends=4_000.0)
    found = replace(of_producers(stated, lighter), captured={"producer_byte_rate": 200_000})
    assert [*producers_by_lane(found)] == [
        (
            "captured",
            "1 of 3 producers is throttled, app for 9 s over its brokers; in all 9.9 s, in the capture 10 s "
            "(1.00 % less)",
        ),
        ("producer_byte_rate=none", "none of 3 producers is throttled; app sends for 4 s instead of 12 s"),
    ]


def test_a_quota_that_throttle_times_show_is_named_if_nobody_stated_it() -> None:
    shown = producers_row("captured", shown_least=199_994, shown_most=200_015)
    assert [*producers_by_lane(of_producers(shown))] == [
        (
            "captured",
            "throttle times show a quota that nobody stated: --captured=producer_byte_rate=200kB",
        )
    ]


def test_screen_and_page_say_which_rules_apply_whose_user_is_unknown_and_what_agrees_too_seldom() -> None:
    low = Row(
        algorithm=algorithms.FETCH_MAX_BYTES, metric="produce_throttles", reader="producer", checked=100, agreed=80,
        floor=0.9,
    )  # fmt: skip
    rows = {producer_lanes_rows: [producers_row("captured"), producers_row(OF_USERS, 1, 500, unknown_users=2)]}
    names = {algorithms.FETCH_MAX_BYTES: ("captured", OF_USERS)}
    found = findings({**rows, metrics_below_floor: [low]}, names)
    said = " ".join(" ".join(line.split()) for line in quota_lines(found))
    (card,) = quota_cards(found)
    sure = (
        f"{MADE_AS_CAPTURED}; the user of 2 producers is not known, so each is taken for a user of its own: add "
        "request logs; produce throttles of producers equal the capture in 80.00 % of 100, below 90.0 %"
    )
    assert said == (
        "QUOTA user.producer_byte_rate=1 MB 1 of 3 producers is throttled, app for 500 ms over its brokers sure " + sure
    )
    assert (card.title, card.terms) == ("producers", [("Sure", sure)])


def test_without_a_quota_of_producers_nothing_is_said() -> None:
    found = of_producers()
    assert [*quota_lines(found), *quota_cards(found)] == []


def test_the_summary_has_a_row_for_each_lane() -> None:
    rows = [producers_row("captured"), producers_row(SLOW, 2, 31_000, 43_000.0)]
    grid = producer_table(rows, ["captured", SLOW])
    assert grid.rows[1] == [SLOW, "2 of 3", "20", "62 s", "31 s", "app", "43 s", "12 s"]


def ranged_row() -> Row:
    """A lane whose outcomes depend on pace."""
    return producers_row(
        SLOW, 2, 31_000, 43_000.0, expired_requests=3, throttled_requests_range=Row(p10=12.0, p90=25.0),
        throttle_time_ms_range=Row(p10=50_000.0, p90=70_000.0), expired_requests_range=Row(p10=0.0, p90=3.0),
        longest=Row(
            throttle_time_ms=31_000, captured_throttle_time_ms=0, client_id="app",
            throttle_time_ms_range=Row(p10=25_000.0, p90=32_000.0),
        ),
        slowest=Row(
            longer=31_000.0, sending_ms=43_000.0, captured_sending_ms=12_000.0, client_id="app",
            sending_ms_range=Row(p10=41_000.0, p90=44_000.0),
        ),
        blocked=Row(blocked_ms=2_000.0, client_id="app", blocked_ms_range=Row(p10=1_000.0, p90=3_000.0)),
    )  # fmt: skip


def test_what_depends_on_pace_is_shown_with_its_range_and_how_often_such_ranges_held() -> None:
    found = of_producers(producers_row("captured"), ranged_row())
    ((_, text),) = [*producers_by_lane(found)]
    assert text == (
        "2 of 3 producers are throttled, app for 31 s (25 to 32 s) over its brokers; app sends for 43 s (41 to 44 s) "
        "instead of 12 s; app waits 2 s (1 to 3 s) for buffer.memory; 3 (0 to 3) requests would wait longer than "
        "delivery.timeout.ms"
    )
    assert RANGES_ARE_TOO_NARROW in producers_sureness(found)
    grid = producer_table([producers_row("captured"), ranged_row()], ["captured", SLOW])
    assert grid.rows[1] == [
        SLOW, "2 of 3", "20 (12 to 25)", "62 s (50 to 70 s)", "31 s (25 to 32 s)", "app", "43 s (41 to 44 s)", "12 s"
    ]  # fmt: skip
    assert f"{RANGES_ARE_TOO_NARROW}." in grid.notes


def test_nothing_is_said_about_ranges_if_none_is_shown() -> None:
    assert RANGES_ARE_TOO_NARROW not in producers_sureness(of_producers(producers_row("captured", 1, 500)))
