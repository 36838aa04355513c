"""recut.sizes=exact reads the captures again. It refuses files that are not the ones that were ingested."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import jobs.replays.batch_split.producer_packets
from jobs.replays.batch_split.producer_packets import FIRST_ID, plan_of_ingested, producers_by_id
from schemas.tables.silver import CAPTURES, CONNECTIONS
from schemas.tables.steps import SENT
from tests.conftest import REPOSITORY
from udfs.capture.request_log_head import REQUEST_LOG
from udfs.errors import CaptureError
from udfs.replay.shared.dealt_rows import SHARD

SAMPLE = (REPOSITORY / "tests" / "captures" / "starve.pcap.zst").read_bytes()
WHAT_TO_DO = "Put them back as they were, ingest what is there now, or replay with recut.sizes=recompressed"


@pytest.fixture
def captures(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[Path, Path]:
    """Two captures as they were ingested. The capture set also has a request log whose file no longer exists."""
    files = tmp_path / "broker1.pcap.zst", tmp_path / "broker2.pcap.zst"
    for file in files:
        file.write_bytes(SAMPLE)
    told = [(str(file), hashlib.sha256(SAMPLE).hexdigest(), "pcap") for file in files]
    told.append((str(tmp_path / "requests.log"), "0" * 64, REQUEST_LOG))
    rows = spark.createDataFrame(
        told, ", ".join(f"{c} string" for c in (CAPTURES.path, CAPTURES.content_hash, CAPTURES.format))
    )
    monkeypatch.setattr(jobs.replays.batch_split.producer_packets, "stored_rows", lambda *_: rows)
    return files


def test_captures_that_are_as_they_were_are_read_again(spark: SparkSession, captures: tuple[Path, Path]) -> None:
    plan = plan_of_ingested(spark, "lake", "a-capture")
    assert [index.path for index in plan.indexes] == [str(file) for file in captures]


def test_a_capture_that_has_changed_is_named_with_what_to_do(spark: SparkSession, captures: tuple[Path, Path]) -> None:
    same, other = captures
    other.write_bytes(SAMPLE + b"\x00")
    with pytest.raises(CaptureError, match=WHAT_TO_DO) as refused:
        plan_of_ingested(spark, "lake", "a-capture")
    told = str(refused.value)
    assert f"{other}: not the file that was ingested" in told
    assert "capture a-capture" in told
    assert str(same) not in told


def test_every_capture_that_is_missing_is_named_with_what_to_do(
    spark: SparkSession, captures: tuple[Path, Path]
) -> None:
    for file in captures:
        file.unlink()
    with pytest.raises(CaptureError, match=WHAT_TO_DO) as refused:
        plan_of_ingested(spark, "lake", "a-capture")
    assert all(f"{file}: cannot be read" in str(refused.value) for file in captures)


def test_packets_are_found_by_the_first_connection_of_the_same_endpoints_though_no_time_tells_which_that_is(
    spark: SparkSession,
) -> None:
    c, t = CONNECTIONS, SENT
    ends = [(1, "b:1", "c:5"), (2, "b:1", "c:5"), (3, "b:1", "c:6"), (4, "b:1", None)]
    connections = spark.createDataFrame(ends, f"{c.connection_id} bigint, {c.server} string, {c.client} string")
    columns = f"{t.connection_id} bigint, {t.client_id} string, {t.client_address} string, {SHARD} int"
    sent = spark.createDataFrame([(1, "app", "c", 7), (2, "app", "c", 7), (2, "app", "c", 7)], columns)
    found = producers_by_id(sent, connections).orderBy(FIRST_ID).collect()
    assert [tuple(row) for row in found] == [(1, "app", "c", 7), (2, "app", "c", 7)]
