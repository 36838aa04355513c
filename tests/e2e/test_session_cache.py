"""Fetch sessions of the shared captures: the captured settings give what was captured, in open and in closed loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from schemas.tables.gold import FIDELITY, RUNS
from schemas.tables.gold_sessions import SESSION_CACHE, SESSION_EVICTIONS, SESSION_SLOTS
from tests.e2e.conftest import CapturedLake
from udfs.replay.sessions.session_report import ALGORITHM

Captured = Callable[[str], CapturedLake]


@pytest.fixture(scope="module")
def sessions(captured: Captured) -> CapturedLake:
    return captured("sessions")


def fidelity(lake: CapturedLake) -> dict[str, tuple[int, int, int]]:
    """(checked, agreed, unknown) by metric."""
    f = FIDELITY
    sums: dict[str, Counter[str]] = {}
    for row in lake.rows(f, where=f"{f.algorithm} = '{ALGORITHM}'"):
        counts = {name: row[name] for name in (f.checked, f.agreed, f.unknown)}
        sums.setdefault(row[f.metric], Counter()).update(counts)
    return {metric: (of[f.checked], of[f.agreed], of[f.unknown]) for metric, of in sums.items()}


def lane(lake: CapturedLake, scenario: str) -> Counter[str]:
    """A lane's sums over brokers and time."""
    c, found = SESSION_CACHE, Counter[str]()
    for row in lake.rows(c):
        if row[c.scenario] == scenario:
            found.update({name: value for name, value in row.items() if isinstance(value, int)})
    return found


def test_every_decision_on_a_session_is_what_the_settings_in_force_give(sessions: CapturedLake) -> None:
    assert fidelity(sessions) == {
        "session_grants": (1941, 1941, 0),
        "session_shards": (49, 49, 0),
        "session_errors": (7114, 7114, 0),
        "session_partitions": (9037, 9037, 0),
        "incremental_responses": (7096, 7096, 0),
        "session_requests": (9082, 9082, 0),
    }


@pytest.mark.parametrize("scenario", ["captured", "broker.max.incremental.fetch.session.cache.slots=8"])
def test_the_closed_loop_comes_to_the_captured_traffic(sessions: CapturedLake, scenario: str) -> None:
    found = lane(sessions, scenario)
    for name in ("fetches", "created", "refused", "not_found", "request_bytes", "response_bytes"):
        assert found[name] == found[f"captured_{name}"], name
    assert (found["refused"], found["not_found"]) == (1892, 18)


def test_twice_the_slots_refuse_and_evict_nobody(sessions: CapturedLake) -> None:
    found = lane(sessions, "broker.max.incremental.fetch.session.cache.slots=16")
    assert (found["refused"], found["evicted"], found["not_found"]) == (0, 0, 0)
    assert found["request_bytes"] < found["captured_request_bytes"]
    s = SESSION_SLOTS
    rows = sessions.rows(s)
    assert {(row[s.zero_harm_slots], row[s.slots_at_least], row[s.slots_at_most]) for row in rows} == {(16, 8, 15)}


def test_the_release_is_that_of_the_captured_brokers(sessions: CapturedLake) -> None:
    assumed = sessions.rows(RUNS)[0][RUNS.assumed]
    assert "kafka: 4.3, from the versions of APIs that brokers offer" in assumed


def test_larger_consumers_evict_smaller_ones(sessions: CapturedLake) -> None:
    e = SESSION_EVICTIONS
    rows = sessions.rows(e, where=f"{e.scenario} = 'captured'")
    assert sum(row[e.evictions] for row in rows) == 18
    assert {(row[e.evictor_reader], row[e.victim_reader]) for row in rows} == {("consumer", "consumer")}
