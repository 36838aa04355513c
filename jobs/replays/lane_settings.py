"""Turns a scenario's lanes into the settings that a replay takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobs.scenarios.scenario import Lane, Scenario
from jobs.scenarios.settings import settings
from udfs.replay.shared.lanes import LaneSettings, Value


def lane_settings(scenario: Scenario, algorithm: str, in_force: Mapping[str, Value]) -> LaneSettings:
    """The lanes of one algorithm, with the settings in force, and Kafka's default for what `in_force` lacks."""
    return settings_of_lanes(scenario.lanes(algorithm), in_force)


def settings_of_lanes(lanes: Sequence[Lane], in_force: Mapping[str, Value]) -> LaneSettings:
    """These lanes, first the captured one, with the settings in force; Kafka's default for what `in_force` lacks."""
    defaults = {key: value for key, setting in settings().items() if (value := setting.default_value) is not None}
    return LaneSettings(
        tuple(lane.name for lane in lanes), tuple(lane.settings for lane in lanes), {**defaults, **in_force}
    )
