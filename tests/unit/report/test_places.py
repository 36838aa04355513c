"""Where the page of a run is written."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from jobs.report import PageFiles, page_places
from jobs.report_page.findings import KnownRun
from jobs.run import Output, Run
from jobs.scenarios.scenario_file import resolve_scenario
from schemas.tables.gold import RUNS
from tests.unit.report.findings import AT, row_of


def known(run_id: str, days_before_the_newest: int = 0) -> KnownRun:
    row = row_of(RUNS, run_id=run_id, run_at=AT - timedelta(days=days_before_the_newest))
    return KnownRun((row,), (row_of(RUNS, run_id="newest", run_at=AT),))


def asked(page: Path | None, *, keeps_pages: bool = True) -> Run:
    return Run(resolve_scenario(None, (), ()), (), "/lake", AT, output=Output(page, keeps_pages))


def of_run(folder: Path, run_id: str) -> PageFiles:
    return PageFiles(folder / f"report-{run_id}.html", folder / f"summary-{run_id}.json")


def test_the_newest_run_writes_the_shared_page_and_one_of_its_own(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.touch()
    newest = PageFiles(page, tmp_path / "summary.json")
    assert page_places(asked(page), known("newest")) == [newest, of_run(tmp_path, "newest")]


def test_an_older_run_leaves_the_shared_page_as_it_is(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.touch()
    assert page_places(asked(page), known("old", 1)) == [of_run(tmp_path, "old")]


def test_if_there_is_no_page_yet_any_run_writes_both(tmp_path: Path) -> None:
    assert [of.page.name for of in page_places(asked(tmp_path / "report.html"), known("old", 1))] == [
        "report.html", "report-old.html",
    ]  # fmt: skip


def test_a_run_writes_only_the_page_that_a_command_names(tmp_path: Path) -> None:
    page = tmp_path / "mine.html"
    assert page_places(asked(page, keeps_pages=False), known("old", 1)) == [PageFiles(page, tmp_path / "summary.json")]
    assert page_places(asked(None), known("newest")) == []
