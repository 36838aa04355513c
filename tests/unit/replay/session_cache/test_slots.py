"""How many slots the captured broker can have had."""

from __future__ import annotations

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
