"""What a scenario's settings are to the replay of fetch.max.bytes."""

from __future__ import annotations

from jobs.replays.fetch_max_bytes.settings import fetch_lanes
from jobs.scenarios.scenario import Lane
from jobs.scenarios.settings import Value

CAPTURED: dict[str, Value] = {"broker.fetch.max.bytes": 55 << 20, "consumer.max.poll.records": 500}


def test_a_consumers_quota_caps_its_responses_at_ten_seconds_of_it_and_those_of_no_follower() -> None:
    """KafkaApis: min(request, fetch.max.bytes, quota x (quota.window.num - 1) x quota.window.size.seconds)."""
    lanes = fetch_lanes(
        [
            Lane("captured", {}),
            Lane("more", {"consumer_byte_rate": 1 << 20}),
            Lane("most", {"consumer_byte_rate": 8 << 20}),
            Lane("no quota", {"consumer_byte_rate": "none"}),
        ],
        CAPTURED | {"consumer_byte_rate": 1000},
    )
    assert lanes.consumer.broker_max_bytes.tolist() == [10_000, 10 << 20, 55 << 20, 55 << 20]
    assert lanes.follower.broker_max_bytes.tolist() == [55 << 20] * 4


def test_without_a_quota_the_brokers_limit_holds() -> None:
    lanes = fetch_lanes([Lane("captured", {}), Lane("less", {"broker.fetch.max.bytes": 1 << 20})], CAPTURED)
    assert lanes.consumer.broker_max_bytes.tolist() == [55 << 20, 1 << 20]
