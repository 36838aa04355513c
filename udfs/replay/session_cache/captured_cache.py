"""The captured broker's cache of sessions, as far as the capture shows it.

It goes on from what the capture shows, not from what the rules say.
"""

from __future__ import annotations

from schemas.wire.errors import FETCH_SESSION_ID_NOT_FOUND
from udfs.columns.arrays import Record
from udfs.columns.time_units import US_PER_MS
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.cache import (
    close_session,
    find_by_id,
    find_owned,
    next_epoch,
    open_session,
    shard_of,
    touch,
)
from udfs.replay.session_cache.eviction import is_older, victim
from udfs.replay.session_cache.state import GREATEST_ID, NONE, Cache, Captured, uses_topic_ids


@kernel
def find_named(cache: Cache, fetch: Record) -> int:
    """The place of the session that a fetch names, or NONE."""
    slot = find_owned(cache, 0, fetch.owner, fetch.session_id)
    return slot if slot != NONE else find_by_id(cache, 0, fetch.session_id)


@kernel
def oldest_session(cache: Cache, shard: int) -> int:
    """The place of the session of a shard that was not used for longest; there is one."""
    oldest = first = shard * cache.counts[0].room
    for slot in range(first, first + cache.live[0, shard]):
        if is_older(cache.sessions[0, slot], cache.sessions[0, oldest]):
            oldest = slot
    return oldest


@kernel
def put_session(cache: Cache, session_id: int, fetch: Record, now_ms: int) -> int:
    """Open the session that the capture shows, in place of the victim by the rules or, if they have none, of the oldest
    one. Returns its place.
    """
    settings = cache.settings[0]
    shard = shard_of(session_id, settings.shards)
    if cache.live[0, shard] >= max(settings.slots, 1):
        slot = victim(cache, 0, shard, fetch, now_ms)
        close_session(cache, 0, slot if slot != NONE else oldest_session(cache, shard))
    return open_session(cache, 0, session_id, fetch, now_ms)


@kernel
def put_unseen(captured: Captured, shard: int, size: int) -> None:
    """A refusal where the rules have room shows a session that is idle since before the capture began.

    It is taken to be at least as large as the one refused, and a follower's.
    """
    cache, unseen = captured.cache, captured.unseen[0]
    unseen.size = size
    greatest_id = (shard + 1) * (GREATEST_ID // cache.settings[0].shards) - 1
    slot = open_session(cache, 0, greatest_id - cache.live[0, shard], unseen, unseen.handled_us // US_PER_MS)
    cache.sessions[0, slot].is_partial = 1
    cache.seats[unseen.owner, 0].slot = NONE


@kernel
def has_partial(cache: Cache, shard: int) -> bool:
    """Is a session in the shard that was opened before the capture began?"""
    first, partial = shard * cache.counts[0].room, 0
    for slot in range(first, first + cache.live[0, shard]):
        partial += cache.sessions[0, slot].is_partial
    return partial > 0


@kernel
def close_named(captured: Captured, fetch: Record, slot: int) -> None:
    """A full fetch closes the session that it names."""
    shards = captured.cache.settings[0].shards
    captured.closed_us[shard_of(fetch.session_id, shards)] = fetch.handled_us
    close_session(captured.cache, 0, slot)


@kernel
def go_on_in_session(cache: Cache, fetch: Record, slot: int, error: int, now_ms: int) -> None:
    """Go on from the error that the capture shows for a fetch in a session, 0 for none.

    slot: the place of the session, or NONE.
    """
    if error != 0:
        if error == FETCH_SESSION_ID_NOT_FOUND and slot != NONE:
            close_session(cache, 0, slot)
        return
    if slot == NONE:
        slot = put_session(cache, fetch.session_id, fetch, now_ms)
        cache.sessions[0, slot].is_partial = 1
    if fetch.size == 0 and fetch.is_lost == 0:
        close_session(cache, 0, slot)
        return
    session = cache.sessions[0, slot]
    session.epoch, session.uses_topic_ids = next_epoch(fetch.epoch), uses_topic_ids(fetch)
    touch(cache, 0, session, fetch.size, now_ms)
