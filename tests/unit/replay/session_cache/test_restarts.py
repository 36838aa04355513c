"""A capture shows that a broker was restarted. The broker then has no sessions."""

from __future__ import annotations

import pytest

from schemas.tables.gold_sessions import SESSION_CACHE, SESSION_SLOTS
from tests.unit.replay.session_cache.captures import SHARD_IDS, Fetch, captured, ids, lanes, reasons, total
from tests.unit.replay.session_cache.event_rows import gold_rows

BEFORE = [Fetch(n, f"c{n}", 1, granted=session_id) for n, session_id in enumerate(ids(2, 3, 4, 5, 6, 7, 0, 1))]
"""Eight clients, a session in each shard."""
NO_ANSWER = Fetch(20, "c8", 1, wait_us=None)


def anew(*shards: int) -> list[Fetch]:
    """The clients fetch again after all connections have ended. One tries its session first, which is not found."""
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
    assert reasons(gold).keys() == {"session_requests"}  # the rules do not say what a client does on a new connection
    assert total(gold, SESSION_CACHE.created) == 13
    assert gold[SESSION_CACHE.name][-1][SESSION_CACHE.live_sessions] == 5


def test_sessions_that_a_restart_ended_need_no_slot_beside_those_after_it() -> None:
    (slots,) = gold_rows([captured(*BEFORE, *anew(0, 1, 2, 3))], lanes(8, shards=8))[SESSION_SLOTS.name]
    assert slots[SESSION_SLOTS.zero_harm_slots] == 8


def test_without_all_connections_gone_the_same_ids_are_disagreements() -> None:
    one_goes_on = [fetch._replace(life=0) for fetch in anew(0, 1, 2, 3)]
    given = reasons(gold_rows([captured(*BEFORE, *one_goes_on)], lanes(8, shards=8)))
    assert given["session_shards"] == {"other_shard": 1}
    assert given["session_errors"] == {"other_error": 1}


def test_a_broker_whose_ids_go_on_where_they_were_was_not_restarted() -> None:
    """The capture has few connections, and all of them happened to end."""
    goes_on = Fetch(9000, "c0", 1, session_id=BEFORE[0].granted, epoch=1, granted=BEFORE[0].granted, life=1)
    again = [Fetch(9001 + n, f"d{n}", 1, granted=session_id + 1, life=1) for n, session_id in enumerate(ids(2, 3))]
    gold = gold_rows([captured(*BEFORE, goes_on, *again)], lanes(16, shards=8))
    assert reasons(gold) == {}
    assert gold[SESSION_CACHE.name][-1][SESSION_CACHE.live_sessions] == 10


def test_a_session_from_before_a_restart_holds_no_slot_at_a_refusal_after_it() -> None:
    (first,) = ids(0)
    restarted = [Fetch(9000 + n, f"n{n}", 1, granted=first + n * SHARD_IDS, life=1) for n in range(8)]
    used = [fetch._replace(ms=140_000 + n, session_id=fetch.granted, epoch=1) for n, fetch in enumerate(restarted)]
    batch = captured(*BEFORE, *restarted, *used, Fetch(140_100, "late", 1, life=1))
    (row,) = gold_rows([batch], lanes(8, shards=8))[SESSION_SLOTS.name]
    assert (row[SESSION_SLOTS.slots_at_least], row[SESSION_SLOTS.slots_at_most]) == (8, 15)
