"""When a response's memory comes back, as the next fetches of its partitions tell; when a request's does."""

from __future__ import annotations

import numpy as np

from tests.unit.replay.consumer_memory.events import FETCH, HEARTBEAT, METADATA, PRODUCE, Row, fetch, gathered, row
from udfs.replay.consumer_memory import traces as memory_trace
from udfs.replay.consumer_memory.draining import AGREED, CODES, Reason
from udfs.replay.consumer_memory.state import NONE, NOT_GIVEN_BACK
from udfs.replay.consumer_memory.traces import (
    BY_LOG,
    BY_REPLICATION,
    GONE_US,
    releases,
    request_trace,
    response_trace,
)


def test_a_response_is_held_until_the_last_of_its_partitions_is_fetched_again() -> None:
    rows = [*fetch(0, 10, 100, [(1, 0, 3), (2, 0, 2)]), *fetch(50, 60, 80, [(1, 3, 1)]), *fetch(90, 99, 8, [(2, 2, 0)])]
    trace = response_trace(gathered([*rows, *fetch(120, 130, 8, [(1, 4, 0)])]))
    assert trace.held.tolist() == [80, 60, 0, 0]
    assert trace.records.tolist() == [5, 1, 0, 0]
    assert (trace.behind.tolist(), trace.first.tolist()) == ([1, 2, 3, NONE], [0])


def test_a_partition_that_is_not_fetched_again_pins_its_response() -> None:
    found = gathered([*fetch(0, 10, 100, [(1, 0, 3), (2, 0, 2)]), *fetch(50, 60, 80, [(1, 3, 0)])])
    assert response_trace(found).held.tolist() == [NOT_GIVEN_BACK, 0]
    assert found.not_fetched_again() == 1


def test_a_process_that_is_gone_holds_nothing_when_another_of_its_name_begins() -> None:
    """The first ends with a response that nobody fetches on from; of the last one the capture does not tell."""
    later = 45 + GONE_US + 1
    first = [*fetch(0, 10, 100, [(1, 0, 3)], connection=1), *fetch(20, 45, 80, [(2, 0, 0)], connection=2)]
    second = [
        *fetch(later, later + 10, 100, [(3, 0, 3)], connection=3),
        *fetch(later + 50, later + 60, 8, [(4, 0, 0)], connection=4),
    ]
    assert response_trace(gathered([*first, *second])).held.tolist() == [45 - 10, 0, NOT_GIVEN_BACK, 0]


def test_a_partition_that_a_session_implies_but_the_fetch_does_not_want_is_not_drained_by_it() -> None:
    rows = fetch(50, 60, 80, [(1, 3, 0)])
    rows[1]["fetch_offset"] = None
    assert response_trace(gathered([*fetch(0, 10, 100, [(1, 0, 3)]), *rows])).held[0] == NOT_GIVEN_BACK


def test_it_is_checked_by_offsets_whether_the_next_fetch_begins_where_the_response_ended() -> None:
    rows = [*fetch(0, 10, 100, [(1, 0, 3), (2, 0, 3), (3, 0, 3), (4, 0, 3)])]
    del rows[-1]  # no whole batch of partition 4
    found = gathered([*rows, *fetch(50, 60, 80, [(1, 3, 0), (2, 2, 0), (3, 7, 0), (4, 3, 0)])])
    assert found.verdicts.tolist() == [
        {AGREED: 1, CODES[Reason.FETCHED_BEFORE_END]: 1, CODES[Reason.FETCHED_BEYOND_END]: 1,
         CODES[Reason.OFFSETS_UNKNOWN]: 1}.get(code, 0)
        for code in range(len(CODES) + 1)
    ]  # fmt: skip


def test_a_fetch_that_goes_on_within_the_batch_that_was_cut_off_took_all_that_came_whole() -> None:
    """kafka-go takes the whole records of such a batch: 58 of a batch from 50 to 65 that was cut."""
    rows = fetch(0, 10, 100, [(1, 0, 50), (2, 0, 50)])
    cut = {"time": 0, "exchange_no": 0, "kind": 2, "size": 40, "cut_end_offset": 66}
    rows += [row("consumer", "app", **cut, partition_key=partition) for partition in (1, 2)]
    found = gathered([*rows, *fetch(50, 60, 80, [(1, 58, 0), (2, 66, 0)])])
    assert found.verdicts.tolist() == [
        {AGREED: 1, CODES[Reason.FETCHED_BEYOND_END]: 1}.get(code, 0) for code in range(len(CODES) + 1)
    ]


