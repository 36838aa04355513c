"""How many slots the captured broker can have had."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.tables.gold_sessions import SESSION_SLOTS
from tests.unit.replay.session_cache.captures import Fetch, captured, ids, lanes
from tests.unit.replay.session_cache.event_rows import gold_rows
from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.replay.session_cache.order import OVERLAP_US
from udfs.replay.session_cache.slots import (
    new_spans,
    note_all_gone,
    note_gone,
    note_served,
    note_session_granted,
    slots_range,
    with_spans,
)
from udfs.replay.session_cache.state import EVENT, SESSION_FETCH


def test_the_capture_bounds_the_slots() -> None:
    granted = [Fetch(n, f"c{n}", 1, granted=session_id) for n, session_id in enumerate(ids(*range(8), *range(8)))]
    granted = [fetch._replace(granted=fetch.granted + number) for number, fetch in enumerate(granted)]
    used = [
        fetch._replace(ms=130_000 + number, session_id=fetch.granted, epoch=1) for number, fetch in enumerate(granted)
    ]
    refused = [Fetch(130_100, "late", 1)]
    (row,) = gold_rows([captured(*granted, *used, *refused)], lanes(16, shards=8))[SESSION_SLOTS.name]
    assert (row[SESSION_SLOTS.slots_at_least], row[SESSION_SLOTS.slots_at_most]) == (16, 23)


@pytest.mark.parametrize(("refused_ms", "at_most"), [(120_000, None), (120_001, 1)])
def test_a_refusal_bounds_the_slots_once_no_session_from_before_the_capture_can_be_held(
    refused_ms: int, at_most: int | None
) -> None:
    granted = Fetch(0, "a", 1, granted=7)
    used = Fetch(60_000, "a", 1, session_id=7, epoch=1, granted=7)
    gold = gold_rows([captured(granted, used, Fetch(refused_ms, "late", 1, wait_us=0))], lanes(1))
    (row,) = gold[SESSION_SLOTS.name]
    assert row[SESSION_SLOTS.slots_at_most] == at_most


SESSIONS = st.lists(st.tuples(st.integers(0, 1), *[st.integers(0, 9)] * 3), max_size=7)
"""(shard, when it was opened, how much later it was served last, how much later again it was gone) of each, in units of
what packets may overlap.
"""


@given(SESSIONS, st.lists(st.tuples(st.integers(0, 1), st.integers(0, 25)), max_size=4), st.integers(0, 12))
def test_slots_are_at_least_the_sessions_alive_at_once_and_at_most_those_that_may_be_alive_at_a_refusal(
    sessions: list[tuple[int, int, int, int]], refused: list[tuple[int, int]], unseen_until: int
) -> None:
    spans = with_spans(new_spans(), len(sessions) + len(refused))
    own = list[tuple[int, int, int, int]]()
    for number, (shard, opened, served, gone) in enumerate(sessions):
        session_id, until = ids(shard)[0] + number, opened + served
        fetch = new_records(
            SESSION_FETCH, 1, response_session_id=session_id, session_id=session_id, handled_us=until * OVERLAP_US
        )
        note_session_granted(spans, new_records(EVENT, 1, us=opened * OVERLAP_US)[0], fetch[0], 8)
        note_served(spans, fetch[0], NEVER)
        note_gone(spans, session_id, (until + gone) * OVERLAP_US)
        own.append((shard, opened, until, until + gone))
    for shard, at in refused:
        event = new_records(EVENT, 1, us=at * OVERLAP_US, is_certain=1, expected_shard=shard)
        note_session_granted(spans, event[0], new_records(SESSION_FETCH, 1)[0], 8)
    at_once = [sum(s == shard and o <= at <= e for s, o, e, _ in own) for shard in (0, 1) for at in range(30)]
    may_be = [
        sum(s == shard and o <= at and at - 1 <= g for s, o, _, g in own) for shard, at in refused if at > unseen_until
    ]
    expected = 8 * max(at_once), 8 * (min(may_be) + 1) - 1 if may_be else None
    assert slots_range(spans, 8, unseen_until * OVERLAP_US) == expected


def test_a_refusal_counts_only_if_it_is_certain_whose_turn_it_was() -> None:
    spans = with_spans(new_spans(), 3)
    for is_certain, shard in ((0, 1), (1, NONE), (1, 1)):
        event = new_records(EVENT, 1, us=5, is_certain=is_certain, expected_shard=shard)
        note_session_granted(spans, event[0], new_records(SESSION_FETCH, 1)[0], 8)
    assert spans.refusals[: spans.used[1]].tolist() == [(1, 5)]


def test_when_a_broker_stops_all_its_sessions_are_gone_at_the_latest() -> None:
    spans = with_spans(new_spans(), 2)
    for number in range(2):
        fetch = new_records(SESSION_FETCH, 1, response_session_id=7 + number)
        note_session_granted(spans, new_records(EVENT, 1, us=5)[0], fetch[0], 8)
    note_gone(spans, 7, 9)
    note_all_gone(spans, 20)
    assert spans.spans["gone_us"][:2].tolist() == [9, 20]
    note_served(spans, new_records(SESSION_FETCH, 1, session_id=8, error=70)[0], 12)
    assert spans.spans[["served_us", "gone_us"]][:2].tolist() == [(5, 9), (5, 12)]
