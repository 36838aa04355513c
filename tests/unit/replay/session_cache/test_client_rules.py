"""Why a client sends a fetch, at the boundaries of its rules (KIP-227; FetchSessionHandler)."""

from __future__ import annotations

from itertools import product

import pytest

from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.replay.session_cache.broker import new_broker
from udfs.replay.session_cache.captured_cache import go_on_in_session, put_session
from udfs.replay.session_cache.clients import (
    act_of,
    go_on_from,
    how_expected,
    note_loss,
    note_times,
    skips_epochs,
)
from udfs.replay.session_cache.memory import new_cache, with_clients
from udfs.replay.session_cache.replay import needed_fetches
from udfs.replay.session_cache.settings import CURRENT, SessionLanes, cache_settings
from udfs.replay.session_cache.state import (
    AFTER_LOSS,
    AS_EXPECTED,
    BEGIN_ANEW,
    BY_RULES,
    FROM_BEFORE,
    NO_TIME,
    RENEW,
    SESSION_CLIENT,
    SESSION_FETCH,
    UNEXPECTED,
    WITHOUT_SESSION,
    WRONG_EPOCH,
)
from udfs.replay.shared.window import Window

NOT_FOUND, WRONG, OTHER_IDS = 70, 71, 106
BITS = (0, 1)


@pytest.mark.parametrize(
    ("response_us", "handled_us", "answered_us"), [(NO_TIME, 7, 500_007), (9, 7, 9), (7, 7, 7), (6, 7, 7)]
)
def test_a_fetch_without_response_is_answered_when_its_wait_is_over(
    response_us: int, handled_us: int, answered_us: int
) -> None:
    fetch = new_records(SESSION_FETCH, 1, response_us=response_us)[0]
    note_times(fetch, handled_us, 500)
    assert (fetch["handled_us"], fetch["answered_us"]) == (handled_us, answered_us)


def test_epochs_are_skipped_if_the_broker_accepts_a_later_one_of_the_same_session() -> None:
    for error, throttled, same, client_epoch, epoch in product(
        (0, NOT_FOUND, WRONG, OTHER_IDS), BITS, BITS, BITS, (1, 2)
    ):
        client = new_records(SESSION_CLIENT, 1, id=5, epoch=client_epoch)[0]
        fetch = new_records(
            SESSION_FETCH, 1, session_id=5 if same else 6, epoch=epoch, error=error, is_throttled=throttled
        )[0]
        expected = error in (0, OTHER_IDS) and not throttled and same and client_epoch == 1 and epoch == 2
        assert skips_epochs(client, fetch) == expected, (client, fetch)


@pytest.mark.parametrize(
    ("session", "client", "expected"),
    [
        ((0, -1), (5, 3), AS_EXPECTED),
        ((5, 3), (5, 3), AS_EXPECTED),
        ((5, 4), (5, 3), AFTER_LOSS),
        ((5, 2), (5, 3), UNEXPECTED),
        ((6, 3), (5, 3), UNEXPECTED),
    ],
    ids=["without session", "the next", "a later one", "an earlier one", "of another session"],
)
@pytest.mark.parametrize(("is_certain", "connection"), [(1, 9), (0, 9), (1, 8)])
def test_a_request_is_unexpected_only_where_the_response_before_it_on_its_connection_was_captured(
    session: tuple[int, int], client: tuple[int, int], expected: int, is_certain: int, connection: int
) -> None:
    known = new_records(SESSION_CLIENT, 1, id=client[0], epoch=client[1], connection=9, is_certain=is_certain)[0]
    fetch = new_records(SESSION_FETCH, 1, session_id=session[0], epoch=session[1], connection=connection)[0]
    if expected == UNEXPECTED and (is_certain, connection) != (1, 9):
        expected = AFTER_LOSS
    assert how_expected(known, fetch) == expected


@pytest.mark.parametrize(
    ("session", "client", "told", "act"),
    [
        ((0, -1), (5, 3), {}, WITHOUT_SESSION),
        ((6, 3), (5, 3), {}, FROM_BEFORE),
        ((5, 3), (5, 3), {}, BY_RULES),
        ((5, 3), (5, 3), {"error": WRONG}, BY_RULES),
        ((5, 9), (5, 3), {"expected": UNEXPECTED}, BY_RULES),
        ((5, 9), (5, 3), {"error": WRONG, "expected": UNEXPECTED}, WRONG_EPOCH),
        ((0, 0), (0, 0), {}, BY_RULES),
        ((5, 0), (5, 0), {}, BY_RULES),
        ((0, 0), (5, 0), {}, BEGIN_ANEW),
        ((0, 0), (0, 1), {}, BEGIN_ANEW),
        ((5, 0), (5, 1), {}, RENEW),
    ],
)
def test_a_client_acts_by_its_rules_or_of_its_own_accord(
    session: tuple[int, int], client: tuple[int, int], told: dict[str, int], act: int
) -> None:
    known = new_records(SESSION_CLIENT, 1, id=client[0], epoch=client[1])[0]
    fetch = new_records(SESSION_FETCH, 1, session_id=session[0], epoch=session[1], **told)[0]
    assert act_of(known, fetch) == act


