"""Every difference between the replay of the captured settings and the capture has a reason."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.tables.gold import FIDELITY
from schemas.tables.gold_sessions import SESSION_CACHE
from tests.unit.replay.session_cache.captures import Fetch, captured, ids, lanes, reasons, total
from tests.unit.replay.session_cache.event_rows import gold_rows


def test_ids_show_the_order_of_responses_that_overlap() -> None:
    first, second, third, fourth = ids(2, 3, 4, 5)
    overlapping = (
        Fetch(0, "a", 1, granted=first), Fetch(100, "b", 1, granted=fourth, wait_us=20_000),
        Fetch(101, "c", 1, granted=third, wait_us=21_000), Fetch(90, "d", 1, granted=second),
    )  # fmt: skip
    in_order = sorted(overlapping)
    gold = gold_rows([captured(*in_order)], lanes(80, shards=8))
    assert reasons(gold) == {"session_grants": {"order_inferred": 1}, "session_shards": {"order_inferred": 1}}


def test_ids_show_whose_turn_it_was_first_though_most_of_the_first_responses_overlap() -> None:
    """Seen on a busy machine with brokers that had just started: shards 1 and 0, 3 and 2, then 4."""
    second, first, fourth, third, fifth = ids(1, 0, 3, 2, 4)
    overlapping = (
        Fetch(0, "a", 1, granted=second, wait_us=20_000), Fetch(1, "b", 1, granted=first, wait_us=92_000),
        Fetch(200, "c", 1, granted=fourth, wait_us=9000), Fetch(201, "d", 1, granted=third, wait_us=80_000),
        Fetch(400, "e", 1, granted=fifth),
    )  # fmt: skip
    gold = gold_rows([captured(*overlapping)], lanes(80, shards=8))
    assert reasons(gold) == {"session_grants": {"order_inferred": 2}, "session_shards": {"order_inferred": 2}}


def test_if_no_shard_has_a_slot_it_makes_no_difference_whose_turn_it_is() -> None:
    gold = gold_rows([captured(*(Fetch(n, f"c{n}", 5) for n in range(40)))], lanes(7, shards=8))
    f = FIDELITY
    refused = [row for row in gold[f.name] if row[f.metric] == "session_grants"]
    assert [sum(row[column] for row in refused) for column in (f.checked, f.agreed)] == [40, 40]
    assert reasons(gold) == {}


def test_a_refusal_is_unknown_until_an_id_shows_whose_turn_it_is() -> None:
    assert reasons(gold_rows([captured(Fetch(0, "a", 1))], lanes(80, shards=8))) == {
        "session_grants": {"shard_unknown": 1}
    }


def test_a_refusal_where_the_model_has_room_is_a_disagreement() -> None:
    granted = [Fetch(n, f"c{n}", 1, granted=session_id) for n, session_id in enumerate(ids(0, 1, 2, 3, 4, 5, 6, 7))]
    late = Fetch(200_000, "late", 1)
    assert reasons(gold_rows([captured(*granted, late)], lanes(16, shards=8))) == {"session_grants": {"refused": 1}}


def test_a_grant_that_the_model_refuses_is_a_disagreement() -> None:
    one, other = ids(0, 0)[0], ids(0)[0] + 1
    fetches = Fetch(0, "a", 5, granted=one), Fetch(1, "b", 5, granted=other)
    assert reasons(gold_rows([captured(*fetches)], lanes(1)))["session_grants"] == {"granted": 1}


def test_an_error_that_the_model_does_not_have_is_a_disagreement() -> None:
    (session,) = ids(0)
    fetches = Fetch(0, "a", 5, granted=session), Fetch(10, "a", 5, session_id=session, epoch=1, error=70)
    assert reasons(gold_rows([captured(*fetches)], lanes(1))) == {"session_errors": {"other_error": 1}}


@pytest.mark.parametrize(("is_emptied", "checked"), [(False, 2), (True, 1)], ids=["late, as before 2.0", "emptied"])
def test_a_throttled_fetch_that_got_its_partitions_got_its_session(is_emptied: bool, checked: int) -> None:
    session, other = ids(0, 0)[0], ids(1)[0]
    throttled = Fetch(0, "a", 5, granted=0 if is_emptied else session, throttle_ms=900, is_emptied=is_emptied)
    gold = gold_rows(
        [captured(throttled, Fetch(1000, "b", 5, granted=session if is_emptied else other))], lanes(80, shards=8)
    )
    f = FIDELITY
    grants = [row for row in gold[f.name] if row[f.metric] == "session_grants"]
    assert [sum(row[column] for row in grants) for column in (f.checked, f.agreed)] == [checked, checked]
    assert total(gold, SESSION_CACHE.created) == checked


@pytest.mark.parametrize(
    ("told", "checked"),
    [({}, 1), ({"wait_us": None}, 0), ({"throttle_ms": 900, "is_emptied": True}, 0)],
    ids=["answered", "without response", "throttled"],
)
def test_only_a_response_that_is_not_throttled_shows_whether_a_session_had_an_error(
    told: dict[str, Any], checked: int
) -> None:
    (session,) = ids(0)
    fetch = Fetch(10, "a", 5, session_id=session, epoch=1, granted=session, **told)
    gold = gold_rows([captured(Fetch(0, "a", 5, granted=session), fetch)], lanes(1))
    f = FIDELITY
    assert sum(row[f.checked] for row in gold[f.name] if row[f.metric] == "session_errors") == checked


def test_a_fetch_that_was_not_captured_is_no_disagreement() -> None:
    (session,) = ids(0)
    followed = [Fetch(10 * n, "a", 5, session_id=session, epoch=n, granted=session) for n in (1, 2, 4, 5)]
    given = reasons(gold_rows([captured(Fetch(0, "a", 5, granted=session), *followed)], lanes(1)))
    assert given == {
        "session_errors": {"response_not_captured": 1}, "session_requests": {"response_not_captured": 1}
    }  # fmt: skip


@pytest.mark.parametrize("epoch", [3, 4])
def test_a_request_without_a_captured_response_still_shows_that_fetches_before_it_are_missing(epoch: int) -> None:
    """For example if the snaplen cut a request, and the response to the next one."""
    (session,) = ids(0)
    cut = Fetch(30, "a", 5, session_id=session, epoch=epoch, wait_us=None)
    then = [Fetch(30 + 10 * n, "a", 5, session_id=session, epoch=epoch + n, granted=session) for n in (1, 2)]
    begun = Fetch(0, "a", 5, granted=session), Fetch(10, "a", 5, session_id=session, epoch=1, granted=session)
    given = reasons(gold_rows([captured(*begun, cut, *then)], lanes(1)))
    assert "session_errors" not in given
    assert set(given["session_requests"]) == {"response_not_captured"}


def test_the_second_request_of_a_session_whose_grant_and_next_answer_are_not_captured_agrees() -> None:
    (session,) = ids(0)
    begun = Fetch(0, "a", 5, wait_us=None), Fetch(10, "a", 5, session_id=session, epoch=1, wait_us=None)
    then = Fetch(20, "a", 5, session_id=session, epoch=2, granted=session)
    assert "session_errors" not in reasons(gold_rows([captured(*begun, then)], lanes(1)))


def test_a_session_from_before_the_capture_is_counted_apart() -> None:
    (session,) = ids(0)
    fetches = Fetch(0, "a", 5, session_id=session, epoch=9, granted=session), Fetch(1, "b", 5)
    given = reasons(gold_rows([captured(*fetches)], lanes(1)))
    assert given["session_errors"] == {"session_from_before_capture": 1}


def test_only_the_first_response_of_a_session_from_before_the_capture_is_unknown() -> None:
    """For example in a capture set that continues another one, which shows the session's partitions."""
    (session,) = ids(0)
    fetches = [Fetch(10 * n, "a", 5, session_id=session, epoch=9 + n, granted=session) for n in range(2)]
    gold, f = gold_rows([captured(*fetches)], lanes(1)), FIDELITY
    assert reasons(gold)["incremental_responses"] == {"session_from_before_capture": 1}
    (row,) = [row for row in gold[f.name] if row[f.metric] == "incremental_responses"]
    assert (row[f.checked], row[f.agreed], row[f.unknown]) == (1, 1, 1)


