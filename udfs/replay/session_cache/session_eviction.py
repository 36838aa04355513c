"""Who makes room in a full shard of the session cache (KIP-227).

The rules are those of org.apache.kafka.server.FetchSessionCacheShard, Kafka 4.3. A lane may have others: those before
KAFKA-9137 (Kafka 1.1 to 2.4), where a session's last use stays the time of its creation, or those of the KIP's text,
where age counts at the time of the comparison.
"""

from __future__ import annotations

from udfs.columns.arrays import Record
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.session_cache import KIP_TEXT, NOWHERE, Cache, CacheSettings, shard_base


@kernel
def is_older(one: Record, other: Record) -> bool:
    """LastUsedKey's order."""
    at_one_time = one.last_used_ms == other.last_used_ms
    return bool(one.last_used_ms < other.last_used_ms or (at_one_time and one.id < other.id))


@kernel
def is_smaller(one: Record, other: Record) -> bool:
    """EvictableKey's order."""
    if one.privileged != other.privileged:
        return bool(one.privileged < other.privileged)
    return bool(one.size < other.size or (one.size == other.size and one.id < other.id))


@kernel
def yields(session: Record, rules: int, eviction_ms: int, privileged: int, size: int, now_ms: int) -> bool:
    """Can a new session take this one's place, if it is the smallest that can?

    At the same size it cannot: the candidate's key is the smaller one, as its id is 0.
    """
    if rules == KIP_TEXT:
        is_aged = now_ms - session.created_ms > eviction_ms
        return bool(privileged > session.privileged or (is_aged and size > session.size))
    if privileged != session.privileged:
        return bool(privileged > session.privileged)
    return bool(size > session.size)


@kernel
def victim(
    cache: Cache, settings: CacheSettings, lane: int, shard: int, privileged: int, size: int, now_ms: int
) -> int:
    """tryEvict: the session that makes room in a full shard; NOWHERE where the new one is refused."""
    sessions, rules, eviction_ms = cache.sessions[lane], settings.rules[lane], settings.eviction_ms[lane]
    base = shard_base(cache, settings, lane, shard)
    oldest, smallest = NOWHERE, NOWHERE
    for slot in range(base, base + cache.live[lane, shard]):
        session = sessions[slot]
        if oldest == NOWHERE or is_older(session, sessions[oldest]):
            oldest = slot
        if rules == KIP_TEXT:
            can_go = yields(session, rules, eviction_ms, privileged, size, now_ms)
        else:
            can_go = (session.by_privileged if privileged else session.by_all) == 1
        if can_go and (smallest == NOWHERE or is_smaller(session, sessions[smallest])):
            smallest = slot
    if oldest != NOWHERE and now_ms - sessions[oldest].last_used_ms > eviction_ms:
        return oldest
    if smallest != NOWHERE and yields(sessions[smallest], rules, eviction_ms, privileged, size, now_ms):
        return smallest
    return NOWHERE
