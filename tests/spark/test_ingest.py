"""The silver tables depend on the captures alone: not on how work is cut, nor on what an earlier run left behind."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import zstandard
from pyspark.sql import DataFrame, SparkSession

import jobs.capture_plan
import jobs.ingest
from jobs.lake import table_path
from jobs.run import Run
from jobs.scenario_file import resolve_scenario
from schemas.tables.silver import CAPTURES, FETCH_PARTITIONS, RECORD_BATCHES, SILVER
from schemas.tables.table import Table
from tests.lakes import Row, lake_rows
from udfs.capture.index import index_capture

SAMPLE_BYTES = 400_000
MOST_RECORDS = "spark.sql.execution.arrow.maxRecordsPerBatch"
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"

Silver = dict[str, list[Row]]
Ingest = Callable[..., Silver]


@pytest.fixture(scope="module")
def capture(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The beginning of a sample capture, not packed, so that it can be cut into ranges; it ends within a packet."""
    packed = (repository / "tests/captures/mixed.pcap.zst").read_bytes()
    path = tmp_path_factory.mktemp("capture") / "mixed.pcap"
    path.write_bytes(zstandard.ZstdDecompressor().decompressobj().decompress(packed)[:SAMPLE_BYTES])
    return path


def run_into(lake: Path, *captures: Path) -> Run:
    return Run(resolve_scenario(None, [], []), captures, str(lake), datetime(2026, 1, 31, tzinfo=UTC))


@pytest.fixture(scope="module")
def expected(spark: SparkSession, capture: Path, tmp_path_factory: pytest.TempPathFactory) -> Silver:
    """The tables as one quiet run writes them."""
    lake = tmp_path_factory.mktemp("expected")
    jobs.ingest.ingest(spark, run_into(lake, capture))
    rows = lake_rows(spark, str(lake), SILVER)
    assert all(rows[table.name] for table in (CAPTURES, FETCH_PARTITIONS, RECORD_BATCHES))
    return rows


@pytest.fixture
def spark_property(spark: SparkSession) -> Iterator[Callable[[str, int], None]]:
    """Set a property of the session until the test ends."""
    before: dict[str, str] = {}

    def set_property(key: str, value: int) -> None:
        before.setdefault(key, str(spark.conf.get(key)))
        spark.conf.set(key, str(value))

    yield set_property
    for key, value in before.items():
        spark.conf.set(key, value)


@pytest.mark.parametrize(("key", "value"), [(MOST_RECORDS, 1), (MOST_RECORDS, 7), (SHUFFLE_PARTITIONS, 5)])
def test_the_tables_are_the_same_however_spark_cuts_batches(
    spark: SparkSession, capture: Path, expected: Silver, tmp_path: Path,
    spark_property: Callable[[str, int], None], key: str, value: int,
) -> None:  # fmt: skip
    spark_property(key, value)
    jobs.ingest.ingest(spark, run_into(tmp_path, capture))
    assert lake_rows(spark, str(tmp_path), SILVER) == expected


@pytest.mark.parametrize("range_bytes", [10_000, 150_000])
def test_the_tables_are_the_same_however_a_capture_is_cut_into_ranges(
    spark: SparkSession,
    capture: Path,
    expected: Silver,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    range_bytes: int,
) -> None:
    index = index_capture(str(capture), range_bytes=range_bytes, buckets=jobs.capture_plan.BUCKETS)
    assert len(index.ranges) > 2
    monkeypatch.setattr(jobs.ingest, "index_captures", lambda spark, captures: (index,))
    # More shards than cores, and packets that go through Spark in many small batches.
    monkeypatch.setattr(jobs.capture_plan, "SHARD_BYTES", 1 << 14)
    monkeypatch.setattr(jobs.capture_plan, "BATCH_BYTES", 3_000)
    jobs.ingest.ingest(spark, run_into(tmp_path, capture))
    assert lake_rows(spark, str(tmp_path), SILVER) == expected


def test_a_second_run_leaves_the_same_tables(
    spark: SparkSession, capture: Path, expected: Silver, tmp_path: Path
) -> None:
    for _ in range(2):
        jobs.ingest.ingest(spark, run_into(tmp_path, capture))
    assert lake_rows(spark, str(tmp_path), SILVER) == expected


class Killed(BaseException):
    """Stands for a process that is no more: nothing handles it."""


@pytest.mark.parametrize("written", [0, 3, len(SILVER) - 1])
def test_a_run_after_one_that_was_killed_leaves_the_same_tables(
    spark: SparkSession, capture: Path, expected: Silver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    """Killed when so many tables were complete, and half of the next one's files were there without a commit."""
    write_table, done = jobs.ingest.write_table, []

    def write_until_killed(rows: DataFrame, lake: str, table: Table, replaced: str) -> None:
        if len(done) == written:
            rows.limit(5).write.mode("append").parquet(table_path(lake, table))
            raise Killed
        write_table(rows, lake, table, replaced)
        done.append(table)

    with monkeypatch.context() as patched:
        patched.setattr(jobs.ingest, "write_table", write_until_killed)
        with pytest.raises(Killed):
            jobs.ingest.ingest(spark, run_into(tmp_path, capture))
    (staged,) = (tmp_path / "_staging").iterdir()
    twice = next(staged.rglob("*.parquet"))
    shutil.copy(twice, twice.with_name(f"of-a-task-that-was-cut-off-{twice.name}"))
    jobs.ingest.ingest(spark, run_into(tmp_path, capture))
    assert lake_rows(spark, str(tmp_path), SILVER) == expected
    assert list((tmp_path / "_staging").iterdir()) == []


def test_a_table_that_was_lost_comes_back(spark: SparkSession, capture: Path, expected: Silver, tmp_path: Path) -> None:
    jobs.ingest.ingest(spark, run_into(tmp_path, capture))
    shutil.rmtree(table_path(str(tmp_path), RECORD_BATCHES))
    jobs.ingest.ingest(spark, run_into(tmp_path, capture))
    assert lake_rows(spark, str(tmp_path), SILVER) == expected


def test_capture_sets_stand_side_by_side(
    spark: SparkSession, repository: Path, capture: Path, expected: Silver, tmp_path: Path
) -> None:
    """The tables of one are those it has alone, whatever else the lake holds."""
    jobs.ingest.ingest(spark, run_into(tmp_path, capture))
    other = jobs.ingest.ingest(spark, run_into(tmp_path, repository / "tests/captures/starve.pcap.zst"))
    rows = lake_rows(spark, str(tmp_path), SILVER)
    assert {name: [row for row in of if row[0] != other] for name, of in rows.items()} == expected
    assert all(any(row[0] == other for row in rows[table.name]) for table in (CAPTURES, FETCH_PARTITIONS))
