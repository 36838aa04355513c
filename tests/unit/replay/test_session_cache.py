"""Who gets a fetch session, who is refused, who is evicted: Kafka's own numbers as literals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from schemas.tables.gold import FIDELITY
from schemas.tables.gold_sessions import SESSION_CACHE, SESSION_EVICTIONS, SESSION_SLOTS
from tests.unit.replay.sessions import Gold, fetch_row, gold_rows, partition_row, rows_of_events
from udfs.replay.sessions.session_cache import CURRENT, KIP_TEXT, OLDEST_CREATED, CacheSettings
from udfs.replay.sessions.session_replay import SessionLanes

MINUTES_2 = 120_000
SHARD_IDS = 268_435_455


class Fetch(NamedTuple):
    """A client's fetch of so many partitions; the capture shows it full, and what it got."""

    ms: int
    client: str
    size: int
    privileged: bool = False
    session_id: int = 0
    epoch: int = 0
    granted: int = 0
    error: int = 0
    wait_us: int | None = 1
    life: int = 0


def captured(*fetches: Fetch) -> pa.RecordBatch:
    """The fetches as a capture shows them."""
    rows = []
    for number, fetch in enumerate(fetches):
        us = 1000 * fetch.ms
        connection = hash_of(fetch.client) + fetch.life
        key = {"connection_id": connection, "exchange_no": number, "request_time": us, "life": fetch.life}
        answered = None if fetch.wait_us is None else us + fetch.wait_us
        rows.append(
            fetch_row(**key, client_id=fetch.client, response_time=answered, session_id=fetch.session_id,
                      session_epoch=fetch.epoch, fetch_error=fetch.error, is_follower=fetch.privileged)
        )  # fmt: skip
        rows.extend(
            partition_row(**key, position=p, partition=p, response_session_id=fetch.granted,
                          is_returned=fetch.epoch == 0)
            for p in range(fetch.size if fetch.error == 0 else 0)
        )  # fmt: skip
    return rows_of_events(rows)


def hash_of(client: str) -> int:
    return int.from_bytes(client.encode()[:6], "big")


