"""Rows of the silver tables from request logs."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tests.packed import unpack
from tests.request_logs import index_request_log
from tests.sort_keys import SortKeys
from tests.unit.capture.logged import PARTITION, TOPIC_ID, answered, fetch, heartbeat, line, topics
from tests.unit.facts.brokers import counts_by_connection
from udfs.capture.request_log import read_requests
from udfs.facts.logged_bodies import Texts
from udfs.facts.rows_from_log import READ_KEYS, rows_from_log

Tables = dict[str, list[dict[str, Any]]]
OTHER = "10.0.0.1:9092-10.0.0.2:5-7"


@pytest.fixture
def tables(tmp_path: Path) -> Any:
    """Tables of a log with these lines, of which this many are processed at a time."""

    def made(*lines: str, rows: int = 50_000) -> Tables:
        path = tmp_path / "log"
        path.write_text("".join(lines))
        index = index_request_log(str(path), range_bytes=1 << 20, buckets=1)
        assert index is not None
        parts = read_requests(index.ranges[0], file_no=2, bodies_of=READ_KEYS, block_bytes=1 << 20)
        order: SortKeys = [("connection", "ascending"), ("line_no", "ascending")]
        batches = pa.Table.from_batches(parts).sort_by(order).to_batches(max_chunksize=rows)
        found: Tables = defaultdict(list)
        for packed in rows_from_log(batches, "capture", rows=rows):
            for content in unpack([packed]):
                found[packed["table"][0].as_py()] += content.to_pylist()
        return found

    return made


SESSION = (
    fetch(1, session=(0, 0), wanted=topics(PARTITION, PARTITION | {"partition": 1}),
          answer=answered(55, (0, 10, 8), (1, 0, 0))),
    fetch(2, session=(55, 1), wanted=[], answer=answered(55, (1, 20, 9))),
    fetch(3, session=(55, 2), wanted=topics(PARTITION | {"fetchOffset": 8}), answer=answered(55)),
)  # fmt: skip


def test_a_logged_fetch_has_the_consumers_rack(tables: Any) -> None:
    stated, lacking = fetch(1, session=(0, -1), wanted=[], answer=answered(0)), heartbeat(2)
    logged = tables(stated.replace('"maxWaitMs"', '"rackId":"eu-1a","maxWaitMs"'), lacking)["exchanges"]
    assert [row["fetch_rack_id"] for row in logged] == ["eu-1a", None]


def test_an_incremental_fetch_has_all_partitions_of_its_session(tables: Any) -> None:
    rows = [row for row in tables(*SESSION)["fetch_partitions"] if row["exchange_no"] == 2]
    told = ("kind", "session_known", "topic_id", "partition", "fetch_offset", "returned_bytes", "high_watermark")
    assert [tuple(row[name] for name in told) for row in rows] == [
        ("incremental", True, TOPIC_ID, 0, 8, 0, 8),
        ("incremental", True, TOPIC_ID, 1, 7, 0, 9),
    ]


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_rows_are_the_same_however_lines_are_cut(tables: Any, rows: int) -> None:
    lines = (*SESSION, heartbeat(4, connection=OTHER), "no line\n", heartbeat(5, connection=OTHER))
    in_parts, at_once = tables(*lines, rows=rows), tables(*lines)
    counts, expected = (counts_by_connection(found.pop("exchange_counts")) for found in (in_parts, at_once))
    assert counts == expected
    assert in_parts == at_once


def test_sizes_are_zero_so_that_the_sums_hold(tables: Any) -> None:
    found = tables(*SESSION)
    (connection,) = found["connections"]
    assert {value for name, value in connection.items() if name.endswith("_bytes")} == {0}
    assert (connection["protocol"], connection["requests"], connection["client"]) == ("kafka", 3, "127.0.0.1:50000")
    assert {row["request_bytes"] + row["response_bytes"] for row in found["exchanges"]} == {0}


def test_the_time_of_a_request_is_its_response_time_less_the_total_time_of_the_line(tables: Any) -> None:
    (row,) = tables(heartbeat(1, totalTimeMs=1.5))["exchanges"]
    assert row["response_time"] - row["request_time"] == timedelta(milliseconds=1.5)


def test_texts_of_a_slice_of_a_column_are_found_in_the_arena() -> None:
    texts = Texts()
    texts.add(pa.array(["before"]))
    starts, lengths = texts.add(pa.array(["not of it", "one", None, "three"])[1:])
    spans = zip(starts.tolist(), lengths.tolist(), strict=True)
    assert [bytes(texts.arena()[at : at + n]) if n >= 0 else None for at, n in spans] == [b"one", None, b"three"]


def test_a_produce_request_has_its_first_partitions_error(tables: Any) -> None:
    parts = [{"index": index, "errorCode": error, "baseOffset": -1} for index, error in ((0, 0), (1, 6), (2, 3))]
    answer = {"throttleTimeMs": 3, "responses": [{"name": "t", "partitionResponses": parts}]}
    asked = {"acks": 1, "topicData": [{"name": "t", "partitionData": [{"index": 0, "recordsSizeInBytes": 5}]}]}
    (row,) = tables(line(0, 9, 1, asked, answer))["exchanges"]
    assert (row["error_code"], row["throttle_time_ms"], row["status"]) == (6, 3, "answered")


def test_metadata_responses_give_brokers_and_partitions(tables: Any) -> None:
    part = {
        "errorCode": 0,
        "partitionIndex": 4,
        "leaderId": 1,
        "leaderEpoch": 2,
        "replicaNodes": [1, 2],
        "isrNodes": [1],
    }
    topic = {"errorCode": 0, "name": "t", "topicId": TOPIC_ID, "isInternal": False, "partitions": [part]}
    brokers = [{"nodeId": 1, "host": "h", "port": 9092, "rack": None}]
    answer = {"throttleTimeMs": 0, "brokers": brokers, "topics": [topic], "errorCode": 0}
    broker, partition = tables(line(3, 13, 1, {"topics": None}, answer))["cluster_metadata"]
    assert (broker["node_id"], broker["host"], broker["port"], broker["rack"]) == (1, "h", 9092, None)
    assert (partition["topic"], partition["topic_id"], partition["partition"]) == ("t", TOPIC_ID, 4)
    assert (partition["replica_nodes"], partition["isr_nodes"]) == ([1, 2], [1])


def test_an_api_versions_line_shows_the_brokers_release(tables: Any) -> None:
    offered = {0: 11, 1: 17, 2: 9, 3: 12}
    keys = [{"apiKey": key, "minVersion": 0, "maxVersion": version} for key, version in offered.items()]
    asked = {"clientSoftwareName": "librdkafka", "clientSoftwareVersion": "2.6"}
    answer = {"errorCode": 0, "apiKeys": keys, "throttleTimeMs": 0}
    (row,) = tables(line(18, 3, 1, asked, answer))["cluster_metadata"]
    assert (row["entry"], row["release"]) == ("release", "3.9")


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_a_connections_software_is_that_of_its_last_line_with_any(tables: Any, rows: int) -> None:
    old, new = ({"clientInformation": {"softwareName": "lib", "softwareVersion": of}} for of in ("1", "2"))
    lines = (heartbeat(1), heartbeat(2, **old), heartbeat(3, **new), heartbeat(4), heartbeat(5, connection=OTHER))
    found = tables(*lines, rows=rows)
    assert [row["client_software_version"] for row in found["exchanges"]] == [None, None, "1", "2", None]
    assert [row["client_software_version"] for row in found["connections"]] == [None, "2"]


@pytest.mark.parametrize(
    "bad",
    [
        SESSION[0].replace('"maxWaitMs":500', '"maxWaitMs":"SECRET"'),
        SESSION[0].replace('"fetchOffset":7', '"fetchOffset":99999999999999999999'),
        SESSION[0].replace(TOPIC_ID, "SECRET"),
        SESSION[0].replace('"request":{', '"request":null,"SECRET":{'),
    ],
)
def test_a_line_whose_messages_cannot_be_read_is_an_exchange_and_in_quarantine(tables: Any, bad: str) -> None:
    found = tables(bad, heartbeat(2))
    assert [(row["correlation_id"], row["decode_fault"]) for row in found["exchanges"]] == [(1, "bad_json"), (2, None)]
    (row,) = found["quarantine"]
    assert (row["reason"], row["direction"], row["packet"], row["exchange_no"]) == ("undecodable", "line", 2 << 40, 0)
    assert "fetch_partitions" not in found
    assert "SECRET" not in repr(found)


def test_a_line_without_a_request_is_in_quarantine_with_its_file_and_line(tables: Any) -> None:
    found = tables(heartbeat(1), "password=SECRET\n", heartbeat(2)[:150] + "SECRET}\n")
    told = [(row["reason"], row["packet"], row["bytes"], row["time"] is None) for row in found["quarantine"]]
    assert told == [
        ("no_request_line", 2 << 40 | 1, 15, True),
        ("line_not_readable", 2 << 40 | 2, 157, False),
    ]
    assert "SECRET" not in repr(found)


@pytest.mark.parametrize("seed", range(12))
def test_every_line_is_a_row_however_damaged(tables: Any, seed: int) -> None:
    """Each line is an exchange, or a row of quarantine without an exchange."""
    chance = Random(seed)  # noqa: S311  # the same damage in every run
    lines = [*SESSION, *(heartbeat(i) for i in range(4, 10))]
    for at in chance.sample(range(len(lines)), 5):
        text = list(lines[at][:-1])
        for _ in range(3):
            text[chance.randrange(len(text))] = chance.choice('"{}[],:-9e\\\0\ufffd')
        lines[at] = "".join(text) + "\n"
    found = tables("Completed request:{\n", *lines)
    in_quarantine = [row for row in found["quarantine"] if row["exchange_no"] is None]
    assert len(found["exchanges"]) + len(in_quarantine) == 1 + len(lines)


def test_a_logged_share_fetch_has_everything_except_the_bytes_that_logs_leave_out(tables: Any) -> None:
    acknowledged = {"firstOffset": 3, "lastOffset": 5, "acknowledgeTypes": [1]}
    named = [{"topicId": TOPIC_ID, "partitions": [{"partitionIndex": 4, "acknowledgementBatches": [acknowledged]}]}]
    acquired = {"firstOffset": 6, "lastOffset": 9, "deliveryCount": 2}
    returned = {"partitionIndex": 4, "errorCode": 0, "records": "", "acquiredRecords": [acquired]}
    request = {
        "groupId": "g", "memberId": "m", "shareSessionEpoch": 2, "maxWaitMs": 500, "minBytes": 1, "maxBytes": 100,
        "maxRecords": 10, "batchSize": 10, "shareAcquireMode": 0, "isRenewAck": False, "topics": named,
        "forgottenTopicsData": [],
    }  # fmt: skip
    response = {
        "throttleTimeMs": 0, "errorCode": 0, "acquisitionLockTimeoutMs": 30_000,
        "responses": [{"topicId": TOPIC_ID, "partitions": [returned]}],
    }  # fmt: skip
    found = tables(line(78, 2, 1, request, response))
    [row] = found["share_fetches"]
    whats = ("group_id", "member_id", "max_records", "acknowledged_records", "redelivered_records", "returned_bytes")
    assert [row[name] for name in whats] == ["g", "m", 10, 3, 4, None]
    by_entry = {row["entry"]: row for row in found["share_partitions"]}
    assert (by_entry["named"]["topic_id"], by_entry["named"]["first_offsets"]) == (TOPIC_ID, [3])
    assert (by_entry["returned"]["last_offsets"], by_entry["returned"]["returned_bytes"]) == ([9], None)
    assert [row["group_id"] for row in found["exchanges"]] == ["g"]


def test_a_log_does_not_say_when_connections_end(tables: Any) -> None:
    assert [row["ended"] for row in tables(*SESSION)["connections"]] == [None]
