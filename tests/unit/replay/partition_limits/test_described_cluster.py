"""A cluster that somebody describes becomes rows as a capture would give them."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.tables.event_kinds import TopicEvent
from schemas.tables.steps import TOPIC_EVENTS
from udfs.facts.arrow_tables import arrow_schema
from udfs.replay.partition_limits.described_cluster import (
    DescribedCluster,
    SizedTopics,
    coming_times,
    described_events,
)

DAY, START = 86_400_000_000, 1_000_000
CLUSTER = DescribedCluster(
    brokers=[(7, "b"), (3, "a"), (5, None)],
    present=[SizedTopics("large", 3, 2, how_many=2), SizedTopics("small", 1, 1, how_many=1)],
    coming=[SizedTopics("daily", 4, 3, per_day=1.0), SizedTopics("often", 2, 1, per_day=2.0)],
    start_us=START,
    days=2.0,
)
Row = dict[str, Any]


def rows_of(entry: TopicEvent, *names: str) -> list[tuple[Any, ...]]:
    found = described_events(CLUSTER, seed=5)
    assert found.schema == arrow_schema(TOPIC_EVENTS)
    return [tuple(row[name] for name in names) for row in found.to_pylist() if row["entry"] == entry]


def test_brokers_come_in_the_order_of_their_ids() -> None:
    assert rows_of(TopicEvent.BROKER, "node_id", "rack") == [(3, "a"), (5, None), (7, "b")]


def test_topics_that_exist_are_shown_just_before_the_start_and_numbered_if_there_are_several() -> None:
    shown = rows_of(TopicEvent.SIGHTING, "topic", "partition", "time", "is_internal")
    assert shown == [
        ("large-0", 0, START - 1, False), ("large-0", 1, START - 1, False), ("large-0", 2, START - 1, False),
        ("large-1", 0, START - 1, False), ("large-1", 1, START - 1, False), ("large-1", 2, START - 1, False),
        ("small", 0, START - 1, False),
    ]  # fmt: skip


def test_each_partition_that_exists_has_as_many_different_brokers_as_replicas() -> None:
    replicas = [(topic, nodes) for topic, nodes in rows_of(TopicEvent.SIGHTING, "topic", "replica_nodes")]
    assert [len(nodes) for _, nodes in replicas] == [2] * 6 + [1]
    assert all(len({*nodes}) == len(nodes) and {*nodes} <= {3, 5, 7} for _, nodes in replicas)
    counts = [sum(node in nodes for topic, nodes in replicas if topic != "small") for node in (3, 5, 7)]
    assert counts == [4, 4, 4], "the placer goes round the brokers"


def test_topics_to_come_are_requests_one_for_each_spread_evenly_over_the_days() -> None:
    names = ("topic", "time", "connection_id", "exchange_no", "position", "client_id", "num_partitions",
             "replication_factor", "validate_only", "kind")  # fmt: skip
    assert rows_of(TopicEvent.CHANGE, *names) == [
        ("daily-0", START + DAY // 2, 0, 0, 0, "daily", 4, 3, False, "create_topic"),
        ("daily-1", START + DAY // 2 + DAY, 0, 1, 0, "daily", 4, 3, False, "create_topic"),
        ("often-0", START + DAY // 4, 1, 0, 0, "often", 2, 1, False, "create_topic"),
        ("often-1", START + DAY // 4 + DAY // 2, 1, 1, 0, "often", 2, 1, False, "create_topic"),
        ("often-2", START + DAY // 4 + DAY, 1, 2, 0, "often", 2, 1, False, "create_topic"),
        ("often-3", START + DAY // 4 + 3 * DAY // 2, 1, 3, 0, "often", 2, 1, False, "create_topic"),
    ]


@pytest.mark.parametrize(("per_day", "days", "count"), [(0.5, 3.0, 1), (0.5, 4.0, 2), (0.0, 9.0, 0), (3.0, 0.5, 1)])
def test_only_topics_that_come_within_the_days_count(per_day: float, days: float, count: int) -> None:
    times = coming_times(per_day, days, START).tolist()
    assert times == [START + int((number + 0.5) * DAY / per_day) for number in range(count)]
