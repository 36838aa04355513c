"""Which fetches of a partition are a consumer's last before another member of its group has it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pyspark.sql import SparkSession

from jobs.replays.consumer_memory.takeovers import BY, takeovers
from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS
from tests.gate_rows import TIME, frame

JOIN_GROUP, SHARE_FETCH = 11, 78


def joined(client_id: str, group_id: str, api_key: int = JOIN_GROUP) -> dict[str, Any]:
    return {"client_id": client_id, "group_id": group_id, "api_key": api_key, "status": "answered"}


def found(spark: SparkSession, members: list[dict[str, Any]], *fetches: str) -> list[tuple[str, int, int]]:
    """(client, its fetch, the other's): each fetch of partition 0 is a client's, one a second."""
    rows = [
        {"client_id": client_id, "exchange_no": second, "request_time": TIME + timedelta(seconds=second)}
        | {"reader": "consumer", "read_position": 0, "topic": "t", "partition": 0}
        for second, client_id in enumerate(fetches)
    ]
    told = takeovers(frame(spark, EXCHANGES, members), frame(spark, FETCH_PARTITIONS, rows)).collect()
    f = FETCH_PARTITIONS
    naive = TIME.replace(tzinfo=None)
    assert all((row[BY.time] - naive).seconds == row[BY.exchange_no] for row in told)
    return sorted((row[f.client_id], (row[f.request_time] - naive).seconds, row[BY.exchange_no]) for row in told)


def test_the_last_fetch_before_another_member_has_the_partition_is_followed_by_a_takeover(spark: SparkSession) -> None:
    members = [joined("a", "g"), joined("b", "g")]
    assert found(spark, members, "a", "a", "b", "b", "a") == [("a", 1, 2), ("b", 3, 4)]


def test_readers_of_other_groups_and_of_none_take_nothing_over(spark: SparkSession) -> None:
    members = [joined("a", "g"), joined("b", "h"), joined("c", "g"), joined("d", "g", SHARE_FETCH)]
    assert found(spark, members, "a", "b", "d", "no group", "a") == []


def test_of_a_client_id_with_consumers_of_several_groups_nothing_is_known(spark: SparkSession) -> None:
    members = [joined("a", "g"), joined("b", "g"), joined("b", "h"), joined("c", "g")]
    assert found(spark, members, "a", "b", "a") == []
    assert found(spark, members, "a", "b", "c") == [("a", 0, 2)]


def test_a_takeover_has_the_last_join_that_was_answered_before_it(spark: SparkSession) -> None:
    times = [(client_id, second) for client_id, second in (("a", 3), ("b", 2), ("b", 5), ("b", 7))]
    members = [
        joined(client_id, "g")
        | {"exchange_no": no, "request_time": TIME + timedelta(seconds=second - 1)}
        | {"response_time": TIME + timedelta(seconds=second)}
        for no, (client_id, second) in enumerate(times)
    ]
    fetches = [
        {"client_id": client_id, "exchange_no": second, "request_time": TIME + timedelta(seconds=second)}
        | {"reader": "consumer", "read_position": 0, "topic": "t", "partition": 0}
        for client_id, second in (("a", 4), ("b", 5), ("a", 6), ("b", 8))
    ]
    told = takeovers(frame(spark, EXCHANGES, members), frame(spark, FETCH_PARTITIONS, fetches)).collect()
    naive = TIME.replace(tzinfo=None)
    found = [tuple((row[name] - naive).seconds for name in (BY.time, BY.joins, BY.joined)) for row in told]
    assert sorted(found) == [(5, 4, 5), (6, 2, 3), (8, 6, 7)]
