"""Which session is evicted from a full shard of the session cache (KIP-227).

The rules are those of org.apache.kafka.server.FetchSessionCacheShard, Kafka 4.3. A lane may have other rules: those
before KAFKA-9137 (Kafka 1.1 to 2.4), where the last use of a session stays the time of its creation; or those of the
KIP's text, where the age of a session is its age at the time of the comparison.
"""

from __future__ import annotations

from udfs.columns.arrays import Record
from udfs.columns.sentinels import NONE
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.settings import KIP_TEXT
from udfs.replay.session_cache.state import Cache


@kernel
def is_older(one: Record, other: Record) -> bool:
    """Whether one session comes before another in the order of LastUsedKey: by last use, then by id."""
    at_one_time = one.last_used_ms == other.last_used_ms
    return bool(one.last_used_ms < other.last_used_ms or (at_one_time and one.id < other.id))


@kernel
def is_smaller(one: Record, other: Record) -> bool:
    """Whether one session comes before another in the order of EvictableKey: consumers first, then by size and id."""
    if one.privileged != other.privileged:
        return bool(one.privileged < other.privileged)
    return bool(one.size < other.size or (one.size == other.size and one.id < other.id))


@kernel
def yields_place(session: Record, fetch: Record, settings: Record, now_ms: int) -> bool:
    """Whether the session of a full fetch can replace this one, if this is the smallest that can be evicted.

    At the same size it cannot: the new session's key is the smaller one, because its id is still 0.
    """
    if settings.rules == KIP_TEXT:
        is_aged = now_ms - session.created_ms > settings.eviction_ms
        return bool(fetch.privileged > session.privileged or (is_aged and fetch.size > session.size))
    if fetch.privileged != session.privileged:
        return bool(fetch.privileged > session.privileged)
    return bool(fetch.size > session.size)


@kernel
def can_be_evicted(session: Record, fetch: Record, settings: Record, now_ms: int) -> bool:
    """Whether a session is in the map from which a full fetch chooses: evictableByPrivileged or evictableByAll."""
    if settings.rules == KIP_TEXT:
        return yields_place(session, fetch, settings, now_ms)
    return bool((session.by_privileged if fetch.privileged else session.by_all) == 1)


@kernel
def find_victim(cache: Cache, lane: int, shard: int, fetch: Record, now_ms: int) -> int:
    """The place of the session that is evicted for a full fetch; NONE if the full fetch is refused one (tryEvict)."""
    sessions, settings = cache.sessions[lane], cache.settings[lane]
    first = shard * cache.totals[lane].room
    oldest, smallest = NONE, NONE
    for place in range(first, first + cache.live[lane, shard]):
        session = sessions[place]
        if oldest == NONE or is_older(session, sessions[oldest]):
            oldest = place
        if can_be_evicted(session, fetch, settings, now_ms) and (
            smallest == NONE or is_smaller(session, sessions[smallest])
        ):
            smallest = place
    if oldest != NONE and now_ms - sessions[oldest].last_used_ms > settings.eviction_ms:
        return oldest
    if smallest != NONE and yields_place(sessions[smallest], fetch, settings, now_ms):
        return smallest
    return NONE
