"""Settings as arrays with a value for each lane."""

from __future__ import annotations

import numpy as np
import pytest

from udfs.replay.shared.lanes import (
    AS_CAPTURED,
    NO_LIMIT,
    PROPOSAL,
    TRAFFIC_SPEED,
    LaneSettings,
    Value,
    stated_release_numbers,
)

LANES = LaneSettings(("captured", "more", "none"), ({}, {"step": 0.5, "bytes": 7}, {"bytes": NO_LIMIT}), {"bytes": 5})


def test_a_lane_has_its_own_value_else_the_one_in_force() -> None:
    assert LANES.values("bytes") == [5, 7, NO_LIMIT]
    assert LANES.ints("bytes", unset=-2).tolist() == [5, 7, -2]
    assert LANES.ints("step_of_another").tolist() == [0, 0, 0]
    assert LANES.changed_ints("bytes_of_another").tolist() == [AS_CAPTURED] * 3


def test_a_number_that_nobody_sets_is_0() -> None:
    singles = LANES.singles("step")
    assert (singles.tolist(), singles.dtype) == ([0, 0.5, 0], np.float32)


def test_a_choice_is_its_code_and_traffic_is_as_fast_as_captured_unless_a_lane_says_otherwise() -> None:
    lanes = LaneSettings(("captured", "faster"), ({}, {TRAFFIC_SPEED: 2.5, "codec": "lz4"}), {"codec": "zstd"})
    assert lanes.choices("codec", ["none", "lz4"]).tolist() == [AS_CAPTURED, 1]
    assert lanes.choices("codec", {"zstd": 4, "lz4": 3}).tolist() == [4, 3]
    assert lanes.traffic_speed.tolist() == [1.0, 2.5]


@pytest.mark.parametrize(("stated", "numbers"), [("3.10", (3, 10)), (PROPOSAL, None), (None, None)])
def test_a_release_is_compared_by_its_numbers_and_a_proposal_has_none(
    stated: str | None, numbers: tuple[int, ...] | None
) -> None:
    assert stated_release_numbers(stated) == numbers


LIMIT, RACK = "broker.fetch.max.bytes", "broker.rack"
IN_FORCE: dict[str, Value] = {LIMIT: 5, "broker.2.fetch.max.bytes": 3, "broker.12.broker.rack": "b"}
OF_BROKERS = LaneSettings(("captured", "more"), ({}, {LIMIT: 7}), IN_FORCE)


def test_a_value_that_is_stated_for_one_broker_is_in_force_there_and_a_lane_has_one_value_for_all() -> None:
    assert {broker: OF_BROKERS.of_broker(broker).ints(LIMIT).tolist() for broker in ("1", "2", "12")} == {
        "1": [5, 7], "2": [3, 7], "12": [5, 7],
    }  # fmt: skip
    assert OF_BROKERS.of_broker("12").values(RACK) == ["b", "b"]


def test_only_brokers_with_a_value_of_their_own_are_named() -> None:
    assert OF_BROKERS.brokers_with(LIMIT) == ["2"]
    assert OF_BROKERS.brokers_with("broker.queued.max.request.bytes") == []
