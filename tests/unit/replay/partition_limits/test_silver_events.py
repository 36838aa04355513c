"""What the replay of partition limits reads from silver tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from schemas.tables.event_kinds import TopicEvent
from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
from schemas.tables.silver_topics import CLUSTER_METADATA, TOPIC_CHANGES
from schemas.tables.steps import TOPIC_EVENTS
from schemas.tables.table import Table
from tests.gate_rows import Row
from tests.silver_rows import row_of
from tests.unit.replay.partition_limits.silver import Silver, cluster_rows
from udfs.replay.partition_limits.silver_events import topic_events

SECOND = 1_000_000
T = TOPIC_EVENTS
USES = (T.produce_requests, T.fetch_requests, T.metadata_requests)


def events(silver: Silver, entry: TopicEvent, batch_rows: int = 10_000) -> list[Row]:
    """The rows of one kind by time."""
    rows = topic_events(cluster_rows(silver, batch_rows)).to_pylist()
    of_entry = [row for row in rows if row[T.entry] == entry]
    return sorted(of_entry, key=lambda row: (row[T.time] is not None, row[T.time] or 0))


def at(table: Table, second: int, exchange: int, **columns: Any) -> Row:
    time = {"request_time": second * SECOND, "response_time": second * SECOND}
    return row_of(table, **{**time, "connection_id": 1, "exchange_no": exchange, "topic": "t", **columns})


def change(second: int, exchange: int, kind: str = "create_topic", **columns: Any) -> Row:
    return at(TOPIC_CHANGES, second, exchange, kind=kind, **columns)


def at_exchange(number: int, **columns: Any) -> Row:
    return row_of(EXCHANGES, connection_id=1, exchange_no=number, **columns)


def produced(second: int, exchange: int, **columns: Any) -> Row:
    return at(RECORD_BATCHES, second, exchange, source="produce", **columns)


def test_uses_of_a_topic_belong_to_the_change_before_them() -> None:
    changes = [change(10, 1), change(20, 5, "delete_topic")]
    batches = [produced(second, number) for second, number in ((5, 0), (11, 2), (21, 6))]
    batches += [produced(11, 2, partition=1), at(RECORD_BATCHES, 12, 3, source="fetch")]
    fetches = [
        at(FETCH_PARTITIONS, 12, 3, reader="consumer", read_position=0),
        at(FETCH_PARTITIONS, 13, 4, reader="follower", read_position=0),
        at(FETCH_PARTITIONS, 14, 7, reader="consumer"),
    ]
    metadata = [
        at(CLUSTER_METADATA, second, number, entry="partition", partition=partition, is_named=is_named)
        for second, number, partition, is_named in (
            (15, 8, 0, True), (15, 8, 1, True), (16, 9, 0, False), (20, 5, 0, True),
        )
    ]  # fmt: skip
    silver = {
        TOPIC_CHANGES: changes, RECORD_BATCHES: batches, FETCH_PARTITIONS: fetches, CLUSTER_METADATA: metadata,
        EXCHANGES: [at_exchange(1, principal="User:ann"), at_exchange(5)],
    }  # fmt: skip
    rows = events(silver, TopicEvent.CHANGE)
    assert [tuple(row[column] for column in (T.kind, T.principal, *USES)) for row in rows] == [
        ("create_topic", "User:ann", 1, 1, 1), ("delete_topic", "", 1, 0, 0),
    ]  # fmt: skip


def test_a_use_at_the_very_time_of_a_change_belongs_to_no_change() -> None:
    changes = [change(10, 1), change(20, 2, "create_partitions"), change(30, 3, "delete_topic")]
    batches = [produced(second, 10 + second) for second in (10, 19, 20, 21, 22, 30)]
    rows = events({TOPIC_CHANGES: changes, RECORD_BATCHES: batches}, TopicEvent.CHANGE)
    assert [row[T.produce_requests] for row in rows] == [1, 2, None]


def test_uses_after_several_changes_at_one_time_belong_to_the_last_of_them() -> None:
    changes = [change(10, 2), change(10, 1), change(10, 2, position=1), change(10, 1, connection_id=0)]
    rows = events({TOPIC_CHANGES: changes, RECORD_BATCHES: [produced(11, 9)]}, TopicEvent.CHANGE)
    uses = {(row[T.connection_id], row[T.exchange_no], row[T.position]): row[T.produce_requests] for row in rows}
    assert uses == {(1, 2, 1): 1, (1, 2, 0): None, (1, 1, 0): None, (0, 1, 0): None}


def test_a_change_at_an_unknown_time_has_no_uses() -> None:
    changes = [change(10, 1), change(0, 2, "delete_topic", request_time=None)]
    batches = [produced(5, 7), produced(11, 8), produced(0, 9, request_time=None)]
    rows = events({TOPIC_CHANGES: changes, RECORD_BATCHES: batches}, TopicEvent.CHANGE)
    assert [(row[T.kind], row[T.produce_requests]) for row in rows] == [("delete_topic", None), ("create_topic", 1)]


def test_a_use_by_topic_id_belongs_to_the_change_by_that_topic_id() -> None:
    metadata = [
        at(CLUSTER_METADATA, 11, 5, entry="topic", is_named=True, topic=None, topic_id="id"),
        at(CLUSTER_METADATA, 12, 6, entry="topic", is_named=True, topic=None, topic_id="other"),
        at(CLUSTER_METADATA, 13, 7, entry="topic", is_named=True, topic=None),
        at(CLUSTER_METADATA, 14, 8, entry="topic", is_named=None, topic=None, topic_id="id"),
    ]
    silver = {TOPIC_CHANGES: [change(10, 1, topic="id"), change(10, 2, topic="t")], CLUSTER_METADATA: metadata}
    uses = {row[T.topic]: row[T.metadata_requests] for row in events(silver, TopicEvent.CHANGE)}
    assert uses == {"id": 1, "t": None}


def test_a_change_with_all_nullable_columns_null_still_has_its_topic_and_kind() -> None:
    bare = row_of(TOPIC_CHANGES, kind="create_topic", topic="t", connection_id=1, exchange_no=3)
    silver = {TOPIC_CHANGES: [bare], EXCHANGES: [at_exchange(3), at_exchange(4, principal="User:ann")]}
    (row,) = events(silver, TopicEvent.CHANGE)
    shown = (T.topic, T.kind, T.client_id, T.principal, T.connection_id, T.exchange_no, T.position)
    assert [row[column] for column in shown] == ["t", "create_topic", "", "", 1, 3, 0]
    nothing = (T.time, T.num_partitions, T.assignments, T.validate_only, T.error_code, T.api_version, *USES)
    assert [row[column] for column in nothing] == [None] * len(nothing)


def test_the_partitions_of_each_topic_id_are_where_metadata_first_showed_them() -> None:
    shown = {"entry": "partition", "topic": "t", "partition": 0}
    metadata = [
        row_of(CLUSTER_METADATA, **shown, topic_id=topic_id, response_time=second * SECOND, replica_nodes=[node])
        for second, topic_id, node in ((1, None, 3), (2, "id-1", 3), (5, "id-1", 1), (8, "id-2", 2), (9, "id-2", 3))
    ]
    rows = events({CLUSTER_METADATA: metadata}, TopicEvent.SIGHTING)
    assert [tuple(row[column] for column in (T.topic, T.topic_id, T.time, T.replica_nodes)) for row in rows] == [
        ("t", None, SECOND, [3]), ("t", "id-1", 2 * SECOND, [3]), ("t", "id-2", 8 * SECOND, [2]),
    ]  # fmt: skip


@pytest.mark.parametrize("batch_rows", [1, 7, 10_000])
@pytest.mark.parametrize("order", [1, -1], ids=["in order", "reversed"])
def test_of_responses_at_one_time_the_first_shows_the_replicas_and_the_last_the_rack(
    order: int, batch_rows: int
) -> None:
    numbers = range(6)[::order]
    of = [{"response_time": SECOND, "connection_id": 1, "exchange_no": number} for number in numbers]
    partition = {"entry": "partition", "topic": "t", "topic_id": "id", "partition": 0}
    broker = {"entry": "broker", "node_id": 1}
    metadata = [
        row_of(CLUSTER_METADATA, **partition, **response, replica_nodes=[node])
        for response, node in zip(of, numbers, strict=True)
    ]
    metadata += [
        row_of(CLUSTER_METADATA, **broker, **response, rack=f"r{node}")
        for response, node in zip(of, numbers, strict=True)
    ]
    rows = topic_events(cluster_rows({CLUSTER_METADATA: metadata}, batch_rows)).to_pylist()
    by_entry = {row[T.entry]: (row[T.replica_nodes], row[T.rack]) for row in rows}
    assert len(rows) == 2
    assert by_entry == {TopicEvent.SIGHTING: ([0], None), TopicEvent.BROKER: (None, "r5")}


@pytest.mark.parametrize("batch_rows", [1, 7])
def test_responses_are_ordered_by_time_then_connection_then_exchange_then_position(
    batch_rows: int,
) -> None:
    places = [(2, 0, 0, 0), (1, 5, 0, 0), (1, 1, 9, 0), (1, 1, 2, 7), (1, 1, 2, 3), (3, 9, 9, 9)]
    columns = ("response_time", "connection_id", "exchange_no", "position")
    partition = {"entry": "partition", "topic": "t", "partition": 0}
    broker = {"entry": "broker", "node_id": 1}
    metadata = [
        row_of(CLUSTER_METADATA, **kind, **dict(zip(columns, place, strict=True)), replica_nodes=[n], rack=f"r{n}")
        for kind in (partition, broker)
        for n, place in enumerate(places)
    ]
    for rows in (metadata, metadata[::-1]):
        silver = {CLUSTER_METADATA: rows}
        assert [row[T.replica_nodes] for row in events(silver, TopicEvent.SIGHTING, batch_rows)] == [[4]]
        assert [row[T.rack] for row in events(silver, TopicEvent.BROKER, batch_rows)] == ["r5"]


def test_a_broker_that_is_last_shown_without_a_rack_has_none() -> None:
    metadata = [
        at(CLUSTER_METADATA, second, second, entry="broker", node_id=1, rack=rack)
        for second, rack in ((1, "a"), (2, None))
    ]
    assert [row[T.rack] for row in events({CLUSTER_METADATA: metadata}, TopicEvent.BROKER)] == [None]


@pytest.mark.parametrize("batch_rows", [1, 10_000])
def test_a_topic_is_internal_if_any_response_says_so(batch_rows: int) -> None:
    metadata = [
        at(CLUSTER_METADATA, second, second, entry="partition", partition=partition, is_internal=is_internal)
        for second, partition, is_internal in ((1, 0, None), (2, 0, True), (3, 0, False), (1, 1, None), (2, 1, False))
    ]
    rows = events({CLUSTER_METADATA: metadata}, TopicEvent.SIGHTING, batch_rows)
    assert {row[T.partition]: row[T.is_internal] for row in rows} == {0: True, 1: False}


def test_metadata_rows_without_a_partition_or_a_node_are_left_out() -> None:
    metadata = [row_of(CLUSTER_METADATA, entry=entry) for entry in ("partition", "broker", "topic")]
    assert topic_events(cluster_rows({CLUSTER_METADATA: metadata})).num_rows == 0
    assert topic_events([]).num_rows == 0


@pytest.mark.parametrize("batch_rows", [1, 7])
def test_a_clusters_events_do_not_depend_on_the_order_and_cut_of_rows(batch_rows: int) -> None:
    draw = np.random.default_rng(3)

    def drawn(most: int) -> int:
        return int(draw.integers(most))

    topics = ["t", "u", "v", "ü"]
    silver = {
        TOPIC_CHANGES: [change(10 * n, n, topic=topics[drawn(3)], client_id=(None, "c")[n % 2]) for n in range(12)],
        EXCHANGES: [at_exchange(n, api_version=n % 4, principal=(None, "User:a")[n % 2]) for n in range(200)],
        RECORD_BATCHES: [produced(drawn(130), 20 + n // 3, topic=topics[drawn(4)]) for n in range(90)],
        FETCH_PARTITIONS: [
            at(FETCH_PARTITIONS, drawn(130), 80 + n // 2, topic=topics[drawn(4)], reader="consumer", read_position=0)
            for n in range(60)
        ],
        CLUSTER_METADATA: [
            at(
                CLUSTER_METADATA, drawn(20), n, entry=("partition", "broker")[n % 2], topic=topics[drawn(4)],
                topic_id=(None, "id")[n // 2 % 2], partition=drawn(3), node_id=drawn(3), is_named=bool(n % 3),
                rack=(None, "r", "s")[drawn(3)], replica_nodes=[drawn(5)],
            )
            for n in range(80)
        ],
    }  # fmt: skip

    def rows(silver: Silver, batch_rows: int) -> list[str]:
        return sorted(map(repr, topic_events(cluster_rows(silver, batch_rows)).to_pylist()))

    whole = rows(silver, 10_000)
    assert rows(silver, batch_rows) == whole
    turned = {table: rows_of_table[::-1] for table, rows_of_table in silver.items()}
    assert rows(turned, batch_rows) == whole
    changes = events(silver, TopicEvent.CHANGE)
    assert all(sum(row[column] or 0 for row in changes) > 5 for column in USES)
