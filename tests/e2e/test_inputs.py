"""The traffic of a capture gives the same tables from other files: rotated, from two points, or only as frames."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.ingest import ingest
from jobs.run import Run
from jobs.scenarios.scenario_file import resolve_scenario
from schemas.tables.silver import CAPTURES, EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
from tests.e2e.conftest import RUN_AT, CapturedLake
from tests.lakes import Row, queried, table_rows
from tests.unit.capture.capture_files import by_clock, records_of, rows_in_order, store, without
from tests.unit.capture.frame_dumps import dumped, write_parquet
from udfs.errors import CaptureError

LEFT_OUT = ("capture_id", "request_packet", "response_packet")
"""Columns that depend on the files."""
Lake = Callable[..., str]


@pytest.fixture
def ingested(spark: SparkSession, tmp_path: Path) -> Lake:
    """A function that ingests capture files and returns the path of the lake."""

    def ingest_files(*files: Path) -> str:
        lake = str(tmp_path / "lake")
        ingest(spark, Run(resolve_scenario(None, [], []), files, lake, RUN_AT))
        return lake

    return ingest_files


@pytest.fixture
def starve(captured: Callable[[str], CapturedLake]) -> CapturedLake:
    return captured("starve")


def facts(lake: str, *, without: tuple[str, ...] = LEFT_OUT) -> list[list[Row]]:
    tables = (EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES)
    return [table_rows(lake, table, without=without) for table in tables]


def test_the_frames_of_a_capture_give_its_tables(starve: CapturedLake, ingested: Lake, tmp_path: Path) -> None:
    dump = write_parquet(tmp_path / "frames.parquet", dumped([rows_in_order([starve.capture])]), row_group_size=300)
    lake, x = ingested(dump), EXCHANGES
    without = (*LEFT_OUT, x.request_first_time, x.response_first_time)
    assert facts(lake, without=without) == facts(starve.path, without=without)
    one_time = f"{x.request_first_time} = {x.request_time} AND {x.response_first_time} = {x.response_time}"
    assert queried(lake, x, where=f"NOT ({one_time})") == [], "a frame of a dump has one time"
    (row,) = table_rows(lake, CAPTURES)
    assert "parquet" in row


def test_frames_are_taken_by_time_whatever_their_order_in_files(
    starve: CapturedLake, ingested: Lake, tmp_path: Path
) -> None:
    """Frames are out of order both within a row group and across row groups."""
    frames, x = dumped([rows_in_order([starve.capture])]), EXCHANGES
    half = frames.num_rows // 2
    dumps = [
        write_parquet(tmp_path / f"{name}.parquet", part.sort_by([("timestamp", "descending")]), row_group_size=300)
        for name, part in (("late", frames.slice(half)), ("early", frames.slice(0, half)))
    ]
    without = (*LEFT_OUT, x.request_first_time, x.response_first_time)
    assert facts(ingested(*dumps), without=without) == facts(starve.path, without=without)


def test_rotated_files_of_two_points_give_the_tables_of_the_capture(
    starve: CapturedLake, ingested: Lake, tmp_path: Path
) -> None:
    """Each point lost packets that the other has, and the clock of one is 3 ms ahead."""
    link_type, packets = records_of(starve.capture.read_bytes())
    copies = by_clock(packets, lambda time: time + 3_000)
    ones = without(packets, set(range(5, len(packets), 50)))
    others = without(copies, set(range(20, len(packets), 50)))
    files = [
        store(tmp_path / f"{name}.pcap{n or ''}", link_type, part[n * len(part) // 11 : (n + 1) * len(part) // 11])
        for name, part in (("one", ones), ("other", others))
        for n in range(11)
    ]
    assert facts(ingested(*files)) == facts(starve.path)


def test_frames_and_packets_are_not_read_in_one_run(starve: CapturedLake, ingested: Lake, tmp_path: Path) -> None:
    dump = write_parquet(tmp_path / "frames.parquet", dumped([rows_in_order([starve.capture]).slice(0, 50)]))
    with pytest.raises(CaptureError, match=r"frames\.parquet: frame dumps cannot be read together"):
        ingested(dump, starve.capture)
