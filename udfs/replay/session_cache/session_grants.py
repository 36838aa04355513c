"""Sessions come and go in a lane: who is given one, whose is taken for it, and those from before the capture."""

from __future__ import annotations

from udfs.columns.arrays import Record
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.session_cache import (
    NOWHERE,
    CacheSettings,
    close_session,
    has_free_slot,
    next_shard,
    open_session,
    random_id,
    shard_of,
    slot_by_hint,
)
from udfs.replay.session_cache.session_eviction import victim
from udfs.replay.session_cache.session_fetches import NO_SESSION, uses_topic_ids
from udfs.replay.session_cache.session_lanes import Lanes


@kernel
def evict(lanes: Lanes, settings: CacheSettings, lane: int, slot: int, evictor: int) -> None:
    """Take a session out for another's sake."""
    at = lanes.evicted[0]
    lanes.evicted[0] += 1
    lanes.evictions[at, 0], lanes.evictions[at, 1] = lane, lanes.names[evictor]
    lanes.evictions[at, 2] = lanes.names[lanes.cache.sessions[lane, slot].owner]
    lanes.outcomes[lane].evicted += 1
    close_session(lanes.cache, settings, lane, slot)


@kernel
def create(lanes: Lanes, settings: CacheSettings, lane: int, fetch: Record, now_ms: int) -> int:
    """maybeCreateSession: the id that a full response issues, NO_SESSION where it is refused."""
    cache, outcome = lanes.cache, lanes.outcomes[lane]
    shard = next_shard(cache, settings, lane)
    if cache.live[lane, shard] >= settings.slots[lane]:
        slot = victim(cache, settings, lane, shard, fetch.privileged, fetch.size, now_ms)
        if slot == NOWHERE:
            outcome.refused += 1
            outcome.refused_despite_room += has_free_slot(cache, settings, lane)
            return NO_SESSION
        outcome.evicted_despite_room += has_free_slot(cache, settings, lane)
        evict(lanes, settings, lane, slot, fetch.owner)
    outcome.created += 1
    session_id = fetch.response_session_id
    if session_id <= 0 or shard_of(session_id, settings.shards[lane]) != shard:
        session_id = random_id(cache, settings, lane, shard)
    open_session(
        cache, settings, lane, shard, session_id, fetch.owner, fetch.privileged, fetch.size, uses_topic_ids(fetch),
        now_ms,
    )  # fmt: skip
    lanes.occupied[lane, shard] = max(lanes.occupied[lane, shard], cache.live[lane, shard])
    return session_id


@kernel
def admit(lanes: Lanes, settings: CacheSettings, lane: int, fetch: Record, now_ms: int) -> None:
    """A session that was there before the capture began, where the lane has room for it."""
    cache, client = lanes.cache, lanes.clients[lane, fetch.owner]
    shard = shard_of(fetch.session_id, settings.shards[lane])
    client.id, client.epoch = fetch.session_id, fetch.epoch
    if cache.live[lane, shard] >= settings.slots[lane] or slot_by_hint(cache, lane, fetch.owner, client.id) != NOWHERE:
        return
    slot = open_session(
        cache, settings, lane, shard, client.id, fetch.owner, fetch.privileged, fetch.size, uses_topic_ids(fetch),
        now_ms,
    )  # fmt: skip
    cache.sessions[lane, slot].epoch = fetch.epoch
    cache.sessions[lane, slot].is_partial = 1
    lanes.occupied[lane, shard] = max(lanes.occupied[lane, shard], cache.live[lane, shard])
