"""The settings of each lane for a broker's cache of fetch sessions, as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from udfs.columns.arrays import Ints, Records
from udfs.replay.session_cache.share_sessions.state import SHARE_SETTINGS
from udfs.replay.shared.lanes import (
    KAFKA_RELEASE,
    PROPOSAL,
    TRAFFIC_CONSUMERS,
    LaneSettings,
    Value,
    stated_release_numbers,
)
from udfs.replay.shared.window import WHOLE, Window

SLOTS = "broker.max.incremental.fetch.session.cache.slots"
EVICTION_MS = "broker.min.incremental.fetch.session.eviction.ms"
CACHE_SHARDS = "broker.NumFetchSessionCacheShards"
SHARE_LIMIT = "broker.group.share.max.share.sessions"

SHARDS = 8
"""NumFetchSessionCacheShards since SHARDED_SINCE (KAFKA-9401). Before that, there was one cache."""
SHARDED_SINCE = (3, 8)
"""The first release whose cache has several shards."""
NEWEST_CREATED_SINCE = (2, 5)
"""The first release that no longer evicts sessions by their time of creation (KAFKA-9137)."""
MARKS_STALE_SINCE = (4, 2)
"""From this release on, the end of a connection does not end a share session that another connection has opened
since."""
UNLIMITED = (1 << 31) - 1
"""More slots of a shard than any broker can fill: the setting cannot be larger."""
CURRENT, OLDEST_CREATED, KIP_TEXT = range(3)
"""Rules of eviction: the current ones, those before KAFKA-9137, and those of KIP-227's text."""

CACHE_SETTINGS = np.dtype(
    [
        ("slots", np.int64),  # of each shard
        ("shards", np.int64),
        ("eviction_ms", np.int64),  # min.incremental.fetch.session.eviction.ms, by the capture's clock
        ("rules", np.int64),  # of eviction: CURRENT, OLDEST_CREATED or KIP_TEXT
        ("consumers", np.int64),  # how many share the partitions of each captured one
        ("removes_idle", np.int64),  # 1: a session is removed once any session may evict it, even if there is room
        ("speed", np.float64),  # factor by which the capture's clock is faster than that of brokers and clients
    ]
)
"""The settings of a lane for its cache."""


@dataclass(frozen=True)
class SessionLanes:
    """The lanes of a replay. settings: CACHE_SETTINGS[lanes]. window: the time that counts. own_slots: the slots of
    each shard in each lane, int64[lanes], of each broker for which another number is stated than for all, by its name.
    """

    names: tuple[str, ...]
    settings: Records
    window: Window = WHOLE
    own_slots: Mapping[str, Ints] = field(default_factory=dict)

    def of_broker(self, broker: str) -> SessionLanes:
        """The lanes at one broker."""
        if broker not in self.own_slots:
            return self
        settings = self.settings.copy()
        settings["slots"] = self.own_slots[broker]
        return replace(self, settings=settings)


@dataclass(frozen=True)
class ShareLanes:
    """The lanes of the replay of share sessions. settings: SHARE_SETTINGS[lanes]. window: the time that counts."""

    names: tuple[str, ...]
    settings: Records
    window: Window = WHOLE


def share_lanes(lanes: LaneSettings, window: Window = WHOLE) -> ShareLanes:
    """The settings of each lane for the cache of share sessions (KIP-932)."""
    settings = np.zeros(len(lanes.names), SHARE_SETTINGS)
    settings["limit"] = lanes.ints(SHARE_LIMIT)
    releases = [None if release is None else stated_release_numbers(release) for release in lanes.values(KAFKA_RELEASE)]
    settings["marks_stale"] = [numbers is None or numbers >= MARKS_STALE_SINCE for numbers in releases]
    return ShareLanes(lanes.names, settings, window)


def with_unlimited_shares(settings: Records) -> Records:
    """The lanes, SHARE_SETTINGS[lanes], and after them the captured lane without a limit, which never has to refuse."""
    unlimited = np.asarray(settings)[:1].copy()
    unlimited["limit"] = UNLIMITED
    joined: Records = np.concatenate([np.asarray(settings), unlimited])
    return joined


