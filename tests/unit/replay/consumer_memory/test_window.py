"""A window counts only what happens in it. Memory that is held when it begins stays held."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from schemas.tables.gold import FIDELITY
from schemas.tables.gold_memory import (
    BROKER_MEMORY,
    CONSUMER_MEMORY,
    CONSUMER_MEMORY_EXCEEDANCE,
    PRODUCER_MEMORY,
)
from schemas.tables.table import Table
from tests.unit.replay.consumer_memory.events import Row
from tests.unit.replay.consumer_memory.test_replay import EVENTS, LANES, MANY, TWO_BROKERS, tables
from tests.unit.replay.consumer_memory.traces import pools_of
from udfs.replay.consumer_memory.settings import UNBOUNDED
from udfs.replay.shared.window import Window

Tables = dict[str, list[dict[str, Any]]]
SMALL = replace(LANES, consumer=pools_of(UNBOUNDED, 100))
"""The second lane's pool makes the second response wait from 20 to 110 ms."""
COUNTED: dict[Table, tuple[str, ...]] = {
    CONSUMER_MEMORY: ("responses", "response_bytes", "records", "record_bytes", "waits", "span_ms"),
    BROKER_MEMORY: ("requests", "request_bytes", "waits", "held_until_response", "span_ms"),
    PRODUCER_MEMORY: ("batches", "batch_bytes", "batches_begun", "waits", "exhausted"),
}
KEY = ("scenario", "broker", "client_id", "client_address")


def found_in(begin: int | None, end: int | None, events: list[Row] = EVENTS) -> Tables:
    whole = Window()
    window = Window(whole.begin if begin is None else begin, whole.end if end is None else end)
    return tables(events, 10_000, replace(SMALL, window=window))


def counts(found: Tables) -> Counter[tuple[Any, ...]]:
    """All counts, with times in us: by table, lane and client or broker; and those of fidelity, by metric."""
    sums = Counter[tuple[Any, ...]]()
    for table, names in COUNTED.items():
        for row in found.get(table.name, []):
            of = (table.name, *(row.get(key) for key in KEY))
            sums.update({(*of, name): round(1000 * row[name]) for name in names})
    f = FIDELITY
    for row in found.get(f.name, []):
        if not row[f.metric].startswith("closed_loop"):
            sums.update({(row[f.metric], row[f.client_id], c): row[c] for c in (f.checked, f.agreed, f.unknown)})
    return +sums


@pytest.mark.parametrize("events", [EVENTS, MANY], ids=["few", "many"])
def test_a_window_over_everything_is_no_window(events: list[Row]) -> None:
    assert found_in(-1, 10_000_000, events) == found_in(None, None, events)


@pytest.mark.parametrize("cut", [12, 15_000, 60_000, 109_999, 115_000])
def test_the_counts_before_a_time_and_from_it_on_add_up(cut: int) -> None:
    """Spans add up for units that are in both windows: a unit without exchanges in a window has no row."""
    before, after, whole = (counts(found_in(*of)) for of in ((None, cut), (cut, None), (None, None)))
    both = before + after
    assert {key: both[key] for key in whole if key[-1] != "span_ms"} == {
        key: count for key, count in whole.items() if key[-1] != "span_ms"
    }
    for key in (key for key in whole if key[-1] == "span_ms" and before[key] and after[key]):
        assert both[key] == whole[key]


def test_bytes_from_before_the_window_are_in_the_pool() -> None:
    """100 bytes are held from 10 to 110 ms, 90 from 20 to 120; nothing comes from 25 to 105 ms."""
    c, e = CONSUMER_MEMORY, CONSUMER_MEMORY_EXCEEDANCE
    events = [*TWO_BROKERS[:4], *TWO_BROKERS[4:]]
    found = found_in(15_000, 112_000, events)
    captured = found[c.name][0]
    assert (captured[c.used_bytes_max], captured[c.span_ms], captured[c.responses]) == (190, 97.0, 1)
    curve = {step[e.bytes]: step[e.time_above_ms] for step in found[e.name] if step[e.scenario] == "captured"}
    assert curve == pytest.approx({90: 95.0, 100: 90.0, 190: 0.0})


def test_a_connection_that_waits_when_the_window_ends_is_not_stuck() -> None:
    """The second response waits for the first, which is given back at 110 ms."""
    c = CONSUMER_MEMORY
    _, small = found_in(None, 60_000)[c.name]
    assert (small[c.waits], small[c.stuck_connections], small[c.deadlock]) == (1, 0, None)
    paused = [row for row in TWO_BROKERS if row["time"] != 110_000]
    _, small = found_in(None, 60_000, paused)[c.name]
    assert (small[c.stuck_connections], small[c.deadlock]) == (1, "pinned_responses")


def test_a_wait_from_before_the_window_keeps_its_full_length() -> None:
    c = CONSUMER_MEMORY
    _, small = found_in(60_000, None)[c.name]
    assert (small[c.waits], small[c.wait_ms_max]) == (0, 90.0)
    assert small[c.depleted_share] == pytest.approx(50 / 160)


def test_a_unit_without_exchanges_in_the_window_has_no_row() -> None:
    """Brokers and producers are done after 200 us."""
    found = found_in(5_000, None)
    assert {CONSUMER_MEMORY.name} == {table.name for table in COUNTED} & found.keys()
    assert found_in(500_000, None).keys() <= {FIDELITY.name}
