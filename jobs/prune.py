"""prune: remove runs and capture sets from a lake, with everything that its tables and pages have of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from datetime import timedelta

from pydantic import BaseModel, ConfigDict

from jobs.lake.listed_runs import FinishedRun, finished_runs
from jobs.lake.pruning import (
    Holdings,
    Pruned,
    drop_pruned,
    holdings_of,
    stored_tables,
    vacuum_tables,
    what_goes_by_age,
    what_goes_with_run,
    what_goes_with_set,
)
from jobs.places import page_path
from jobs.report_page.run_pages import pages_of_runs, remove_pages
from jobs.report_page.verdict import labelled_lines
from jobs.run import Run
from jobs.session.spark import spark_session
from jobs.terminal.progress import stage
from jobs.terminal.screen import with_rest_count
from jobs.terminal.wording import days_or_hours, quantity, short_size, utc_time
from udfs.errors import ArgumentError

MOST_SHOWN = 20


class PrunedLake(BaseModel):
    """What was removed, or would be in a dry run.

    unfinished: ids of runs and capture sets that were interrupted before they were complete. files, bytes: the files
    with rows of all these, and their bytes. files_removed: how many files that tables no longer refer to were removed
    from the disk; null if nothing was changed. page_shows: the run that report.html shows instead of a removed one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    lake: str
    dry_run: bool
    runs: list[str]
    capture_sets: list[str]
    unfinished: list[str]
    tables: int
    files: int
    bytes: int
    pages: list[str]
    page_shows: str | None
    files_removed: int | None


def what_goes(run: Run, runs: list[FinishedRun], holdings: Holdings) -> Pruned:
    """What is to be removed by --run, --capture or --older-than. Raises ArgumentError if the lake does not have the run
    or capture set that is named.
    """
    try:
        if run.run_id is not None:
            return what_goes_with_run(run.run_id, runs, holdings)
        if run.capture is not None:
            return what_goes_with_set(run.capture, runs, holdings)
    except ArgumentError as fault:
        raise ArgumentError(f"{run.lake}: {fault}") from None
    return what_goes_by_age(run.removal.older_than or timedelta(0), run.run_at, runs, holdings)


def count_what_goes(holdings: Holdings, pruned: Pruned) -> tuple[int, int, int]:
    """(how many tables have rows to remove, how many files have such rows, how many bytes these files have)."""
    going = {
        table: [held[identity] for identity in pruned.identities_in(table, held)] for table, held in holdings.items()
    }
    all_going = [holding for of_table in going.values() for holding in of_table]
    return (
        sum(map(bool, going.values())),
        sum(holding.files for holding in all_going),
        sum(holding.size for holding in all_going),
    )


def prune_lines(pruned: PrunedLake, run: Run, known: Mapping[str, FinishedRun]) -> Iterator[str]:
    """The lines that are printed: what goes or has gone, and the totals. known: the finished runs by id."""
    would = "would go" if pruned.dry_run else "removed"
    if not (pruned.runs or pruned.capture_sets or pruned.unfinished):
        since = utc_time(run.run_at - (run.removal.older_than or timedelta(0)))
        yield from labelled_lines("PRUNE", f"nothing {would}: every run and capture set is of {since} or later")
    for name, ids in (("Run", pruned.runs), ("Capture", pruned.capture_sets), ("Unfinished", pruned.unfinished)):
        listed = [run_or_set_text(one, known) for one in ids[:MOST_SHOWN]]
        for text in with_rest_count(listed, len(ids)):
            yield from labelled_lines(name, f"{text} {would}" if text in listed else text)
    if pruned.tables:
        rows = f"{quantity(pruned.files, 'file')} of {quantity(pruned.tables, 'table')}, {short_size(pruned.bytes)}"
        stay = f"the files stay on the disk for {days_or_hours(run.removal.retention)}, for those who read them"
        yield from labelled_lines("Rows", f"{rows} {would}; {stay}")
    if pruned.pages:
        yield from labelled_lines(
            "Pages", f"{', '.join(with_rest_count(pruned.pages[:MOST_SHOWN], len(pruned.pages)))} {would}"
        )
    if pruned.page_shows is not None:
        yield from labelled_lines("", f"report.html shows run {pruned.page_shows} now")
    if pruned.files_removed is not None:
        files, time = quantity(pruned.files_removed, "file"), days_or_hours(run.removal.retention)
        yield from labelled_lines("Disk", f"{files} that no table has needed for {time} removed")
    if pruned.dry_run:
        yield from labelled_lines("", "nothing was changed: --dry-run")


def run_or_set_text(identity: str, known: Mapping[str, FinishedRun]) -> str:
    """A run or capture set as text: its id and, for a finished run, also its time and capture set."""
    known_run = known.get(identity)
    if known_run is None:
        return identity
    return f"{identity}, {utc_time(known_run.run_at)}, on capture set {known_run.capture_id}"


def main(run: Run) -> None:
    """Run the job. Raises LakeError if the lake has no tables, ArgumentError if it lacks what is named."""
    spark = spark_session(run.session.master, "refetch prune", run.session.conf)
    with stage("prune", spark):
        stored = stored_tables(spark, run.lake)
        holdings, runs = holdings_of(spark, stored), finished_runs(spark, run.lake)
        pruned = what_goes(run, runs, holdings)
        page = page_path(None, run.lake)
        pages = [] if page is None else pages_of_runs(page, pruned.runs)
        removed: int | None = None
        shows: str | None = None
        if not run.dry_run:
            drop_pruned(spark, stored, holdings, pruned)
            if page is not None:
                shows = remove_pages(page, pages, [one.run_id for one in runs if one.run_id not in pruned.runs])
            removed = vacuum_tables(spark, list(stored.values()), run.removal.retention)
    tables, files, size = count_what_goes(holdings, pruned)
    result = PrunedLake(
        lake=run.lake, dry_run=run.dry_run, runs=[*pruned.runs], capture_sets=[*pruned.capture_sets],
        unfinished=[*pruned.unfinished], tables=tables, files=files, bytes=size,
        pages=[of.name for of in pages], page_shows=shows, files_removed=removed,
    )  # fmt: skip
    if run.output.as_json:
        sys.stdout.write(result.model_dump_json(indent=2) + "\n")
        return
    sys.stdout.writelines(f"{line}\n" for line in prune_lines(result, run, {one.run_id: one for one in runs}))
