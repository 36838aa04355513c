"""Memory for the session caches of all lanes: empty at first, doubled where a shard or the clients need more."""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Records
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.session_cache import GREATEST_ID, MOST_SHARDS, NOWHERE, SESSION, Cache, CacheSettings


def new_cache(settings: CacheSettings, seed: int) -> Cache:
    """Empty caches. seed: of the random ids, the same in every lane."""
    lanes = len(settings.slots)
    sessions = np.zeros((lanes, MOST_SHARDS), SESSION)
    return Cache(
        sessions, np.zeros((lanes, MOST_SHARDS), np.int64), np.zeros(lanes, np.int64), np.zeros(lanes, np.int64),
        np.zeros(lanes, np.int64), np.full(lanes, seed, np.int64), np.zeros(1, np.int64),
        np.full(1, room_of(sessions, settings)), np.full((lanes, 16), NOWHERE),
    )  # fmt: skip


def empty(cache: Cache) -> None:
    """Take out all sessions, and begin with the first shard, as a broker does that starts."""
    for memory in (cache.sessions, cache.live, cache.partitions, cache.followers, cache.placed):
        memory[...] = np.zeros(1, memory.dtype)
    cache.hints[:] = NOWHERE


def with_room(cache: Cache, settings: CacheSettings, clients: int) -> Cache:
    """The same caches with room for one more session in every shard, and for so many clients."""
    lanes, pool = cache.sessions.shape
    if cache.hints.shape[1] < clients:
        hints = np.full((lanes, 2 * clients), NOWHERE)
        hints[:, : cache.hints.shape[1]] = cache.hints
        cache = cache._replace(hints=hints)
    if has_room(cache):
        return cache
    larger = np.zeros((lanes, 2 * pool), SESSION)
    for lane, shards in enumerate(settings.shards.tolist()):
        old, new = pool // shards, 2 * pool // shards
        for shard in range(shards):
            larger[lane, shard * new : shard * new + old] = cache.sessions[lane, shard * old : (shard + 1) * old]
        slots = cache.hints[lane]
        slots[:] = np.where(slots >= 0, slots // old * new + slots % old, slots)
    room = np.full(1, room_of(larger, settings))
    return with_room(cache._replace(sessions=larger, room=room), settings, clients)


def room_of(sessions: Records, settings: CacheSettings) -> int:
    """Sessions of a shard that memory is enough for, in the lane that needs more memory first."""
    room = sessions.shape[1] // settings.shards
    return int(np.where(settings.slots > room, room, GREATEST_ID).min())


@kernel
def has_room(cache: Cache) -> bool:
    """Is there memory for one more session in every shard?"""
    return cache.fullest[0] < cache.room[0]
