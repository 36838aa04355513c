"""What `prune` takes while a command writes it anew is not listed as complete afterwards."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import jobs.ingest
import jobs.lake.packed_tables
import jobs.replay
from jobs.lake.delta_tables import stored_rows
from jobs.lake.packed_tables import write_packed
from jobs.lake.pruning import (
    drop_pruned,
    finished_runs,
    holdings_of,
    stored_tables,
    what_goes_with_run,
    what_goes_with_set,
)
from jobs.run import Run
from jobs.scenarios.scenario_file import resolve_scenario
from schemas.tables.gold import FIDELITY, RUNS
from schemas.tables.silver import CAPTURES, EXCHANGES
from udfs.errors import LakeError


@pytest.fixture
def run(repository: Path, tmp_path: Path) -> Run:
    """A replay of a sample capture."""
    scenario = replace(resolve_scenario(None), replay={"partition_limits": {}})
    capture = repository / "tests/captures/starve.pcap.zst"
    return Run(scenario, (capture,), str(tmp_path / "lake"), datetime(2026, 1, 31, tzinfo=UTC))


def prune(spark: SparkSession, run: Run, run_id: str | None, capture_id: str) -> None:
    """Remove the run, else the capture set."""
    stored = stored_tables(spark, run.lake)
    holdings, runs = holdings_of(spark, stored), finished_runs(spark, run.lake)
    gone = (
        what_goes_with_set(capture_id, runs, holdings) if run_id is None else what_goes_with_run(run_id, runs, holdings)
    )
    drop_pruned(spark, stored, holdings, gone)


def test_a_run_that_is_pruned_while_it_is_replayed_again_is_not_listed(
    spark: SparkSession, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a nightly `prune --older-than` does to an old run that somebody asks for at that moment."""
    capture_id = jobs.ingest.ingest(spark, run)
    run_id = jobs.replay.replay(spark, run, capture_id).run_id
    later = replace(run, run_at=run.run_at + timedelta(days=1))

    def write_then_prune(*of: Any) -> None:
        write_packed(*of)
        if FIDELITY not in of[2]:
            prune(spark, run, run_id, capture_id)

    with monkeypatch.context() as patched:
        patched.setattr(jobs.replay, "write_packed", write_then_prune)
        with pytest.raises(
            LakeError, match=f"rows of {run_id} .* went while they were written, .*: run the command again"
        ):
            jobs.replay.replay(spark, later, capture_id)
    assert stored_rows(spark, run.lake, RUNS, run_id).isEmpty()
    assert jobs.replay.replay(spark, later, capture_id).refused == {}
    assert not stored_rows(spark, run.lake, FIDELITY, run_id).isEmpty()


def test_a_capture_set_that_is_pruned_while_it_is_ingested_again_is_not_listed(
    spark: SparkSession, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture_id = jobs.ingest.ingest(spark, run)

    def write_then_prune(*of: Any) -> None:
        write_packed(*of)
        prune(spark, run, None, capture_id)

    with monkeypatch.context() as patched:
        patched.setattr(jobs.ingest, "write_packed", write_then_prune)
        with pytest.raises(LakeError, match=f"rows of {capture_id} .* went while they were written"):
            jobs.ingest.ingest(spark, run)
    assert stored_rows(spark, run.lake, CAPTURES, capture_id).isEmpty()
    assert jobs.ingest.ingest(spark, run) == capture_id
    assert not stored_rows(spark, run.lake, EXCHANGES, capture_id).isEmpty()
