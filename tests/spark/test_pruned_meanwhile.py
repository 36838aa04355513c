"""If `prune` removes rows while a command writes them again, they are not listed as complete afterwards."""

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
from jobs.captures.earlier_sets import read_earlier
from jobs.lake.delta_tables import read_table, stored_rows
from jobs.lake.listed_runs import finished_runs
from jobs.lake.packed_tables import write_packed
from jobs.lake.pruning import (
    drop_pruned,
    holdings_of,
    stored_tables,
    what_goes_with_run,
    what_goes_with_set,
)
from jobs.run import Decoding, Run
from jobs.scenarios.scenario_file import resolve_scenario
from schemas.tables.gold import FIDELITY, RUNS
from schemas.tables.silver import CAPTURES, EXCHANGES
from tests.unit.capture.capture_files import sample_capture, store
from udfs.errors import LakeError


@pytest.fixture
def run(repository: Path, tmp_path: Path) -> Run:
    """A run of a replay on a sample capture."""
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
    """A nightly `prune --older-than` may do so to an old run that somebody replays at that moment."""
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


def test_a_capture_set_whose_earlier_one_is_pruned_before_it_is_read_is_not_listed(
    spark: SparkSession, run: Run, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sessions and clients would be unknown, although its id says that it continues the earlier set."""
    link_type, packets = sample_capture(repository, "starve")
    halves = packets[: len(packets) // 2], packets[len(packets) // 2 :]
    first, second = (
        replace(run, captures=(store(tmp_path / f"{n}.pcap", link_type, half),)) for n, half in enumerate(halves)
    )
    earlier_id = jobs.ingest.ingest(spark, first)
    continued = replace(second, decoding=Decoding(continues=earlier_id))

    def prune_then_read(*of: Any) -> Any:
        prune(spark, run, None, earlier_id)
        return read_earlier(*of)

    with monkeypatch.context() as patched:
        patched.setattr(jobs.ingest, "read_earlier", prune_then_read)
        with pytest.raises(
            LakeError, match=f"capture set {earlier_id} was removed .* went on from it: run the command"
        ):
            jobs.ingest.ingest(spark, continued)
    assert read_table(spark, run.lake, CAPTURES).isEmpty()
    jobs.ingest.ingest(spark, first)
    capture_id = jobs.ingest.ingest(spark, continued)
    assert stored_rows(spark, run.lake, CAPTURES, capture_id).first()[CAPTURES.continues] == earlier_id  # type: ignore[index]
