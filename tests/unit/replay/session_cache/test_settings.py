"""The settings of a broker's session cache in each lane."""

from __future__ import annotations

import pytest

from udfs.replay.session_cache.settings import (
    CACHE_SHARDS,
    CURRENT,
    EVICTION_MS,
    KIP_TEXT,
    OLDEST_CREATED,
    SLOTS,
    session_lanes,
)
from udfs.replay.shared.lanes import KAFKA_RELEASE, TRAFFIC_SPEED, LaneSettings, Value

IN_FORCE: dict[str, Value] = {SLOTS: 1000, EVICTION_MS: 120_000}


def captured_lane(stated: dict[str, Value]) -> tuple[int, ...]:
    """(slots of a shard, shards, eviction_ms, rules)."""
    settings = session_lanes(LaneSettings(("captured",), ({},), IN_FORCE | stated)).settings
    return tuple(settings[0].item()[:4])


@pytest.mark.parametrize(
    ("release", "shards", "rules"),
    [
        ("4.3", 8, CURRENT),
        ("3.8", 8, CURRENT),
        ("3.7", 1, CURRENT),
        ("3.2", 1, CURRENT),
        ("2.7", 1, CURRENT),
        ("2.4", 1, OLDEST_CREATED),
        ("kip", 1, KIP_TEXT),
    ],
)
def test_a_release_has_its_shards_and_its_rules_of_eviction(release: str, shards: int, rules: int) -> None:
    assert captured_lane({KAFKA_RELEASE: release}) == (1000 // shards, shards, 120_000, rules)


def test_without_a_release_shards_and_rules_are_todays() -> None:
    assert captured_lane({}) == (125, 8, 120_000, CURRENT)


def test_the_number_of_shards_can_be_stated_whatever_the_release() -> None:
    assert captured_lane({KAFKA_RELEASE: "2.4", CACHE_SHARDS: 3}) == (333, 3, 120_000, OLDEST_CREATED)


def test_at_twice_the_traffic_a_session_is_idle_after_twice_as_long_by_the_captures_clock() -> None:
    """Clients come and go twice as fast, but a broker's time stays as it is."""
    lanes = session_lanes(LaneSettings(("captured", "faster"), ({}, {TRAFFIC_SPEED: 2.0}), IN_FORCE))
    assert lanes.settings["eviction_ms"].tolist() == [120_000, 240_000]
    assert lanes.settings["speed"].tolist() == [1.0, 2.0]


def test_a_lane_changes_only_what_it_sets() -> None:
    changed: tuple[dict[str, Value], ...] = ({}, {SLOTS: 80}, {KAFKA_RELEASE: "3.7"}, {EVICTION_MS: 5})
    lanes = session_lanes(LaneSettings(("captured", "fewer", "older", "sooner"), changed, IN_FORCE))
    assert lanes.names == ("captured", "fewer", "older", "sooner")
    assert lanes.settings["slots"].tolist() == [125, 10, 1000, 125]
    assert lanes.settings["shards"].tolist() == [8, 8, 1, 8]
    assert lanes.settings["eviction_ms"].tolist() == [120_000, 120_000, 120_000, 5]


def test_a_broker_with_a_number_of_slots_of_its_own_has_it_in_every_lane_that_sets_none() -> None:
    in_force = IN_FORCE | {"broker.2.max.incremental.fetch.session.cache.slots": 16}
    lanes = session_lanes(LaneSettings(("captured", "more"), ({}, {SLOTS: 80}), in_force))
    assert lanes.of_broker("1").settings["slots"].tolist() == [125, 10]
    assert lanes.of_broker("2").settings["slots"].tolist() == [2, 10]
