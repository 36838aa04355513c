"""What a lane sets of a broker's cache of fetch sessions, as arrays by lane."""

from __future__ import annotations

from dataclasses import dataclass

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
"""NumFetchSessionCacheShards since SHARDED_SINCE (KAFKA-9401); there was one cache before."""
SHARDED_SINCE = (3, 8)
"""The first release whose cache has several shards."""
NEWEST_CREATED_SINCE = (2, 5)
"""The first release that no longer evicts by when sessions were created (KAFKA-9137)."""
MARKS_STALE_SINCE = (4, 2)
"""The first release in which the end of a connection leaves a share session alone that another has opened since."""
UNLIMITED = (1 << 31) - 1
"""Slots of a shard that no broker ever fills: the setting cannot be larger."""
CURRENT, OLDEST_CREATED, KIP_TEXT = range(3)
"""Rules of eviction: those of today, those before KAFKA-9137, and those of KIP-227's text."""

CACHE_SETTINGS = np.dtype(
    [
        ("slots", np.int64),  # of each shard
        ("shards", np.int64),
        ("eviction_ms", np.int64),  # min.incremental.fetch.session.eviction.ms
        ("rules", np.int64),  # of eviction: CURRENT, OLDEST_CREATED or KIP_TEXT
        ("consumers", np.int64),  # so many share what each captured one fetches
        ("idle_go", np.int64),  # 1: sessions go once anybody may evict them for being idle, even if there is room
    ]
)
"""What a lane sets of its cache."""


@dataclass(frozen=True)
class SessionLanes:
    """The lanes of a replay. settings: CACHE_SETTINGS[lanes]. window: the time that counts."""

    names: tuple[str, ...]
    settings: Records
    window: Window = WHOLE


@dataclass(frozen=True)
class ShareSettings:
    """The lanes of the replay of share sessions. settings: SHARE_SETTINGS[lanes]. window: the time that counts."""

    names: tuple[str, ...]
    settings: Records
    window: Window = WHOLE


def share_settings(lanes: LaneSettings, window: Window = WHOLE) -> ShareSettings:
    """What each lane sets of the cache of share sessions (KIP-932)."""
    settings = np.zeros(len(lanes.names), SHARE_SETTINGS)
    settings["limit"] = lanes.ints(SHARE_LIMIT)
    releases = [None if release is None else stated_release_numbers(release) for release in lanes.values(KAFKA_RELEASE)]
    settings["marks_stale"] = [numbers is None or numbers >= MARKS_STALE_SINCE for numbers in releases]
    return ShareSettings(lanes.names, settings, window)


def with_unlimited_shares(settings: Records) -> Records:
    """The lanes, SHARE_SETTINGS[lanes], and behind them the captured one without a limit, which never has to refuse."""
    unlimited = np.asarray(settings)[:1].copy()
    unlimited["limit"] = UNLIMITED
    joined: Records = np.concatenate([np.asarray(settings), unlimited])
    return joined


def session_lanes(lanes: LaneSettings) -> SessionLanes:
    """The settings of each lane; the number of shards is that of the lane's release, unless it is set."""
    releases, stated_shards = lanes.values(KAFKA_RELEASE), lanes.values(CACHE_SHARDS)
    shards = [
        shards_of_release(release) if number is None else int(number)
        for number, release in zip(stated_shards, releases, strict=True)
    ]
    rules = [eviction_rules(release) for release in releases]
    consumers = lanes.ints(TRAFFIC_CONSUMERS, unset=1)
    return SessionLanes(
        lanes.names, cache_settings(lanes.ints(SLOTS), shards, lanes.ints(EVICTION_MS), rules, consumers)
    )


def shards_of_release(release: Value | None) -> int:
    """The shards of a release's cache; the newest one's where no release is known. The KIP's text has one cache."""
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
    consumers: npt.ArrayLike = 1, idle_go: int = 0,
) -> Records:  # fmt: skip
    """CACHE_SETTINGS[lanes] from a value for each lane, or one for all.

    slots: those of all shards together. Slots that do not divide evenly among the shards are lost, as in Kafka.
    """
    columns = np.broadcast_arrays(np.asarray(slots) // shards, shards, eviction_ms, rules, consumers, idle_go)
    settings = np.zeros(np.size(columns[0]), CACHE_SETTINGS)
    for name, column in zip(CACHE_SETTINGS.fields or (), columns, strict=True):
        settings[name] = column
    return settings


def with_unlimited(settings: Records) -> Records:
    """The lanes, and behind them lanes without a limit, which never have to refuse or evict.

    There is one for each of `ways_to_need_slots`, and one for each of `ways_to_be_idle`. settings:
    CACHE_SETTINGS[lanes].
    """
    return np.concatenate([settings, ways_to_need_slots(settings)[0], ways_to_be_idle(settings)[0]])


def ways_to_need_slots(settings: Records) -> tuple[Records, Ints]:
    """(lanes without a limit, CACHE_SETTINGS[ways]; the way of each lane, int64[lanes]).

    A way is a combination of how many shards there are, and how many consumers in place of one. settings:
    CACHE_SETTINGS[lanes].
    """
    (shards, consumers), way_of_lane = ways_of(settings, "shards", "consumers")
    return cache_settings(UNLIMITED * shards, shards, 0, CURRENT, consumers), way_of_lane


def ways_to_be_idle(settings: Records) -> tuple[Records, Ints]:
    """(lanes without a limit in which sessions go once they are idle, CACHE_SETTINGS[ways]; the way of each lane,
    int64[lanes]).

    A way is a combination of what decides on when a session is idle, and how many consumers there are in place of one.
    settings: CACHE_SETTINGS[lanes].
    """
    (shards, eviction_ms, rules, consumers), way_of_lane = ways_of(
        settings, "shards", "eviction_ms", "rules", "consumers"
    )
    return cache_settings(UNLIMITED * shards, shards, eviction_ms, rules, consumers, idle_go=1), way_of_lane


def ways_of(settings: Records, *names: str) -> tuple[Ints, Ints]:
    """(the combinations of these settings that lanes have, int64[names, ways]; which each lane has, int64[lanes])."""
    ways, way_of_lane = np.unique(np.stack([settings[name] for name in names], axis=1), axis=0, return_inverse=True)
    return ways.T, way_of_lane.ravel()
