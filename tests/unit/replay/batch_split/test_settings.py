"""What a scenario's settings are to the replay of KIP-126."""

from __future__ import annotations

from jobs.replays.batch_split.job import split_lanes
from jobs.scenarios.scenario_file import resolve_scenario
from jobs.scenarios.settings import settings

TOPICS = ["orders", "max.message.bytes", "clicks"]
CREATED = {"clicks": 5000}


def limits(sets: list[str], stated: list[str]) -> dict[str, list[int]]:
    """max.message.bytes of TOPICS by lane, `clicks` having been created with its own."""
    scenario = resolve_scenario(None, [*sets, "batch.size=16384"], stated)
    lanes = split_lanes(scenario)
    return dict(zip(lanes.names, lanes.limits.of(TOPICS, CREATED, {}).tolist(), strict=True))


def test_a_topic_has_its_own_limit_or_the_brokers() -> None:
    assert limits([], [])["captured"] == [1048588, 1048588, 5000]
    assert limits([], ["message.max.bytes=2MB"])["captured"] == [2_000_000, 2_000_000, 5000]


def test_what_is_stated_of_a_topic_goes_before_what_is_stated_of_all_and_that_before_the_capture() -> None:
    own = ["topic.orders.max.message.bytes=40000", "topic.max.message.bytes.max.message.bytes=30000"]
    assert limits([], own)["captured"] == [40000, 30000, 5000]
    assert limits([], ["max.message.bytes=1MB", *own])["captured"] == [40000, 30000, 1_000_000]


def test_what_a_lane_says_of_all_topics_goes_before_what_is_stated_of_one() -> None:
    stated, lane = ["topic.orders.max.message.bytes=40000"], "producer.batch.size=16KiB,topic"
    found = limits(["max.message.bytes=1MB", "topic.clicks.max.message.bytes=2MB"], stated)
    assert found["captured"] == [40000, 1048588, 5000]
    assert found[f"{lane}.max.message.bytes=1MB,topic.clicks.max.message.bytes=2MB"] == [10**6, 10**6, 2 * 10**6]
    found = limits(["topic.clicks.max.message.bytes=2MB,3MB"], stated)
    assert found[f"{lane}.clicks.max.message.bytes=3MB"] == [40000, 1048588, 3 * 10**6]


def test_every_release_from_4_2_on_halves_a_split_batch_that_is_refused_again() -> None:
    releases = [release for release in settings()["kafka"].choices if release != "kip"]
    scenario = resolve_scenario(None, [f"kafka={','.join(releases)}", "batch.size=16384"], [])
    lanes = split_lanes(scenario)
    halved = dict(zip(releases, lanes.producers.halves[1:].tolist(), strict=True))
    assert [release for release, halves in halved.items() if halves] == ["4.4", "4.3", "4.2"]


def test_another_message_max_bytes_concerns_topics_without_a_limit_of_their_own() -> None:
    found = limits(["message.max.bytes=3MB"], ["topic.orders.max.message.bytes=40000"])
    assert found["producer.batch.size=16KiB,broker.message.max.bytes=3MB"] == [40000, 3 * 10**6, 5000]
