"""The list of runs and capture sets."""

from __future__ import annotations

from jobs.comparison.run_list import HEAD, KIPS, ListedRun, ListedSet, RunList, list_lines
from jobs.replays.algorithms import ALGORITHMS
from jobs.terminal.screen import WIDTH
from tests.unit.report.findings import AT


def listed(number: int) -> ListedRun:
    return ListedRun(
        run_id=f"{number:016x}", run_at=AT.isoformat(), capture_id=f"{number:016x}",
        captures=[f"night-{number}-{'of-a-long-name-' * 9}.pcap"], files=3,
        replays=["fetch_max_bytes", "session_cache"], gate="passed", checked=200, agreed=199,
    )  # fmt: skip


def of_night(number: int) -> ListedSet:
    return ListedSet(
        capture_id=f"{number:016x}", files=1, captures=["night.pcap"], first_time=AT.isoformat(), last_time=None,
        gate="not applied", runs=2,
    )  # fmt: skip


def test_the_newest_runs_are_shown_and_the_others_counted() -> None:
    found = RunList(
        lake="/lake", runs=[listed(n) for n in range(30)], runs_in_all=300,
        capture_sets=[of_night(n) for n in range(3)], capture_sets_in_all=3,
    )  # fmt: skip
    lines = [*list_lines(found, 20)]
    assert lines[1].split() == " ".join(HEAD).split()
    assert lines[2].split()[:8] == [f"{0:016x}", "2026-01-31", "12:00", f"{0:016x}", "74,", "227", "passed", "99.50"]
    assert lines[22] == "  ... 280 more"
    assert lines[26].split() == [f"{0:016x}", "1", "2026-01-31", "12:00", "-", "not", "applied", "2", "night.pcap"]
    assert max(map(len, lines)) <= WIDTH


def test_a_lake_without_runs_says_so() -> None:
    lines = [*list_lines(RunList(lake="/lake", runs=[], runs_in_all=0, capture_sets=[], capture_sets_in_all=0))]
    assert [line for line in lines if line.startswith("  ")] == ["  no run", "  no capture set"]
    assert not any("compare RUN RUN" in line for line in lines)


def test_every_replay_has_its_proposal() -> None:
    assert KIPS.keys() == ALGORITHMS.keys()
