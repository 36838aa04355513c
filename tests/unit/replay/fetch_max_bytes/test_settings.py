"""How the replay of fetch.max.bytes takes a scenario's settings."""

from __future__ import annotations

from udfs.replay.fetch_max_bytes.settings import FetchLanes, Reader, fetch_lanes
from udfs.replay.shared.lanes import LaneSettings, Value

APP, FETCHER = Reader("app", "10.0.0.1", "consumer"), Reader("broker-1-fetcher-0", "10.0.0.2", "follower")
IN_FORCE: dict[str, Value] = {
    "broker.fetch.max.bytes": 55 << 20,
    "broker.quota.window.num": 11,
    "broker.quota.window.size.seconds": 1,
    "consumer.max.poll.records": 500,
}


def lanes_of(in_force: dict[str, Value], *changed: dict[str, Value]) -> FetchLanes:
    """The captured lane and others. in_force: the settings that were in force besides IN_FORCE."""
    names = ("captured", *(f"lane {number}" for number in range(1, len(changed) + 1)))
    return fetch_lanes(LaneSettings(names, ({}, *changed), IN_FORCE | in_force))


def test_a_consumers_quota_caps_its_responses_at_ten_seconds_of_it_and_no_followers() -> None:
    """KafkaApis: min(request, fetch.max.bytes, quota x (quota.window.num - 1) x quota.window.size.seconds)."""
    rates: list[Value] = [1 << 20, 8 << 20, "none"]
    lanes = lanes_of({"consumer_byte_rate": 1000}, *({"consumer_byte_rate": rate} for rate in rates))
    assert lanes.limits(APP)["broker_max_bytes"].tolist() == [10_000, 10 << 20, 55 << 20, 55 << 20]
    assert lanes.limits(FETCHER)["broker_max_bytes"].tolist() == [55 << 20] * 4


def test_without_a_quota_the_brokers_limit_holds() -> None:
    lanes = lanes_of({}, {"broker.fetch.max.bytes": 1 << 20})
    assert lanes.limits(APP)["broker_max_bytes"].tolist() == [55 << 20, 1 << 20]


def test_a_broker_with_a_limit_of_its_own_has_it_in_every_lane_that_sets_none() -> None:
    lanes = lanes_of({"broker.2.fetch.max.bytes": 60_000}, {"broker.fetch.max.bytes": 1 << 20})
    assert lanes.limits(APP, "2")["broker_max_bytes"].tolist() == [60_000, 1 << 20]
    assert lanes.limits(FETCHER, "2")["broker_max_bytes"].tolist() == [60_000, 1 << 20]
    assert lanes.limits(APP, "1")["broker_max_bytes"].tolist() == [55 << 20, 1 << 20]
    assert [lanes.row_of_broker(broker) for broker in ("1", "2", None)] == [0, 1, 0]
    assert lanes.limits_by_row(APP)["broker_max_bytes"].tolist() == [[55 << 20, 1 << 20], [60_000, 1 << 20]]
    assert not lanes.equals(lanes_of({}, {"broker.fetch.max.bytes": 1 << 20}), APP)


def test_the_smaller_of_a_quota_and_of_a_brokers_own_limit_counts() -> None:
    rates: dict[str, Value] = {"consumer_byte_rate": 1000}
    lanes = lanes_of({"broker.2.fetch.max.bytes": 6000}, rates)
    assert lanes.limits(APP, "2")["broker_max_bytes"].tolist() == [6000, 6000]
    assert lanes.limits(APP, "1")["broker_max_bytes"].tolist() == [55 << 20, 10_000]