def test_an_idle_session_from_before_the_capture_goes_on_though_no_message_names_its_partitions() -> None:
    (session,) = ids(0)
    idle = [Fetch(500 * n, "f", 0, True, session_id=session, epoch=9 + n) for n in range(4)]
    wakes = Fetch(2000, "f", 2, True, session_id=session, epoch=13, granted=session)
    gold = gold_rows([captured(*idle, wakes)], lanes(1))
    assert {row[FIDELITY.reader] for row in gold[FIDELITY.name]} == {"follower"}
    given = reasons(gold)
    assert given["session_errors"] == {"session_from_before_capture": 1}
    assert given["session_requests"] == {"response_not_captured": 1, "session_from_before_capture": 3}
    assert total(gold, SESSION_CACHE.not_found) == total(gold, SESSION_CACHE.full_fetches) == 0


def test_after_the_greatest_epoch_comes_the_first() -> None:
    (session,) = ids(0)
    epochs = 2147483646, 2147483647, 1, 2
    fetches = [Fetch(n, "a", 5, session_id=session, epoch=epoch, granted=session) for n, epoch in enumerate(epochs)]
    gold = gold_rows([captured(*fetches)], lanes(1))
    assert (total(gold, SESSION_CACHE.full_fetches), total(gold, SESSION_CACHE.fetches)) == (0, 4)
    assert reasons(gold)["session_errors"] == {"session_from_before_capture": 1}


