"""Fetch limits and traffic in the replay of memory: which lanes share them, and what consumers get under them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jobs.replays.lane_settings import settings_of_lanes
from jobs.scenarios.scenario import CAPTURED_LANE, Lane, Scenario
from jobs.scenarios.settings import Value
from schemas.tables import algorithms
from schemas.tables.values import CONSUMER
from udfs.columns.arrays import Ints, Records
from udfs.columns.records import new_records
from udfs.replay.consumer_memory.settings import FETCH_LIMITS
from udfs.replay.fetch_max_bytes.settings import (
    BROKER_MAX_BYTES,
    MAX_POLL_RECORDS,
    REQUEST_LIMITS,
    US_PER_RECORD,
    FetchLanes,
    Reader,
    fetch_lanes,
)
from udfs.replay.shared.lanes import AS_CAPTURED, TRAFFIC_CONSUMERS, TRAFFIC_SPEED

LIMITS = (*REQUEST_LIMITS[CONSUMER], MAX_POLL_RECORDS, BROKER_MAX_BYTES, TRAFFIC_SPEED, TRAFFIC_CONSUMERS)
"""Settings that change responses: a lane that changes one takes its responses from the closed loop."""


def distinct_fetch_limits(lanes: Sequence[Lane], captured: Mapping[str, Value]) -> tuple[Ints, FetchLanes]:
    """(the index of each lane's fetch limits, int64[lanes]; the fetch limits, of which the first are the captured)."""
    changed = [limits_alone(lane) for lane in lanes]
    names = list(dict.fromkeys([CAPTURED_LANE, *(lane.name for lane in changed)]))
    by_name = {CAPTURED_LANE: Lane(CAPTURED_LANE, {})} | {lane.name: lane for lane in changed}
    numbers = np.array([names.index(lane.name) for lane in changed], np.int64)
    return numbers, fetch_lanes(settings_of_lanes([by_name[name] for name in names], captured))


def limits_of_consumers(limits: FetchLanes) -> Records:
    """FETCH_LIMITS: the limits for a consumer that has no quota by name. If brokers have different fetch.max.bytes, the
    largest counts, because these limits are bounds for all brokers.
    """
    reader = Reader("", "", CONSUMER)
    of, consumers = limits.limits(reader), limits.consumer_client["readers"]
    return new_records(
        FETCH_LIMITS,
        len(limits.names),
        max_bytes=of["max_bytes"],
        partition_max_bytes=of["partition_max_bytes"],
        broker_max_bytes=limits.limits_by_row(reader)["broker_max_bytes"].max(axis=0),
        consumers=np.where(consumers == AS_CAPTURED, 1, consumers),
        speed=limits.traffic_speed,
    )


def limits_of_memory(scenario: Scenario) -> FetchLanes | None:
    """The limits under which the replay of memory needs consumers' responses; None if the scenario needs none."""
    if algorithms.CONSUMER_MEMORY not in scenario.algorithms:
        return None
    numbers, limits = distinct_fetch_limits(scenario.lanes(algorithms.CONSUMER_MEMORY), scenario.captured)
    return limits if numbers.any() else None


def limits_alone(lane: Lane) -> Lane:
    """The lane with only those settings that change the responses of consumers; the captured lane if it has none.

    The pace of applications is kept only with other limits, because without them it changes no response.
    """
    if not any(key in lane.settings for key in LIMITS):
        return Lane(CAPTURED_LANE, {})
    changed = {key: lane.settings[key] for key in (*LIMITS, US_PER_RECORD) if key in lane.settings}
    return Lane(",".join(f"{key}={value}" for key, value in changed.items()), changed)
