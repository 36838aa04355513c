"""What the replay of fetch sessions reads from silver tables."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from schemas.tables.silver import CONNECTIONS, EXCHANGES, FETCH_PARTITIONS
from schemas.tables.steps import SESSION_EVENTS
from schemas.wire.fetch import FETCH_REQUEST
from schemas.wire.fetch_sessions import FIRST_WITH_SESSIONS
from tests.gate_rows import TIME, Row
from tests.silver_rows import TIME_US, in_turn, plain, row_of, silver_rows, small_rows
from udfs.replay.session_cache.silver_events import (
    BROKERS,
    EXCHANGE_COLUMNS,
    LAST,
    LIFE_COLUMNS,
    PARTITION_COLUMNS,
    fetch_events,
    lives_of,
    partition_events,
)
from udfs.replay.shared.silver_columns import ByConnection

FETCH = {"api_key": FETCH_REQUEST.api_key, "api_name": "FETCH", "fetch_session_epoch": 0, "fetch_replica_id": -1}
ONE_LIFE = ByConnection(np.zeros(0, np.int64), np.zeros(0, np.int64))


def events_of(**columns: Any) -> list[Row]:
    """The events of one fetch."""
    return plain(fetch_events(silver_rows(EXCHANGES, EXCHANGE_COLUMNS, [FETCH | columns]), ONE_LIFE))


def event_of(**columns: Any) -> Row:
    (row,) = events_of(**columns)
    return row


@pytest.mark.parametrize(("error_code", "is_there"), [(0, True), (70, True), (None, False)])
def test_a_response_that_is_cut_counts_as_none(error_code: int | None, is_there: bool) -> None:
    assert (event_of(error_code=error_code)[SESSION_EVENTS.response_time] is not None) == is_there


def test_a_request_that_is_cut_still_has_the_time_of_its_response() -> None:
    cut = {"fetch_session_epoch": None, "fetch_replica_id": None, "api_version": FIRST_WITH_SESSIONS}
    e, row = SESSION_EVENTS, event_of(**cut)
    assert (row[e.is_cut], row[e.session_epoch], row[e.response_time] is not None) == (True, None, True)
    older = cut | {"api_version": FIRST_WITH_SESSIONS - 1}
    assert events_of(**older) == []


@pytest.mark.parametrize(("error_code", "is_there"), [(0, True), (None, False)])
def test_a_request_cut_after_its_epoch_also_has_the_time_of_its_response(
    error_code: int | None, is_there: bool
) -> None:
    cut = {"fetch_session_id": 7, "fetch_session_epoch": 3, "fetch_replica_id": None, "error_code": error_code}
    e, row = SESSION_EVENTS, event_of(**cut)
    assert [row[column] for column in (e.is_cut, e.session_id, e.session_epoch)] == [True, 7, 3]
    assert (row[e.response_time] is not None) == is_there


@pytest.mark.parametrize(("replica_id", "is_follower"), [(-1, False), (0, True), (3, True)])
def test_a_fetch_is_known_to_be_a_followers_without_any_partition(replica_id: int, is_follower: bool) -> None:
    assert event_of(fetch_replica_id=replica_id)[SESSION_EVENTS.is_follower] == is_follower


@pytest.mark.parametrize("columns", [{"api_key": 1, "request_time": None}, {"api_key": 0}, {"api_key": None}])
def test_exchanges_that_are_no_fetches_with_a_time_are_left_out(columns: Row) -> None:
    assert events_of(**columns) == []


def test_a_fetch_of_the_metadata_log_is_left_out_and_a_consumers_without_session_is_not() -> None:
    without = {"api_version": 17, "fetch_session_id": 0, "fetch_session_epoch": -1}
    assert events_of(**without, fetch_replica_id=1) == []
    assert event_of(**without, fetch_replica_id=-1)[SESSION_EVENTS.session_epoch] == -1


def test_the_size_of_a_message_with_missing_bytes_is_not_known() -> None:
    e, sizes = SESSION_EVENTS, {"request_bytes": 90, "response_bytes": 0}
    assert [event_of(**sizes)[column] for column in (e.request_bytes, e.response_bytes)] == [90, None]
    for gap in ("missing_bytes", "unsent_bytes"):
        row = event_of(request_bytes=90, response_bytes=70, **{gap: 1})
        assert [row[column] for column in (e.request_bytes, e.response_bytes)] == [None, None]


def test_the_time_of_a_response_is_that_of_its_first_byte_if_known() -> None:
    first = TIME - timedelta(seconds=1)
    assert event_of(error_code=0, response_first_time=first)[SESSION_EVENTS.response_time] == TIME_US - 1_000_000
    assert event_of(error_code=0)[SESSION_EVENTS.response_time] == TIME_US


def test_a_fetch_with_all_nullable_columns_null_counts_as_cut() -> None:
    bare = row_of(EXCHANGES, api_key=FETCH_REQUEST.api_key, api_version=FIRST_WITH_SESSIONS, request_time=TIME)
    (row,) = plain(fetch_events(silver_rows(EXCHANGES, EXCHANGE_COLUMNS, [bare]), ONE_LIFE))
    e = SESSION_EVENTS
    assert (row[e.client_id], row[e.request_time], row[e.position], row[e.is_cut]) == ("", TIME_US, -1, True)
    nothing = (e.response_time, e.session_id, e.session_epoch, e.fetch_error, e.is_follower, e.throttle_time_ms)
    assert [row[column] for column in nothing] == [None] * len(nothing)


def test_a_partition_with_all_nullable_columns_null_still_has_its_topic() -> None:
    bare = row_of(FETCH_PARTITIONS, request_time=TIME, topic="tö")
    rows = plain(partition_events(silver_rows(FETCH_PARTITIONS, PARTITION_COLUMNS, [bare]), ONE_LIFE))
    e = SESSION_EVENTS
    shown = (e.position, e.name_length, e.is_wanted, e.is_listed, e.is_returned, e.fetch_offset)
    assert [[row[column] for column in shown] for row in rows] == [[LAST, 3, False, False, False, None]]
    without_time = silver_rows(FETCH_PARTITIONS, PARTITION_COLUMNS, [row_of(FETCH_PARTITIONS)])
    assert plain(partition_events(without_time, ONE_LIFE)) == []


def test_a_topic_is_known_by_its_id_or_by_its_name_if_it_has_none() -> None:
    topics = [("t", "id-1"), ("u", "id-1"), ("t", "id-2"), ("t", None), ("id-1", None)]
    rows: list[Row] = [{"topic": topic, "topic_id": topic_id, "api_version": 13} for topic, topic_id in topics]
    events = plain(partition_events(silver_rows(FETCH_PARTITIONS, PARTITION_COLUMNS, rows), ONE_LIFE))
    one, renamed, made_again, old, named_so = (row[SESSION_EVENTS.topic_key] for row in events)
    assert one == renamed == named_so
    assert len({one, made_again, old}) == 3


def test_before_fetch_requests_had_topic_ids_a_topic_that_is_made_again_stays_the_same_in_a_session() -> None:
    topics = [("t", "id-1"), ("t", "id-2"), ("t", None), ("u", "id-1")]
    rows: list[Row] = [{"topic": topic, "topic_id": topic_id, "api_version": 12} for topic, topic_id in topics]
    events = plain(partition_events(silver_rows(FETCH_PARTITIONS, PARTITION_COLUMNS, rows), ONE_LIFE))
    one, made_again, id_unknown, other = (row[SESSION_EVENTS.topic_key] for row in events)
    assert one == made_again == id_unknown != other


def connection(number: int, broker: str | None, first: int, last: int) -> Row:
    """A connection that was open between these seconds."""
    times = {"first_time": TIME + timedelta(seconds=first), "last_time": TIME + timedelta(seconds=last)}
    return {"connection_id": number, "broker": broker} | times


def lives(rows: list[Row]) -> dict[int, int]:
    """The life of its broker, by connection, for connections that are not of the first life."""
    by_connection = lives_of(small_rows(CONNECTIONS, LIFE_COLUMNS, rows))
    return dict(zip(by_connection.connection_id.tolist(), by_connection.number.tolist(), strict=True))


def test_a_broker_begins_another_life_once_all_connections_to_it_have_ended() -> None:
    rows = [
        connection(1, "1", 0, 10), connection(2, "1", 5, 20), connection(3, "1", 12, 14),
        connection(4, "1", 21, 40), connection(5, "1", 22, 23), connection(6, "1", 30, 41), connection(7, "1", 42, 50),
        connection(8, "2", 0, 100), connection(9, "2", 50, 60), connection(10, None, 100, 101),
    ]  # fmt: skip
    assert lives(rows) == lives(rows[::-1]) == {4: 1, 5: 1, 6: 1, 7: 2}


def test_a_broker_whose_next_connection_opens_as_the_last_one_ends_has_one_life() -> None:
    assert lives([connection(1, "1", 0, 10), connection(2, "1", 10, 20)]) == {}
    assert lives([]) == lives([connection(1, None, 0, 1), connection(2, None, 2, 3)]) == {}


def test_each_fetch_is_of_the_life_in_which_its_connection_was_opened() -> None:
    later = ByConnection(np.array([4, 7]), np.array([1, 2]))
    rows = [FETCH | {"connection_id": connection} for connection in (1, 4, 5, 7, 9)]
    fetches = plain(fetch_events(silver_rows(EXCHANGES, EXCHANGE_COLUMNS, rows), later))
    parts = plain(partition_events(silver_rows(FETCH_PARTITIONS, PARTITION_COLUMNS, rows), later))
    for events in (fetches, parts):
        assert [row[SESSION_EVENTS.life] for row in events] == [0, 1, 0, 2, 0]


@pytest.mark.parametrize("batch_rows", [1, 7, 10_000])
def test_a_fetch_comes_before_its_partitions_in_the_order_in_which_its_broker_reads_them(batch_rows: int) -> None:
    fetches, parts = list[Row](), list[Row]()
    for number in range(10):
        of = {"connection_id": number % 3, "exchange_no": number, "broker": str(number % 2), "topic": "t"}
        time = {"request_time": TIME + timedelta(seconds=10 - number), "client_id": "" if number % 4 else None}
        fetches.append(FETCH | of | time)
        parts += [of | time | {"partition": p, "read_position": at} for p, at in ((0, 1), (1, None), (2, 0))]
    events: list[pa.RecordBatch] = [
        *partition_events(silver_rows(FETCH_PARTITIONS, PARTITION_COLUMNS, parts, batch_rows), ONE_LIFE),
        *fetch_events(silver_rows(EXCHANGES, EXCHANGE_COLUMNS, fetches, batch_rows), ONE_LIFE),
    ]
    e = SESSION_EVENTS
    rows = [(row[e.broker], row[e.exchange_no], row[e.partition]) for row in plain(in_turn(events, BROKERS))]
    brokers = list(dict.fromkeys(broker for broker, _, _ in rows))
    in_time = {broker: [number for number in range(9, -1, -1) if str(number % 2) == broker] for broker in brokers}
    assert sorted(brokers) == ["0", "1"]
    assert rows == [(b, number, part) for b in brokers for number in in_time[b] for part in (None, 2, 0, 1)]
