"""The captured broker's cache of sessions. It follows the capture, even where the rules say something else."""

from __future__ import annotations

from schemas.wire.errors import FETCH_SESSION_ID_NOT_FOUND
from udfs.columns.arrays import Record
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import US_PER_MS
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.cache import (
    find_by_id,
    find_owned,
    next_epoch,
    open_session,
    remove_session,
    shard_of,
    touch_session,
)
from udfs.replay.session_cache.eviction import find_victim, is_older
from udfs.replay.session_cache.state import GREATEST_ID, Cache, CapturedSessions, uses_topic_ids
from udfs.replay.shared.lanes import CAPTURED


@kernel
def find_named(cache: Cache, fetch: Record) -> int:
    """The place of the session that a fetch names, or NONE."""
    place = find_owned(cache, CAPTURED, fetch.owner, fetch.session_id)
    return place if place != NONE else find_by_id(cache, CAPTURED, fetch.session_id)


@kernel
def oldest_session(cache: Cache, shard: int) -> int:
    """The place of the shard's least recently used session. The shard has a session."""
    oldest = first = shard * cache.totals[CAPTURED].room
    for place in range(first, first + cache.live[CAPTURED, shard]):
        if is_older(cache.sessions[CAPTURED, place], cache.sessions[CAPTURED, oldest]):
            oldest = place
    return oldest


@kernel
def put_session(cache: Cache, session_id: int, fetch: Record, now_ms: int) -> int:
    """Open the session that the capture shows. Returns its place.

    If its shard is full, the session that the rules would evict is removed; if they would evict none, the oldest one.
    """
    settings = cache.settings[CAPTURED]
    shard = shard_of(session_id, settings.shards)
    if cache.live[CAPTURED, shard] >= max(settings.slots, 1):
        place = find_victim(cache, CAPTURED, shard, fetch, now_ms)
        remove_session(cache, CAPTURED, place if place != NONE else oldest_session(cache, shard))
    return open_session(cache, CAPTURED, session_id, fetch, now_ms)


@kernel
def put_unseen(captured: CapturedSessions, shard: int, size: int) -> None:
    """Put an unseen session into a shard that refused a session although, by the rules, it has room.

    The unseen session was opened before the capture began, and has been idle since. It counts as a follower's, and as
    large as the refused one.
    """
    cache, unseen = captured.cache, captured.unseen[0]
    unseen.size = size
    greatest_id = (shard + 1) * (GREATEST_ID // cache.settings[CAPTURED].shards) - 1
    place = open_session(
        cache, CAPTURED, greatest_id - cache.live[CAPTURED, shard], unseen, unseen.handled_us // US_PER_MS
    )
    cache.sessions[CAPTURED, place].is_partial = 1
    cache.clients[unseen.owner, CAPTURED].place = NONE


@kernel
def has_partial(cache: Cache, shard: int) -> bool:
    """Whether the shard has a session that was opened before the capture began."""
    first, partial = shard * cache.totals[CAPTURED].room, 0
    for place in range(first, first + cache.live[CAPTURED, shard]):
        partial += cache.sessions[CAPTURED, place].is_partial
    return partial > 0


@kernel
def close_named(captured: CapturedSessions, fetch: Record, place: int) -> None:
    """Close the session that a full fetch names."""
    shards = captured.cache.settings[CAPTURED].shards
    captured.closed_us[shard_of(fetch.session_id, shards)] = fetch.handled_us
    remove_session(captured.cache, CAPTURED, place)


@kernel
def go_on_in_session(cache: Cache, fetch: Record, place: int, error: int, now_ms: int) -> None:
    """Apply the error that the capture shows for a fetch in a session, 0 for none.

    place: the place of the session, or NONE.
    """
    if error != 0:
        if error == FETCH_SESSION_ID_NOT_FOUND and place != NONE:
            remove_session(cache, CAPTURED, place)
        return
    if place == NONE:
        place = put_session(cache, fetch.session_id, fetch, now_ms)
        cache.sessions[CAPTURED, place].is_partial = 1
    if fetch.size == 0 and fetch.is_lost == 0:
        remove_session(cache, CAPTURED, place)
        return
    session = cache.sessions[CAPTURED, place]
    session.epoch, session.uses_topic_ids = next_epoch(fetch.epoch), uses_topic_ids(fetch)
    touch_session(cache, CAPTURED, session, fetch.size, now_ms)
