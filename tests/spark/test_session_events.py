"""What the replay of fetch sessions reads of a fetch."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.replays.session_cache.events import WITH_SESSIONS, fetch_events, later_lives
from jobs.replays.session_cache.job import check_sessions
from schemas.tables.silver import CONNECTIONS, EXCHANGES
from schemas.tables.steps import SESSION_EVENTS
from schemas.wire.fetch import FETCH_REQUEST
from tests.gate_rows import TIME, frame
from udfs.errors import CaptureError

FETCH = {"api_key": FETCH_REQUEST.api_key, "api_name": "FETCH", "fetch_session_epoch": 0, "fetch_replica_id": -1}


def event_of(spark: SparkSession, **columns: Any) -> dict[str, Any]:
    (row,) = fetch_events(frame(spark, EXCHANGES, [FETCH | columns])).collect()
    return row.asDict()


@pytest.mark.parametrize(("error_code", "is_there"), [(0, True), (70, True), (None, False)])
def test_a_response_that_is_cut_is_none(spark: SparkSession, error_code: int | None, is_there: bool) -> None:
    assert (event_of(spark, error_code=error_code)[SESSION_EVENTS.response_time] is not None) == is_there


def test_of_a_request_that_is_cut_it_is_told_when_it_was_answered(spark: SparkSession) -> None:
    cut = {"fetch_session_epoch": None, "fetch_replica_id": None, "api_version": WITH_SESSIONS}
    e, row = SESSION_EVENTS, event_of(spark, **cut)
    assert (row[e.is_cut], row[e.session_epoch], row[e.response_time] is not None) == (True, None, True)
    older = cut | {"api_version": WITH_SESSIONS - 1}
    assert fetch_events(frame(spark, EXCHANGES, [FETCH | older])).collect() == []


@pytest.mark.parametrize(("error_code", "is_there"), [(0, True), (None, False)])
def test_of_a_request_cut_behind_its_epoch_that_is_told_too(
    spark: SparkSession, error_code: int | None, is_there: bool
) -> None:
    cut = {"fetch_session_id": 7, "fetch_session_epoch": 3, "fetch_replica_id": None, "error_code": error_code}
    e, row = SESSION_EVENTS, event_of(spark, **cut)
    assert [row[column] for column in (e.is_cut, e.session_id, e.session_epoch)] == [True, 7, 3]
    assert (row[e.response_time] is not None) == is_there


@pytest.mark.parametrize(("replica_id", "is_follower"), [(-1, False), (0, True), (3, True)])
def test_whose_a_fetch_is_needs_no_partition(spark: SparkSession, replica_id: int, is_follower: bool) -> None:
    assert event_of(spark, fetch_replica_id=replica_id)[SESSION_EVENTS.is_follower] == is_follower


def connection(number: int, broker: str | None, first: int, last: int) -> dict[str, Any]:
    """A connection that was open between these seconds."""
    times = {"first_time": TIME + timedelta(seconds=first), "last_time": TIME + timedelta(seconds=last)}
    return {"connection_id": number, "broker": broker} | times


def test_a_broker_has_another_life_where_all_connections_to_it_had_ended(spark: SparkSession) -> None:
    rows = [
        connection(1, "1", 0, 10), connection(2, "1", 5, 20), connection(3, "1", 12, 14),
        connection(4, "1", 21, 40), connection(5, "1", 22, 23), connection(6, "1", 30, 41), connection(7, "1", 42, 50),
        connection(8, "2", 0, 100), connection(9, "2", 50, 60), connection(10, None, 100, 101),
    ]  # fmt: skip
    rows_of_lives = later_lives(frame(spark, CONNECTIONS, rows)).collect()
    lives = {row[SESSION_EVENTS.connection_id]: row[SESSION_EVENTS.life] for row in rows_of_lives}
    assert lives == {4: 1, 5: 1, 6: 1, 7: 2}


def test_fetches_older_than_sessions_are_refused_and_others_are_not(spark: SparkSession) -> None:
    check_sessions(frame(spark, EXCHANGES, []))
    check_sessions(frame(spark, EXCHANGES, [FETCH | {"api_version": version} for version in (3, 7)]))
    with pytest.raises(CaptureError, match=r"\(KIP-227, Kafka 1.1\), and the newest captured is 6"):
        check_sessions(frame(spark, EXCHANGES, [FETCH | {"api_version": version} for version in (3, 6)]))
