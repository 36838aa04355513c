"""The limits of a scenario's lanes, as arrays."""

from __future__ import annotations

import numpy as np
import pytest

from schemas.tables.gold_limits import PARTITION_LIMIT_HEADROOM
from tests.unit.replay.partition_limits.clusters import (
    BROKER_LIMIT,
    CLUSTER_LIMIT,
    MUTATION_RATE,
    PROPOSAL,
    changing,
    created,
    replay,
    settings_of,
)
from udfs.replay.partition_limits.schedule import UNLIMITED


def test_a_lane_has_the_limits_of_both_schedules_at_every_time() -> None:
    lanes = {"a": {BROKER_LIMIT: changing(4, (10, 6)), CLUSTER_LIMIT: changing(UNLIMITED, (5, 7), (10, 8))}}
    limits = settings_of(lanes).limits_at(1, np.array([0, 5, 9, 10, 11]))
    assert limits["max_broker_partitions"].tolist() == [4, 4, 4, 6, 6]
    assert limits["max_partitions"].tolist() == [UNLIMITED, 7, 7, 8, 8]
    assert settings_of(lanes).limits_at_end()["max_partitions"].tolist() == [UNLIMITED, 8]


def test_a_setting_that_a_lane_does_not_set_is_the_one_in_force() -> None:
    in_force: dict[str, int | str | float] = {"kafka": "4.4", MUTATION_RATE: 5}
    settings = settings_of({"quota": {MUTATION_RATE: "none"}, "proposal": PROPOSAL}, in_force)
    assert settings.names == ("captured", "quota", "proposal")
    assert settings.settings["mutation_rate"].tolist() == [5, 0, 5]
    assert settings.settings["mutation_burst"].tolist() == [55, 0, 55]
    assert settings.settings["has_kraft"].tolist() == [1, 1, 0]
    assert settings.settings["checks_growth"].tolist() == [1, 1, 0]
    assert settings.quota_is_known


@pytest.mark.parametrize(
    ("release", "controller", "has_kraft"),
    [
        ("2.4", "kraft", 0),
        ("3.2", "kraft", 0),
        ("3.7", "kraft", 1),
        ("3.9", "zookeeper", 0),
        ("3.9", "kraft", 1),
        ("4.0", "zookeeper", 1),
    ],
)
def test_the_controller_is_krafts_since_4_0_and_from_3_3_on_unless_stated(
    release: str, controller: str, has_kraft: int
) -> None:
    settings = settings_of({}, {"kafka": release, "controller": controller})
    assert settings.settings["has_kraft"].tolist() == [has_kraft]


def test_a_part_of_the_lanes_has_their_limits() -> None:
    settings = settings_of({"a": {BROKER_LIMIT: 4}, "b": {BROKER_LIMIT: changing(5, (9, 6))}}).part(1, 3)
    assert settings.names == ("a", "b")
    assert settings.limits_at(1, np.array([8, 9]))["max_broker_partitions"].tolist() == [5, 6]


def test_a_topic_requested_without_counts_has_those_of_the_brokers() -> None:
    """num.partitions 4 and default.replication.factor 2."""
    h = PARTITION_LIMIT_HEADROOM
    (row,) = replay([created(1, "a", -1, -1)], {"a": {CLUSTER_LIMIT: 100}})[h]
    assert row[h.partitions] == 8