def session_lanes(lanes: LaneSettings) -> SessionLanes:
    """The settings of each lane. The number of shards is that of the lane's release, unless the lane sets it."""
    releases, stated_shards = lanes.values(KAFKA_RELEASE), lanes.values(CACHE_SHARDS)
    shards = [
        shards_of_release(release) if number is None else int(number)
        for number, release in zip(stated_shards, releases, strict=True)
    ]
    rules = [eviction_rules(release) for release in releases]
    consumers = lanes.ints(TRAFFIC_CONSUMERS, unset=1)
    eviction_ms = np.rint(lanes.ints(EVICTION_MS) * lanes.traffic_speed).astype(np.int64)
    settings = cache_settings(lanes.ints(SLOTS), shards, eviction_ms, rules, consumers, speed=lanes.traffic_speed)
    own_slots = {
        broker: lanes.of_broker(broker).ints(SLOTS) // settings["shards"] for broker in lanes.brokers_with(SLOTS)
    }
    return SessionLanes(lanes.names, settings, own_slots=own_slots)


def shards_of_release(release: Value | None) -> int:
    """The shards of a release's cache; of the newest release if none is known. The KIP's text has one cache."""
    if release is None:
        return SHARDS
    numbers = stated_release_numbers(release)
    return SHARDS if numbers is not None and numbers >= SHARDED_SINCE else 1


def eviction_rules(release: Value | None) -> int:
    """The rules of eviction of a release, or of the KIP's text."""
    if release == PROPOSAL:
        return KIP_TEXT
    numbers = stated_release_numbers(release)
    return OLDEST_CREATED if numbers is not None and numbers < NEWEST_CREATED_SINCE else CURRENT


def cache_settings(
    slots: npt.ArrayLike, shards: npt.ArrayLike, eviction_ms: npt.ArrayLike, rules: npt.ArrayLike,
    consumers: npt.ArrayLike = 1, removes_idle: int = 0, speed: npt.ArrayLike = 1.0,
) -> Records:  # fmt: skip
    """CACHE_SETTINGS[lanes] from a value for each lane, or one for all.

    slots: of all shards together. Slots that do not divide evenly among the shards are lost, as in Kafka.
    """
    columns = np.broadcast_arrays(
        np.asarray(slots) // shards, shards, eviction_ms, rules, consumers, removes_idle, speed
    )
    settings = np.zeros(np.size(columns[0]), CACHE_SETTINGS)
    for name, column in zip(CACHE_SETTINGS.fields or (), columns, strict=True):
        settings[name] = column
    return settings


def with_unlimited(settings: Records) -> Records:
    """The lanes, and after them lanes without a limit, which never have to refuse or evict.

    There is one for each of `ways_to_need_slots`, and one for each of `ways_to_be_idle`. settings:
    CACHE_SETTINGS[lanes].
    """
    return np.concatenate([settings, ways_to_need_slots(settings)[0], ways_to_be_idle(settings)[0]])


def ways_to_need_slots(settings: Records) -> tuple[Records, Ints]:
    """(lanes without a limit, CACHE_SETTINGS[ways]; the way of each lane, int64[lanes]).

    A way is a combination of the number of shards and the number of consumers that replace one. settings:
    CACHE_SETTINGS[lanes].
    """
    (shards, consumers), way_of_lane = ways_of(settings, "shards", "consumers")
    return cache_settings(UNLIMITED * shards, shards, 0, CURRENT, consumers), way_of_lane


def ways_to_be_idle(settings: Records) -> tuple[Records, Ints]:
    """(lanes without a limit in which idle sessions are removed, CACHE_SETTINGS[ways]; the way of each lane,
    int64[lanes]).

    A way is a combination of the settings that decide when a session is idle, and the number of consumers that replace
    one. settings: CACHE_SETTINGS[lanes].
    """
    (shards, eviction_ms, rules, consumers), way_of_lane = ways_of(
        settings, "shards", "eviction_ms", "rules", "consumers"
    )
    return cache_settings(UNLIMITED * shards, shards, eviction_ms, rules, consumers, removes_idle=1), way_of_lane


def ways_of(settings: Records, *names: str) -> tuple[Ints, Ints]:
    """(the distinct combinations of these settings, int64[names, ways]; each lane's combination, int64[lanes])."""
    ways, way_of_lane = np.unique(np.stack([settings[name] for name in names], axis=1), axis=0, return_inverse=True)
    return ways.T, way_of_lane.ravel()
