"""What is removed from a lake by age and by id, and what stays."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jobs.lake.listed_runs import FinishedRun
from jobs.lake.pruning import Holdings, Pruned, what_goes_by_age, what_goes_with_run, what_goes_with_set
from jobs.lake.stored_tables import Holding
from jobs.report_page.run_pages import pages_of_runs, remove_pages
from schemas.tables.gold import FIDELITY, RUNS
from schemas.tables.gold_gates import GATE_RESULTS
from schemas.tables.gold_predictions import PREDICTIONS_CHECKED
from schemas.tables.silver import CAPTURES, EXCHANGES
from udfs.errors import ArgumentError

NOW = datetime(2026, 11, 1, tzinfo=UTC)
MONTH = timedelta(days=30)


def ago(days: int) -> datetime:
    return NOW - timedelta(days=days)


def written(**days: int) -> dict[str, Holding]:
    """For each id, one file that was written this many days ago."""
    return {identity: Holding(1, 100, ago(of)) for identity, of in days.items()}


RUNS_THERE = [FinishedRun("new", "c_used", ago(1)), FinishedRun("old", "c_used", ago(40)),
              FinishedRun("older", "c_old", ago(50))]  # fmt: skip
HELD: Holdings = {
    CAPTURES: written(c_used=60, c_old=50),
    EXCHANGES: written(c_used=60, c_old=50, c_killed=45, c_begun=0),
    RUNS: written(new=1, old=40, older=50),
    FIDELITY: written(new=1, old=40, older=50, killed=45),
    GATE_RESULTS: written(c_used=60, c_old=50, new=1, old=40, older=50),
    PREDICTIONS_CHECKED: {"older-old": Holding(1, 100, ago(40)), "old-new": Holding(1, 100, ago(1))},
}


def test_a_capture_set_with_a_young_run_stays_and_its_old_runs_go() -> None:
    found = what_goes_by_age(MONTH, NOW, RUNS_THERE, HELD)
    assert (found.runs, found.capture_sets) == (("old", "older"), ("c_old",))


def test_what_killed_jobs_left_goes_by_age_and_what_has_just_begun_stays() -> None:
    assert what_goes_by_age(MONTH, NOW, RUNS_THERE, HELD).unfinished == ("c_killed", "killed")
    assert "c_begun" not in what_goes_by_age(timedelta(0), NOW, RUNS_THERE, HELD).unfinished


def test_predictions_are_removed_by_the_id_of_their_run_and_never_by_age() -> None:
    checks = HELD[PREDICTIONS_CHECKED]
    assert what_goes_by_age(MONTH, NOW, RUNS_THERE, HELD).identities_in(PREDICTIONS_CHECKED, checks) == []
    assert what_goes_with_run("older", RUNS_THERE, HELD).identities_in(PREDICTIONS_CHECKED, checks) == ["older-old"]


def test_with_a_capture_set_its_runs_and_results_of_gates_are_removed() -> None:
    found = what_goes_with_set("c_used", RUNS_THERE, HELD)
    assert found == Pruned(runs=("new", "old"), capture_sets=("c_used",))
    assert {table: found.identities_in(table, of) for table, of in HELD.items() if table.layer == "gold"} == {
        RUNS: ["new", "old"], FIDELITY: ["new", "old"], GATE_RESULTS: ["c_used", "new", "old"],
        PREDICTIONS_CHECKED: ["older-old", "old-new"],
    }  # fmt: skip
    assert found.identities_in(EXCHANGES, HELD[EXCHANGES]) == ["c_used"]


def test_unfinished_runs_and_sets_can_be_removed_by_their_ids() -> None:
    assert what_goes_with_run("killed", RUNS_THERE, HELD) == Pruned(unfinished=("killed",))
    assert what_goes_with_set("c_killed", RUNS_THERE, HELD) == Pruned(unfinished=("c_killed",))


def test_the_message_on_an_unknown_id_lists_those_that_exist() -> None:
    with pytest.raises(ArgumentError, match="no run c_used; the newest are new, old, older"):
        what_goes_with_run("c_used", RUNS_THERE, HELD)
    with pytest.raises(ArgumentError, match="no capture set new; it has c_used, c_old"):
        what_goes_with_set("new", RUNS_THERE, HELD)


def pages_at(folder: Path, *runs: str) -> Path:
    """Pages of runs; report.html is the first one's."""
    for name in (*(f"-{run}" for run in runs), ""):
        folder.joinpath(f"report{name}.html").write_text(name or f"-{runs[0]}")
        folder.joinpath(f"summary{name}.json").write_text(f'{{"run_id": "{name[1:] or runs[0]}"}}')
    return folder / "report.html"


def test_the_page_of_a_removed_run_is_replaced_by_that_of_the_newest_run_left(tmp_path: Path) -> None:
    page = pages_at(tmp_path, "new", "old", "older")
    gone = pages_of_runs(page, ["new", "older"])
    assert {path.name for path in gone} == {
        "report-new.html", "summary-new.json", "report-older.html", "summary-older.json", "report.html", "summary.json"
    }  # fmt: skip
    assert remove_pages(page, gone, ["without", "old"]) == "old"
    assert {path.name for path in tmp_path.iterdir()} == {
        "report-old.html", "summary-old.json", "report.html", "summary.json"
    }  # fmt: skip
    assert page.read_text() == "-old"


def test_the_newest_page_stays_if_its_run_stays(tmp_path: Path) -> None:
    page = pages_at(tmp_path, "new", "old")
    assert remove_pages(page, pages_of_runs(page, ["old"]), ["new"]) is None
    assert page.read_text() == "-new"
    assert not tmp_path.joinpath("report-old.html").exists()


def test_a_lake_without_pages_has_none_to_remove(tmp_path: Path) -> None:
    assert pages_of_runs(tmp_path / "report.html", ["run"]) == []
