"""A pipeline for which nobody says what to replay."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jobs.cli import run_command
from jobs.replays.algorithms import ALGORITHMS
from schemas.tables.gold import RUNS
from tests.lakes import queried


@pytest.mark.usefixtures("spark")
def test_all_five_are_replayed_and_the_scenario_that_is_kept_states_the_same_run(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    t, lake = RUNS, tmp_path / "lake"
    assert (
        run_command(["pipeline", f"--captures={repository / 'tests/captures/starve.pcap.zst'}", f"--lake={lake}"]) == 0
    )
    told = capsys.readouterr().err
    rows = queried(str(lake), t)
    assert {row[t.algorithm] for row in rows} == {*ALGORITHMS}
    assert all(3 <= len(row[t.lanes]) <= 13 for row in rows)
    for name in ALGORITHMS:
        assert re.search(rf"^refetch:   {name}: \S+=\S+,\S+", told, re.MULTILINE), told
    assert run_command(["pipeline", f"--scenario={lake / 'scenario.yaml'}", f"--lake={lake}"]) == 0
    assert f"run {rows[0][t.run_id]} was replayed before" in capsys.readouterr().err
    assert {row[t.run_id] for row in queried(str(lake), t)} == {rows[0][t.run_id]}
