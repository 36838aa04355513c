"""Several nights of a cluster in one lake: the figures of each night on the screen, in a table, and on the page."""

from __future__ import annotations

import json
import shutil
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import run_command
from jobs.open_lake import open_lake
from schemas.tables.gold import FETCH_RANGES, FIDELITY
from schemas.tables.gold_trends import TRENDS
from tests.e2e.conftest import Nights, add_night
from tests.lakes import queried

WAIT = ("client", "longest_wait_ms")


@pytest.fixture(scope="module")
def week(nights: Nights, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A lake of two nights, and two more that are copies of the second."""
    lake = str(tmp_path_factory.mktemp("trends") / "lake")
    shutil.copytree(nights.lake, lake)
    second = nights.second
    for day in (2, 3):
        add_night(
            second.path, lake, day, {second.run_id: f"run{day}", second.capture_id: f"set{day}"}
        )  # fmt: skip
    return lake


@pytest.fixture(scope="module")
def told(week: str) -> dict[str, Any]:
    """The JSON that `runs --trend` prints."""
    with redirect_stdout(StringIO()) as out:
        assert run_command(["runs", "--trend", f"--lake={week}", "--json"]) == 0
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def figures(night: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(of["kind"], of["metric"]): {**of["figure"], "scope": of["scope"]} for of in night["figures"]}


def test_each_night_has_the_figures_of_its_own_tables(nights: Nights, told: dict[str, Any]) -> None:
    by_run = {night["run_id"]: figures(night) for night in told["nights"]}
    by_capture_time = [nights.second.run_id, nights.first.run_id, "run2", "run3"]
    assert [*by_run] == by_capture_time
    ranges = nights.second.rows(FETCH_RANGES, where="scenario = 'captured' AND metric = 'longest_wait_ms'")
    assert by_run[nights.second.run_id][WAIT]["value"] == max(row["value"] for row in ranges)
    fidelity = nights.second.rows(FIDELITY)
    share = sum(row["agreed"] for row in fidelity) / sum(row["checked"] for row in fidelity)
    assert by_run[nights.second.run_id]["replay", "agreement"]["value"] == pytest.approx(share)
    assert by_run["run2"] == by_run["run3"] == by_run[nights.second.run_id]


def test_a_stored_night_stays_when_prune_removes_its_run(week: str, told: dict[str, Any], tmp_path: Path) -> None:
    kept = {row[TRENDS.run_id] for row in queried(week, TRENDS)}
    assert kept >= {night["run_id"] for night in told["nights"]}
    lake = tmp_path / "lake"
    shutil.copytree(week, lake)
    assert run_command(["prune", "--older-than=30d", "--run-at=2026-03-04T18:00:00Z", f"--lake={lake}"]) == 0
    with redirect_stdout(StringIO()) as out:
        assert run_command(["runs", "--trend", f"--lake={lake}", "--json"]) == 0
    assert json.loads(out.getvalue())["nights"] == told["nights"], "though the runs of all but the last have left"
    opened = open_lake(str(lake))
    assert {row[TRENDS.run_id] for row in opened.rows("trends").collect()} == kept
    assert {"trends": "gold", "exchanges": "silver"}.items() <= {
        row[0]: row[1] for row in opened.tables().collect()
    }.items()


def test_the_page_has_the_nights_and_what_changed_since_the_last(
    week: str, told: dict[str, Any], tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    assert run_command(["report", "--compare-with=previous", f"--lake={week}", f"--out={page}"]) == 0
    own = page.read_text().partition('id="nights"')[2].partition('id="glance"')[0]
    assert "What changed since run run2" in own
    assert all(night["run_id"] in own for night in told["nights"])
    assert own.count("<svg") >= 3
    assert "no client or topic came or went" in own
