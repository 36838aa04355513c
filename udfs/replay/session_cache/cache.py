"""A broker's cache of fetch sessions in many lanes at once: shards, ids, and places (KIP-227).

The rules are those of org.apache.kafka.server.FetchSessionCacheShard and FetchManager, Kafka 4.3; the rules of eviction
are in eviction.py. A client knows the place (index) of the session that it opened last.
"""

from __future__ import annotations

from schemas.wire.errors import FETCH_SESSION_TOPIC_ID_ERROR, INVALID_FETCH_SESSION_EPOCH
from schemas.wire.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH
from udfs.columns.arrays import Record
from udfs.columns.sentinels import NONE
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.settings import OLDEST_CREATED
from udfs.replay.session_cache.state import GREATEST_ID, Cache, uses_topic_ids


@kernel
def next_epoch(epoch: int) -> int:
    """The epoch of a session's next fetch (FetchMetadata.nextEpoch)."""
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == GREATEST_ID else epoch + 1


@kernel
def shard_of(session_id: int, shards: int) -> int:
    """The shard in whose range an id is; the nearest shard for an id that no broker issues."""
    return max(0, min(session_id // (GREATEST_ID // shards), shards - 1))


@kernel
def random_id(cache: Cache, lane: int, shard: int) -> int:
    """An id from [max(1, shard * range), (shard + 1) * range) that no session of the shard has. Its bits are drawn as
    by splitmix64, without the last step.
    """
    totals, id_range = cache.totals[lane], GREATEST_ID // cache.settings[lane].shards
    least = max(1, shard * id_range)
    while True:
        totals.random_state += -7046029254386353131
        mixed = totals.random_state
        mixed = (mixed ^ ((mixed >> 30) & 0x3FFFFFFFF)) * -4658895280553007687
        mixed = (mixed ^ ((mixed >> 27) & 0x1FFFFFFFFF)) * -7723592293110705685
        drawn = least + (mixed & 0x7FFFFFFFFFFFFFFF) % ((shard + 1) * id_range - least)
        if find_by_id(cache, lane, drawn) == NONE:
            return drawn


@kernel
def find_by_id(cache: Cache, lane: int, session_id: int) -> int:
    """The place of the session with this id, NONE if there is none."""
    if session_id <= 0:
        return NONE
    shard = shard_of(session_id, cache.settings[lane].shards)
    first = shard * cache.totals[lane].room
    for place in range(first, first + cache.live[lane, shard]):
        if cache.sessions[lane, place].id == session_id:
            return place
    return NONE


@kernel
def find_owned(cache: Cache, lane: int, owner: int, session_id: int) -> int:
    """The place of a client's session if it is still in the cache, otherwise NONE."""
    place = cache.clients[owner, lane].place
    return place if place >= 0 and session_id > 0 and cache.sessions[lane, place].id == session_id else NONE


@kernel
def remove_session(cache: Cache, lane: int, place: int) -> None:
    """Remove a session; the shard's last one moves to its place."""
    totals, sessions = cache.totals[lane], cache.sessions[lane]
    session, shard = sessions[place], place // totals.room
    totals.partitions -= session.size
    totals.followers -= session.privileged
    move_owner(cache, lane, session, place, NONE)
    cache.live[lane, shard] -= 1
    last = shard * totals.room + cache.live[lane, shard]
    if place != last:
        sessions[place] = sessions[last]
        move_owner(cache, lane, sessions[place], last, place)
    sessions[last].id = 0


@kernel
def move_owner(cache: Cache, lane: int, session: Record, old: int, new: int) -> None:
    """Tell a session's owner that it moved from `old` to `new`, unless the owner has opened another session since."""
    client = cache.clients[session.owner, lane]
    if client.place == old:
        client.place = new


@kernel
def remove_idle(cache: Cache, lane: int, shard: int, now_ms: int) -> None:
    """Remove the sessions of a shard that have been idle for so long that any session may evict them."""
    first, eviction_ms = shard * cache.totals[lane].room, cache.settings[lane].eviction_ms
    for place in range(first + cache.live[lane, shard] - 1, first - 1, -1):
        if now_ms - cache.sessions[lane, place].last_used_ms > eviction_ms:
            remove_session(cache, lane, place)


@kernel
def touch_session(cache: Cache, lane: int, session: Record, size: int, now_ms: int) -> None:
    """Use a session (FetchSessionCacheShard.touch). Until its next use, this decides whether it can be evicted."""
    settings = cache.settings[lane]
    if settings.rules == OLDEST_CREATED:
        now_ms = session.last_used_ms  # before KAFKA-9137, Kafka used this as the current time
    session.last_used_ms = now_ms
    cache.totals[lane].partitions += size - session.size
    session.size = size
    is_aged = now_ms - session.created_ms > settings.eviction_ms
    session.by_privileged = 1 if is_aged or session.privileged == 0 else 0
    session.by_all = 1 if is_aged else 0


@kernel
def next_shard(cache: Cache, lane: int) -> int:
    """The shard of the next full response, whether or not that response opens a session."""
    totals = cache.totals[lane]
    shard = totals.placed % cache.settings[lane].shards
    totals.placed += 1
    return shard


@kernel
def is_shard_full(cache: Cache, lane: int, shard: int) -> bool:
    """Whether the shard has no free slot."""
    return bool(cache.live[lane, shard] >= cache.settings[lane].slots)


@kernel
def has_free_slot(cache: Cache, lane: int) -> bool:
    """Whether any shard of the lane has a free slot."""
    least = cache.live[lane, 0]
    for shard in range(1, cache.settings[lane].shards):
        least = min(least, cache.live[lane, shard])
    return bool(least < cache.settings[lane].slots)


@kernel
def open_session(cache: Cache, lane: int, session_id: int, fetch: Record, now_ms: int) -> int:
    """Put a session for a fetch into the shard of its id, which has room; returns its place."""
    totals, shard = cache.totals[lane], shard_of(session_id, cache.settings[lane].shards)
    place = shard * totals.room + cache.live[lane, shard]
    cache.live[lane, shard] += 1
    totals.fullest = max(totals.fullest, cache.live[lane, shard])
    cache.headroom[0] = min(cache.headroom[0], totals.room - cache.live[lane, shard])
    session = cache.sessions[lane, place]
    session.id, session.owner, session.epoch, session.size = session_id, fetch.owner, next_epoch(INITIAL_EPOCH), 0
    session.uses_topic_ids, session.privileged, session.is_partial = uses_topic_ids(fetch), fetch.privileged, 0
    session.created_ms = session.last_used_ms = now_ms
    totals.followers += fetch.privileged
    cache.clients[fetch.owner, lane].place = place
    touch_session(cache, lane, session, fetch.size, now_ms)
    return place


@kernel
def session_error(session: Record, epoch: int, fetch: Record) -> int:
    """The error of an incremental fetch with this epoch in an existing session; 0 if there is none."""
    if session.epoch != epoch:
        return INVALID_FETCH_SESSION_EPOCH
    return FETCH_SESSION_TOPIC_ID_ERROR if session.uses_topic_ids != uses_topic_ids(fetch) else 0
