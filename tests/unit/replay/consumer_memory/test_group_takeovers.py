"""Which fetches of a partition are a consumer's last before another member of its group has it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from schemas.tables.event_kinds import MemoryEvent
from schemas.tables.silver import CONNECTIONS, EXCHANGES, FETCH_PARTITIONS
from schemas.tables.steps_memory import GROUP_FETCHES, MEMORY_EVENTS
from tests.gate_rows import TIME, Row
from tests.silver_rows import TIME_US, in_turn, plain, row_of, silver_rows, small_rows
from udfs.replay.consumer_memory.group_takeovers import (
    FETCH_COLUMNS,
    GROUPS,
    MEMBER_COLUMNS,
    MEMBERS,
    group_fetches,
    groups_of_processes,
    joins_of,
    member_rows,
    takeover_rows,
)
from udfs.replay.shared.process_addresses import ONE_ADDRESS_EACH, ProcessAddresses, process_addresses
from udfs.replay.shared.processes import Processes

JOIN_GROUP, HEARTBEAT, SYNC_GROUP, CONSUMER_GROUP_HEARTBEAT, SHARE_FETCH = 11, 12, 14, 68, 78
SECOND = 1_000_000


def joined(client_id: str | None, group_id: str | None, api_key: int = JOIN_GROUP, **columns: Any) -> Row:
    shown = {"client_id": client_id, "group_id": group_id, "api_key": api_key, "status": "answered"}
    return shown | columns


def join(client_id: str | None, sent_at: int, answered_at: int) -> Row:
    """A JoinGroup that was sent and answered at these seconds."""
    times = {"request_time": sent_at, "response_time": answered_at}
    return joined(client_id, "g") | {name: TIME + timedelta(seconds=second) for name, second in times.items()}


def fetch(client_id: str | None, second: int, **columns: Any) -> Row:
    """A client's fetch of partition 0 at this second, which is also its exchange number."""
    of = {"client_id": client_id, "exchange_no": second, "request_time": TIME + timedelta(seconds=second)}
    return of | {"reader": "consumer", "read_position": 0, "topic": "t", "partition": 0} | columns


def members_of(
    rows: list[Row], batch_rows: int = 10_000, processes: ProcessAddresses = ONE_ADDRESS_EACH
) -> pa.Table:  # fmt: skip
    batches = list(member_rows(silver_rows(EXCHANGES, MEMBER_COLUMNS, rows, batch_rows), processes))
    return pa.Table.from_batches(batches, MEMBERS)


def events(
    exchanges: list[Row],
    fetches: list[Row],
    batch_rows: int = 10_000,
    processes: ProcessAddresses = ONE_ADDRESS_EACH,
) -> list[Row]:
    """The takeovers. The rows come in batches of batch_rows, and so do the fetches of a group."""
    members = members_of(exchanges, batch_rows, processes)
    rows = silver_rows(FETCH_PARTITIONS, FETCH_COLUMNS, fetches, batch_rows)
    in_order = in_turn(group_fetches(rows, groups_of_processes(members), processes), GROUPS)
    cut = [batch.slice(first, batch_rows) for batch in in_order for first in range(0, batch.num_rows, batch_rows)]
    return plain(takeover_rows(cut, joins_of(members)))


def passed_on(members: list[Row], *clients: str | None) -> list[tuple[str, int]]:
    """Takeovers as (client, the other's fetch). The clients fetch partition 0 in this order, one each second."""
    t = MEMORY_EVENTS
    rows = events(members, [fetch(client, second) for second, client in enumerate(clients)])
    assert all(row[t.time] == TIME_US + row[t.exchange_no] * SECOND for row in rows)
    assert all(row[t.kind] == MemoryEvent.TAKEN_OVER and row[t.side] == "consumer" for row in rows)
    return sorted((row[t.unit], row[t.exchange_no]) for row in rows)


