"""Numbers, names and lanes as people say them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from jobs.terminal.screen import with_short_words, wrapped_lines
from jobs.terminal.wording import (
    capitalized,
    changed_settings,
    duration,
    elapsed_times,
    lane_heading,
    lane_label,
    lane_phrase,
    lanes_phrase,
    owner_phrase,
    percent,
    quantity,
)

LANE = "consumer.fetch.max.bytes=256KiB,consumer.max.partition.fetch.bytes=1MiB"
AT = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("ms", "said"),
    [(None, "-"), (0, "0 ms"), (0.4, "0.4 ms"), (9.96, "10 ms"), (105.2, "105 ms"), (1000, "1 s"), (2345, "2.3 s"),
     (150_000, "2.5 min"), (10_800_000, "3 h"), (432_000_000, "5 days")],
)  # fmt: skip
def test_a_time_has_the_unit_that_suits_it(ms: float | None, said: str) -> None:
    assert duration(ms) == said


@pytest.mark.parametrize(
    ("share", "said"),
    [(None, "-"), (0, "0 %"), (1, "100 %"), (0.5, "50.0 %"), (0.00001, "0.01 %"), (0.99999, "99.99 %"),
     (0.004, "0.40 %"), (1.6, "160.0 %"), (25.0, "2,500.0 %")],
)  # fmt: skip
def test_a_share_is_0_or_100_percent_only_if_it_is_exactly_that(share: float | None, said: str) -> None:
    assert percent(share) == said


def test_one_is_in_the_singular() -> None:
    assert [quantity(count, "fetch", "fetches") for count in (0, 1, 2345)] == ["0 fetches", "1 fetch", "2,345 fetches"]


def test_a_lane_is_said_in_kafkas_own_names() -> None:
    assert lane_phrase(LANE) == "with fetch.max.bytes=256 KiB and max.partition.fetch.bytes=1 MiB"
    assert lane_phrase("captured") == "with the captured settings"


def test_a_setting_that_two_clients_have_is_prefixed_with_its_client_unless_it_comes_first() -> None:
    assert changed_settings("consumer.buffer.memory=1MiB,producer.buffer.memory=32MiB") == {
        "buffer.memory": "1 MiB",
        "producer.buffer.memory": "32 MiB",
    }


def test_a_label_has_the_values_and_the_heading_has_the_settings() -> None:
    assert [lane_label(lane) for lane in ("captured", LANE)] == ["captured", "256 KiB · 1 MiB"]
    assert lane_heading(["captured", LANE]) == "fetch.max.bytes · max.partition.fetch.bytes"
    assert lane_heading(["captured"]) == "lane"


def test_a_limit_that_changes_with_time_keeps_its_spelling() -> None:
    lane = "max.partitions=500 until 2026-11-21T12:19:44Z then 900"
    assert lane_label(lane) == "500 until 2026-11-21T12:19:44Z then 900"


def test_a_sentence_begins_with_a_capital_and_settings_keep_their_case() -> None:
    assert capitalized("with NumFetchSessionCacheShards=1") == "With NumFetchSessionCacheShards=1"


@pytest.mark.parametrize(("seconds", "unit"), [(3, "seconds"), (600, "minutes"), (9000, "hours"), (900_000, "days")])
def test_elapsed_time_has_the_unit_that_suits_the_span(seconds: int, unit: str) -> None:
    since, told = elapsed_times([AT, AT + timedelta(seconds=seconds)])
    assert told == f"{unit} since 2026-01-31 12:00:00 UTC"
    assert since[0] == 0
    assert 2 <= since[1] < 61


def test_lanes_of_a_grid_are_described_by_the_values_tried() -> None:
    grid = [
        f"consumer.fetch.max.bytes={limit},order={order}" for limit in ("1MiB", "8MiB") for order in ("fixed", "any")
    ]
    assert lanes_phrase(["captured", *grid]) == (
        "captured; every combination of consumer.fetch.max.bytes=1MiB,8MiB and order=fixed,any"
    )
    assert lanes_phrase(["captured", *grid[:3]]) == f"captured; {'; '.join(grid[:3])}"
    assert lanes_phrase(["captured", "max.partitions=4", "max.partitions=9"]) == "captured; max.partitions=4,9"
    assert lanes_phrase(["captured"]) == "captured"
    assert (
        lanes_phrase(["max.partitions=4", "max.partitions=9,kafka=kip"])
        == "max.partitions=4; max.partitions=9,kafka=kip"
    )


def test_a_name_of_many_lines_is_cut_in_its_middle_on_the_screen() -> None:
    longest, longer = "t" * 249, "a" * 5000 + "z" * 5000
    assert with_short_words(f"{longest} waits") == f"{longest} waits"
    assert wrapped_lines("   7  ", f"{longer} waits") == [f"   7  {'a' * 60}…{'z' * 53}", f"      {'z' * 7} waits"]


def test_a_count_of_one_client_says_whether_it_is_all_most_or_the_largest_part() -> None:
    assert owner_phrase("app", 1, 1) == "from app"
    assert owner_phrase("app", 4, 4) == "all from app"
    assert owner_phrase("app", 4, 6) == "most of them from app (4)"
    assert owner_phrase("app", 1, 5) == "no client has more than app (1)"
