"""Which capture set of a lake a job works on, and which run a gate checks."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.gate import subjects_to_check
from jobs.gates.views import Subject
from jobs.lake.capture_sets import MOST_OTHERS, MOST_SETS, choose_capture
from jobs.lake.delta_tables import write_table
from jobs.open_lake import open_lake
from jobs.run import GateJob, Run
from jobs.scenarios.scenario_file import resolve_scenario
from schemas.tables.gold import RUNS
from schemas.tables.silver import CAPTURES
from tests.gate_rows import TIME, frame, whole
from tests.lakes import plant
from udfs.errors import ArgumentError

LATER, EARLIER = TIME, TIME - timedelta(days=30)
Row = dict[str, Any]


def ingest(spark: SparkSession, lake: Path, capture_id: str, at: datetime | None, *names: str) -> None:
    """Write rows of `captures` as the job `ingest` does."""
    rows: list[Row] = [
        {"capture_id": capture_id, "file_no": n, "path": f"/captures/{name}", "first_time": at, "last_time": at}
        for n, name in enumerate(names or (f"{capture_id}.pcap",))
    ]
    write_table(frame(spark, CAPTURES, rows), str(lake), CAPTURES, capture_id)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with a later capture set, and an earlier one that was written after it. It has a run of each set, first of
    the earlier one, and then a run of `size`.
    """
    lake = tmp_path_factory.mktemp("lake")
    ingest(spark, lake, "later", LATER)
    ingest(spark, lake, "earlier", EARLIER, "a.pcap", "b.pcap", "c.pcap", "d.pcap")
    rows: list[Row] = [
        {"run_id": run_id, "capture_id": of, "algorithm": "fetch_max_bytes", "lanes": lanes, "run_at": at}
        for run_id, of, lanes, at in (
            ("of-earlier", "earlier", ["captured"], datetime(2026, 2, 1, tzinfo=UTC)),
            ("of-later", "later", ["captured", "a=1"], datetime(2026, 2, 2, tzinfo=UTC)),
            ("of-cluster", "cluster", ["captured"], datetime(2026, 2, 3, tzinfo=UTC)),
        )
    ]
    plant(str(lake), RUNS, whole(RUNS, rows))
    return lake


def test_the_set_whose_rows_were_written_last_is_taken_whatever_its_packets_times(
    spark: SparkSession, tmp_path: Path
) -> None:
    for written, at in (("later", LATER), ("earlier", EARLIER), ("later", LATER)):
        ingest(spark, tmp_path, written, at)
        assert choose_capture(spark, str(tmp_path), None) == written


def test_a_set_is_taken_by_its_id(spark: SparkSession, lake: Path) -> None:
    assert choose_capture(spark, str(lake), "later") == "later"
    assert open_lake(str(lake), capture="later").capture_id == "later"
    assert open_lake(str(lake)).capture_id == "earlier"


def test_a_line_tells_which_of_several_sets_is_taken(
    spark: SparkSession, lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    choose_capture(spark, str(lake), None)
    files, at = "a.pcap, b.pcap, c.pcap, 1 more", "2026-01-01 12:00:00"
    assert capsys.readouterr().err == (
        f"refetch: capture set earlier ({files}; {at} to {at} UTC), written last; --capture=ID names another of this "
        "lake's: later (later.pcap; 2026-01-31 12:00:00 to 2026-01-31 12:00:00 UTC)\n"
    )
    open_lake(str(lake), capture="later")
    told = capsys.readouterr().err
    assert told.startswith("refetch: capture set later (later.pcap; ")
    assert ", as named; open_lake(capture=ID) names another of this lake's: earlier (a.pcap, " in told


def test_nothing_is_told_of_the_only_set(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ingest(spark, tmp_path, "only", None)
    assert choose_capture(spark, str(tmp_path), None) == "only"
    assert capsys.readouterr().err == ""


def test_an_id_that_the_lake_has_not_is_told_with_those_it_has(spark: SparkSession, lake: Path) -> None:
    with pytest.raises(ArgumentError) as told:
        choose_capture(spark, str(lake), "nowhere")
    lines = str(told.value).splitlines()
    assert lines[0] == f"{lake}: no capture set nowhere; it has"
    assert [line.split()[0] for line in lines[1:]] == ["earlier", "later"]


def test_of_many_sets_the_first_are_listed(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = [f"set-{n:03}" for n in range(MOST_SETS + 2)]
    plant(str(tmp_path), CAPTURES, whole(CAPTURES, [{"capture_id": one, "path": f"/{one}\x1b.pcap"} for one in ids]))
    choose_capture(spark, str(tmp_path), None)
    told = capsys.readouterr().err
    assert re.match(r"refetch: capture set (set-\d+) \(\1\\x1b\.pcap\), written last; ", told)
    assert told.endswith(f"\\x1b.pcap), {len(ids) - 1 - MOST_OTHERS} more\n")
    with pytest.raises(ArgumentError, match=r"\n  2 more$"):
        choose_capture(spark, str(tmp_path), "nowhere")


def gate_run(lake: Path, *on: str, capture: str | None = None, run_id: str | None = None) -> Run:
    """The run that the job `gate` gets."""
    return Run(resolve_scenario(None), (), str(lake), TIME, gate_job=GateJob(on), capture=capture, run_id=run_id)  # type: ignore[arg-type]


def test_a_gate_checks_the_newest_run_of_captures_and_none_of_size(spark: SparkSession, lake: Path) -> None:
    newest = Subject("gold", "later", "of-later", ("a=1", "captured"))
    assert subjects_to_check(spark, gate_run(lake, "gold")) == [newest]
    assert subjects_to_check(spark, gate_run(lake, "gold", "silver")) == [newest, Subject("silver", "earlier")]


def test_a_gate_checks_what_is_named(spark: SparkSession, lake: Path) -> None:
    of_earlier = Subject("gold", "earlier", "of-earlier", ("captured",))
    assert subjects_to_check(spark, gate_run(lake, "gold", run_id="of-earlier")) == [of_earlier]
    assert subjects_to_check(spark, gate_run(lake, "gold", capture="earlier")) == [of_earlier]
    named = gate_run(lake, "silver", "gold", capture="later", run_id="of-later")
    assert [subject.id for subject in subjects_to_check(spark, named)] == ["later", "of-later"]


def test_a_run_that_is_none_of_the_captures_is_told_with_those_that_are(spark: SparkSession, lake: Path) -> None:
    with pytest.raises(
        ArgumentError, match=r"run of-cluster is of `size`, and not on captures; the newest are of-later, of-earlier$"
    ):
        subjects_to_check(spark, gate_run(lake, "gold", run_id="of-cluster"))
    with pytest.raises(ArgumentError, match=r"no run of-later of capture set earlier; the newest are of-earlier$"):
        subjects_to_check(spark, gate_run(lake, "gold", capture="earlier", run_id="of-later"))
    with pytest.raises(ArgumentError, match="no capture set cluster; it has"):
        subjects_to_check(spark, gate_run(lake, "gold", capture="cluster"))