@pytest.mark.parametrize(
    ("client", "fetch", "is_lost"),
    [
        ({}, {}, 0),
        ({"is_lost": 1}, {}, 1),
        ({"is_lost": 1}, {"epoch": 0}, 0),
        ({"is_certain": 0}, {}, 1),
        ({"connection": 8}, {}, 1),
        ({}, {"epoch": 4}, 1),
        ({}, {"act": FROM_BEFORE}, 1),
    ],
)
@pytest.mark.parametrize("partitions", [0, 1])
def test_a_session_is_not_shown_whole_from_the_first_missing_fetch_until_another_session(
    client: dict[str, int], fetch: dict[str, int], is_lost: int, partitions: int
) -> None:
    known = new_records(SESSION_CLIENT, 1, **{"id": 5, "epoch": 3, "connection": 9, "is_certain": 1} | client)[0]
    noted = new_records(
        SESSION_FETCH, 1, **{"session_id": 5, "epoch": 3, "connection": 9, "is_known": 1, "end": partitions} | fetch
    )[0]
    note_loss(known, noted)
    assert (noted["is_lost"], known["is_lost"]) == (is_lost, is_lost)
    stands_for_nothing = is_lost == 1 and partitions == 0
    assert (noted["is_known"], noted["response_session_id"]) == ((0, 5) if stands_for_nothing else (1, 0))


@pytest.mark.parametrize(
    ("fetch", "client"),
    [
        ({"response_us": NO_TIME, "epoch": 3}, (5, 4, 0)),
        ({"response_us": NO_TIME, "epoch": 0}, (5, 0, 0)),
        ({"response_us": 8, "epoch": 3, "response_session_id": 5}, (5, 4, 1)),
    ],
)
def test_a_client_goes_on_with_the_next_epoch_though_its_answer_is_not_captured(
    fetch: dict[str, int], client: tuple[int, int, int]
) -> None:
    known, sent = (
        new_records(SESSION_CLIENT, 1)[0],
        new_records(SESSION_FETCH, 1, session_id=5, connection=9, **fetch)[0],
    )
    go_on_from(known, sent)
    assert (known["id"], known["epoch"], known["is_certain"]) == client
    assert (known["connection"], known["answered_us"]) == (9, sent["response_us"])


@pytest.mark.parametrize(("error", "live"), [(0, 1), (NOT_FOUND, 0), (WRONG, 1), (OTHER_IDS, 1)])
def test_only_a_session_that_was_not_found_is_gone(error: int, live: int) -> None:
    cache = with_clients(new_cache(cache_settings(2, 1, 100, CURRENT), 1), 1)
    fetch = new_records(SESSION_FETCH, 1, size=3, session_id=5, epoch=1)[0]
    place = put_session(cache, 5, fetch, 0)
    go_on_in_session(cache, fetch, place, error, 0)
    assert cache.live[0, 0] == live
    go_on_in_session(cache, fetch, NONE, NOT_FOUND, 0)
    assert cache.live[0, 0] == live


@pytest.mark.parametrize(
    ("begin_us", "life", "first_us", "needed"),
    [(NONE, 0, 99, 2), (NONE, 0, 100, 0), (50, 0, 100, 2), (50, 1, 100, 0), (50, 1, 99, 2), (NONE, 1, 100, 0)],
)
def test_fetches_after_the_window_are_needed_only_of_a_broker_that_goes_on_in_the_same_life(
    begin_us: int, life: int, first_us: int, needed: int
) -> None:
    replay = new_broker("1", SessionLanes(("lane",), cache_settings(8, 1, 100, CURRENT), Window(0, 100)), "seed")
    replay.begin_us, replay.life = begin_us, 0
    assert (
        len(needed_fetches(replay, new_records(SESSION_FETCH, 2, request_us=[first_us, first_us + 1], life=life)))
        == needed
    )
