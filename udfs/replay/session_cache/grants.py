"""How sessions begin and end in a lane: who gets one, and which one is evicted for it."""

from __future__ import annotations

from schemas.wire.fetch_sessions import NO_SESSION
from udfs.columns.arrays import Record
from udfs.columns.sentinels import NONE
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.cache import (
    find_owned,
    has_free_slot,
    is_shard_full,
    next_shard,
    open_session,
    random_id,
    remove_idle,
    remove_session,
    shard_of,
)
from udfs.replay.session_cache.eviction import find_victim
from udfs.replay.session_cache.state import BrokerSim


@kernel
def outcome_in_bucket(sim: BrokerSim, lane: int) -> Record:
    """The lane's outcome in the current bucket of time."""
    return sim.buckets.outcomes[sim.buckets.used[0] - 1, lane]


@kernel
def evict_session(sim: BrokerSim, lane: int, place: int, fetch: Record) -> None:
    """Evict the session at `place` to make room for a full fetch's, and note which client lost it to which."""
    eviction = sim.evictions[sim.evicted[0]]
    sim.evicted[0] += 1
    eviction.lane, eviction.evictor = lane, fetch.name
    eviction.victim = sim.names[sim.cache.sessions[lane, place].owner]
    outcome_in_bucket(sim, lane).evicted += 1
    remove_session(sim.cache, lane, place)


@kernel
def grant_session(sim: BrokerSim, lane: int, session_id: int, fetch: Record, now_ms: int) -> int:
    """Open a session in a shard that has room; returns its place."""
    cache, occupied = sim.cache, sim.buckets.occupied[sim.buckets.used[0] - 1, lane]
    place = open_session(cache, lane, session_id, fetch, now_ms)
    shard = shard_of(session_id, cache.settings[lane].shards)
    occupied[shard] = max(occupied[shard], cache.live[lane, shard])
    return place


@kernel
def create_session(sim: BrokerSim, lane: int, fetch: Record, now_ms: int) -> int:
    """maybeCreateSession: the id that a full response issues, NO_SESSION if the session is refused.

    The id is the captured one if that belongs to the shard whose turn it is; otherwise it is drawn.
    """
    cache, outcome, shard = sim.cache, outcome_in_bucket(sim, lane), next_shard(sim.cache, lane)
    if cache.settings[lane].removes_idle:
        remove_idle(cache, lane, shard, now_ms)
    if is_shard_full(cache, lane, shard):
        place = find_victim(cache, lane, shard, fetch, now_ms)
        if place == NONE:
            outcome.refused += 1
            outcome.refused_despite_room += has_free_slot(cache, lane)
            return NO_SESSION
        outcome.evicted_despite_room += has_free_slot(cache, lane)
        evict_session(sim, lane, place, fetch)
    outcome.created += 1
    session_id = int(fetch.response_session_id)
    if session_id <= NO_SESSION or shard_of(session_id, cache.settings[lane].shards) != shard:
        session_id = random_id(cache, lane, shard)
    grant_session(sim, lane, session_id, fetch, now_ms)
    return session_id


@kernel
def admit_session(sim: BrokerSim, lane: int, fetch: Record, now_ms: int) -> None:
    """Add a session that was opened before the capture began, if the lane has room for it."""
    cache, client = sim.cache, sim.cache.clients[fetch.owner, lane]
    client.id, client.epoch = fetch.session_id, fetch.epoch
    shard = shard_of(client.id, cache.settings[lane].shards)
    if is_shard_full(cache, lane, shard) or find_owned(cache, lane, fetch.owner, client.id) != NONE:
        return
    session = cache.sessions[lane, grant_session(sim, lane, client.id, fetch, now_ms)]
    session.epoch, session.is_partial = fetch.epoch, 1
