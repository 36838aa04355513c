"""What the replay of partition limits is given, of packets and of request logs alone."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from jobs.replays.partition_limits.events import topic_events
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.replays.partition_limits.job import prepared
from jobs.session.one_shuffle import packed_in_order
from schemas.tables.event_kinds import TopicEvent
from schemas.tables.gold_limits import PARTITION_LIMIT_REFUSALS
from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
from schemas.tables.silver_topics import CLUSTER_METADATA, TOPIC_CHANGES
from schemas.tables.steps import TOPIC_EVENTS
from schemas.tables.table import Table
from tests.packed import unpack
from tests.request_logs import index_request_log
from tests.spark.test_split_events import row_of
from tests.unit.capture.logged import line
from tests.unit.replay.partition_limits.clusters import CLUSTER_LIMIT, SEED, settings_of
from udfs.capture.request_log import read_requests
from udfs.facts.arrow_tables import arrow_schema
from udfs.facts.rows_from_log import READ_KEYS, rows_from_log

Rows = list[dict[str, Any]]
READ = (CLUSTER_METADATA, TOPIC_CHANGES, EXCHANGES, RECORD_BATCHES, FETCH_PARTITIONS)
SECOND = 1_000_000
CREATE_TOPICS, METADATA = 19, 3


def frames(spark: SparkSession, rows: dict[str, Rows]) -> list[DataFrame]:
    return [
        spark.createDataFrame(pa.Table.from_pylist(rows.get(table.name, []), schema=arrow_schema(table)))
        for table in READ
    ]


def at(table: Table, second: int, exchange: int, **columns: Any) -> dict[str, Any]:
    return row_of(table, request_time=second * SECOND, connection_id=1, exchange_no=exchange, topic="t", **columns)


def test_uses_of_a_topic_belong_to_the_change_before_them(spark: SparkSession) -> None:
    changes = [at(TOPIC_CHANGES, 10, 1, kind="create_topic"), at(TOPIC_CHANGES, 20, 5, kind="delete_topic")]
    batches = [at(RECORD_BATCHES, second, number, source="produce") for second, number in ((5, 0), (11, 2), (21, 6))]
    batches += [at(RECORD_BATCHES, 11, 2, source="produce", partition=1), at(RECORD_BATCHES, 12, 3, source="fetch")]
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
    rows = {
        "topic_changes": changes, "record_batches": batches, "fetch_partitions": fetches, "cluster_metadata": metadata,
        "exchanges": [at_exchange(1, principal="User:ann"), at_exchange(5)],
    }  # fmt: skip
    t = TOPIC_EVENTS
    found = topic_events(*frames(spark, rows)).where(F.col(t.entry) == TopicEvent.CHANGE).orderBy(t.time)
    told = (t.kind, t.principal, t.produce_requests, t.fetch_requests, t.metadata_requests)
    assert [tuple(row) for row in found.select(*told).collect()] == [
        ("create_topic", "User:ann", 1, 1, 1), ("delete_topic", "", 1, 0, 0),
    ]  # fmt: skip


def test_partitions_are_told_by_topic_id_as_they_were_first(spark: SparkSession) -> None:
    shown = {"entry": "partition", "topic": "t", "partition": 0}
    metadata = [
        row_of(CLUSTER_METADATA, **shown, topic_id=topic_id, response_time=second * SECOND, replica_nodes=[node])
        for second, topic_id, node in ((1, None, 3), (2, "id-1", 3), (5, "id-1", 1), (8, "id-2", 2), (9, "id-2", 3))
    ]
    t = TOPIC_EVENTS
    found = topic_events(*frames(spark, {"cluster_metadata": metadata})).where(F.col(t.entry) == TopicEvent.SIGHTING)
    told = found.orderBy(t.time).select(t.topic, t.topic_id, t.time, t.replica_nodes).collect()
    assert [tuple(row) for row in told] == [
        ("t", None, SECOND, [3]), ("t", "id-1", 2 * SECOND, [3]), ("t", "id-2", 8 * SECOND, [2]),
    ]  # fmt: skip


@pytest.mark.parametrize("order", [1, -1], ids=["in order", "turned"])
def test_of_responses_of_one_time_that_of_the_first_request_tells_the_replicas_and_of_the_last_the_rack(
    spark: SparkSession, order: int
) -> None:
    numbers = range(6)[::order]
    of = [{"response_time": SECOND, "connection_id": 1, "exchange_no": number} for number in numbers]
    partition = {"entry": "partition", "topic": "t", "topic_id": "id", "partition": 0}
    broker = {"entry": "broker", "node_id": 1}
    metadata = [
        row_of(CLUSTER_METADATA, **partition, **told, replica_nodes=[node])
        for told, node in zip(of, numbers, strict=True)
    ] + [row_of(CLUSTER_METADATA, **broker, **told, rack=f"r{node}") for told, node in zip(of, numbers, strict=True)]
    found = topic_events(*frames(spark, {"cluster_metadata": metadata}))
    t = TOPIC_EVENTS
    by_entry = {row[t.entry]: (row[t.replica_nodes], row[t.rack]) for row in found.collect()}
    assert by_entry == {TopicEvent.SIGHTING: ([0], None), TopicEvent.BROKER: (None, "r5")}


def at_exchange(number: int, **columns: Any) -> dict[str, Any]:
    return row_of(EXCHANGES, connection_id=1, exchange_no=number, **columns)


def logged(path: Path, *lines: str) -> dict[str, Rows]:
    """The silver rows of a request log."""
    path.write_text("".join(lines))
    index = index_request_log(str(path), range_bytes=1 << 20, buckets=1)
    assert index is not None
    parts = read_requests(index.ranges[0], file_no=0, bodies_of=READ_KEYS, block_bytes=1 << 20)
    found: dict[str, Rows] = defaultdict(list)
    for packed in rows_from_log(parts, "capture"):
        for content in unpack([packed]):
            found[packed["table"][0].as_py()] += content.to_pylist()
    return found


def creation(correlation_id: int, topic: str, partitions: int) -> str:
    asked = {"name": topic, "numPartitions": partitions, "replicationFactor": 1, "assignments": [], "configs": []}
    told = {"name": topic, "topicId": "AAAAAAAAAAAAAAAAAAAAAA", "errorCode": 0, "errorMessage": None,
            "topicConfigErrorCode": 0, "numPartitions": partitions, "replicationFactor": 1, "configs": []}  # fmt: skip
    request = {"topics": [asked], "timeoutMs": 1000, "validateOnly": False}
    return line(CREATE_TOPICS, 7, correlation_id, request, {"throttleTimeMs": 0, "topics": [told]},
                time=f"2026-11-21 12:00:0{correlation_id},000", principal="User:ann")  # fmt: skip


def test_request_logs_alone_tell_what_limits_would_refuse(spark: SparkSession, tmp_path: Path) -> None:
    brokers = [{"nodeId": node, "host": "h", "port": 9092, "rack": None} for node in (1, 2)]
    cluster = {"throttleTimeMs": 0, "brokers": brokers, "clusterId": "c", "controllerId": 1, "topics": []}
    metadata = line(METADATA, 9, 1, {"topics": [], "allowAutoTopicCreation": False,
                                     "includeClusterAuthorizedOperations": False,
                                     "includeTopicAuthorizedOperations": False},
                    {**cluster, "clusterAuthorizedOperations": -1}, time="2026-11-21 12:00:01,000")  # fmt: skip
    rows = logged(tmp_path / "log", metadata, creation(2, "small", 2), creation(3, "large", 5), creation(4, "last", 1))
    settings = settings_of({"three": {CLUSTER_LIMIT: 3}})
    work = prepared(topic_events(*frames(spark, rows)), settings, SEED, "run")
    packed = packed_in_order(work.events, 1, work.order, work.replay).toArrow().to_batches()
    r = PARTITION_LIMIT_REFUSALS
    refused = [
        (row[r.topic], row[r.principal], row[r.present], row[r.asked])
        for batch in packed
        for number, name in enumerate(batch["table"].to_pylist())
        if name == r.name
        for part in unpack([batch.slice(number, 1)])
        for row in part.to_pylist()
    ]
    assert refused == [("large", "User:ann", 2, 5)]
