"""The records that a consumer holds of a partition that another member of its group takes over."""

from __future__ import annotations

import pytest

from schemas.tables.event_kinds import MemoryEvent
from schemas.tables.memory_reasons import DRAINED
from tests.unit.replay.consumer_memory.events import Row, captured, fetch, held, of_group, row, verdicts_of
from udfs.columns.time_units import NEVER
from udfs.replay.consumer_memory.takeovers import CONSUMER_GROUP_HEARTBEAT, JOIN_GROUP
from udfs.replay.shared.fidelity_rows import NO_REASON


def taken_over(time: int, partition: int, joins: int | None = None, joined: int | None = None) -> Row:
    """Another member's fetch of the partition, and when it joined the group before that."""
    at = {"time": time, "connection_id": 9, "exchange_no": time, "started": joins, "came": joined}
    return row("consumer", "app", **at, kind=MemoryEvent.TAKEN_OVER, partition_key=partition)


GOT_TWO = fetch(0, 10, 100, [(1, 0, 3), (2, 0, 2)])
GOT_ONE = fetch(0, 10, 100, [(1, 0, 3)])
ON_WITH_TWO = fetch(70, 75, 8, [(2, 2, 0)])


def test_records_of_a_partition_that_is_taken_over_are_held_until_the_next_fetch() -> None:
    assert held([*GOT_ONE, taken_over(50, 1), *ON_WITH_TWO]) == [70 - 10, 0]


def test_a_response_is_also_held_for_its_other_partitions() -> None:
    later = fetch(200, 210, 8, [(2, 2, 0)])
    assert held([*GOT_TWO, taken_over(50, 1), *fetch(70, 75, 8, [(3, 0, 0)]), *later])[0] == 200 - 10
    assert held([*GOT_TWO, taken_over(50, 1), *fetch(70, 75, 8, [(3, 0, 0)])])[0] == NEVER


def test_a_fetch_from_before_the_response_came_does_not_show_that_the_records_were_dropped() -> None:
    """The partition is taken over while a fetch of it is under way, and another broker is asked meanwhile."""
    assert held([*GOT_ONE, taken_over(3, 1), *fetch(5, 8, 8, [(2, 0, 0)], connection=1), *ON_WITH_TWO])[0] == 70 - 10


ROUND = [*fetch(30, 35, 50, [(2, 2, 4)]), *fetch(40, 45, 50, [(2, 6, 4)])]
"""Fetches of a partition that it keeps. The response requested at 30 is drained at 40, the next one not before 500."""
LATER = fetch(500, 510, 8, [(2, 10, 0)])


@pytest.mark.parametrize(("joins", "joined", "until"), [(22, 26, 40), (27, 29, 500), (5, 15, 500)])
def test_a_member_that_joins_the_others_generation_has_lost_the_partition_and_drops_it_in_its_turn(
    joins: int, joined: int, until: int
) -> None:
    """Its records are buffered before all later ones. JoinGroups that do not overlap belong to two generations."""
    rows = [*GOT_ONE, of_group(20, 25, JOIN_GROUP), *ROUND, taken_over(400, 1, joins, joined), *LATER]
    assert held(rows)[0] == until - 10


def test_a_join_long_before_the_takeover_does_not_show_that_the_partition_was_lost() -> None:
    rows = [of_group(-30, -25, JOIN_GROUP), *GOT_ONE, *ROUND, taken_over(400, 1, 300, 350), *LATER]
    assert held(rows)[1] == 500 - 10


def test_a_member_of_a_kip_848_group_has_lost_the_partition_before_its_last_heartbeat() -> None:
    beats = [of_group(time, time + 2, CONSUMER_GROUP_HEARTBEAT) for time in (20, 420)]
    assert held([*GOT_ONE, *beats, *ROUND, taken_over(400, 1), *LATER])[0] == 40 - 10
    late = of_group(41, 43, CONSUMER_GROUP_HEARTBEAT)
    assert held([*GOT_ONE, *beats, late, *ROUND, taken_over(400, 1), *LATER])[0] == 500 - 10


def test_without_a_fetch_after_the_takeover_nothing_shows_that_the_records_were_dropped() -> None:
    rows = [*GOT_ONE, *fetch(20, 30, 8, [(2, 0, 0)]), taken_over(50, 1)]
    assert held(rows) == [NEVER, 0]
    assert verdicts_of(captured(rows)) == {DRAINED.taken_over: 1}


def test_a_consumer_that_goes_on_where_the_response_ended_had_taken_all_of_it() -> None:
    """Others with its client.id and group may read the partition without being assigned it."""
    rows = [*GOT_ONE, taken_over(50, 1), *ON_WITH_TWO, *fetch(90, 99, 8, [(1, 3, 0)])]
    assert held(rows)[0] == 90 - 10
    assert verdicts_of(captured(rows)) == {NO_REASON: 1}


@pytest.mark.parametrize("offset", [0, 7])
def test_records_were_dropped_at_the_takeover_if_the_partition_is_fetched_again_from_elsewhere(offset: int) -> None:
    rows = [*GOT_ONE, taken_over(50, 1), *ON_WITH_TWO, *fetch(90, 99, 8, [(1, offset, 0)])]
    assert held(rows)[0] == 70 - 10
    assert verdicts_of(captured(rows)) == {DRAINED.taken_over: 1}


def test_a_takeover_shows_nothing_about_later_responses() -> None:
    again = fetch(60, 65, 50, [(1, 0, 2)])
    assert held([*GOT_ONE, taken_over(50, 1), *again, *ON_WITH_TWO]) == [50, NEVER, 0]


@pytest.mark.parametrize("cut", [1, 7, 10_000])
def test_held_times_are_the_same_however_rows_are_split_into_batches(cut: int) -> None:
    rows = [*GOT_TWO, taken_over(50, 1), *ON_WITH_TWO, *fetch(90, 99, 8, [(1, 7, 3)]), taken_over(95, 1)]
    rows += fetch(120, 130, 8, [(2, 2, 0)])
    assert held(rows, cut) == [60, 0, 120 - 99, 0]
