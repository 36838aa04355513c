"""A session's fetches either all name topics by id, or all by name. One that does otherwise is refused (KIP-516).

The session stays, with its epoch, until the client's full fetch closes it (FetchManager.newContext and
FetchSessionHandler.handleResponse, Kafka 4.3).
"""

from __future__ import annotations

import pytest

from schemas.tables.gold import FIDELITY
from schemas.tables.gold_sessions import SESSION_CACHE, SESSION_SLOTS
from tests.unit.replay.session_cache.captures import Fetch, captured, ids, lanes, reasons, total
from tests.unit.replay.session_cache.event_rows import Gold, gold_rows

BY_NAME, BY_ID = 12, 13
(SESSION,) = ids(0)
OPENED = Fetch(0, "a", 5, granted=SESSION, version=BY_NAME)
REFUSED = Fetch(2000, "a", 5, session_id=SESSION, epoch=1, error=106, version=BY_ID)
FULL = Fetch(3000, "a", 5, session_id=SESSION, granted=SESSION + 1, version=BY_ID)


def sums(gold: Gold) -> tuple[int, int, int]:
    """(fetches, full ones, those whose session was gone)."""
    return (
        total(gold, SESSION_CACHE.fetches),
        total(gold, SESSION_CACHE.full_fetches),
        total(gold, SESSION_CACHE.not_found),
    )


@pytest.mark.parametrize(
    ("then", "expected"),
    [
        ([FULL], (3, 2, 0)),
        ([FULL._replace(version=BY_NAME)], (3, 2, 0)),
        ([FULL._replace(session_id=0)], (3, 2, 0)),
        ([FULL._replace(epoch=-1, granted=0)], (3, 2, 0)),
        ([], (2, 1, 0)),
    ],
    ids=["goes on by id", "goes on by name", "begins anew", "closes its session", "is gone"],
)
def test_a_fetch_with_other_use_of_topic_ids_is_refused_once(then: list[Fetch], expected: tuple[int, int, int]) -> None:
    assert sums(gold_rows([captured(OPENED, REFUSED, *then)], lanes(2))) == expected


def test_a_fetch_that_kafka_refuses_for_its_topic_ids_agrees() -> None:
    gold = gold_rows([captured(OPENED, REFUSED, FULL)], lanes(1))
    errors = [row for row in gold[FIDELITY.name] if row[FIDELITY.metric] == "session_errors"]
    assert [(row[FIDELITY.checked], row[FIDELITY.agreed]) for row in errors] == [(1, 1)]
    assert reasons(gold) == {}


def test_a_refused_session_holds_its_slot_until_the_full_fetch() -> None:
    between, behind = Fetch(2500, "b", 9), Fetch(3500, "c", 9)
    gold = gold_rows([captured(OPENED, REFUSED, between, FULL._replace(epoch=-1, granted=0), behind)], lanes(1))
    assert (total(gold, SESSION_CACHE.created), total(gold, SESSION_CACHE.refused)) == (2, 1)


def test_if_the_session_was_evicted_it_is_not_found_instead() -> None:
    follower = Fetch(1000, "f", 9, True, granted=SESSION + 2)
    assert sums(gold_rows([captured(OPENED, follower, REFUSED, FULL)], lanes(1))) == (4, 3, 1)


def test_a_client_without_a_session_sends_only_full_fetches() -> None:
    assert sums(gold_rows([captured(OPENED, REFUSED, FULL)], lanes(0))) == (2, 2, 0)


def test_a_refused_fetch_has_its_captured_bytes() -> None:
    batch = captured(OPENED, REFUSED)
    sizes = {"request_bytes": [100, 70], "response_bytes": [200, 30]}
    fetch_at = [n for n, position in enumerate(batch["position"].to_pylist()) if position == -1]
    rows = batch.to_pylist()
    for number, at in enumerate(fetch_at):
        rows[at].update({name: of[number] for name, of in sizes.items()})
    gold = gold_rows([type(batch).from_pylist(rows, schema=batch.schema)], lanes(1))
    assert (total(gold, SESSION_CACHE.request_bytes), total(gold, SESSION_CACHE.response_bytes)) == (170, 230)


def test_a_refused_fetch_shows_that_its_session_is_alive() -> None:
    refused, late = REFUSED._replace(ms=130_000), Fetch(131_000, "b", 5, version=BY_NAME)
    batch = captured(OPENED, refused, late, FULL._replace(ms=132_000))
    (row,) = gold_rows([batch], lanes(1))[SESSION_SLOTS.name]
    assert (row[SESSION_SLOTS.slots_at_least], row[SESSION_SLOTS.slots_at_most]) == (1, 1)


def test_a_broker_that_accepts_other_use_of_topic_ids_disagrees_once() -> None:
    by_id = [Fetch(10 * n, "a", 5, session_id=SESSION, epoch=n, granted=SESSION, version=BY_ID) for n in (1, 2, 3)]
    assert reasons(gold_rows([captured(OPENED, *by_id)], lanes(1))) == {"session_errors": {"other_error": 1}}


def test_a_refused_fetch_shows_the_sessions_epoch() -> None:
    """The broker checks the epoch first, so this shows that fetches before this one were not captured."""
    given = reasons(gold_rows([captured(OPENED, REFUSED._replace(epoch=4), FULL)], lanes(1)))
    assert given == {
        "session_errors": {"response_not_captured": 1}, "session_requests": {"response_not_captured": 1}
    }  # fmt: skip
