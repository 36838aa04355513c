"""How many sessions the shards of a cache have, and what an evicted client does."""

from __future__ import annotations

import pytest

from schemas.tables.gold_sessions import SESSION_CACHE, SESSION_SLOTS
from tests.unit.replay.session_cache.captures import Fetch, captured, ids, lanes, total
from tests.unit.replay.session_cache.event_rows import gold_rows


def test_kafkas_test_resize_cached_sessions() -> None:
    """FetchSessionTest.testResizeCachedSessions: 2 slots, and 2, then 6, then 9 cached partitions."""
    steps = [Fetch(0, "a", 2), Fetch(30_000, "b", 4), Fetch(60_000, "b", 7)]
    for count, cached in ((1, 2), (2, 6), (3, 9)):
        gold = gold_rows([captured(*steps[:count])], lanes(2, eviction_ms=1_000_000))
        assert gold[SESSION_CACHE.name][-1][SESSION_CACHE.cached_partitions] == cached


@pytest.mark.parametrize(("slots", "created"), [(7, 0), (0, 0), (8, 8), (31, 24)])
def test_each_shard_has_an_eighth_of_the_slots_rounded_down(slots: int, created: int) -> None:
    gold = gold_rows([captured(*(Fetch(n, f"c{n}", 5) for n in range(40)))], lanes(slots, shards=8))
    assert (total(gold, SESSION_CACHE.created), total(gold, SESSION_CACHE.refused)) == (created, 40 - created)
    (row,) = gold[SESSION_SLOTS.name]
    assert row[SESSION_SLOTS.zero_harm_slots] == 40
    (bucket,) = gold[SESSION_CACHE.name]
    assert bucket[SESSION_CACHE.refused_share] == (40 - created) / 40


def slots_needed(*fetches: Fetch) -> tuple[int, int]:
    """(slots with which no client is refused or evicted, slots with which no client is that still fetches)."""
    (row,) = gold_rows([captured(*fetches)], lanes(1000))[SESSION_SLOTS.name]
    return row[SESSION_SLOTS.zero_harm_slots], row[SESSION_SLOTS.enough_slots]


def test_sessions_of_clients_that_are_gone_need_no_slot_once_they_are_idle() -> None:
    """Twenty clients, each killed before the next begins five minutes later: one slot refuses nobody."""
    killed = [Fetch(n * 300_000, f"c{n}", 5) for n in range(20)]
    assert slots_needed(*killed) == (20, 1)
    together = gold_rows([captured(*killed)], lanes(1))
    assert (total(together, SESSION_CACHE.refused), total(together, SESSION_CACHE.not_found)) == (0, 0)


def test_an_idle_client_that_comes_back_needs_its_slot() -> None:
    paused = Fetch(0, "paused", 5, granted=7)
    back = Fetch(400_000, "paused", 5, session_id=7, epoch=1)
    assert slots_needed(paused, Fetch(300_000, "other", 5), back) == (2, 2)
    assert slots_needed(paused, Fetch(300_000, "other", 5)) == (2, 1)


def test_an_evicted_client_gets_an_error_and_begins_again() -> None:
    fetches = Fetch(0, "old", 5), Fetch(1000, "follower", 9, True), Fetch(2000, "old", 5)
    gold = gold_rows([captured(*fetches)], lanes(1))
    assert total(gold, SESSION_CACHE.not_found) == 1
    assert (total(gold, SESSION_CACHE.fetches), total(gold, SESSION_CACHE.full_fetches)) == (4, 3)


def test_a_full_shard_refuses_while_others_have_room() -> None:
    """Only a counter picks the shard, so the ninth full fetch comes to the first shard again."""
    begun_again = [Fetch(n, f"c{n}", 5) for n in range(4)]
    of_followers = [Fetch(10 + n, f"f{n}", 5, True) for n in range(4)]
    gone = [Fetch(20, "c1", 5, epoch=-1, session_id=ids(1)[0])]
    granted = [fetch._replace(granted=ids(n)[0]) for n, fetch in enumerate([*begun_again, *of_followers])]
    gold = gold_rows([captured(*granted, *gone, Fetch(30, "late", 9))], lanes(8, shards=8))
    assert (total(gold, SESSION_CACHE.refused), total(gold, SESSION_CACHE.refused_despite_room)) == (1, 1)
    last = gold[SESSION_CACHE.name][-1]
    assert (last[SESSION_CACHE.live_sessions], last[SESSION_CACHE.follower_sessions]) == (7, 4)


def test_a_full_shard_evicts_while_others_have_room() -> None:
    """A follower takes a consumer's slot in the shard whose turn it is, even if another shard has room."""
    eight = [Fetch(n, f"c{n}", 5, granted=ids(n)[0]) for n in range(8)]
    gone = [Fetch(20, "c1", 5, epoch=-1, session_id=ids(1)[0])]
    gold = gold_rows([captured(*eight, *gone, Fetch(30, "late", 9, True))], lanes(8, shards=8))
    assert (total(gold, SESSION_CACHE.evicted), total(gold, SESSION_CACHE.evicted_despite_room)) == (1, 1)
    full = gold_rows([captured(*eight, Fetch(30, "late", 9, True))], lanes(8, shards=8))
    assert (total(full, SESSION_CACHE.evicted), total(full, SESSION_CACHE.evicted_despite_room)) == (1, 0)


@pytest.mark.parametrize("shards", [1, 3, 8])
def test_a_cache_has_room_for_as_many_sessions_as_it_has_slots(shards: int) -> None:
    clients = 312
    gold = gold_rows([captured(*(Fetch(n, f"c{n}", 5) for n in range(clients)))], lanes(clients, shards=shards))
    last = gold[SESSION_CACHE.name][-1]
    assert (last[SESSION_CACHE.live_sessions], last[SESSION_CACHE.cached_partitions]) == (clients, 5 * clients)
    assert total(gold, SESSION_CACHE.refused) == 0
