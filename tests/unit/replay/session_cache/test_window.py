"""A window counts only what happens in it. Sessions from before it are there."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from schemas.tables.gold import FIDELITY
from schemas.tables.gold_sessions import SESSION_CACHE, SESSION_EVICTIONS, SESSION_SLOTS
from tests.unit.replay.session_cache.captures import Fetch, captured, lanes, total
from tests.unit.replay.session_cache.event_rows import Gold, gold_rows
from tests.unit.replay.session_cache.test_replay import BROKERS, FOUR, random_capture
from udfs.replay.session_cache import events
from udfs.replay.session_cache.dispatch import BUCKET_US
from udfs.replay.session_cache.state import CACHE_SUMS, CAPTURED_SUMS
from udfs.replay.shared.window import Window

MANY = random_capture(400)
LAST_US = int(MANY["request_time"][-1].as_py())
CUTS = [LAST_US // 7, LAST_US // 2, LAST_US // BUCKET_US * BUCKET_US, LAST_US - 1]
COUNTED = (*CACHE_SUMS, *(f"captured_{name}" for name in CAPTURED_SUMS), "unknown_fetches")


def gold_of(begin: int | None = None, end: int | None = None, batch: Any = MANY) -> Gold:
    whole = Window()
    window = Window(whole.begin if begin is None else begin, whole.end if end is None else end)
    return gold_rows([batch], replace(FOUR, window=window))


def counts(gold: Gold) -> Counter[tuple[str, ...]]:
    """All counts: by lane and broker, by who evicts whom, and by metric of fidelity."""
    found = Counter[tuple[str, ...]]()
    for row in gold[SESSION_CACHE.name]:
        found.update({("cache", row["scenario"], row["broker"], name): row[name] for name in COUNTED})
    e, f = SESSION_EVICTIONS, FIDELITY
    for row in gold[e.name]:
        found[row[e.scenario], row[e.broker], row[e.evictor], row[e.victim]] += row[e.evictions]
    for row in gold[f.name]:
        of = (row[f.metric], row[f.broker], row[f.client_id])
        found.update({(*of, name): row[name] for name in (f.checked, f.agreed, f.unknown)})
        found.update({(*of, reason): count for reason, count in row[f.reasons]})
    return +found


@pytest.mark.parametrize("batch", [MANY, BROKERS], ids=["many", "brokers"])
def test_a_window_over_everything_is_no_window(batch: Any) -> None:
    assert gold_of(0, LAST_US // BUCKET_US * BUCKET_US + 2 * BUCKET_US, batch) == gold_of(batch=batch)


@pytest.mark.parametrize("cut", CUTS)
def test_the_counts_before_a_time_and_from_it_on_add_up(cut: int) -> None:
    before, after = counts(gold_of(end=cut)), counts(gold_of(begin=cut))
    assert before + after == counts(gold_of())
    assert before[("cache", "a", "1", "fetches")]
    assert after[("cache", "a", "1", "fetches")]


@pytest.mark.parametrize("rows", [1, 7])
def test_a_windows_rows_do_not_depend_on_how_batches_are_cut(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    begin, end = CUTS[0], CUTS[1]
    whole = gold_of(begin, end)
    monkeypatch.setattr(events, "ROWS_AT_A_TIME", rows)
    assert gold_of(begin, end) == whole


IN_SESSION = [
    Fetch(0, "c", 3, granted=9),
    Fetch(10_500, "c", 3, session_id=9, epoch=1, granted=9),
    Fetch(12_000, "d", 5),
]
"""A client's session takes the only slot before the window. In the window it goes on, and another client is refused."""


def test_a_session_from_before_the_window_is_in_the_cache() -> None:
    gold = gold_rows([captured(*IN_SESSION)], replace(lanes(1), window=Window(10_000_000)))
    assert (total(gold, "fetches"), total(gold, "created"), total(gold, "not_found")) == (2, 0, 0)
    assert (total(gold, "refused"), gold[SESSION_CACHE.name][0]["live_sessions"]) == (1, 1)
    (slots,) = gold[SESSION_SLOTS.name]
    assert (slots[SESSION_SLOTS.most_sessions], slots[SESSION_SLOTS.zero_harm_slots]) == (1, 2)


def test_evictions_per_second_count_only_the_time_in_the_window() -> None:
    """At 130 s the second client takes the slot of one that was idle for two minutes. The window ends at 134 s."""
    rows = captured(Fetch(0, "c", 3, granted=9), Fetch(130_000, "d", 5, granted=8))
    gold = gold_rows([rows], replace(lanes(1), window=Window(126_000_000, 134_000_000)))
    (row,) = gold[SESSION_CACHE.name]
    assert (row["evicted"], row["evictions_per_s"]) == (1, 1 / 4)