def lanes(slots: int, shards: int = 1, eviction_ms: int = MINUTES_2, rules: int = CURRENT) -> SessionLanes:
    """One lane; slots: of all shards."""
    return SessionLanes(
        ("lane",), CacheSettings(*(np.array([n]) for n in (slots // shards, shards, eviction_ms, rules)))
    )


def evictions(gold: Gold) -> list[tuple[str, str]]:
    """(evictor, victim)."""
    e = SESSION_EVICTIONS
    return sorted((row[e.evictor], row[e.victim]) for row in gold[e.name] for _ in range(row[e.evictions]))


def total(gold: Gold, column: str) -> int:
    return sum(row[column] for row in gold[SESSION_CACHE.name])


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


def reasons(gold: Gold) -> dict[str, dict[str, int]]:
    """Reasons by metric, over all clients."""
    found: dict[str, dict[str, int]] = {}
    for row in gold[FIDELITY.name]:
        for reason, count in row[FIDELITY.reasons]:
            of = found.setdefault(row[FIDELITY.metric], {})
            of[reason] = of.get(reason, 0) + count
    return found


def ids(*shards: int) -> list[int]:
    return [shard * SHARD_IDS + 7 for shard in shards]


def test_ids_tell_the_order_of_responses_that_overlap() -> None:
    first, second, third, fourth = ids(2, 3, 4, 5)
    overlapping = (
        Fetch(0, "a", 1, granted=first), Fetch(100, "b", 1, granted=fourth, wait_us=20_000),
        Fetch(101, "c", 1, granted=third, wait_us=21_000), Fetch(90, "d", 1, granted=second),
    )  # fmt: skip
    in_order = sorted(overlapping)
    gold = gold_rows([captured(*in_order)], lanes(80, shards=8))
    assert reasons(gold) == {"session_grants": {"order_inferred": 1}, "session_shards": {"order_inferred": 1}}


def test_ids_tell_whose_turn_it_was_first_where_most_of_the_first_responses_overlap() -> None:
    """Seen on brokers that had just started, on a busy machine: shards 1, 0; 3, 2; then 4."""
    second, first, fourth, third, fifth = ids(1, 0, 3, 2, 4)
    overlapping = (
        Fetch(0, "a", 1, granted=second, wait_us=20_000), Fetch(1, "b", 1, granted=first, wait_us=92_000),
        Fetch(200, "c", 1, granted=fourth, wait_us=9000), Fetch(201, "d", 1, granted=third, wait_us=80_000),
        Fetch(400, "e", 1, granted=fifth),
    )  # fmt: skip
    gold = gold_rows([captured(*overlapping)], lanes(80, shards=8))
    assert reasons(gold) == {"session_grants": {"order_inferred": 2}, "session_shards": {"order_inferred": 2}}


BEFORE = [Fetch(n, f"c{n}", 1, granted=session_id) for n, session_id in enumerate(ids(2, 3, 4, 5, 6, 7, 0, 1))]
"""Eight clients, a session in each shard."""
NO_ANSWER = Fetch(20, "c8", 1, wait_us=None)


def anew(*shards: int) -> list[Fetch]:
    """The clients come again when all connections had ended; one tries its session, and is told that it is gone."""
    lost = Fetch(9000, "c0", 1, session_id=BEFORE[0].granted, epoch=1, error=70, life=1)
    again = [
        Fetch(9001 + n, f"c{n}", 1, granted=session_id + 1, session_id=0 if n == 0 else BEFORE[n].granted, life=1)
        for n, session_id in enumerate(ids(*shards))
    ]
    return [lost, *again]


@pytest.mark.parametrize("rows", [1, 7, 10_000])
def test_a_broker_that_was_restarted_has_no_session_and_begins_with_the_first_shard(rows: int) -> None:
    batch = captured(*BEFORE, NO_ANSWER, *anew(0, 1, 2, 3), Fetch(9100, "late", 9, granted=ids(4)[0], life=1))
    parts = [batch.slice(at, rows) for at in range(0, batch.num_rows, rows)]
    gold = gold_rows(parts, lanes(8, shards=8))
    assert reasons(gold).keys() == {"session_requests"}  # in a new connection the rules do not tell
    assert total(gold, SESSION_CACHE.created) == 13
    assert gold[SESSION_CACHE.name][-1][SESSION_CACHE.live_sessions] == 5


def test_what_a_restart_took_needs_no_slot_of_the_sessions_after_it() -> None:
    (slots,) = gold_rows([captured(*BEFORE, *anew(0, 1, 2, 3))], lanes(8, shards=8))[SESSION_SLOTS.name]
    assert slots[SESSION_SLOTS.zero_harm_slots] == 8


def test_without_all_connections_gone_the_same_ids_are_disagreements() -> None:
    one_goes_on = [fetch._replace(life=0) for fetch in anew(0, 1, 2, 3)]
    told = reasons(gold_rows([captured(*BEFORE, *one_goes_on)], lanes(8, shards=8)))
    assert told["session_shards"] == {"other_shard": 1}
    assert told["session_errors"] == {"other_error": 1}


def test_a_broker_whose_ids_go_on_where_they_were_was_not_restarted() -> None:
    """The capture has few connections, and all of them happened to end."""
    goes_on = Fetch(9000, "c0", 1, session_id=BEFORE[0].granted, epoch=1, granted=BEFORE[0].granted, life=1)
    again = [Fetch(9001 + n, f"d{n}", 1, granted=session_id + 1, life=1) for n, session_id in enumerate(ids(2, 3))]
    gold = gold_rows([captured(*BEFORE, goes_on, *again)], lanes(16, shards=8))
    assert reasons(gold) == {}
    assert gold[SESSION_CACHE.name][-1][SESSION_CACHE.live_sessions] == 10


def test_a_session_of_before_a_restart_holds_no_slot_at_a_refusal_after_it() -> None:
    (first,) = ids(0)
    restarted = [Fetch(9000 + n, f"n{n}", 1, granted=first + n * SHARD_IDS, life=1) for n in range(8)]
    used = [fetch._replace(ms=140_000 + n, session_id=fetch.granted, epoch=1) for n, fetch in enumerate(restarted)]
    batch = captured(*BEFORE, *restarted, *used, Fetch(140_100, "late", 1, life=1))
    (row,) = gold_rows([batch], lanes(8, shards=8))[SESSION_SLOTS.name]
    assert (row[SESSION_SLOTS.slots_at_least], row[SESSION_SLOTS.slots_at_most]) == (8, 15)


def test_whose_turn_it_is_makes_no_difference_where_no_shard_has_a_slot() -> None:
    gold = gold_rows([captured(*(Fetch(n, f"c{n}", 5) for n in range(40)))], lanes(7, shards=8))
    f = FIDELITY
    refused = [row for row in gold[f.name] if row[f.metric] == "session_grants"]
    assert [sum(row[column] for row in refused) for column in (f.checked, f.agreed)] == [40, 40]
    assert reasons(gold) == {}


def test_a_refusal_where_the_model_has_room_is_a_disagreement() -> None:
    granted = [Fetch(n, f"c{n}", 1, granted=session_id) for n, session_id in enumerate(ids(0, 1, 2, 3, 4, 5, 6, 7))]
    late = Fetch(200_000, "late", 1)
    assert reasons(gold_rows([captured(*granted, late)], lanes(16, shards=8))) == {"session_grants": {"refused": 1}}


def test_a_grant_that_the_model_refuses_is_a_disagreement() -> None:
    one, other = ids(0, 0)[0], ids(0)[0] + 1
    fetches = Fetch(0, "a", 5, granted=one), Fetch(1, "b", 5, granted=other)
    assert reasons(gold_rows([captured(*fetches)], lanes(1)))["session_grants"] == {"granted": 1}


def test_an_error_that_the_model_does_not_have_is_a_disagreement() -> None:
    (mine,) = ids(0)
    fetches = Fetch(0, "a", 5, granted=mine), Fetch(10, "a", 5, session_id=mine, epoch=1, error=70)
    assert reasons(gold_rows([captured(*fetches)], lanes(1))) == {"session_errors": {"other_error": 1}}


def test_a_fetch_that_was_not_captured_is_no_disagreement() -> None:
    (mine,) = ids(0)
    followed = [Fetch(10 * n, "a", 5, session_id=mine, epoch=n, granted=mine) for n in (1, 2, 4, 5)]
    told = reasons(gold_rows([captured(Fetch(0, "a", 5, granted=mine), *followed)], lanes(1)))
    assert told == {
        "session_errors": {"response_not_captured": 1}, "session_requests": {"response_not_captured": 1}
    }  # fmt: skip


def test_a_session_from_before_the_capture_is_counted_apart() -> None:
    (mine,) = ids(0)
    fetches = Fetch(0, "a", 5, session_id=mine, epoch=9, granted=mine), Fetch(1, "b", 5)
    told = reasons(gold_rows([captured(*fetches)], lanes(1)))
    assert told["session_errors"] == {"session_from_before_capture": 1}


def test_an_idle_session_from_before_the_capture_goes_on_though_no_message_names_its_partitions() -> None:
    (mine,) = ids(0)
    idle = [Fetch(500 * n, "f", 0, True, session_id=mine, epoch=9 + n) for n in range(4)]
    wakes = Fetch(2000, "f", 2, True, session_id=mine, epoch=13, granted=mine)
    gold = gold_rows([captured(*idle, wakes)], lanes(1))
    assert {row[FIDELITY.reader] for row in gold[FIDELITY.name]} == {"follower"}
    told = reasons(gold)
    assert told["session_errors"] == {"session_from_before_capture": 1}
    assert told["session_requests"] == {"response_not_captured": 1, "session_from_before_capture": 3}
    assert total(gold, SESSION_CACHE.not_found) == total(gold, SESSION_CACHE.full_fetches) == 0


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


@pytest.mark.parametrize("rows", [1, 7])
def test_the_tables_do_not_depend_on_how_batches_are_cut(rows: int) -> None:
    batch = random_capture(400)
    settings = CacheSettings(np.array([1, 2, 5, 9]), np.array([8, 8, 1, 1]), np.full(4, 30_000), np.array([0, 0, 1, 2]))
    four = SessionLanes(("a", "b", "c", "d"), settings)
    whole, cut = (gold_rows(cuts, four) for cuts in ([batch], pa.Table.from_batches([batch]).to_batches(rows)))
    assert cut == whole
    assert total(whole, SESSION_CACHE.evicted) > 0


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


def test_after_the_greatest_epoch_comes_the_first() -> None:
    (mine,) = ids(0)
    epochs = 2147483646, 2147483647, 1, 2
    fetches = [Fetch(n, "a", 5, session_id=mine, epoch=epoch, granted=mine) for n, epoch in enumerate(epochs)]
    gold = gold_rows([captured(*fetches)], lanes(1))
    assert (total(gold, SESSION_CACHE.full_fetches), total(gold, SESSION_CACHE.fetches)) == (0, 4)
    assert reasons(gold)["session_errors"] == {"session_from_before_capture": 1}


def test_a_client_that_mistakes_its_epoch_does_so_in_every_lane() -> None:
    (mine,) = ids(0)
    fetches = (
        Fetch(0, "a", 5, granted=mine), Fetch(10, "a", 5, session_id=mine, epoch=1, granted=mine),
        Fetch(20, "a", 5, session_id=mine, epoch=9, error=71), Fetch(30, "a", 5, session_id=mine, granted=mine + 1),
    )  # fmt: skip
    gold = gold_rows([captured(*fetches)], lanes(8))
    assert (total(gold, SESSION_CACHE.fetches), total(gold, SESSION_CACHE.full_fetches)) == (4, 2)
    assert reasons(gold)["session_requests"] == {"other_request": 1}


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