def test_a_client_that_mistakes_its_epoch_does_so_in_every_lane() -> None:
    (session,) = ids(0)
    fetches = (
        Fetch(0, "a", 5, granted=session), Fetch(10, "a", 5, session_id=session, epoch=1, granted=session),
        Fetch(20, "a", 5, session_id=session, epoch=9, error=71),
        Fetch(30, "a", 5, session_id=session, granted=session + 1),
    )  # fmt: skip
    gold = gold_rows([captured(*fetches)], lanes(8))
    assert (total(gold, SESSION_CACHE.fetches), total(gold, SESSION_CACHE.full_fetches)) == (4, 2)
    assert reasons(gold)["session_requests"] == {"other_request": 1}


def test_a_request_cut_before_its_epoch_may_have_been_full_and_explains_an_id_of_another_shard() -> None:
    """Once an id has shown again which shard is next, an id of another shard is a disagreement."""
    first, after, then, other = ids(0, 2, 3, 6)
    fetches = (
        Fetch(0, "a", 1, granted=first), Fetch(200, "b", 9, is_epoch_cut=True), Fetch(400, "c", 1, granted=after),
        Fetch(600, "d", 1, granted=then), Fetch(800, "e", 1, granted=other),
    )  # fmt: skip
    gold = gold_rows([captured(*fetches)], lanes(80, shards=8))
    assert reasons(gold) == {"session_shards": {"response_not_captured": 1, "other_shard": 1}}
    assert (total(gold, SESSION_CACHE.captured_fetches), total(gold, SESSION_CACHE.fetches)) == (4, 4)


def test_a_request_cut_before_its_epoch_that_was_no_full_one_changes_nothing() -> None:
    first, after = ids(0, 1)
    cut = Fetch(200, "a", 9, session_id=first, epoch=1, is_epoch_cut=True)
    gold = gold_rows(
        [captured(Fetch(0, "a", 1, granted=first), cut, Fetch(400, "c", 1, granted=after))], lanes(80, shards=8)
    )
    assert reasons(gold) == {}


@pytest.mark.parametrize(
    ("shard", "wait_us", "given"),
    [(2, 1, {}), (3, 1, {"other_shard": 1}), (2, None, {}), (3, None, {"response_not_captured": 1})],
)
def test_a_full_request_that_is_cut_after_its_epoch_has_its_turn(
    shard: int, wait_us: int | None, given: dict[str, int]
) -> None:
    """If its response is not captured, it may have been an error."""
    first, after = ids(0, shard)
    cut = Fetch(200, "b", 9, is_cut=True, wait_us=wait_us)
    gold = gold_rows(
        [captured(Fetch(0, "a", 1, granted=first), cut, Fetch(400, "c", 1, granted=after))], lanes(80, shards=8)
    )
    assert reasons(gold).get("session_shards", {}) == given
    assert (total(gold, SESSION_CACHE.captured_fetches), total(gold, SESSION_CACHE.fetches)) == (2, 2)


@pytest.mark.parametrize("epoch", [1, -1])
def test_a_cut_request_that_is_not_full_does_not_explain_an_id_of_another_shard(epoch: int) -> None:
    first, after = ids(0, 2)
    cut = Fetch(200, "a", 9, session_id=first, epoch=epoch, is_cut=True)
    gold = gold_rows(
        [captured(Fetch(0, "a", 1, granted=first), cut, Fetch(400, "c", 1, granted=after))], lanes(80, shards=8)
    )
    assert reasons(gold)["session_shards"] == {"other_shard": 1}


def test_ids_show_the_order_of_overlapping_responses_though_one_request_is_cut() -> None:
    first, after, then = ids(0, 2, 3)
    overlapping = (
        Fetch(0, "a", 1, granted=first), Fetch(200, "b", 9, is_cut=True, wait_us=30_000),
        Fetch(201, "c", 1, granted=after, wait_us=20_000), Fetch(400, "d", 1, granted=then),
    )  # fmt: skip
    gold = gold_rows([captured(*overlapping)], lanes(80, shards=8))
    assert reasons(gold) == {}
