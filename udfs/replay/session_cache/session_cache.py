"""A broker's cache of fetch sessions in many lanes at once: shards, ids, slots, and what a use does (KIP-227).

The rules are those of org.apache.kafka.server.FetchSessionCacheShard and FetchManager, Kafka 4.3; who makes room for
whom is in session_eviction.

A lane has its own cache. A session is known by the client that owns it, and its slot is kept with that client.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schemas.wire.errors import FETCH_SESSION_TOPIC_ID_ERROR, INVALID_FETCH_SESSION_EPOCH
from udfs.columns.arrays import Ints, Record, Records
from udfs.kernels.kernel import kernel

NOWHERE = -1
MOST_SHARDS = 64
SHARDS = 8  # NumFetchSessionCacheShards
GREATEST_ID = 2147483647
INITIAL_EPOCH, FINAL_EPOCH = 0, -1
CURRENT, OLDEST_CREATED, KIP_TEXT = 0, 1, 2
"""Rules of eviction: today's, those before KAFKA-9137, and the KIP's."""

SESSION = np.dtype(
    [
        ("created_ms", np.int64),
        ("last_used_ms", np.int64),
        ("id", np.int32),
        ("owner", np.int32),  # the client whose slot hint points here
        ("epoch", np.int32),  # of the next request
        ("size", np.int32),  # partitions at the last touch
        ("uses_topic_ids", np.int8),
        ("privileged", np.int8),
        ("by_privileged", np.int8),  # in evictableByPrivileged
        ("by_all", np.int8),  # in evictableByAll
        ("is_partial", np.int8),  # opened before the capture began
    ],
    align=True,
)


class CacheSettings(NamedTuple):
    """What a lane sets, int64[lanes] a column."""

    slots: Ints  # per shard
    shards: Ints
    eviction_ms: Ints
    rules: Ints


class Cache(NamedTuple):
    """The caches of all lanes; a shard's sessions lie together, in no order.

    sessions: SESSION[lanes, pool], shard s of a lane from s * (pool // shards) on. hints: int64[lanes, clients], the
    slot of each client's session. fullest: int64[1], most sessions that a shard of any lane has had.
    """

    sessions: Records
    live: Ints  # int64[lanes, MOST_SHARDS]: sessions of each shard
    partitions: Ints  # int64[lanes]: partitions of all sessions
    followers: Ints  # int64[lanes]: sessions of followers
    placed: Ints  # int64[lanes]: full responses so far, the counter that picks the shard
    seed: Ints  # int64[lanes]: state of the random ids
    fullest: Ints
    room: Ints
    hints: Ints


@kernel
def next_epoch(epoch: int) -> int:
    """FetchMetadata.nextEpoch."""
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == GREATEST_ID else epoch + 1


@kernel
def shard_base(cache: Cache, settings: CacheSettings, lane: int, shard: int) -> int:
    """The first slot of a shard."""
    return shard * (cache.sessions.shape[1] // settings.shards[lane])


@kernel
def shard_of(session_id: int, shards: int) -> int:
    """The shard whose range an id is in, the nearest one for an id that no broker issues."""
    return max(0, min(session_id // (GREATEST_ID // shards), shards - 1))


@kernel
def random_id(cache: Cache, settings: CacheSettings, lane: int, shard: int) -> int:
    """An id from [max(1, shard * range), (shard + 1) * range) that no session of the shard has: splitmix64."""
    id_range = GREATEST_ID // settings.shards[lane]
    least = max(1, shard * id_range)
    while True:
        cache.seed[lane] += -7046029254386353131
        mixed = cache.seed[lane]
        mixed = (mixed ^ ((mixed >> 30) & 0x3FFFFFFFF)) * -4658895280553007687
        mixed = (mixed ^ ((mixed >> 27) & 0x1FFFFFFFFF)) * -7723592293110705685
        drawn = least + (mixed & 0x7FFFFFFFFFFFFFFF) % ((shard + 1) * id_range - least)
        if slot_of(cache, settings, lane, drawn) == NOWHERE:
            return drawn


@kernel
def slot_of(cache: Cache, settings: CacheSettings, lane: int, session_id: int) -> int:
    """Where a session is, by its id alone; NOWHERE for none."""
    if session_id <= 0:
        return NOWHERE
    shard = shard_of(session_id, settings.shards[lane])
    base = shard_base(cache, settings, lane, shard)
    for slot in range(base, base + cache.live[lane, shard]):
        if cache.sessions[lane, slot].id == session_id:
            return slot
    return NOWHERE


@kernel
def slot_by_hint(cache: Cache, lane: int, owner: int, session_id: int) -> int:
    """Where a client's session is, if it still is; NOWHERE for none."""
    slot = cache.hints[lane, owner]
    is_there = session_id > 0 and slot >= 0 and cache.sessions[lane, slot].id == session_id
    return slot if is_there else NOWHERE


@kernel
def close_session(cache: Cache, settings: CacheSettings, lane: int, slot: int) -> None:
    """Take a session out; the shard's last one moves to its slot."""
    sessions = cache.sessions[lane]
    shard = slot // (len(sessions) // settings.shards[lane])
    cache.partitions[lane] -= sessions[slot].size
    cache.followers[lane] -= sessions[slot].privileged
    move_hint(cache, lane, sessions[slot].owner, slot, NOWHERE)
    cache.live[lane, shard] -= 1
    last = shard_base(cache, settings, lane, shard) + cache.live[lane, shard]
    if slot != last:
        sessions[slot] = sessions[last]
        move_hint(cache, lane, sessions[slot].owner, last, slot)
    sessions[last].id = 0


@kernel
def move_hint(cache: Cache, lane: int, owner: int, old: int, new: int) -> None:
    """A session moves; one that its client has forgotten is no longer where the client's hint points."""
    if cache.hints[lane, owner] == old:
        cache.hints[lane, owner] = new


@kernel
def touch(cache: Cache, settings: CacheSettings, lane: int, slot: int, size: int, now_ms: int) -> None:
    """A session is used: whether it can be evicted is decided here, and stays so until its next use."""
    session = cache.sessions[lane, slot]
    if settings.rules[lane] == OLDEST_CREATED:
        now_ms = session.last_used_ms  # what was taken for the time before KAFKA-9137
    session.last_used_ms = now_ms
    cache.partitions[lane] += size - session.size
    session.size = size
    is_aged = now_ms - session.created_ms > settings.eviction_ms[lane]
    session.by_privileged = 1 if is_aged or session.privileged == 0 else 0
    session.by_all = 1 if is_aged else 0


@kernel
def next_shard(cache: Cache, settings: CacheSettings, lane: int) -> int:
    """The shard of the next full response, whether or not a session comes of it."""
    shard = cache.placed[lane] % settings.shards[lane]
    cache.placed[lane] += 1
    return shard


@kernel
def has_free_slot(cache: Cache, settings: CacheSettings, lane: int) -> bool:
    """Does any shard have room for one more session?"""
    least = cache.live[lane, 0]
    for shard in range(1, settings.shards[lane]):
        least = min(least, cache.live[lane, shard])
    return least < settings.slots[lane]


@kernel
def open_session(
    cache: Cache, settings: CacheSettings, lane: int, shard: int, session_id: int,
    owner: int, privileged: int, size: int, uses_topic_ids: int, now_ms: int,
) -> int:  # fmt: skip
    """Put a session into a shard that has room, and return its slot."""
    slot = shard_base(cache, settings, lane, shard) + cache.live[lane, shard]
    cache.live[lane, shard] += 1
    cache.fullest[0] = max(cache.fullest[0], cache.live[lane, shard])
    session = cache.sessions[lane, slot]
    session.id, session.owner, session.epoch, session.size = session_id, owner, next_epoch(INITIAL_EPOCH), 0
    session.uses_topic_ids, session.privileged, session.is_partial = uses_topic_ids, privileged, 0
    session.created_ms = session.last_used_ms = now_ms
    cache.followers[lane] += privileged
    cache.hints[lane, owner] = slot
    touch(cache, settings, lane, slot, size, now_ms)
    return slot


@kernel
def session_error(session: Record, epoch: int, uses_topic_ids: int) -> int:
    """The error of an incremental fetch in a session that is there; 0 for none."""
    if session.epoch != epoch:
        return INVALID_FETCH_SESSION_EPOCH
    return FETCH_SESSION_TOPIC_ID_ERROR if session.uses_topic_ids != uses_topic_ids else 0
