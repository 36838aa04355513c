"""Who evicts whom: the numbers of Kafka's own tests and rules."""

from __future__ import annotations

import pytest

from schemas.tables.gold_sessions import SESSION_CACHE, SESSION_EVICTIONS
from tests.unit.replay.session_cache.captures import Fetch, captured, evictions, ids, lanes, total
from tests.unit.replay.session_cache.event_rows import gold_rows
from udfs.replay.session_cache.settings import KIP_TEXT, OLDEST_CREATED


def test_kafkas_test_session_cache() -> None:
    """FetchSessionTest.testSessionCache: 3 slots, 100 ms."""
    gold = gold_rows(
        [
            captured(
                Fetch(0, "c1", 10), Fetch(10, "c2", 20), Fetch(20, "c3", 30), Fetch(30, "c4", 40), Fetch(40, "c5", 5),
                Fetch(200, "c1", 10), Fetch(210, "c6", 11), Fetch(390, "c3", 30), Fetch(400, "c1", 10),
                Fetch(401, "c6", 11), Fetch(410, "c7", 50), Fetch(411, "c8", 5), Fetch(412, "p9", 5, True),
            )
        ],
        lanes(3, eviction_ms=100),
    )  # fmt: skip
    assert evictions(gold) == [("c6", "c2"), ("c7", "c1"), ("p9", "c6")]
    assert (total(gold, SESSION_CACHE.created), total(gold, SESSION_CACHE.refused)) == (6, 3)


def test_kafkas_test_fetch_session_expiration() -> None:
    """FetchSessionTest.testFetchSessionExpiration: the session that was not used for 1001 ms is evicted."""
    fetches = Fetch(0, "s1", 2), Fetch(500, "s2", 2), Fetch(1000, "s1", 2), Fetch(1501, "s3", 2)
    assert evictions(gold_rows([captured(*fetches)], lanes(2, eviction_ms=1000))) == [("s3", "s2")]


@pytest.mark.parametrize(
    ("fetches", "evicted"),
    [
        ((Fetch(0, "old", 5), Fetch(60_000, "large", 50)), []),
        ((Fetch(0, "old", 5), Fetch(60_000, "small", 1, True)), [("small", "old")]),
        ((Fetch(0, "old", 5), Fetch(119_999, "old", 5), Fetch(125_000, "large", 50)), []),
        ((Fetch(0, "old", 5), Fetch(60_000, "old", 5), Fetch(125_000, "old", 5), Fetch(125_001, "same", 5)), []),
        (
            (Fetch(0, "old", 5), Fetch(60_000, "old", 5), Fetch(125_000, "old", 5), Fetch(125_001, "more", 6)),
            [("more", "old")],
        ),
        ((Fetch(0, "old", 5), Fetch(120_000, "other", 50)), []),
        ((Fetch(0, "old", 5), Fetch(120_001, "other", 1)), [("other", "old")]),
        ((Fetch(0, "old", 5, True), Fetch(1000, "other", 50, True)), []),
        ((Fetch(0, "old", 5, True), Fetch(120_001, "other", 1)), [("other", "old")]),
    ],
    ids=["young", "follower beats consumer", "age counts at a use", "a tie loses", "larger wins", "idle 120 s", "stale",
         "young followers", "stale follower"],
)  # fmt: skip
def test_kafkas_rules_decide_who_gets_the_only_slot(fetches: tuple[Fetch, ...], evicted: list[tuple[str, str]]) -> None:
    assert evictions(gold_rows([captured(*fetches)], lanes(1))) == evicted


def test_a_new_session_takes_the_place_of_one_of_its_own_shard() -> None:
    """Since 3.8 a broker has eight shards, which take turns (KAFKA-9401). Here each has one slot."""
    in_turn = ids(*range(8))
    first = [Fetch(n, f"c{n}", 1, granted=session) for n, session in enumerate(in_turn)]
    late = [Fetch(200_000 + n, f"late{n}", 1, granted=session + 1) for n, session in enumerate(in_turn)]
    gold = gold_rows([captured(*first, *late)], lanes(8, shards=8))
    assert evictions(gold) == [(f"late{n}", f"c{n}") for n in range(8)]


def test_a_client_may_be_called_anything() -> None:
    gold = gold_rows([captured(Fetch(0, "o\0ld", 5), Fetch(120_001, "o\0ther", 1))], lanes(1))
    assert evictions(gold) == [("o\0ther", "o\0ld")]
    e = SESSION_EVICTIONS
    assert {row[of] for row in gold[e.name] for of in (e.evictor_reader, e.victim_reader)} == {"consumer"}


def test_before_kafka_9137_a_session_in_use_was_evicted_by_its_age() -> None:
    fetches = Fetch(0, "used", 5), Fetch(60_000, "used", 5), Fetch(120_000, "used", 5), Fetch(120_001, "other", 1)
    assert evictions(gold_rows([captured(*fetches)], lanes(1))) == []
    assert evictions(gold_rows([captured(*fetches)], lanes(1, rules=OLDEST_CREATED))) == [("other", "used")]


def test_by_the_kips_text_a_session_has_its_age_at_the_comparison_not_at_its_last_use() -> None:
    fetches = Fetch(0, "old", 5), Fetch(119_999, "old", 5), Fetch(125_000, "large", 50)
    assert evictions(gold_rows([captured(*fetches)], lanes(1, rules=KIP_TEXT))) == [("large", "old")]


@pytest.mark.parametrize(
    ("fetch", "evicted"),
    [
        (Fetch(120_000, "large", 50), []),
        (Fetch(120_001, "large", 50), [("large", "old")]),
        (Fetch(125_000, "same", 5), []),
    ],
    ids=["exactly so old", "a ms older", "no larger"],
)
def test_by_the_kips_text_a_tie_keeps_the_session_that_is_there(fetch: Fetch, evicted: list[tuple[str, str]]) -> None:
    """It was used in the meantime, so it is not idle."""
    fetches = Fetch(0, "old", 5), Fetch(119_000, "old", 5), fetch
    assert evictions(gold_rows([captured(*fetches)], lanes(1, rules=KIP_TEXT))) == evicted


def test_a_session_that_its_client_left_is_not_mistaken_for_its_new_one() -> None:
    """The client begins anew on the same connection. Its first session is evicted, and the second one goes on."""
    (first,) = ids(0)
    second = first + 1
    left = (
        Fetch(0, "a", 5, granted=first),
        Fetch(1000, "a", 5, granted=second),
        Fetch(60_000, "a", 5, session_id=second, epoch=1),
    )
    later = Fetch(120_001, "b", 5), Fetch(120_002, "a", 5, session_id=second, epoch=2)
    gold = gold_rows([captured(*left, *later)], lanes(2))
    assert (evictions(gold), total(gold, SESSION_CACHE.not_found)) == ([("b", "a")], 0)


def test_where_no_two_sessions_are_equally_large_nothing_depends_on_the_ids_drawn() -> None:
    different = [Fetch(40_000 * n, f"c{n % 9}", 2 + n % 9, n % 9 == 0) for n in range(60)]
    settings = lanes(4)
    one, other = (gold_rows([captured(*different)], settings, seed=seed) for seed in ("one", "other"))
    assert one == other
    assert total(one, SESSION_CACHE.evicted) > 0


def test_a_client_has_the_name_that_it_had_last() -> None:
    fetches = Fetch(0, "old", 5, called="first"), Fetch(1000, "old", 5, called="second"), Fetch(121_001, "other", 1)
    renamed = Fetch(121_002, "old", 5, called="third")
    assert evictions(gold_rows([captured(*fetches, renamed)], lanes(1))) == [("other", "second")]
