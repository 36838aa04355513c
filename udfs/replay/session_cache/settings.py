"""What a lane sets of a broker's cache of fetch sessions, as arrays by lane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from udfs.columns.arrays import Records
from udfs.replay.shared.lanes import LaneSettings, Value

SLOTS = "broker.max.incremental.fetch.session.cache.slots"
EVICTION_MS = "broker.min.incremental.fetch.session.eviction.ms"
CACHE_SHARDS = "broker.NumFetchSessionCacheShards"
RELEASE = "kafka"

SHARDS = 8
"""NumFetchSessionCacheShards of Kafka 3.8 and later."""
UNLIMITED = (1 << 31) - 1
"""Slots of a shard that no broker fills: the setting cannot be more."""
CURRENT, OLDEST_CREATED, KIP_TEXT = range(3)
"""Rules of eviction: today's; those before KAFKA-9137; those of the KIP's text."""
PROFILES: Mapping[Value | None, tuple[int, int]] = {
    "3.7": (1, CURRENT),  # before KAFKA-9401
    "2.4": (1, OLDEST_CREATED),  # before KAFKA-9137
    "kip": (1, KIP_TEXT),
}
"""(shards, rules of eviction) by release, where they are not today's."""

SETTINGS = np.dtype(
    [
        ("slots", np.int64),  # of each shard
        ("shards", np.int64),
        ("eviction_ms", np.int64),
        ("rules", np.int64),  # of eviction: CURRENT, OLDEST_CREATED or KIP_TEXT
    ]
)
"""What a lane sets of its cache."""


@dataclass(frozen=True)
class SessionLanes:
    """The lanes of a replay: their names, and SETTINGS[lanes]."""

    names: tuple[str, ...]
    settings: Records


def session_lanes(lanes: LaneSettings) -> SessionLanes:
    """The settings of each lane; the number of shards is the release's unless the lane sets it."""
    profiles = [PROFILES.get(release, (SHARDS, CURRENT)) for release in lanes.values(RELEASE)]
    stated = lanes.values(CACHE_SHARDS)
    shards = [of_release if of is None else int(of) for of, (of_release, _) in zip(stated, profiles, strict=True)]
    rules = [of_release for _, of_release in profiles]
    return SessionLanes(lanes.names, cache_settings(lanes.ints(SLOTS), shards, lanes.ints(EVICTION_MS), rules))


def cache_settings(
    slots: npt.ArrayLike, shards: npt.ArrayLike, eviction_ms: npt.ArrayLike, rules: npt.ArrayLike
) -> Records:
    """SETTINGS[lanes] from a value for each lane, or one for all. slots: of all shards together; what does not divide
    evenly is lost, as in Kafka.
    """
    columns = np.broadcast_arrays(np.asarray(slots) // shards, shards, eviction_ms, rules)
    settings = np.zeros(np.size(columns[0]), SETTINGS)
    for name, column in zip(SETTINGS.fields or (), columns, strict=True):
        settings[name] = column
    return settings


def with_unlimited(settings: Records) -> Records:
    """The lanes, and behind them one for each number of shards, which never has to refuse or evict."""
    shards = np.unique(settings["shards"])
    unlimited = cache_settings(UNLIMITED * shards, shards, 0, CURRENT)
    return np.concatenate([settings, unlimited])
