"""A resolved scenario: the settings that were in force, and the other lanes to replay."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from jobs.scenarios.aims import Aim
from jobs.scenarios.moment import Moment
from jobs.scenarios.settings import (
    Called,
    Value,
    in_catalogue_order,
    key_with_names,
    setting_of,
    settings,
    value_with_names,
)
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.replay.shared.lanes import NO_LIMIT, TRAFFIC, stated_release_numbers
from udfs.replay.shared.window import Window

Grids = Mapping[str, Mapping[str, tuple[Value, ...]]]
"""The values of varied settings, by algorithm and by setting."""
CAPTURED_LANE = "captured"
"""The name of the lane that replays the captured settings, without any change."""

MOST_LANES = 1024
"""The most lanes of one algorithm. A larger grid counts as a mistake: its state would not fit in a task's memory."""


@dataclass(frozen=True)
class Lane:
    """One replay by an algorithm: the settings that it changes, none in the captured lane."""

    name: str
    settings: Mapping[str, Value]


@dataclass(frozen=True)
class Scenario:
    """What to replay. Its identity (`scenario_id`) depends on settings, aims and window, and not on where files are.

    captured: the value in force of each setting that matters for the replays, by key; Kafka's default if nobody stated
    a value. A bound whose value is `none`, by default or as stated, is left out.
    replay: the values of varied settings in ascending order, by algorithm and by setting.
    captures, lake, cluster: as written in the scenario file, resolved against its folder; None if it names none.
    places: the file and line that name a capture, by capture.
    log_zone: the time zone of request logs, as written; None if the file names none.
    assumed: keys of settings that matter for the replays and that nobody stated.
    stated: the values in force that somebody stated, by key.
    names_replays: whether somebody names a replay, or a value to replay; if nobody does, grids are chosen from the
    capture.
    begin, end: those of the window; None for an end that is the capture's own.
    aims: what `find` looks for, by algorithm.
    listed: lanes to replay in addition to the captured one, instead of those of the grid, by algorithm. Searches find
    them. They follow from aims and captures, so they are no part of the identity.
    """

    captured: Mapping[str, Value]
    replay: Grids
    captures: tuple[str, ...] = field(default=(), compare=False)
    places: Mapping[str, str] = field(default_factory=dict, compare=False)
    log_zone: str | None = field(default=None, compare=False)
    lake: str | None = field(default=None, compare=False)
    cluster: str | None = field(default=None, compare=False)
    assumed: tuple[str, ...] = field(default=(), compare=False)
    stated: Mapping[str, Value] = field(default_factory=dict, compare=False)
    names_replays: bool = field(default=True, compare=False)
    aims: Mapping[str, Aim] = field(default_factory=dict)
    listed: Mapping[str, Sequence[Lane]] = field(default_factory=dict, compare=False)
    begin: Moment | None = None
    end: Moment | None = None

    @property
    def window(self) -> Window:
        """The time that counts. Begin and end must be times that are no longer relative to the capture's begin."""
        return Window(ALWAYS if self.begin is None else self.begin.us, NEVER if self.end is None else self.end.us)

    @property
    def without_window(self) -> Scenario:
        """The scenario without its window."""
        return replace(self, begin=None, end=None)

    @property
    def algorithms(self) -> tuple[str, ...]:
        """The algorithms to replay, by name."""
        return tuple(sorted(self.replay))

    def lanes(self, algorithm: str) -> list[Lane]:
        """The captured lane, then the lanes that are listed for this algorithm; without a list, those of its grid.

        Settings of the grid are in catalogue order, and the last one varies fastest. Raises KeyError for an algorithm
        that the scenario does not replay.
        """
        if algorithm in self.listed:
            return [Lane(CAPTURED_LANE, {}), *self.listed[algorithm]]
        grid = self.replay[algorithm]
        keys = in_catalogue_order(grid)
        rows = itertools.product(*(grid[key] for key in keys)) if keys else ()
        varied = (without_captured_traffic(dict(zip(keys, row, strict=True))) for row in rows)
        return [Lane(CAPTURED_LANE, {}), *(make_lane(changed) for changed in varied if changed)]

    def to_json(self) -> str:
        """The canonical form, which is stored with each run. Scenarios with the same meaning have the same text. It has
        no paths.
        """
        grids = {
            algorithm: {key: list(values) for key, values in grid.items()} for algorithm, grid in self.replay.items()
        }
        window = {key: str(moment) for key, moment in (("from", self.begin), ("to", self.end)) if moment is not None}
        plain: dict[str, object] = {"captured": dict(self.captured), "replay": grids, **window}
        if self.aims:
            plain["find"] = {algorithm: aim.to_json_value() for algorithm, aim in self.aims.items()}
        return json.dumps(plain, sort_keys=True, separators=(",", ":"))

    @property
    def scenario_id(self) -> str:
        """SHA-256 of the canonical JSON, 64 hex digits: equal for files that mean the same."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()


def with_grids(scenario: Scenario, grids: Grids) -> Scenario:
    """The scenario with these grids, as if somebody had named them, and the values in force that matter for them."""
    named = {
        *scenario.stated,
        *itertools.chain.from_iterable([*grids.values(), *(aim.over for aim in scenario.aims.values())]),
    }
    of_replays = {
        key: setting for key, setting in settings().items() if setting.captured and set(setting.algorithms) & set(grids)
    }
    names = {setting_of(key).name for key in named}
    needed = {
        key: setting
        for key, setting in of_replays.items()
        if not setting.only_with or not names.isdisjoint(setting.only_with)
    }
    in_force = {key: setting.default_value for key, setting in needed.items()} | dict(scenario.stated)
    return replace(
        scenario,
        captured={
            key: value
            for key, value in in_force.items()
            if value is not None and (value != NO_LIMIT or setting_of(key).is_of_one_broker)
        },
        replay=grids,
        assumed=tuple(key for key in in_force if key not in scenario.stated),
        names_replays=True,
    )


def with_defaults_of(scenario: Scenario, release: str | None) -> Scenario:
    """The scenario with the defaults of a release's brokers, for broker settings that nobody states.

    release: a value of the setting `kafka`; None if none is known.
    """
    numbers = stated_release_numbers(release)
    of_brokers = [key for key in scenario.assumed if setting_of(key).set_on == "broker"]
    earlier = {key: value for key in of_brokers if (value := setting_of(key).default_in(numbers)) is not None}
    known = {key: value for key, value in earlier.items() if key in scenario.captured}
    return replace(scenario, captured={**scenario.captured, **known})


def with_names(scenario: Scenario, called: Called) -> Scenario:
    """The scenario with the lake's names for racks, and with its names for topics, users and client.ids in the keys of
    settings that are for one of them.
    """
    grids = {
        algorithm: {key_with_names(key, called): values for key, values in grid.items()}
        for algorithm, grid in scenario.replay.items()
    }
    captured, stated = (
        {key_with_names(key, called): value_with_names(key, value, called) for key, value in values.items()}
        for values in (scenario.captured, scenario.stated)
    )
    aims = {
        name: replace(aim, over={key_with_names(key, called): values for key, values in aim.over.items()})
        for name, aim in scenario.aims.items()
    }
    return replace(scenario, captured=captured, replay=grids, stated=stated, aims=aims)


def lane_count(grid: Mapping[str, Sequence[object]]) -> int:
    """The number of lanes of a grid, including the captured lane."""
    return 1 + (math.prod(map(len, grid.values())) if grid else 0)


def without_captured_traffic(changed: Mapping[str, Value]) -> dict[str, Value]:
    """What a lane changes, without `traffic.speed` and `traffic.consumers` if these are 1, which is as captured."""
    return {key: value for key, value in changed.items() if key not in TRAFFIC or value != 1}


def make_lane(changed: Mapping[str, Value]) -> Lane:
    """The lane that changes these settings, in their order."""
    name = ",".join(f"{key}={setting_of(key).format(value)}" for key, value in changed.items())
    return Lane(name, changed)
