"""What the replay of fetch sessions is told of a fetch."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.replays.session_events import fetch_events
from schemas.tables.silver import EXCHANGES
from schemas.tables.steps import SESSION_EVENTS
from schemas.wire.fetch import FETCH_REQUEST
from tests.gate_rows import frame

FETCH = {"api_key": FETCH_REQUEST.api_key, "api_name": "FETCH", "fetch_session_epoch": 0, "fetch_replica_id": -1}


def told(spark: SparkSession, **columns: Any) -> dict[str, Any]:
    (row,) = fetch_events(frame(spark, EXCHANGES, [FETCH | columns])).collect()
    found: dict[str, Any] = row.asDict()
    return found


@pytest.mark.parametrize(("error_code", "is_there"), [(0, True), (70, True), (None, False)])
def test_a_response_that_is_cut_is_none(spark: SparkSession, error_code: int | None, is_there: bool) -> None:
    assert (told(spark, error_code=error_code)[SESSION_EVENTS.response_time] is not None) == is_there


@pytest.mark.parametrize(("replica_id", "is_follower"), [(-1, False), (0, True), (3, True)])
def test_whose_a_fetch_is_needs_no_partition(spark: SparkSession, replica_id: int, is_follower: bool) -> None:
    assert told(spark, fetch_replica_id=replica_id)[SESSION_EVENTS.is_follower] == is_follower
