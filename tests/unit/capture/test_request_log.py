"""How request logs are recognised, and what is read from their lines."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import udfs.capture.line_blocks
from tests.request_logs import index_request_log
from tests.unit.capture.logged import CONNECTION, heartbeat, line
from udfs.capture.endpoints import connection_endpoints, logged_connection
from udfs.capture.file_index import CaptureIndex
from udfs.capture.line_blocks import line_blocks
from udfs.capture.log_lines import FINE, NO_JSON, NO_REQUEST, NO_TIME
from udfs.capture.request_log import read_requests
from udfs.errors import CaptureError

SECOND = 1_000_000_000
AT = 1_795_262_448 * SECOND + 601_000_000  # 2026-11-21 12:00:48,601 UTC


def index(path: Path, content: str | bytes, range_bytes: int = 1 << 20) -> CaptureIndex:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    found = index_request_log(str(path), range_bytes=range_bytes, buckets=8)
    assert found is not None
    return found


def rows(found: CaptureIndex, block_bytes: int = 1 << 20) -> list[dict[str, Any]]:
    batches = [
        batch
        for part in found.ranges
        for batch in read_requests(part, file_no=3, bodies_of=(1,), block_bytes=block_bytes)
    ]
    return pa.Table.from_batches(batches).to_pylist() if batches else []


def requests_of(tmp_path: Path, *lines: str | bytes) -> list[dict[str, Any]]:
    whole = b"".join(part.encode() if isinstance(part, str) else part for part in (heartbeat(1), *lines))
    return rows(index(tmp_path / "any.name", whole))[1:]


def test_a_line_has_the_fields_of_its_request(tmp_path: Path) -> None:
    (row,) = rows(index(tmp_path / "log", heartbeat(5)))
    told = {
        "connection": CONNECTION, "file_no": 3, "line_no": 0, "fault": FINE, "completed": AT, "taken": 1_500_000,
        "api_key": 12, "api_version": 4, "correlation_id": 5, "client_id": "app", "answered": True, "error_code": 0,
        "throttle_time_ms": 0, "json": None,
    }  # fmt: skip
    assert {name: row[name] for name in told} == told


@pytest.mark.parametrize(
    ("time", "after"),
    [("2026-11-21 12:00:48,601", 0), ("2026-11-21T12:00:48.601002003", 2_003), ("2026-11-21 12:00:48", -601_000_000)],
)
def test_times_count_as_utc_if_no_zone_is_stated(tmp_path: Path, time: str, after: int) -> None:
    (row,) = rows(index(tmp_path / "log", heartbeat(1, time=time)))
    assert row["completed"] == AT + after


@pytest.mark.parametrize(
    ("time", "hours"),
    [("2026-11-21T12:00:48,601Z", 0), ("2026-11-21T12:00:48.601+02:00", -2), ("2026-11-21 12:00:48,601 -0330", 3.5)],
)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_an_offset_in_a_line_overrides_the_stated_zone(tmp_path: Path, time: str, hours: float, zone: str) -> None:
    path = tmp_path / "log"
    path.write_text(heartbeat(1, time=time))
    found = index_request_log(str(path), range_bytes=1 << 20, buckets=8, zone=zone)
    assert found is not None
    assert found.first_ts_ns == AT + int(hours * 3600) * SECOND


@pytest.mark.parametrize(
    ("zone", "time", "hours"),
    [
        ("Europe/Berlin", "2026-11-21 12:00:48,601", -1),
        ("+05:30", "2026-11-21 12:00:48,601", -5.5),
        ("Europe/Berlin", "2026-07-21 12:00:48,601", -2 - 123 * 24),
        ("Europe/Berlin", "2026-10-25 02:30:48,601", -(27 * 24 + 11.5)),
    ],
    ids=["winter", "offset", "summer", "the first of two"],
)
def test_times_without_an_offset_are_in_the_stated_zone(tmp_path: Path, zone: str, time: str, hours: float) -> None:
    path = tmp_path / "log"
    path.write_text(heartbeat(1, time=time))
    found = index_request_log(str(path), range_bytes=1 << 20, buckets=8, zone=zone)
    assert found is not None
    (read,) = [batch for part in found.ranges for batch in read_requests(
        part, file_no=0, bodies_of=(), block_bytes=1 << 20, zone=zone
    )]  # fmt: skip
    assert found.first_ts_ns == read["completed"][0].as_py() == AT + int(hours * 3600) * SECOND


@pytest.mark.parametrize("response", ["", None])
def test_a_produce_request_without_acks_has_no_response(tmp_path: Path, response: object) -> None:
    (row,) = requests_of(tmp_path, line(0, 11, 9, {"acks": 0}, response))
    assert (row["correlation_id"], row["answered"]) == (9, False)


def test_a_forwarded_request_is_left_out_and_counted(tmp_path: Path) -> None:
    found = index(tmp_path / "log", heartbeat(1) + heartbeat(2, forwarded=True) + heartbeat(3))
    assert [(row["correlation_id"], row["line_no"]) for row in rows(found)] == [(1, 0), (3, 2)]
    assert (found.log_lines, found.forwarded_lines) == (3, 1)


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        ("java.io.IOException: Broken pipe\n", NO_REQUEST),
        (heartbeat(2).replace("[2026-11-21 12:00:48,601] ", ""), NO_TIME),
        (heartbeat(2, time="2026-99-21 12:00:48,601"), NO_TIME),
        (heartbeat(2)[:120] + "\n", NO_REQUEST),
        (heartbeat(2)[:150] + "}\n", NO_JSON),
        (heartbeat(2).replace('"correlationId":2', '"correlationId":99999999999'), NO_JSON),
        (heartbeat(2).replace('"correlationId":2', '"correlationId":2,"correlationId":3'), NO_JSON),
        (heartbeat(2).replace('"correlationId":2,', ""), NO_JSON),
        (heartbeat(2, connection="nowhere"), NO_JSON),
        (heartbeat(2, connection="127.0.0.1:99999-127.0.0.1:1-1-1"), NO_JSON),
        (heartbeat(2, totalTimeMs=-1), NO_JSON),
        (heartbeat(2, totalTimeMs=1e300), NO_JSON),
        (heartbeat(2).replace("1.5", "NaN"), NO_JSON),
        (heartbeat(2).replace("} (kafka", "}{} (kafka"), NO_JSON),
        (b"\xff\xfe\x00\n", NO_REQUEST),
        ("[2026-11-21 12:00:48,601] Completed request:" + "{" * 100_000 + "}\n", NO_JSON),
    ],
)  # fmt: skip
def test_a_line_that_cannot_be_read_is_a_row_without_its_text(tmp_path: Path, bad: str | bytes, fault: int) -> None:
    row, good = requests_of(tmp_path, bad, heartbeat(4))
    assert (row["fault"], row["line_no"], row["size"]) == (fault, 1, len(bad) - 1)
    assert (row["json"], row["connection"], row["client_id"]) == (None, "", None)
    assert (good["fault"], good["correlation_id"], good["line_no"]) == (FINE, 4, 2)


def test_blank_lines_are_skipped_but_have_line_numbers(tmp_path: Path) -> None:
    found = requests_of(tmp_path, "\n", "\r\n", heartbeat(2).replace("\n", "\r\n"))
    assert [(row["correlation_id"], row["line_no"]) for row in found] == [(2, 3)]


def test_a_name_that_is_not_utf8_becomes_replacement_characters(tmp_path: Path) -> None:
    (row,) = requests_of(tmp_path, heartbeat(2).encode().replace(b'"app"', b'"a\xff"'))
    assert row["client_id"] == "a\ufffd"


@pytest.mark.parametrize("range_bytes", [1, 400, 5_000])
@pytest.mark.parametrize("block_bytes", [1, 7, 10_000])
def test_rows_are_the_same_however_a_log_is_cut(tmp_path: Path, range_bytes: int, block_bytes: int) -> None:
    content = "".join(heartbeat(i) + ("oops\n" if i % 3 else "\n") for i in range(12)) + heartbeat(99)[:-1]
    whole = rows(index(tmp_path / "log", content))
    assert len(whole) == 21
    assert rows(index(tmp_path / "log", content, range_bytes), block_bytes) == whole


def test_a_compressed_log_gives_the_same_rows(tmp_path: Path) -> None:
    content = heartbeat(1) + heartbeat(2)
    packed = index(tmp_path / "log.gz", gzip.compress(content.encode()), range_bytes=10)
    assert (packed.compression, len(packed.ranges)) == ("gzip", 1)
    assert rows(packed) == rows(index(tmp_path / "log", content))


@pytest.mark.parametrize(
    "text",
    [
        "[2020-01-01 00:00:00,000] DEBUG Completed request:RequestHeader(apiKey=FETCH, apiVersion=11) -- {...}\n",
        "[2018-01-01 00:00:00,000] DEBUG Completed request:{api_key=1,api_version=5,correlation_id=7} -- {...}\n",
        "[2017-01-01 00:00:00,000] DEBUG Completed request:Name: FetchRequest; Version: 2; CorrelationId: 1\n",
    ],
)
def test_a_log_in_free_text_is_refused_as_such(tmp_path: Path, text: str) -> None:
    with pytest.raises(CaptureError, match=r"request log in free text, as Kafka before 2\.8"):
        index(tmp_path / "old.log", text)


def test_a_capture_is_no_request_log_though_its_packets_are(tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(b"\xd4\xc3\xb2\xa1" + bytes(40) + heartbeat(1).encode())
    assert index_request_log(str(path), range_bytes=1, buckets=1) is None


def test_a_line_without_an_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(udfs.capture.line_blocks, "MOST_LINE_BYTES", 10)
    stream = io.BytesIO(b"a\n" + b"b" * 100 + b"\nc\nd")
    blocks = list(line_blocks(stream, block_bytes=4))
    content = b"".join(block.content for block in blocks)
    assert content == b"a\n" + b"b" * 10 + b"\nc\nd"
    assert (blocks[-1].first_byte, blocks[-1].first_line) == (105, 3)


@pytest.mark.parametrize(
    ("text", "server", "client"),
    [
        ("10.0.0.1:9092-10.0.0.2:5-1-22", "10.0.0.1:9092", "10.0.0.2:5"),
        ("10.0.0.9:9092-10.0.0.2:5-22", "10.0.0.9:9092", "10.0.0.2:5"),
        ("0:0:0:0:0:0:0:1%lo:9092-fe80:0:0:0:0:0:0:2:5-0-0", "[::1]:9092", "[fe80::2]:5"),
    ],
)
def test_a_connection_has_the_endpoints_that_packets_have(text: str, server: str, client: str) -> None:
    found = logged_connection(text)
    assert found is not None
    ends = [texts[0].as_py() for texts in connection_endpoints(found[0])]
    assert (ends[found[1]], ends[1 - found[1]]) == (client, server)
