"""A replay reads a capture set as one run of `ingest` wrote it, or it says that it cannot."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import jobs.ingest
import jobs.lake.packed_tables
import jobs.replay
from jobs.lake.delta_tables import has_table
from jobs.lake.packed_tables import write_packed
from jobs.lake.target import keep_files
from jobs.run import Run
from jobs.scenarios.scenario_file import resolve_scenario
from schemas.tables.gold import RUNS
from udfs.errors import LakeError


@pytest.fixture
def run(repository: Path, tmp_path: Path) -> Run:
    """A run of two replays on a sample capture."""
    scenario = replace(resolve_scenario(None), replay={"fetch_max_bytes": {}, "session_cache": {}})
    capture = repository / "tests/captures/mixed.pcap.zst"
    return Run(scenario, (capture,), str(tmp_path / "lake"), datetime(2026, 1, 31, tzinfo=UTC))


def test_a_replay_of_what_is_ingested_again_meanwhile_is_refused(
    spark: SparkSession, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its later replays would read other rows than its first ones."""
    capture_id = jobs.ingest.ingest(spark, run)
    again = iter([run])

    def write_then_ingest(*of: Any) -> None:
        write_packed(*of)
        for other in again:
            jobs.ingest.ingest(spark, other)

    monkeypatch.setattr(jobs.replay, "write_packed", write_then_ingest)
    with pytest.raises(LakeError, match=f"capture set {capture_id} was ingested again .*: run the replay again"):
        jobs.replay.replay(spark, run, capture_id)
    assert not has_table(spark, run.lake, RUNS)
    assert jobs.replay.replay(spark, run, capture_id).refused == {}


def test_a_capture_set_that_is_being_ingested_again_is_none_until_that_has_ended(
    spark: SparkSession, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture_id = jobs.ingest.ingest(spark, run)
    told = []

    def keep_and_replay(*of: Any) -> None:
        keep_files(*of)
        with pytest.raises(LakeError) as raised:
            jobs.replay.replay(spark, run, capture_id)
        told.append(str(raised.value))

    with monkeypatch.context() as patched:
        patched.setattr(jobs.lake.packed_tables, "keep_files", keep_and_replay)
        jobs.ingest.ingest(spark, run)
    assert {f"no capture set {capture_id}; run `ingest`" in one for one in told} == {True}
    assert jobs.replay.replay(spark, run, capture_id).refused == {}
