"""Screen and page say that brokers are not Apache Kafka's, and give no advice that does not hold for them."""

from __future__ import annotations

import html
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.ingest import ingest
from jobs.replay import main
from jobs.run import Output, Run
from jobs.scenarios.scenario_file import resolve_scenario
from schemas.tables.gold_recommendations import RECOMMENDATIONS
from schemas.tables.silver_quality import CAPTURE_QUALITY
from tests.e2e.conftest import IN_FORCE, RUN_AT, SLOTS
from tests.lakes import queried

LIST_CONFIG_RESOURCES, DESCRIBE_TOPIC_PARTITIONS, REDPANDAS = (key.to_bytes(2, "big") for key in (74, 75, 15_000))


def with_key(capture: Path, to: Path, key: bytes) -> None:
    """The same capture, but its brokers offer the API `key` in place of DescribeTopicPartitions."""
    stored, before = capture.read_bytes(), LIST_CONFIG_RESOURCES + bytes([0, 0, 0, 1])
    for tags in (b"", b"\0"):  # before and since version 3 of ApiVersions
        offers = before + tags + DESCRIBE_TOPIC_PARTITIONS + bytes(4) + tags
        stored = stored.replace(offers, before + tags + key + bytes(4) + tags)
    assert stored.count(key + bytes(4)) > 1
    to.write_bytes(stored)


def test_the_vendor_of_brokers_is_named_and_advice_that_does_not_hold_for_them_is_left_out(
    spark: SparkSession, shared_captures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_key(shared_captures / "sessions.pcap", tmp_path / "redpanda.pcap", REDPANDAS)
    scenario = tmp_path / "sessions.yaml"
    scenario.write_text(f"replay:\n  session_cache:\n    {SLOTS}: [8, 12]\n")
    of = resolve_scenario(str(scenario), [], IN_FORCE["sessions"])
    written = Output(tmp_path / "report.html", verbose=True)
    run = Run(of, (tmp_path / "redpanda.pcap",), str(tmp_path / "lake"), RUN_AT, output=written)
    ingest(spark, run)
    q, r = CAPTURE_QUALITY, RECOMMENDATIONS
    (of_set,) = queried(run.lake, q, where=f"{q.connection_id} is null")
    assert list(of_set[q.other_brokers]) == ["1: redpanda", "2: redpanda", "3: redpanda"]
    main(run)
    shown = " ".join(capsys.readouterr().out.split())
    whose = "3 brokers are Redpanda&#39;s by the API versions offered, and the replays follow Apache Kafka&#39;s rules"
    assert html.unescape(whose) in shown
    assert f"With care: {whose}" in (tmp_path / "report.html").read_text(encoding="utf-8")
    told = queried(run.lake, r)
    assert {row[r.verdict] for row in told} == {"withheld"}
    assert {row[r.reason].partition(":")[0] for row in told} == {"Redpanda has no slots for sessions"}
