"""Fetch sessions of the shared captures: with the captured settings, open and closed loop give what was captured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from schemas.tables import algorithms
from schemas.tables.gold import FIDELITY, RUNS
from schemas.tables.gold_sessions import SESSION_CACHE, SESSION_EVICTIONS, SESSION_SLOTS
from schemas.tables.silver import EXCHANGES
from tests.e2e.conftest import IN_FORCE, CapturedLake
from tests.e2e.request_log import LoggedRequest

Captured = Callable[[str], CapturedLake]
FULL, GOING_ON = range(1), range(1, 1 << 31)
"""Session epochs: of fetches that open a session, and of those that continue one."""
FETCH_SESSION_ID_NOT_FOUND = 70


@pytest.fixture(scope="module")
def sessions(captured: Captured) -> CapturedLake:
    return captured("sessions")


def fidelity(lake: CapturedLake) -> dict[str, tuple[int, int, int]]:
    """(checked, agreed, unknown) by metric."""
    f = FIDELITY
    sums: dict[str, Counter[str]] = {}
    for row in lake.rows(f, where=f"{f.algorithm} = '{algorithms.SESSION_CACHE}'"):
        counts = {name: row[name] for name in (f.checked, f.agreed, f.unknown)}
        sums.setdefault(row[f.metric], Counter()).update(counts)
    return {metric: (of[f.checked], of[f.agreed], of[f.unknown]) for metric, of in sums.items()}


def fetches(lake: CapturedLake) -> list[LoggedRequest]:
    """The fetches of the capture as brokers logged them."""
    return [lake.logged[key] for key, row in lake.exchanges.items() if row[EXCHANGES.api_name] == "FETCH"]


def answers(lake: CapturedLake, epochs: range) -> list[LoggedRequest]:
    """The fetches with these session epochs whose response is in the capture."""
    return [
        line for line in fetches(lake)
        if line.request["sessionEpoch"] in epochs and lake.exchanges[line.key][EXCHANGES.status] == "answered"
    ]  # fmt: skip


def refusals(full: list[LoggedRequest]) -> int:
    """How many full fetches got no session."""
    return sum(line.response["sessionId"] == 0 for line in full)


def not_found(going_on: list[LoggedRequest]) -> int:
    """How many fetches named a session that the broker no longer has."""
    return sum(line.response["errorCode"] == FETCH_SESSION_ID_NOT_FOUND for line in going_on)


def lane(lake: CapturedLake, scenario: str) -> Counter[str]:
    """The sums of a lane's integer columns, over brokers and time."""
    c, found = SESSION_CACHE, Counter[str]()
    for row in lake.rows(c):
        if row[c.scenario] == scenario:
            found.update({name: value for name, value in row.items() if isinstance(value, int)})
    return found


def test_every_decision_on_a_session_is_what_the_settings_in_force_give(sessions: CapturedLake) -> None:
    full, going_on = answers(sessions, FULL), answers(sessions, GOING_ON)
    known = [line for line in going_on if line.response["errorCode"] == 0]
    logged = {
        "session_grants": len(full),
        "session_shards": len(full) - refusals(full),
        "session_errors": len(going_on),
        "session_partitions": len(full) + len(known),
        "incremental_responses": len(known),
        "session_requests": len(fetches(sessions)),
    }
    assert fidelity(sessions) == {metric: (count, count, 0) for metric, count in logged.items()}


@pytest.mark.parametrize("scenario", ["captured", f"broker.{IN_FORCE['sessions'][0]}"])
def test_the_closed_loop_gives_the_captured_traffic(sessions: CapturedLake, scenario: str) -> None:
    found = lane(sessions, scenario)
    for name in ("fetches", "created", "refused", "not_found", "request_bytes", "response_bytes"):
        assert found[name] == found[f"captured_{name}"], name
    logged = refusals(answers(sessions, FULL)), not_found(answers(sessions, GOING_ON))
    assert (found["refused"], found["not_found"]) == logged > (0, 0)


def test_twice_the_slots_refuse_and_evict_nobody(sessions: CapturedLake) -> None:
    found = lane(sessions, "broker.max.incremental.fetch.session.cache.slots=16")
    assert (found["refused"], found["evicted"], found["not_found"]) == (0, 0, 0)
    assert found["request_bytes"] < found["captured_request_bytes"]
    s = SESSION_SLOTS
    rows = sessions.rows(s)
    assert {(row[s.zero_harm_slots], row[s.slots_at_least], row[s.slots_at_most]) for row in rows} == {(16, 8, 15)}


def test_the_release_is_that_of_the_captured_brokers(sessions: CapturedLake) -> None:
    assumed = sessions.rows(RUNS)[0][RUNS.assumed]
    assert "kafka: 4.3, from the API versions that brokers offer" in assumed


def test_larger_consumers_evict_smaller_ones(sessions: CapturedLake) -> None:
    e = SESSION_EVICTIONS
    rows = sessions.rows(e, where=f"{e.scenario} = 'captured'")
    assert sum(row[e.evictions] for row in rows) == not_found(answers(sessions, GOING_ON))
    assert {(row[e.evictor_reader], row[e.victim_reader]) for row in rows} == {("consumer", "consumer")}
