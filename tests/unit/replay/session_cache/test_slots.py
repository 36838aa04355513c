"""How many slots the captured broker can have had."""

from __future__ import annotations

import pytest

from schemas.tables.gold_sessions import SESSION_SLOTS
from tests.unit.replay.session_cache.captures import Fetch, captured, ids, lanes
from tests.unit.replay.session_cache.event_rows import gold_rows


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
