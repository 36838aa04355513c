"""When a response's memory is given back, as the next fetches of its partitions show, and when a request's is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from schemas.tables.event_kinds import HandledBy
from schemas.tables.memory_reasons import DRAINED
from tests.unit.replay.consumer_memory.events import (
    FETCH,
    HEARTBEAT,
    METADATA,
    PRODUCE,
    Row,
    batches,
    captured,
    fetch,
    held,
    received,
    row,
    verdicts_of,
)
from udfs.columns.arrays import Records
from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.replay.consumer_memory import events as events_module
from udfs.replay.consumer_memory.events import EXCHANGE, KeptExchanges
from udfs.replay.consumer_memory.traces import GONE_US, handled_by, traces_of_requests, traces_of_units
from udfs.replay.shared.fidelity_rows import NO_REASON


def test_a_response_is_held_until_the_last_of_its_partitions_is_fetched_again() -> None:
    rows = [*fetch(0, 10, 100, [(1, 0, 3), (2, 0, 2)]), *fetch(50, 60, 80, [(1, 3, 1)]), *fetch(90, 99, 8, [(2, 2, 0)])]
    trace = received([*rows, *fetch(120, 130, 8, [(1, 4, 0)])])
    assert trace.messages["held_us"].tolist() == [80, 60, 0, 0]
    assert trace.messages["records"].tolist() == [5, 1, 0, 0]
    assert trace.messages["next_request"].tolist() == [1, 2, 3, NONE]
    assert trace.connections["first_message"].tolist() == [0]


def test_a_partition_that_is_not_fetched_again_pins_its_response() -> None:
    rows = [*fetch(0, 10, 100, [(1, 0, 3), (2, 0, 2)]), *fetch(50, 60, 80, [(1, 3, 0)])]
    assert held(rows) == [NEVER, 0]
    assert verdicts_of(captured(rows)) == {NO_REASON: 1, DRAINED.not_fetched_again: 1}


def test_a_process_that_is_gone_holds_nothing_when_another_of_its_name_begins() -> None:
    """Each process ends with a response from which nobody fetches on. Only the first is known to have ended."""
    later = 45 + GONE_US + 1
    first = [*fetch(0, 10, 100, [(1, 0, 3)], connection=1), *fetch(20, 45, 80, [(2, 0, 0)], connection=2)]
    second = [
        *fetch(later, later + 10, 100, [(3, 0, 3)], connection=3),
        *fetch(later + 50, later + 60, 8, [(4, 0, 0)], connection=4),
    ]
    assert held([*first, *second]) == [45 - 10, 0, NEVER, 0]


def test_a_fetch_does_not_drain_a_partition_of_its_session_that_it_does_not_read() -> None:
    rows = fetch(50, 60, 80, [(1, 3, 0)])
    rows[1]["fetch_offset"] = None
    assert held([*fetch(0, 10, 100, [(1, 0, 3)]), *rows])[0] == NEVER


def test_offsets_show_whether_the_next_fetch_begins_where_the_response_ended() -> None:
    rows = [*fetch(0, 10, 100, [(1, 0, 3), (2, 0, 3), (3, 0, 3), (4, 0, 3)])]
    del rows[-1]  # no whole batch of partition 4
    found = captured([*rows, *fetch(50, 60, 80, [(1, 3, 0), (2, 2, 0), (3, 7, 0), (4, 3, 0)])])
    assert verdicts_of(found) == {
        NO_REASON: 1, DRAINED.fetched_before_end: 1, DRAINED.fetched_beyond_end: 1, DRAINED.offsets_unknown: 1,
    }  # fmt: skip


def test_a_fetch_that_goes_on_within_a_cut_batch_shows_that_the_response_was_drained() -> None:
    """kafka-go takes the whole records of a cut batch: here it goes on at 58 in a batch from 50 to 65."""
    rows = fetch(0, 10, 100, [(1, 0, 50), (2, 0, 50)])
    cut = {"time": 0, "exchange_no": 0, "kind": 2, "size": 40, "cut_end_offset": 66}
    rows += [row("consumer", "app", **cut, partition_key=partition) for partition in (1, 2)]
    found = captured([*rows, *fetch(50, 60, 80, [(1, 58, 0), (2, 66, 0)])])
    assert verdicts_of(found) == {NO_REASON: 1, DRAINED.fetched_beyond_end: 1}


def test_a_fetch_on_another_connection_that_begins_elsewhere_shows_nothing() -> None:
    """Two processes of one client.id at one address read the same partition."""
    found = captured([*fetch(0, 10, 100, [(1, 0, 3)]), *fetch(50, 60, 80, [(1, 0, 0)], connection=1)])
    assert verdicts_of(found) == {DRAINED.another_connection: 1}


def test_only_a_connection_with_group_requests_and_no_fetch_is_the_coordinators() -> None:
    def exchange(connection: int, time: int, api_key: int) -> Row:
        at = {"time": time, "came": time + 1, "connection_id": connection}
        return row("consumer", "app", **at, api_key=api_key, size=10)

    rows = [exchange(7, 0, METADATA), exchange(8, 1, HEARTBEAT), exchange(9, 2, HEARTBEAT), exchange(9, 3, FETCH)]
    assert received(rows).connections["is_privileged"].tolist() == [0, 1, 0]


def test_a_fetch_without_a_captured_response_takes_no_memory_but_drains_the_response_before() -> None:
    messages = received([*fetch(0, 10, 100, [(1, 0, 3)]), *fetch(50, None, -4, [(1, 3, 0)])]).messages
    assert (messages["size"].tolist(), messages["held_us"].tolist()) == ([100], [40])


def request(time: int, done: int, api_key: int, connection: int = 0) -> Row:
    key = {"time": time, "came": time, "connection_id": connection, "exchange_no": time}
    return row("broker", "1", **key, held=done - time, api_key=api_key, size=10)


def exchanges_of(rows: Sequence[Row]) -> Records:
    """The exchanges of one broker."""
    found = KeptExchanges()
    for batch in batches(rows, 3):
        found.add(batch, np.zeros(batch.num_rows, np.int64))
    return found.gathered.records


def requests(*rows: Row) -> Records:
    """The requests of one broker as the replay takes them."""
    return traces_of_requests(exchanges_of(rows), 1).messages


def test_a_request_is_held_until_it_is_parsed_or_handled() -> None:
    assert requests(request(0, 50, PRODUCE, 1), request(5, 90, FETCH, 2))["held_us"].tolist() == [50, 0]


def test_a_request_that_comes_before_the_last_one_is_answered_is_read_after_that() -> None:
    found = requests(request(0, 50, PRODUCE), request(10, 70, PRODUCE), request(90, 95, PRODUCE))
    assert (found["complete_at"].tolist(), found["held_us"].tolist()) == ([0, 50, 90], [50, 20, 5])


def test_a_request_is_held_only_until_it_was_handled_if_something_shows_when() -> None:
    rows = [request(0, 50, PRODUCE, 1), request(5, 90, PRODUCE, 2), request(6, 80, PRODUCE, 3), request(7, 9, FETCH, 4)]
    rows[1] |= {"released": 25, "released_by": HandledBy.FETCH}
    rows[2] |= {"released": 500, "released_by": HandledBy.REQUEST_LOG}
    assert requests(*rows)["held_us"].tolist() == [50, 20, 74, 0]
    assert handled_by(exchanges_of(rows), 1).tolist() == [[1, 1, 1, 0, 0]]


def test_a_request_takes_its_memory_with_its_first_byte_and_not_before_the_last_one_is_answered() -> None:
    rows = [request(20, 50, PRODUCE), request(60, 70, PRODUCE), request(90, 95, PRODUCE)]
    for of, started in zip(rows, (5, 40, 80), strict=True):
        of["started"] = started
    found = requests(*rows)
    assert (found["size_known_at"].tolist(), found["complete_at"].tolist()) == ([5, 50, 80], [20, 60, 90])


def test_a_response_takes_its_memory_with_its_first_byte() -> None:
    rows = fetch(0, 60, 100, [(1, 0, 3)])
    rows[0]["started"] = 25
    messages = received([*rows, *fetch(70, 90, 80, [(1, 3, 0)])]).messages
    assert (messages["size_known_at"].tolist(), messages["held_us"].tolist()) == ([25, 90], [10, 0])


def test_exchanges_beyond_what_memory_allows_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_module, "MOST_EXCHANGES", 2)
    rows = [*fetch(0, 10, 100, [(1, 0, 3)]), *fetch(50, 60, 8, [(1, 3, 1)]), *fetch(90, 99, 8, [(1, 4, 0)])]
    assert captured(rows).left_out.tolist() == [1]
    assert held(rows) == [40, NEVER]


def test_the_traces_of_some_units_are_theirs_alone() -> None:
    exchanges = new_records(
        EXCHANGE, 7, unit=[0, 0, 1, 2, 2, 2, 4], connection=[0, 1, 2, 3, 4, 3, 5], requested_at=range(7), size=range(7)
    )
    every = traces_of_requests(exchanges, 6)
    some = traces_of_units(every, np.array([1, 2, 3, 5]))
    assert some.messages["size"].tolist() == [2, 3, 4, 5]
    assert some.traces[["first_message", "end_message"]].tolist() == [(0, 1), (1, 4), (4, 4), (4, 4)]
    assert some.traces[["first_connection", "end_connection"]].tolist() == [(0, 1), (1, 3), (3, 3), (3, 3)]
    assert some.messages["connection"].tolist() == [0, 0, 1, 0]
    assert some.connections.tolist() == every.connections[2:5].tolist()