def joins(rows: list[Row]) -> list[tuple[int | None, ...]]:
    """(when a partition was taken over, when its new owner last sent a JoinGroup, when it was answered), in seconds."""
    t = MEMORY_EVENTS
    times = [[row[name] for name in (t.time, t.started, t.came)] for row in rows]
    return [tuple(None if time is None else (time - TIME_US) // SECOND for time in of) for of in times]


def test_the_last_fetch_before_another_member_has_the_partition_is_followed_by_a_takeover() -> None:
    members = [joined("a", "g"), joined("b", "g")]
    assert passed_on(members, "a", "a", "b", "b", "a") == [("a", 2), ("b", 4)]


def test_readers_of_other_groups_and_of_none_take_nothing_over() -> None:
    members = [joined("a", "g"), joined("b", "h"), joined("c", "g"), joined("d", "g", SHARE_FETCH)]
    assert passed_on(members, "a", "b", "d", "no group", "a") == []


def test_a_client_id_with_consumers_of_several_groups_takes_nothing_over() -> None:
    members = [joined("a", "g"), joined("b", "g"), joined("b", "h"), joined("c", "g")]
    assert passed_on(members, "a", "b", "a") == []
    assert passed_on(members, "a", "b", "c") == [("a", 2)]


@pytest.mark.parametrize("api_key", [JOIN_GROUP, SYNC_GROUP, CONSUMER_GROUP_HEARTBEAT])
def test_members_of_both_protocols_of_consumer_groups_take_over(api_key: int) -> None:
    members = [joined(client, "g", api_key, status="unanswered") for client in "ab"]
    assert passed_on(members, "a", "b") == [("a", 1)]


def test_a_takeover_has_the_last_join_that_was_answered_before_it() -> None:
    exchanges = [join("a", 2, 3), join("b", 1, 2), join("b", 4, 5), join("b", 6, 7)]
    fetches = [fetch("a", 4), fetch("b", 5), fetch("a", 6), fetch("b", 8)]
    assert sorted(joins(events(exchanges, fetches))) == [(5, 4, 5), (6, 2, 3), (8, 6, 7)]


def test_a_join_that_is_answered_at_the_time_of_a_takeover_counts_as_before_it() -> None:
    microsecond = timedelta(microseconds=1)
    for late, of in ((-microsecond, 1), (0 * microsecond, 1), (microsecond, 0)):
        last = join("b", 1, 5)
        last["response_time"] += late
        exchanges = [join("a", 0, 0), join("b", 0, 0), last]
        ((_, sent, _),) = joins(events(exchanges, [fetch("a", 4), fetch("b", 5)]))
        assert sent == of


def test_of_joins_that_are_answered_at_one_time_the_last_one_sent_counts() -> None:
    exchanges = [join("a", 0, 0), join("b", 2, 4), join("b", 3, 4), join("b", 1, 4)]
    assert joins(events(exchanges, [fetch("a", 4), fetch("b", 5)])) == [(5, 3, 4)]


def test_a_member_that_never_joined_has_no_join() -> None:
    unanswered, without_time = join("b", 0, 1) | {"status": "unanswered"}, join("b", 0, 1) | {"request_time": None}
    other_process, other_request = join("b", 0, 1) | {"client_address": "10.0.0.9"}, joined("b", "g", SYNC_GROUP)
    for row in (unanswered, without_time, other_request):
        exchanges = [join("a", 0, 0), row, other_process]
        assert joins(events(exchanges, [fetch("a", 4), fetch("b", 5)])) == [(5, None, None)]


def test_clients_of_one_name_at_two_addresses_are_two_members() -> None:
    exchanges = [joined("a", "g", client_address=address) for address in ("10.0.0.1", "10.0.0.2")]
    fetches = [fetch("a", second, client_address=f"10.0.0.{number}") for second, number in enumerate((1, 2, 2, 1))]
    t = MEMORY_EVENTS
    rows = [(row[t.unit_address], row[t.exchange_no]) for row in events(exchanges, fetches)]
    assert rows == [("10.0.0.1", 1), ("10.0.0.2", 3)]


@pytest.mark.parametrize("batch_rows", [1, 7, 10_000])
def test_a_client_that_gives_no_name_and_one_that_gives_an_empty_one_are_the_same(batch_rows: int) -> None:
    exchanges = [joined(None, "g"), joined("", "g"), joined("b", "g")]
    fetches = [fetch(client, second) for second, client in enumerate([None, "", None, "b", "", "b"])]
    t = MEMORY_EVENTS
    rows = [(row[t.unit], row[t.exchange_no]) for row in events(exchanges, fetches, batch_rows)]
    assert rows == [("", 3), ("b", 4), ("", 5)]


def test_requests_without_a_group_make_nobody_a_member() -> None:
    assert groups_of_processes(members_of([joined("a", None), joined("b", None), row_of(EXCHANGES)])) == {}
    assert groups_of_processes(members_of([joined("a", "g"), joined("a", "g")])) == {}, "one process is no group"
    assert groups_of_processes(members_of([joined("a", "g"), joined("a", None), joined("b", "g")])) == {
        ("a", ""): "g", ("b", ""): "g",
    }  # fmt: skip


def test_processes_with_one_client_id_and_address_are_members_of_their_own() -> None:
    """Connections 1 and 2 are the coordinator's, 3 and 4 those on which the same two processes fetch."""
    there = [row_of(CONNECTIONS, connection_id=number, client=f"10.0.0.1:4000{number}") for number in range(1, 5)]
    columns = (CONNECTIONS.connection_id, CONNECTIONS.client)
    of = process_addresses(Processes({1: 1, 2: 2, 3: 1, 4: 2}, frozenset()), small_rows(CONNECTIONS, columns, there))
    exchanges = [join("a", second, second + 1) | {"connection_id": number} for number, second in ((1, 0), (2, 4))]
    fetches = [fetch("a", second) | {"connection_id": 3 + (second >= 5)} for second in range(10)]
    assert events(exchanges, fetches) == []
    (taken,) = events(exchanges, fetches, processes=of)
    t = MEMORY_EVENTS
    assert (taken[t.unit_address], taken[t.connection_id], taken[t.exchange_no]) == ("10.0.0.1:40001", 4, 5)
    assert (taken[t.started], taken[t.came]) == (TIME_US + 4 * SECOND, TIME_US + 5 * SECOND)


def test_only_fetches_of_a_groups_consumers_count() -> None:
    groups = groups_of_processes(members_of([joined("a", "g"), joined("b", "g")]))
    rows = [
        fetch("a", 0), fetch("a", 1, reader="follower"), fetch("a", 2, read_position=None),
        fetch("a", 3, request_time=None), fetch("c", 4), fetch(None, 5), fetch("b", 6, client_address="10.0.0.9"),
    ]  # fmt: skip
    made = plain(group_fetches(silver_rows(FETCH_PARTITIONS, FETCH_COLUMNS, rows), groups, ONE_ADDRESS_EACH))
    assert [row[GROUP_FETCHES.exchange_no] for row in made] == [0]


@pytest.mark.parametrize("batch_rows", [1, 7])
def test_takeovers_are_the_same_however_rows_come(batch_rows: int) -> None:
    exchanges = [join(client, second, second + 1) for client in ("a", "b", None) for second in (0, 9, 20)]
    exchanges += [joined("c", "h"), joined("d", "h")]
    clients = ["a", "b", None, "b", "c", "d"]
    fetches = [
        fetch(clients[(3 * at) % 6 if at % 4 else at % 5], at, partition=at % 2, topic=f"t{at % 3}") for at in range(60)
    ]
    rows = events(exchanges, fetches)
    assert len(rows) > 10
    assert events(exchanges, fetches, batch_rows) == rows
    assert events(exchanges[::-1], fetches[::-1], batch_rows) == rows
