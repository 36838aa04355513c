"""Who gets a fetch session, who is refused, who is evicted: Kafka's own numbers as literals."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from schemas.tables.gold_sessions import SESSION_CACHE, SESSION_EVICTIONS, SESSION_SLOTS
from tests.unit.replay.session_captures import Fetch, captured, evictions, ids, lanes, total
from tests.unit.replay.sessions import gold_rows
from udfs.replay.session_cache import session_replay
from udfs.replay.session_cache.session_cache import KIP_TEXT, OLDEST_CREATED, CacheSettings
from udfs.replay.session_cache.session_lanes import SessionLanes


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


def test_kafkas_test_resize_cached_sessions() -> None:
    """FetchSessionTest.testResizeCachedSessions: 2 slots; the partitions that are cached come to 2, 6, 9."""
    steps = [Fetch(0, "a", 2), Fetch(30_000, "b", 4), Fetch(60_000, "b", 7)]
    for count, cached in ((1, 2), (2, 6), (3, 9)):
        gold = gold_rows([captured(*steps[:count])], lanes(2, eviction_ms=1_000_000))
        assert gold[SESSION_CACHE.name][-1][SESSION_CACHE.cached_partitions] == cached


def test_kafkas_test_fetch_session_expiration() -> None:
    """FetchSessionTest.testFetchSessionExpiration: the one that was not used for 1001 ms goes."""
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
def test_the_only_slot_goes_to_whom_kafkas_rules_give_it(
    fetches: tuple[Fetch, ...], evicted: list[tuple[str, str]]
) -> None:
    assert evictions(gold_rows([captured(*fetches)], lanes(1))) == evicted


def test_a_client_may_be_called_anything() -> None:
    gold = gold_rows([captured(Fetch(0, "o\0ld", 5), Fetch(120_001, "o\0ther", 1))], lanes(1))
    assert evictions(gold) == [("o\0ther", "o\0ld")]
    e = SESSION_EVICTIONS
    assert {row[of] for row in gold[e.name] for of in (e.evictor_reader, e.victim_reader)} == {"consumer"}


def test_before_kafka_9137_a_session_in_use_was_evicted_by_its_age() -> None:
    fetches = Fetch(0, "used", 5), Fetch(60_000, "used", 5), Fetch(120_000, "used", 5), Fetch(120_001, "other", 1)
    assert evictions(gold_rows([captured(*fetches)], lanes(1))) == []
    assert evictions(gold_rows([captured(*fetches)], lanes(1, rules=OLDEST_CREATED))) == [("other", "used")]


def test_by_the_kips_text_age_counts_at_the_comparison() -> None:
    fetches = Fetch(0, "old", 5), Fetch(119_999, "old", 5), Fetch(125_000, "large", 50)
    assert evictions(gold_rows([captured(*fetches)], lanes(1, rules=KIP_TEXT))) == [("large", "old")]


@pytest.mark.parametrize(("slots", "created"), [(7, 0), (0, 0), (8, 8), (31, 24)])
def test_each_shard_has_an_eighth_of_the_slots_rounded_down(slots: int, created: int) -> None:
    gold = gold_rows([captured(*(Fetch(n, f"c{n}", 5) for n in range(40)))], lanes(slots, shards=8))
    assert (total(gold, SESSION_CACHE.created), total(gold, SESSION_CACHE.refused)) == (created, 40 - created)
    (row,) = gold[SESSION_SLOTS.name]
    assert row[SESSION_SLOTS.zero_harm_slots] == 40


def test_an_evicted_client_is_told_and_begins_again() -> None:
    fetches = Fetch(0, "old", 5), Fetch(1000, "follower", 9, True), Fetch(2000, "old", 5)
    gold = gold_rows([captured(*fetches)], lanes(1))
    assert total(gold, SESSION_CACHE.not_found) == 1
    assert (total(gold, SESSION_CACHE.fetches), total(gold, SESSION_CACHE.full_fetches)) == (4, 3)


def test_the_capture_bounds_the_slots() -> None:
    granted = [Fetch(n, f"c{n}", 1, granted=session_id) for n, session_id in enumerate(ids(*range(8), *range(8)))]
    granted = [fetch._replace(granted=fetch.granted + number) for number, fetch in enumerate(granted)]
    used = [
        fetch._replace(ms=130_000 + number, session_id=fetch.granted, epoch=1) for number, fetch in enumerate(granted)
    ]
    refused = [Fetch(130_100, "late", 1)]
    (row,) = gold_rows([captured(*granted, *used, *refused)], lanes(16, shards=8))[SESSION_SLOTS.name]
    assert (row[SESSION_SLOTS.slots_at_least], row[SESSION_SLOTS.slots_at_most]) == (16, 23)


def random_capture(count: int) -> pa.RecordBatch:
    rng = np.random.default_rng(227)
    ms = np.cumsum(rng.choice([1, 40, 900, 20_000], count))
    clients, sizes = rng.integers(20, size=count), rng.integers(1, 9, size=count)
    return captured(
        *(Fetch(int(t), f"c{c}", int(c) // 2 + int(s), c % 4 == 0) for t, c, s in zip(ms, clients, sizes, strict=True))
    )


ONE_TIME = [
    Fetch(5, "c8", 2, wait_us=2000),
    Fetch(7, "c4", 2, is_epoch_cut=True),
    Fetch(337, "c8", 1, granted=ids(2)[0]),
]
"""The first is answered when the second, which is cut, is asked for."""


@pytest.mark.parametrize("batch", [random_capture(400), captured(*ONE_TIME)], ids=["many", "at one time"])
@pytest.mark.parametrize("rows", [1, 7])
def test_the_tables_do_not_depend_on_how_batches_are_cut(
    monkeypatch: pytest.MonkeyPatch, rows: int, batch: pa.RecordBatch
) -> None:
    settings = CacheSettings(np.array([1, 2, 5, 9]), np.array([8, 8, 1, 1]), np.full(4, 30_000), np.array([0, 0, 1, 2]))
    four = SessionLanes(("a", "b", "c", "d"), settings)
    whole = gold_rows([batch], four)
    monkeypatch.setattr(session_replay, "ROWS_AT_A_TIME", rows)
    assert gold_rows(pa.Table.from_batches([batch]).to_batches(rows), four) == whole


def test_a_session_that_its_client_forgot_is_not_mistaken_for_its_session() -> None:
    """The client begins anew in the same connection; what it left behind is evicted, and its new session goes on."""
    mine, anew = ids(0, 0)
    left = (
        Fetch(0, "a", 5, granted=mine),
        Fetch(1000, "a", 5, granted=anew + 1),
        Fetch(60_000, "a", 5, session_id=anew + 1, epoch=1),
    )
    later = Fetch(120_001, "b", 5), Fetch(120_002, "a", 5, session_id=anew + 1, epoch=2)
    gold = gold_rows([captured(*left, *later)], lanes(2))
    assert (evictions(gold), total(gold, SESSION_CACHE.not_found)) == ([("b", "a")], 0)


def test_a_full_shard_refuses_while_others_have_room() -> None:
    """The counter alone picks the shard: its ninth full fetch comes to the first one again."""
    begun_again = [Fetch(n, f"c{n}", 5) for n in range(4)]
    of_followers = [Fetch(10 + n, f"f{n}", 5, True) for n in range(4)]
    gone = [Fetch(20, "c1", 5, epoch=-1, session_id=ids(1)[0])]
    granted = [fetch._replace(granted=ids(n)[0]) for n, fetch in enumerate([*begun_again, *of_followers])]
    gold = gold_rows([captured(*granted, *gone, Fetch(30, "late", 9))], lanes(8, shards=8))
    assert (total(gold, SESSION_CACHE.refused), total(gold, SESSION_CACHE.refused_despite_room)) == (1, 1)
    last = gold[SESSION_CACHE.name][-1]
    assert (last[SESSION_CACHE.live_sessions], last[SESSION_CACHE.follower_sessions]) == (7, 4)


def test_a_full_shard_evicts_while_others_have_room() -> None:
    """A follower takes the slot of a consumer in the shard of its turn, whatever the others have."""
    eight = [Fetch(n, f"c{n}", 5, granted=ids(n)[0]) for n in range(8)]
    gone = [Fetch(20, "c1", 5, epoch=-1, session_id=ids(1)[0])]
    gold = gold_rows([captured(*eight, *gone, Fetch(30, "late", 9, True))], lanes(8, shards=8))
    assert (total(gold, SESSION_CACHE.evicted), total(gold, SESSION_CACHE.evicted_despite_room)) == (1, 1)
    full = gold_rows([captured(*eight, Fetch(30, "late", 9, True))], lanes(8, shards=8))
    assert (total(full, SESSION_CACHE.evicted), total(full, SESSION_CACHE.evicted_despite_room)) == (1, 0)


def test_where_no_two_sessions_are_equally_large_nothing_depends_on_the_ids_drawn() -> None:
    different = [Fetch(40_000 * n, f"c{n % 9}", 2 + n % 9, n % 9 == 0) for n in range(60)]
    settings = lanes(4)
    one, other = (gold_rows([captured(*different)], settings, seed=seed) for seed in ("one", "other"))
    assert one == other
    assert total(one, SESSION_CACHE.evicted) > 0
