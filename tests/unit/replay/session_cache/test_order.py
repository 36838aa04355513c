"""The order in which a broker built full responses, from the shards of their ids and the times of their packets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.replay.session_cache.captures import SHARD_IDS
from udfs.columns.arrays import Records
from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.replay.session_cache.order import (
    OVERLAP_US,
    begins_again,
    events_to_replay,
    first_shard,
    full_responses,
    order_responses,
    turn_of,
)
from udfs.replay.session_cache.state import EPOCH_UNKNOWN, EVENT, NO_TIME, SESSION_FETCH

SHARDS = 8


class Full(NamedTuple):
    """A full fetch. us: of its response. shard: of the id that it gets, None if its session is refused."""

    us: int
    shard: int | None
    handled_us: int = 0
    epoch: int = 0
    error: int = 0
    is_throttled: int = 0
    is_captured: bool = True


def fetches_of(*full: Full) -> Records:
    return new_records(
        SESSION_FETCH,
        len(full),
        response_us=[fetch.us if fetch.is_captured else NO_TIME for fetch in full],
        answered_us=[fetch.us for fetch in full],
        response_session_id=[0 if fetch.shard is None else fetch.shard * SHARD_IDS + 7 for fetch in full],
        **{name: [getattr(fetch, name) for fetch in full] for name in ("handled_us", "epoch", "error", "is_throttled")},
    )


def responses_of(*full: Full) -> Records:
    """The responses as events, in the order of the given fetches."""
    us = [fetch.us for fetch in full]
    return new_records(EVENT, len(full), us=us, fetch=range(len(full)), expected_shard=NONE, is_response=1)


def ordered(first: int, *full: Full, shards: int = SHARDS, end: int | None = None) -> Records:
    """The responses in the order of a counter that begins at the shard `first`."""
    events = responses_of(*full)
    order_responses(fetches_of(*full), events, len(full) if end is None else end, turn_of(first), shards)
    return events


def order(first: int, *full: Full, shards: int = SHARDS) -> list[tuple[int, int]]:
    """(number of the fetch, expected shard) of each response."""
    events = ordered(first, *full, shards=shards)
    return list(zip(events["fetch"].tolist(), events["expected_shard"].tolist(), strict=True))


def refused(us: int) -> Full:
    return Full(us, None)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.booleans()), max_size=8))
def test_events_come_by_time_then_by_fetch_and_a_request_before_its_response(
    fetches: list[tuple[int, int, bool]],
) -> None:
    handled = [us for us, _, _ in fetches]
    answered, is_handled = [us + wait for us, wait, _ in fetches], [is_handled for _, _, is_handled in fetches]
    found = events_to_replay(
        new_records(SESSION_FETCH, len(fetches), handled_us=handled, answered_us=answered, is_handled=is_handled)
    )
    requests = [(us, fetch, 0) for fetch, us in enumerate(handled) if not is_handled[fetch]]
    responses = [(us, fetch, 1) for fetch, us in enumerate(answered)]
    assert found[["us", "fetch", "is_response"]].tolist() == sorted(requests + responses)
    assert (found["expected_shard"] == NONE).all()


@given(st.lists(st.integers(0, OVERLAP_US // 4), min_size=1, max_size=5), st.integers(0, SHARDS - 1))
def test_responses_whose_packets_overlap_come_in_the_order_in_which_they_were_built(
    late: list[int], first: int
) -> None:
    """They are built one after the other, each in the next shard, and their packets are late by different times."""
    built = [Full(1 + 10 * number + us, (first + number) % SHARDS) for number, us in enumerate(late)]
    assert order(first, *sorted(built)) == [
        (sorted(built).index(fetch), (first + number) % SHARDS) for number, fetch in enumerate(built)
    ]


def test_a_response_that_was_built_earlier_has_the_time_of_the_one_before_which_it_is_put() -> None:
    events = ordered(2, Full(10, 3), Full(20, 4), Full(30, 2), Full(40, 5))
    assert events[["fetch", "us", "is_inferred"]].tolist() == [(2, 10, 1), (0, 10, 0), (1, 20, 0), (3, 40, 0)]


@pytest.mark.parametrize(
    ("later", "first"),
    [
        (Full(10 + OVERLAP_US, 2), 1),
        (Full(11 + OVERLAP_US, 2), 0),
        (Full(20, 2, handled_us=9), 1),
        (Full(20, 2, handled_us=10), 0),
        (Full(20, 2, is_throttled=1), 0),
        (Full(20, 2, error=71), 0),
        (Full(20, 2, epoch=1), 0),
        (Full(20, 2, is_captured=False), 0),
    ],
    ids=["as far as packets overlap", "further", "its request was there", "its request came then", "throttled", "error",
         "incremental", "not captured"],
)  # fmt: skip
def test_a_response_comes_before_another_only_if_it_can_have_been_built_then(later: Full, first: int) -> None:
    assert order(2, Full(10, 3), later)[0] == (first, 2)


def test_refused_sessions_fill_the_turns_before_an_id() -> None:
    assert order(2, Full(10, 3), refused(20)) == [(1, 2), (0, 3)]
    assert order(2, Full(10, 4), refused(20), refused(30)) == [(1, 2), (2, 3), (0, 4)]
    assert order(6, Full(10, 0), refused(20), refused(30)) == [(1, 6), (2, 7), (0, 0)]
    assert order(2, Full(10, 4), refused(20)) == [(0, 2), (1, 5)], "one is too few, so the id sets the counter"


def test_a_refusal_is_not_moved_behind_an_id_that_has_its_turn_in_a_later_round() -> None:
    assert order(0, refused(10), refused(20), Full(30, 0), shards=2) == [(0, 0), (1, 1), (2, 0)]
    assert order(0, refused(10), Full(20, 0), shards=2) == [(1, 0), (0, 1)]


def test_what_gets_no_session_by_rule_takes_no_turn() -> None:
    others = Full(20, None, epoch=1), Full(20, None, error=71), Full(20, None, is_throttled=1)
    for other in others:
        assert order(2, Full(10, 2), other, Full(30, 3)) == [(0, 2), (1, NONE), (2, 3)]


def test_the_counter_is_certain_from_an_id_until_the_capture_may_lack_a_full_response() -> None:
    lost, unknown = Full(20, None, is_captured=False), Full(20, None, epoch=EPOCH_UNKNOWN)
    for missing, shard in ((lost, 4), (unknown, 3)):
        events = ordered(2, Full(10, 2), missing, refused(30), Full(40, shard + 1), refused(50))
        assert events["is_certain"][[0, 2, 3, 4]].tolist() == [1, 0, 0, 1]
        assert events["expected_shard"][[0, 2, 3, 4]].tolist() == [2, shard, shard + 1, shard + 2]


def test_without_a_known_shard_nothing_is_expected_until_an_id_shows_it() -> None:
    assert order(NONE, refused(10), Full(20, 7), refused(30), refused(40)) == [(0, NONE), (1, NONE), (2, 0), (3, 1)]


def test_responses_behind_the_end_show_the_order_and_stay_for_the_next_time() -> None:
    events = ordered(2, Full(10, 3), Full(20, 2), Full(30, 4), end=1)
    assert events[["fetch", "expected_shard"]].tolist() == [(1, 2), (0, NONE), (2, NONE)]


def test_the_first_shard_is_the_one_with_which_most_ids_fit() -> None:
    def first(*full: Full) -> int:
        return first_shard(fetches_of(*full), responses_of(*full), SHARDS)

    assert first(Full(10, 7), Full(20, 0)) == 7
    assert first(refused(10), refused(OVERLAP_US + 11), Full(3 * OVERLAP_US, 3)) == 1
    assert first(Full(10, 0), Full(2 * OVERLAP_US, 4), Full(4 * OVERLAP_US, 5)) == 0
    assert first(refused(10), refused(20)) == NONE


@pytest.mark.parametrize(
    ("shards", "is_restarted"), [((0, 1), True), ((5, 6), False), ((3, 4), False), ((None, None), False)]
)
def test_a_broker_began_again_if_more_ids_fit_a_counter_at_zero(
    shards: tuple[int | None, int | None], is_restarted: bool
) -> None:
    full = [Full(10 + 2 * OVERLAP_US * number, shard) for number, shard in enumerate(shards)]
    assert begins_again(fetches_of(*full), responses_of(*full), 5, SHARDS) == is_restarted


def test_full_responses_are_those_for_which_the_counter_picks_a_shard() -> None:
    first, last = Full(10, 3), Full(20, None)
    others = [Full(15, 1, epoch=1), Full(15, 1, error=71), Full(15, 1, is_throttled=1)]
    placed, events = full_responses(fetches_of(last, *others, first))
    assert placed["answered_us"].tolist() == [20, 10]
    assert events[["fetch", "us", "is_response"]].tolist() == [(1, 10, 1), (0, 20, 1)]
    assert np.isin(events["expected_shard"], NONE).all()
