"""A replay that needs more than request logs have refuses logs alone, but takes them beside packets or frames."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import jobs.captures.packets_needed
from jobs.captures.packets_needed import check_packets
from schemas.tables.silver import CAPTURES
from udfs.capture.request_log_head import REQUEST_LOG
from udfs.errors import CaptureError

MEMORY = "consumer_memory"
SIZES = "the sizes of messages that the replay of consumer_memory needs"


def capture_set(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, *formats: str) -> None:
    """Let the lake have one capture set with files of these formats."""
    rows = spark.createDataFrame([(name,) for name in formats], f"{CAPTURES.format} string")
    monkeypatch.setattr(jobs.captures.packets_needed, "stored_rows", lambda *_: rows)


def test_logs_alone_are_refused_with_what_they_lack(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    capture_set(spark, monkeypatch, REQUEST_LOG, REQUEST_LOG)
    with pytest.raises(CaptureError, match=f"request logs, which lack {SIZES}: capture packets"):
        check_packets(spark, "lake", "a-capture", MEMORY)


@pytest.mark.parametrize("other", ["pcap", "parquet"])
def test_logs_beside_packets_or_frames_are_taken(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    capture_set(spark, monkeypatch, REQUEST_LOG, other)
    check_packets(spark, "lake", "a-capture", MEMORY)
