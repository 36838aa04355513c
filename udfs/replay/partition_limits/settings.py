"""The limits of each lane: the proposal's, those of the lane's release, and a mutation quota."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schemas.tables.values import ZOOKEEPER
from schemas.wire.releases import BOTH_CONTROLLERS
from udfs.columns.arrays import Ints, Records, read_only, stretch_edges
from udfs.columns.records import int_fields
from udfs.replay.partition_limits.schedule import UNLIMITED, Schedule, parse_schedule
from udfs.replay.shared.lanes import (
    CAPTURED,
    KAFKA_RELEASE,
    NO_LIMIT,
    LaneSettings,
    Value,
    numbers_of_release,
    stated_release_numbers,
)
from udfs.replay.shared.window import WHOLE, Window

CONTROLLER = "controller"
"""The setting that says which controller is used, for a release that exists with both: ZOOKEEPER, or KRaft's."""
KRAFT_SINCE, ZOOKEEPER_UNTIL = map(numbers_of_release, BOTH_CONTROLLERS)
FORWARDED_SINCE = (2, 8)
"""From this release on, the controller makes the topic that a Metadata request names, not the broker (KIP-590)."""
GROWTH_CHECKED_SINCE = (4, 4)
"""The first release that checks a CreatePartitions request as a whole."""
QUOTA_WINDOWS_SECONDS = 11
"""controller.quota.window.num times controller.quota.window.size.seconds, both at their defaults."""

LIMIT_SETTINGS = np.dtype(
    [
        ("has_kraft", np.int64),  # 1: KRaft's limits on a request hold, and StripedReplicaPlacer places
        ("checks_growth", np.int64),  # 1: a CreatePartitions request is refused before it makes too many (4.4)
        ("mutation_rate", np.float64),  # controller_mutation_rate in partitions/s, 0 for no quota
        ("mutation_burst", np.float64),  # partitions that a full bucket of the quota has (KIP-599)
        ("first_step", np.int64),  # the lane's limits over time are steps[first_step:end_step]
        ("end_step", np.int64),
    ]
)
"""The settings of a lane."""

LIMITS_FROM = int_fields("time", "max_broker_partitions", "max_partitions")
"""The limits of KIP-578 (a proposal) in force from a time on (us), UNLIMITED for none."""


class LimitLanes(NamedTuple):
    """The lanes of a replay; the first one is the captured one.

    names: of the lanes. settings: LIMIT_SETTINGS[lanes]. steps: LIMITS_FROM[steps], lane by lane. num_partitions,
    replication_factor: the defaults for a topic whose request states none (num.partitions,
    default.replication.factor). brokers_create_topics: the captured brokers themselves made the topics that Metadata
    requests name, which the proposal exempts; they do so in every lane. window: the time that counts.
    """

    names: tuple[str, ...]
    settings: Records
    steps: Records
    num_partitions: int = 1
    replication_factor: int = 1
    brokers_create_topics: bool = False
    window: Window = WHOLE

    @property
    def placed_by_kraft(self) -> bool:
        """Whether StripedReplicaPlacer placed the captured replicas."""
        return bool(self.settings["has_kraft"][CAPTURED])

    @property
    def quota_is_known(self) -> bool:
        """Whether the controller mutation quota that was in force is stated."""
        return bool(self.settings["mutation_rate"][CAPTURED] > 0)

    def limits_at(self, lane: int, times: Ints) -> Records:
        """The limits in force in a lane at each time: LIMITS_FROM[times]."""
        steps = self.steps[self.settings["first_step"][lane] : self.settings["end_step"][lane]]
        return steps[np.searchsorted(steps["time"], times, "right") - 1]

    def limits_at_end(self) -> Records:
        """The limits in force at the end of each lane, or of the window: LIMITS_FROM[lanes]."""
        end = np.array([self.window.end - 1])
        return np.concatenate([self.limits_at(lane, end) for lane in range(len(self.names))])

    def part(self, first: int, end: int) -> LimitLanes:
        """Only the lanes from `first` up to `end`."""
        return self._replace(names=self.names[first:end], settings=read_only(self.settings[first:end]))


def limit_lanes(lanes: LaneSettings) -> LimitLanes:
    """The settings of a scenario's lanes. The setting `kafka` must be in force."""
    brokers, cluster = (schedules_of_lanes(lanes, key) for key in ("max.broker.partitions", "max.partitions"))
    steps = [limits_over_time(*pair) for pair in zip(brokers, cluster, strict=True)]
    releases = [stated_release_numbers(value) for value in lanes.values(KAFKA_RELEASE)]
    table = np.zeros(len(releases), LIMIT_SETTINGS)
    controller = lanes.in_force.get(CONTROLLER)
    table["has_kraft"] = [has_kraft(release, controller) for release in releases]
    table["checks_growth"] = [release is not None and release >= GROWTH_CHECKED_SINCE for release in releases]
    table["mutation_rate"] = [mutation_rate(value) for value in lanes.values("controller_mutation_rate")]
    table["mutation_burst"] = table["mutation_rate"] * QUOTA_WINDOWS_SECONDS
    ends = stretch_edges([len(lane_steps) for lane_steps in steps])
    table["first_step"], table["end_step"] = ends[:-1], ends[1:]
    return LimitLanes(
        names=lanes.names,
        settings=read_only(table),
        steps=read_only(np.concatenate(steps)),
        num_partitions=int(lanes.in_force.get("broker.num.partitions", 1)),
        replication_factor=int(lanes.in_force.get("broker.default.replication.factor", 1)),
        brokers_create_topics=is_release_before(releases[CAPTURED], FORWARDED_SINCE),
    )


def schedules_of_lanes(lanes: LaneSettings, key: str) -> list[Schedule]:
    """A limit over time in each lane."""
    return [parse_schedule(NO_LIMIT if value is None else str(value)) for value in lanes.values(key)]


def limits_over_time(broker_limit: Schedule, cluster_limit: Schedule) -> Records:
    """Both limits, with a step at each time at which one of them changes: LIMITS_FROM[steps]."""
    times = np.unique([*broker_limit.times, *cluster_limit.times])
    steps = np.zeros(len(times), LIMITS_FROM)
    steps["time"] = times
    steps["max_broker_partitions"], steps["max_partitions"] = broker_limit.at(times), cluster_limit.at(times)
    return steps


def unlimited_lane() -> LimitLanes:
    """A lane without any limit, in which replicas are placed as the proposal does."""
    lane, step = np.zeros(1, LIMIT_SETTINGS), np.array([(-UNLIMITED, UNLIMITED, UNLIMITED)], LIMITS_FROM)
    lane["end_step"] = 1
    return LimitLanes(("unlimited",), read_only(lane), read_only(step))


def is_release_before(release: tuple[int, ...] | None, first: tuple[int, ...]) -> bool:
    """Whether a release is older than `first`. The proposal counts as the newest release."""
    return release is not None and release < first


def has_kraft(release: tuple[int, ...] | None, controller: Value | None) -> bool:
    """Whether a lane's controller is KRaft's. With ZooKeeper, up to 3.9, ZkAdminManager refuses no request for its
    size, and AdminUtils places replicas; the proposal places them in the same way as long as no broker is full. A
    release that exists with both has the stated controller, or KRaft's if none is stated.
    """
    if release is None or release < KRAFT_SINCE:
        return False
    return release > ZOOKEEPER_UNTIL or controller != ZOOKEEPER


def mutation_rate(value: Value | None) -> float:
    """Partitions a second, 0 for no quota."""
    return 0.0 if value is None or value == NO_LIMIT else float(value)
