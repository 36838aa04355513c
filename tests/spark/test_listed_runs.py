"""Which finished runs a lake has, in which order, and how many files are read to find the newest ones."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import jobs.lake.delta_tables
from jobs.comparison.run_list import run_list
from jobs.comparison.trends import find_trend, newest_of_each
from jobs.lake.listed_runs import FinishedRun, finished_runs
from jobs.lake.local_log import LocalTable
from jobs.lake.target import Target
from jobs.open_lake import open_lake
from jobs.report_page.findings import known_run
from schemas.tables.gold import RUNS
from schemas.tables.gold_trends import TRENDS
from schemas.tables.silver import CAPTURES
from tests.gate_rows import whole

FIRST = datetime(2026, 1, 31, 12, tzinfo=UTC)
NIGHTS = 24
GONE = 4
CODE = "0" * 12
OF_WINDOW = '{"from": "2026-02-01T00:00:00Z"}'
REPLAYS = ("fetch_max_bytes", "session_cache")


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A lake of many nights: each has a capture set and a run with two replays, and figures that are kept. Of some
    nights before them, whose runs were pruned, there are only such figures.
    """
    lake = str(tmp_path_factory.mktemp("lake"))
    for night in range(NIGHTS):
        captured = [{"capture_id": f"set-{night:02}", "path": f"/{night}.pcap", "decoder": "d"}]
        Target(lake, f"set-{night:02}").write_here(spark, whole(CAPTURES, captured), CAPTURES)
        replayed = [
            {
                "run_id": f"run-{night:02}", "capture_id": f"set-{night:02}", "algorithm": name, "lanes": ["captured"],
                "run_at": FIRST + timedelta(days=night), "replayed_by": CODE,
            }
            for name in REPLAYS
        ]  # fmt: skip
        Target(lake, f"run-{night:02}").write_here(spark, whole(RUNS, replayed), RUNS)
    for night in range(-GONE, NIGHTS):
        kept = [
            {
                "run_id": f"run-{night:02}", "replayed_by": CODE, "capture_id": f"set-{night:02}",
                "run_at": FIRST + timedelta(days=night), "kind": "client", "metric": metric, "value": 1.0,
            }
            for metric in ("rate", "longest_wait_ms")
        ]  # fmt: skip
        Target(lake, f"run-{night:02}").write_here(spark, whole(TRENDS, kept), TRENDS)
    return lake


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that this process reads while the test runs."""
    files: list[str] = []
    read = LocalTable.rows

    def rows(self: LocalTable, of: Collection[str], schema: pa.Schema, partitioned_by: str) -> pa.Table:
        files.extend(of)
        return read(self, of, schema, partitioned_by)

    monkeypatch.setattr(LocalTable, "rows", rows)
    return files


@pytest.mark.parametrize("seen_by", ["this process", "Spark alone"])
def test_the_newest_run_comes_first(
    spark: SparkSession, lake: str, monkeypatch: pytest.MonkeyPatch, seen_by: str
) -> None:
    if seen_by == "Spark alone":
        monkeypatch.setattr(jobs.lake.delta_tables, "workers_folder", lambda *_: None)
    assert finished_runs(spark, lake) == [
        FinishedRun(f"run-{night:02}", f"set-{night:02}", FIRST + timedelta(days=night))
        for night in reversed(range(NIGHTS))
    ]


def test_the_newest_runs_and_sets_are_found_without_reading_those_of_other_nights(
    spark: SparkSession, lake: str, opened: list[str]
) -> None:
    listed = run_list(spark, lake, most=2)
    assert [(run.run_id, run.captures, run.replays) for run in listed.runs] == [
        ("run-23", ["23.pcap"], [*REPLAYS]), ("run-22", ["22.pcap"], [*REPLAYS]),
    ]  # fmt: skip
    assert [(one.capture_id, one.runs) for one in listed.capture_sets] == [("set-23", 1), ("set-22", 1)]
    assert (listed.runs_in_all, listed.capture_sets_in_all) == (NIGHTS, NIGHTS)
    assert len(opened) == 4, "two rows of `captures`, two files of `runs`"


def test_the_newest_run_is_known_without_reading_those_of_other_nights(
    spark: SparkSession, lake: str, opened: list[str]
) -> None:
    known = known_run(spark, lake, None)
    assert (known.run_id, [row.algorithm for row in known.rows]) == ("run-23", [*REPLAYS])
    assert len(opened) == len(known.newest) == 20


def test_a_lake_is_opened_without_reading_other_nights(
    lake: str, opened: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert {name: replay.run_id for name, replay in open_lake(lake).replays.items()} == dict.fromkeys(REPLAYS, "run-23")
    assert "20.pcap" in capsys.readouterr().err
    assert len(opened) == 5, "four rows of `captures` for the line on stderr, and the run of the set"


def test_a_trend_is_made_without_reading_other_nights(spark: SparkSession, lake: str, opened: list[str]) -> None:
    run = known_run(spark, lake, None)
    opened.clear()
    trend = find_trend(spark, lake, run, most=3)
    assert trend is not None
    assert [night.run_id for night in trend.nights] == ["run-21", "run-22", "run-23"]
    assert len(opened) == 1 + 3 + 3 + 3, "runs: this one, three more; trends: three nights, and three that are gone"
    oldest = find_trend(spark, lake, known_run(spark, lake, "run-01"), most=5)
    assert oldest is not None
    assert [night.run_id for night in oldest.nights] == ["run--3", "run--2", "run--1", "run-00", "run-01"]


def test_a_sets_newest_run_of_a_window_gives_way_to_an_older_one_of_the_whole_set(
    spark: SparkSession, lake: str
) -> None:
    later = {
        "run_id": "window", "capture_id": "set-22", "algorithm": REPLAYS[0], "lanes": ["captured"],
        "run_at": FIRST + timedelta(days=22, hours=1), "scenario_json": OF_WINDOW,
    }  # fmt: skip
    target = Target(lake, "window")
    target.write_here(spark, whole(RUNS, [later]), RUNS)
    newest = newest_of_each(spark, lake, known_run(spark, lake, "run-23"), most=3)
    assert [row.run_id for row in newest] == ["run-23", "run-22", "run-21"]
    assert find_trend(spark, lake, known_run(spark, lake, "window"), most=3) is None
    target.clear(spark, RUNS)