def test_of_a_fetch_on_another_connection_that_begins_elsewhere_nothing_is_known() -> None:
    """Two processes of one client.id at one address read the same partition."""
    found = gathered([*fetch(0, 10, 100, [(1, 0, 3)]), *fetch(50, 60, 80, [(1, 0, 3)], connection=1)])
    assert found.verdicts.tolist() == [int(code == CODES[Reason.ANOTHER_CONNECTION]) for code in range(len(CODES) + 1)]


def test_only_a_connection_with_a_groups_requests_and_no_fetch_is_a_coordinators() -> None:
    def exchange(connection: int, time: int, api_key: int) -> Row:
        return row(
            "consumer", "app", time=time, came=time + 1, connection_id=connection, api_key=api_key, size=10
        )  # fmt: skip

    rows = [exchange(7, 0, METADATA), exchange(8, 1, HEARTBEAT), exchange(9, 2, HEARTBEAT), exchange(9, 3, FETCH)]
    assert response_trace(gathered(rows)).privileged.tolist() == [0, 1, 0]


def test_an_answer_that_was_not_captured_takes_no_memory_but_its_request_drains() -> None:
    trace = response_trace(gathered([*fetch(0, 10, 100, [(1, 0, 3)]), *fetch(50, None, -4, [(1, 3, 0)])]))
    assert (trace.size.tolist(), trace.held.tolist()) == ([100], [40])


def request(time: int, done: int, api_key: int, connection: int = 0) -> Row:
    key = {"time": time, "came": time, "connection_id": connection, "exchange_no": time}
    return row("broker", "1", **key, held=done - time, api_key=api_key, size=10)


def test_a_request_is_held_until_it_is_parsed_or_handled() -> None:
    trace = request_trace(gathered([request(0, 50, PRODUCE, 1), request(5, 90, FETCH, 2)]))
    assert trace.held.tolist() == [50, 0]


def test_a_request_that_comes_before_the_answer_to_the_last_is_read_after_it() -> None:
    trace = request_trace(gathered([request(0, 50, PRODUCE), request(10, 70, PRODUCE), request(90, 95, PRODUCE)]))
    assert (trace.came.tolist(), trace.held.tolist()) == ([0, 50, 90], [50, 20, 5])


def test_a_request_is_held_no_longer_than_it_was_handled_where_something_tells() -> None:
    rows = [request(0, 50, PRODUCE, 1), request(5, 90, PRODUCE, 2), request(6, 80, PRODUCE, 3), request(7, 9, FETCH, 4)]
    rows[1] |= {"released": 25, "released_by": BY_REPLICATION}
    rows[2] |= {"released": 500, "released_by": BY_LOG}
    assert request_trace(gathered(rows)).held.tolist() == [50, 20, 74, 0]
    assert releases(gathered(rows)).tolist() == [1, 1, 1]


def test_a_request_takes_its_memory_with_its_first_byte_and_not_before_the_answer_to_the_last() -> None:
    rows = [request(20, 50, PRODUCE), request(60, 70, PRODUCE), request(90, 95, PRODUCE)]
    for asked, started in zip(rows, (5, 40, 80), strict=True):
        asked["started"] = started
    trace = request_trace(gathered(rows))
    assert (trace.started.tolist(), trace.came.tolist()) == ([5, 50, 80], [20, 60, 90])


def test_a_response_takes_its_memory_with_its_first_byte() -> None:
    rows = fetch(0, 60, 100, [(1, 0, 3)])
    rows[0]["started"] = 25
    trace = response_trace(gathered([*rows, *fetch(70, 90, 80, [(1, 3, 0)])]))
    assert (trace.started.tolist(), trace.held.tolist()) == ([25, 90], [10, 0])


def test_exchanges_beyond_what_memory_allows_are_counted(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(memory_trace, "MOST_EXCHANGES", 2)
    found = gathered([*fetch(0, 10, 100, [(1, 0, 3)]), *fetch(50, 60, 8, [(1, 3, 1)]), *fetch(90, 99, 8, [(1, 4, 0)])])
    assert (found.left_out, len(response_trace(found).asked)) == (1, 2)
    assert np.array_equal(response_trace(found).held, [40, NOT_GIVEN_BACK])
