"""The pages of runs in a local lake: each run's own page, and the page of the newest run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from shutil import copyfile

from jobs.report_page.summary_json import NAME


def pages_of_run(page: Path, run_id: str) -> list[Path]:
    """The page of a run and its summary, in the folder of the newest run's page."""
    return [path.with_stem(f"{path.stem}-{run_id}") for path in newest_pages(page)]


def newest_pages(page: Path) -> list[Path]:
    """The page that shows the newest run, and its summary."""
    return [page, page.with_name(NAME)]


def pages_of_runs(page: Path, runs: Iterable[str]) -> list[Path]:
    """The files that show these runs."""
    gone = [*runs]
    own = [path for run_id in gone for path in pages_of_run(page, run_id)]
    return [path for path in [*own, *(newest_pages(page) if shown_run(page) in gone else [])] if path.exists()]


def shown_run(page: Path) -> str | None:
    """The run that the newest page shows, by its summary; None if there is none."""
    with suppress(OSError, ValueError):
        summary = json.loads(page.with_name(NAME).read_text(encoding="utf-8"))
        return str(summary.get("run_id"))
    return None


def remove_pages(page: Path, pages: Sequence[Path], others: Iterable[str]) -> str | None:
    """Remove the files. If the newest page is one of them, another run's page replaces it. Returns that run.

    others: the runs that stay, newest first.
    """
    for path in pages:
        path.unlink(missing_ok=True)
    if page not in pages:
        return None
    next_run = next((run_id for run_id in others if pages_of_run(page, run_id)[0].exists()), None)
    for own, place in zip(pages_of_run(page, next_run or ""), newest_pages(page), strict=True):
        if own.exists():
            copyfile(own, place)
    return next_run
