"""The records that a consumer holds of a partition that it gives up for good, whoever has the partition next."""

from __future__ import annotations

import numpy as np
import pytest

from schemas.tables.memory_reasons import DRAINED
from tests.unit.replay.consumer_memory.events import Row, captured, fetch, of_group, received, verdicts_of
from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.replay.consumer_memory.events import EXCHANGE, TAKEOVER
from udfs.replay.consumer_memory.given_up import (
    GIVEN_UP,
    LEAVE_GROUP,
    SYNC_GROUP,
    gone_with_client,
    next_takeover,
    when_gone,
)
from udfs.replay.consumer_memory.takeovers import FETCH


def held(rows: list[Row]) -> int:
    """How long the response requested at 0 is held (us)."""
    messages = received(rows).messages
    return int(messages["held_us"][messages["requested_at"] == 0][0])


def closing(time: int, connection: int = 0) -> Row:
    """A fetch that closes its session, and is not answered any more."""
    return {**fetch(time, None, 0, [], connection)[0], "closes_session": True}


GOT = fetch(0, 10, 100, [(1, 0, 3)])
ROUND = [*fetch(30, 35, 50, [(2, 2, 4)]), *fetch(40, 45, 50, [(2, 6, 4)]), *fetch(60, 65, 8, [(2, 10, 0)])]
"""Responses of another partition: one asked for at 30 and drained at 40, one asked for at 40 and drained at 60."""


def test_a_partition_that_is_left_out_of_fetches_may_be_paused() -> None:
    assert held([*GOT, *ROUND]) == NEVER


@pytest.mark.parametrize(("synced", "until"), [(20, 40), (32, 60)])
def test_records_of_a_partition_that_the_next_assignment_lacks_are_dropped_in_their_turn(
    synced: int, until: int
) -> None:
    assert held([*GOT, of_group(synced - 5, synced, SYNC_GROUP), *ROUND]) == until - 10


def test_an_assignment_before_the_response_or_without_a_later_drained_response_shows_nothing() -> None:
    assert held([of_group(-9, -4, SYNC_GROUP), *GOT, *ROUND]) == NEVER
    assert held([*GOT, *ROUND, of_group(70, 75, SYNC_GROUP)]) == NEVER


def test_a_consumer_that_leaves_its_group_has_lost_all_records_when_it_fetches_again() -> None:
    assert held([*GOT, of_group(20, 25, LEAVE_GROUP), *ROUND]) == 30 - 10
    assert held([*GOT, *ROUND, of_group(70, 75, LEAVE_GROUP)]) == 70 - 10, "without a later fetch it counts as closed"


def test_a_client_that_closes_its_session_drops_all_records_that_came_on_that_connection() -> None:
    assert held([*GOT, *ROUND, closing(80)]) == 80 - 10
    assert held([*GOT, *ROUND, closing(80, connection=4)]) == NEVER


@pytest.mark.parametrize("cut", [1, 7, 10_000])
def test_given_up_partitions_are_counted_however_rows_are_split_into_batches(cut: int) -> None:
    rows = [*GOT, *ROUND, *fetch(70, 75, 50, [(3, 0, 1)]), closing(80), *fetch(90, 95, 50, [(4, 0, 1)])]
    found = verdicts_of(captured(rows, cut))
    assert (found[DRAINED.given_up], found[DRAINED.not_fetched_again]) == (2, 1)


def test_the_next_takeover_of_a_partition_is_the_first_of_it_after_the_time() -> None:
    takeovers = new_records(TAKEOVER, 4, partition_key=[1, 2, 1, 1], taken_over_at=[10, 15, 20, 30])
    given_up = new_records(GIVEN_UP, 6, partition_key=[1, 1, 1, 2, 2, 3], last_requested_at=[5, 12, 30, 14, 16, 0])
    assert next_takeover(given_up, takeovers).tolist() == [0, 2, 3, 1, NONE, NONE]


def test_a_takeover_of_another_units_partition_with_the_same_key_does_not_count() -> None:
    takeovers = new_records(TAKEOVER, 2, unit=[0, 1], partition_key=1, taken_over_at=[10, 20])
    given_up = new_records(GIVEN_UP, 3, unit=[0, 1, 1], partition_key=1, last_requested_at=[5, 5, 25])
    assert next_takeover(given_up, takeovers).tolist() == [0, 1, NONE]


@pytest.mark.parametrize(("taken_over_at", "gone_at"), [(49, 47), (50, 50)])
def test_a_partition_that_is_requested_again_was_lost_only_if_another_member_had_it_before(
    taken_over_at: int, gone_at: int
) -> None:
    """It was lost at 45. The client fetches another partition at 47, and this one again at 50."""
    given_up = new_records(GIVEN_UP, 1, last_requested_at=0, requested_again_at=50)
    takeovers = new_records(TAKEOVER, 1, taken_over_at=taken_over_at, lost_at=45)
    exchanges = new_records(EXCHANGE, 1, api_key=FETCH, requested_at=47)
    assert when_gone(given_up, np.zeros(1, np.int64), takeovers, exchanges).tolist() == [gone_at]


@pytest.mark.parametrize(("since", "gone_at"), [(50, 50), (51, NEVER)])
def test_records_from_before_a_session_was_closed_are_gone_with_it(since: int, gone_at: int) -> None:
    closes = new_records(EXCHANGE, 1, api_key=FETCH, requested_at=50, closes_session=1)
    none = np.zeros(1, np.int64)
    assert gone_with_client(none, none, np.array([since]), closes).tolist() == [gone_at]
