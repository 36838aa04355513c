"""Which clients quotas throttled in the capture, and which quota it was, as far as responses show that."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import Row

from jobs.report_page.cards import quota_cards
from jobs.report_page.fetch_max_bytes.throttles import captured_throttles, throttled_clients
from jobs.report_page.verdict import quota_lines
from tests.unit.report.findings import findings


def throttled(client: str | None, api: str, total: int, long: int = 0, in_all: int = 1, connections: int = 1) -> Row:
    return Row(client_id=client, api_name=api, connections=connections, total=total, long=long, in_all=in_all)


def told(*rows: Row) -> list[str]:
    return [text for _, text in captured_throttles(findings({throttled_clients: list(rows)}))]


def test_throttle_times_that_are_longer_than_a_window_are_not_by_request_percentage() -> None:
    assert told(throttled("app", "FETCH", 5_500, 5_000)) == [
        "1 client was throttled, app for 5.5 s: 5 s by consumer_byte_rate, "
        "500 ms by consumer_byte_rate or request_percentage"
    ]
    assert told(throttled("app", "PRODUCE", 300)) == [
        "1 client was throttled, app for 300 ms: 300 ms by producer_byte_rate or request_percentage"
    ]


def test_a_sum_over_several_connections_says_so_because_they_are_throttled_at_the_same_time() -> None:
    assert told(throttled("app", "FETCH", 81_000, 81_000, connections=9), throttled("app", "METADATA", 400)) == [
        "1 client was throttled, app for 81.4 s, added up over 9 connections: 81 s by consumer_byte_rate, "
        "400 ms by request_percentage"
    ]


def test_requests_without_another_quota_were_throttled_by_request_percentage() -> None:
    assert told(
        throttled("app", "METADATA", 700), throttled("app", "OFFSET_COMMIT", 300), throttled("b", "FETCH", 9)
    ) == ["2 clients were throttled, app for 1 s: 1 s by request_percentage"]


def test_with_windows_of_another_length_either_quota_may_have_throttled_a_fetch() -> None:
    found = findings({throttled_clients: [throttled(None, "FETCH", 5_000, 5_000)]})
    stated = replace(found, captured={"broker.quota.window.size.seconds": 2})
    assert [text for _, text in captured_throttles(stated)] == [
        "1 client was throttled, (no client.id) for 5 s: 5 s by consumer_byte_rate or request_percentage"
    ]


def test_screen_and_page_show_captured_throttling_and_nothing_if_nobody_was_throttled() -> None:
    found = findings({throttled_clients: [throttled("app", "CREATE_TOPICS", 2_000, 2_000, in_all=30)]})
    text = "1 or more clients were throttled, app for 2 s: 2 s by controller_mutation_rate"
    assert " ".join(" ".join(quota_lines(found)).split()) == f"QUOTA as captured {text}"
    assert [card.lines for card in quota_cards(found)] == [[f"as captured: {text}"]]
    assert [*quota_lines(findings()), *quota_cards(findings())] == []
