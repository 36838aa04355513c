"""Partition limits are replayed from request logs alone, without packets."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from schemas.tables.gold_limits import PARTITION_LIMIT_REFUSALS
from schemas.tables.silver import SILVER
from schemas.tables.table import Table
from tests.gate_rows import Row
from tests.packed import unpack
from tests.request_logs import index_request_log
from tests.unit.capture.logged import line
from tests.unit.replay.partition_limits.clusters import CLUSTER_LIMIT, SEED, settings_of
from tests.unit.replay.partition_limits.silver import cluster_rows
from udfs.capture.request_log import read_requests
from udfs.facts.rows_from_log import READ_KEYS, rows_from_log
from udfs.replay.partition_limits.replay import replay_captured

CREATE_TOPICS, METADATA = 19, 3


def logged(path: Path, *lines: str) -> dict[Table, list[Row]]:
    """The silver rows of a request log."""
    path.write_text("".join(lines))
    index = index_request_log(str(path), range_bytes=1 << 20, buckets=1)
    assert index is not None
    parts = read_requests(index.ranges[0], file_no=0, bodies_of=READ_KEYS, block_bytes=1 << 20)
    rows: dict[str, list[Row]] = defaultdict(list)
    for packed in rows_from_log(parts, "capture"):
        for content in unpack([packed]):
            rows[packed["table"][0].as_py()] += content.to_pylist()
    return {table: rows[table.name] for table in SILVER}


def creation(correlation_id: int, topic: str, partitions: int) -> str:
    wanted = {"name": topic, "numPartitions": partitions, "replicationFactor": 1, "assignments": [], "configs": []}
    answer = {"name": topic, "topicId": "AAAAAAAAAAAAAAAAAAAAAA", "errorCode": 0, "errorMessage": None,
              "topicConfigErrorCode": 0, "numPartitions": partitions, "replicationFactor": 1,
              "configs": []}  # fmt: skip
    request = {"topics": [wanted], "timeoutMs": 1000, "validateOnly": False}
    return line(CREATE_TOPICS, 7, correlation_id, request, {"throttleTimeMs": 0, "topics": [answer]},
                time=f"2026-11-21 12:00:0{correlation_id},000", principal="User:ann")  # fmt: skip


def test_request_logs_alone_show_what_limits_would_refuse(tmp_path: Path) -> None:
    brokers = [{"nodeId": node, "host": "h", "port": 9092, "rack": None} for node in (1, 2)]
    cluster = {"throttleTimeMs": 0, "brokers": brokers, "clusterId": "c", "controllerId": 1, "topics": []}
    metadata = line(METADATA, 9, 1, {"topics": [], "allowAutoTopicCreation": False,
                                     "includeClusterAuthorizedOperations": False,
                                     "includeTopicAuthorizedOperations": False},
                    {**cluster, "clusterAuthorizedOperations": -1}, time="2026-11-21 12:00:01,000")  # fmt: skip
    rows = logged(tmp_path / "log", metadata, creation(2, "small", 2), creation(3, "large", 5), creation(4, "last", 1))
    settings = settings_of({"three": {CLUSTER_LIMIT: 3}})
    r = PARTITION_LIMIT_REFUSALS
    refused = [
        (row[r.topic], row[r.principal], row[r.present], row[r.asked])
        for batch in replay_captured(cluster_rows(rows), settings, "run", SEED)
        for number, name in enumerate(batch["table"].to_pylist())
        if name == r.name
        for part in unpack([batch.slice(number, 1)])
        for row in part.to_pylist()
    ]
    assert refused == [("large", "User:ann", 2, 5)]
