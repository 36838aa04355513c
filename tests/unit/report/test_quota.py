"""What screen and page say about lanes in which brokers limit what consumers may fetch per second."""

from __future__ import annotations

from pyspark.sql import Row

from jobs.replays.fetch_max_bytes.answers import closed_lanes
from jobs.report_page.advice.floors import metrics_below_floor
from jobs.report_page.cards import growth_cards, quota_cards
from jobs.report_page.fetch_max_bytes.fairness import consumers_under_limits
from jobs.report_page.fetch_max_bytes.quota import BY_RULES, throttling_by_lane
from jobs.report_page.question import Findings
from jobs.report_page.verdict import quota_lines
from schemas.tables import algorithms
from tests.unit.report.findings import findings

OF_USERS = "user.ann.consumer_byte_rate=1MiB"
SLOW, FAST = "consumer_byte_rate=1MiB", "consumer_byte_rate=10MiB"


def lane(
    name: str, throttled: int = 0, for_ms: tuple[int, int, int] = (0, 0, 0), took: float = 100.0, unknown: int = 0
) -> Row:
    """The results of three consumers in a lane. for_ms: at the captured pace, and its p10 and p90."""
    within = dict(zip(("value", "p10", "p90"), map(float, for_ms), strict=True)) | {"client_id": "slow-reader"}
    return Row(
        reader="consumer", scenario=name, took=took, never=False, catch_up_ms_range=None, longest=(0.0, "t-0"),
        longest_wait_ms_range=None, end_lag_bytes_range=None, throttle_time_ms_range=Row(**within), readers=3,
        throttled=throttled, unknown_users=unknown,
    )  # fmt: skip


def of_lanes(*rows: Row) -> Findings:
    names = tuple(row["scenario"] for row in rows)
    return findings({closed_lanes: list(rows)}, {algorithms.FETCH_MAX_BYTES: names})


def test_throttled_consumers_are_shown_with_their_throttle_time_and_the_change_of_catch_up() -> None:
    slow = lane(SLOW, throttled=2, for_ms=(12_300, 11_000, 14_000), took=13_000.0)
    assert [*throttling_by_lane(of_lanes(lane("captured"), slow, lane(FAST)))] == [
        (
            "consumer_byte_rate=1 MiB",
            "2 of 3 consumers are throttled, slow-reader for 12.3 s (11 to 14 s) over its brokers; "
            "catch-up 100 ms -> 13 s",
        ),
        ("consumer_byte_rate=10 MiB", "none of 3 consumers is throttled"),
    ]


def test_a_consumer_that_is_throttled_only_at_other_paces_is_shown() -> None:
    (told,) = throttling_by_lane(of_lanes(lane("captured"), lane(FAST, for_ms=(0, 0, 400))))
    assert told[1] == "none of 3 consumers is throttled, at other paces for 400 ms over its brokers at most"


def test_screen_and_page_say_which_rules_apply_and_whose_user_is_unknown() -> None:
    found = of_lanes(lane("captured"), lane(OF_USERS, throttled=1, for_ms=(900, 900, 900), unknown=2))
    told = " ".join(" ".join(line.split()) for line in quota_lines(found))
    (card,) = quota_cards(found)
    assert told.startswith(
        "QUOTA user.ann.consumer_byte_rate=1 MiB 1 of 3 consumers is throttled, slow-reader for 900 ms over its brokers"
    )
    assert BY_RULES in told
    assert "the user of 2 consumers is not known, so each is taken for a user of its own" in told
    assert dict(card.terms)["Sure"] in told


def test_quotas_of_client_ids_only_need_no_users() -> None:
    found = of_lanes(lane("captured"), lane(SLOW, throttled=1, for_ms=(900, 900, 900), unknown=3))
    assert "not known" not in " ".join(quota_lines(found))


def test_a_stated_quota_is_shown_for_the_captured_lane() -> None:
    found = of_lanes(lane("captured", throttled=1, for_ms=(900, 900, 900)))
    assert [*throttling_by_lane(found)] == []
    stated = Findings(found.rows, found.lanes, found.refused, {"consumer_byte_rate": 1000}, found.kafka)
    assert [*throttling_by_lane(stated)] == [
        ("captured", "1 of 3 consumers is throttled, slow-reader for 900 ms over its brokers")
    ]


def test_the_screen_says_so_if_the_captured_lane_is_far_from_the_capture() -> None:
    of = {"algorithm": algorithms.FETCH_MAX_BYTES, "metric": "closed_loop_bytes", "reader": "consumer"}
    low = Row(**of, checked=40, agreed=30, floor=0.9)
    rows = [lane("captured"), lane(SLOW, throttled=1, for_ms=(900, 900, 900))]
    names = {algorithms.FETCH_MAX_BYTES: ("captured", SLOW)}
    told = " ".join(
        line.strip() for line in quota_lines(findings({closed_lanes: rows, metrics_below_floor: [low]}, names))
    )
    assert "closed loop bytes of consumers equal the capture in 75.00 % of 40, below 90.0 %" in told


def test_without_lanes_of_quotas_nothing_is_said() -> None:
    found = of_lanes(lane("captured"), lane("consumer.fetch.max.bytes=1MiB"))
    assert [*quota_lines(found), *quota_cards(found)] == []


def test_a_quota_is_not_taken_for_a_limit_that_makes_waits_longer_nor_for_growth() -> None:
    both = f"{SLOW},traffic.speed=2"
    found = of_lanes(lane("captured"), lane(SLOW), lane(both), lane("consumer.fetch.max.bytes=1MiB"))
    assert [row["scenario"] for row in consumers_under_limits(found)] == ["captured", "consumer.fetch.max.bytes=1MiB"]
    assert [name for name, _ in throttling_by_lane(found)] == [
        "consumer_byte_rate=1 MiB",
        "consumer_byte_rate=1 MiB and traffic.speed=2",
    ]
    assert [*growth_cards(found)] == []
