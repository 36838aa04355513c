"""Kafka's order of sessions (LastUsedKey, EvictableKey) at every boundary of its comparisons."""

from __future__ import annotations

from itertools import product

from schemas.wire.fetch_sessions import FINAL_EPOCH
from udfs.columns.arrays import Record
from udfs.columns.records import new_records
from udfs.replay.session_cache.cache import next_epoch, touch_session
from udfs.replay.session_cache.eviction import can_be_evicted, is_older, is_smaller, yields_place
from udfs.replay.session_cache.memory import new_cache
from udfs.replay.session_cache.settings import CACHE_SETTINGS, CURRENT, KIP_TEXT, OLDEST_CREATED
from udfs.replay.session_cache.state import GREATEST_ID, SESSION, SESSION_FETCH

EVICTION_MS = 100
BITS = (0, 1)


def session(**fields: int) -> Record:
    return new_records(SESSION, 1, **fields)[0]


def fetch(**fields: int) -> Record:
    return new_records(SESSION_FETCH, 1, **fields)[0]


def settings(rules: int) -> Record:
    return new_records(CACHE_SETTINGS, 1, rules=rules, eviction_ms=EVICTION_MS)[0]


def test_a_session_is_older_by_its_last_use_then_by_its_id() -> None:
    for one, other in product(product(BITS, BITS), repeat=2):
        sessions = [session(last_used_ms=last_used, id=number) for last_used, number in (one, other)]
        assert is_older(*sessions) == (one < other), (one, other)


def test_a_session_is_smaller_if_it_is_a_consumers_then_by_its_partitions_then_by_its_id() -> None:
    for one, other in product(product(BITS, BITS, BITS), repeat=2):
        sessions = [session(privileged=p, size=size, id=number) for p, size, number in (one, other)]
        assert is_smaller(*sessions) == (one < other), (one, other)


def test_a_session_yields_to_a_followers_or_else_to_a_larger_one() -> None:
    """A new session's id is still 0, so that at the same size its key is the smaller one."""
    for held, new in product(product(BITS, (1, 2)), repeat=2):
        of_held, of_new = session(privileged=held[0], size=held[1]), fetch(privileged=new[0], size=new[1])
        assert yields_place(of_held, of_new, settings(CURRENT), 0) == (new > held), (held, new)


def test_by_the_kips_text_a_session_yields_to_a_followers_or_once_it_is_old_to_a_larger_one() -> None:
    for held, new, age in product(product(BITS, (1, 2)), product(BITS, (1, 2)), (EVICTION_MS, EVICTION_MS + 1)):
        of_held = session(privileged=held[0], size=held[1], created_ms=7)
        of_new = fetch(privileged=new[0], size=new[1])
        expected = new[0] > held[0] or (age > EVICTION_MS and new[1] > held[1])
        for rule in (yields_place, can_be_evicted):
            assert rule(of_held, of_new, settings(KIP_TEXT), 7 + age) == expected, (held, new, age)


def test_a_use_decides_who_may_evict_a_session() -> None:
    """Anybody may evict a session that is older than the eviction time, and a follower a consumer's; nobody else."""
    for age, privileged, by in product((EVICTION_MS, EVICTION_MS + 1), BITS, BITS):
        cache = new_cache(new_records(CACHE_SETTINGS, 1, shards=1, slots=1, rules=CURRENT, eviction_ms=EVICTION_MS), 1)
        cache.sessions[0, 0]["created_ms"], cache.sessions[0, 0]["privileged"] = 7, privileged
        touch_session(cache, 0, cache.sessions[0, 0], 3, 7 + age)
        expected = age > EVICTION_MS or (by == 1 and privileged == 0)
        assert can_be_evicted(cache.sessions[0, 0], fetch(privileged=by), settings(CURRENT), 0) == expected


def test_before_kafka_9137_a_use_did_not_change_the_last_use() -> None:
    for rules, last_used in ((CURRENT, 9), (OLDEST_CREATED, 7)):
        cache = new_cache(new_records(CACHE_SETTINGS, 1, shards=1, slots=1, rules=rules, eviction_ms=EVICTION_MS), 1)
        cache.sessions[0, 0]["last_used_ms"], cache.sessions[0, 0]["size"] = 7, 2
        cache.totals["partitions"] = 10
        touch_session(cache, 0, cache.sessions[0, 0], 5, 9)
        assert cache.sessions[0, 0]["last_used_ms"] == last_used
        assert (cache.sessions[0, 0]["size"], cache.totals["partitions"].tolist()) == (5, [13])


def test_the_greatest_epoch_is_followed_by_the_first_and_a_final_one_by_none() -> None:
    """FetchMetadata.nextEpoch."""
    epochs = (FINAL_EPOCH, 0, 1, GREATEST_ID - 1, GREATEST_ID)
    assert [next_epoch(epoch) for epoch in epochs] == [FINAL_EPOCH, 1, 2, GREATEST_ID, 1]
