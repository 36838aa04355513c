"""--from and --to: wrong times are refused, right ones restrict the run to a part of the capture, and it says so."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.cli import run_command
from schemas.tables.gold import RUNS
from schemas.tables.gold_memory import BROKER_MEMORY
from schemas.tables.gold_sessions import SESSION_CACHE
from tests.conftest import REPOSITORY
from tests.e2e.conftest import only_gates_applied, pages_left_out
from tests.lakes import queried

CAPTURE = REPOSITORY / "tests/captures/starve.pcap.zst"
TABLES = {
    SESSION_CACHE: ("fetches", "created", "refused", "captured_request_bytes"),
    BROKER_MEMORY: ("requests", "request_bytes"),
}
"""The columns whose sums are compared, by table."""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("window") / "lake"


def pipeline(lake: Path, *window: str) -> int:
    """Run the command with two of the replays. Returns the exit code."""
    scenario = lake.with_name("two.yaml")
    scenario.write_text("replay: {session_cache: {}, consumer_memory: {}}\n")
    fixed = (f"--captures={CAPTURE}", f"--scenario={scenario}", f"--lake={lake}", "--run-at=2026-01-31T12:00:00Z")
    return run_command(["pipeline", *fixed, *window])


def newest(lake: Path, known: Sequence[str] = ()) -> dict[str, Any]:
    """The row in `runs` of the session cache's run that is not among the known ones."""
    rows = queried(str(lake), RUNS, where="algorithm = 'session_cache'")
    (row,) = [row for row in rows if row[RUNS.run_id] not in known]
    return row


def counts(lake: Path, run_id: str) -> dict[str, int]:
    return {
        f"{table.name}.{name}": sum(row[name] for row in rows)
        for table, names in TABLES.items()
        for rows in [queried(str(lake), table, where=f"run_id = '{run_id}'")]
        for name in names
    }


def test_every_fault_of_a_window_is_reported_before_anything_is_read(
    lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pipeline(lake, "--from=5x", "--to=2026-01-31T12:00:00") == 2
    told = capsys.readouterr().err
    assert "--from: `5x` is not a time such as 2026-01-31T12:00:00Z" in told
    assert "--to: `2026-01-31T12:00:00` has no time zone" in told
    assert pipeline(lake, "--from=2m", "--to=60s") == 2
    assert "the window ends at 60s, and begins no earlier than that, at 120s" in capsys.readouterr().err
    assert not lake.exists()


def test_two_windows_that_meet_count_as_much_as_the_whole_capture(
    spark: SparkSession, lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pipeline(lake, "--from=500h") == 2
    assert "no request of the capture is in the window: from" in (told := capsys.readouterr().err)
    assert "; the capture goes from 20" in told
    with pages_left_out():
        assert pipeline(lake) == 0
    whole = newest(lake)
    assert "WINDOW" not in capsys.readouterr().out
    runs = [whole[RUNS.run_id]]
    with only_gates_applied():
        assert pipeline(lake, "--to=6s") == 0
    runs.append(newest(lake, runs)[RUNS.run_id])
    assert pipeline(lake, "--from=6s") == 0
    runs.append(newest(lake, runs)[RUNS.run_id])
    out = capsys.readouterr().out
    begin = json.loads(newest(lake, runs[:2])[RUNS.scenario_json])["from"]
    assert f"counted from {begin} on" in " ".join(out.split())
    assert f"counted from {begin} on" in (lake / "report.html").read_text()
    assert json.loads((lake / "summary.json").read_text())["window"] == {"begin": begin, "end": None}
    of_whole, before, after = (counts(lake, run) for run in runs)
    assert {name: before[name] + after[name] for name in of_whole} == of_whole
    assert before["session_cache.fetches"]
    assert before["broker_memory.requests"]
    assert after["session_cache.fetches"]
    assert after["broker_memory.requests"]


@pytest.mark.usefixtures("tables_alone")
def test_a_window_over_the_whole_capture_is_the_run_without_one(spark: SparkSession, lake: Path) -> None:
    runs = {row[RUNS.run_id] for row in queried(str(lake), RUNS)}
    assert pipeline(lake, "--from=0s", "--to=100h") == 0
    assert {row[RUNS.run_id] for row in queried(str(lake), RUNS)} == runs
