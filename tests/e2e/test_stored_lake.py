"""A lake that an older release wrote: every job says what the lake lacks, one command migrates it, and jobs use it."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from jobs.cli import run_command
from jobs.lake import delta_log, delta_tables
from jobs.lake.declared_columns import spark_schema
from jobs.lake.delta_tables import read_table
from jobs.lake.pruning import stored_tables
from jobs.lake.table_address import table_path
from jobs.open_lake import open_lake
from schemas.tables.algorithms import SESSION_CACHE as OF_SESSIONS
from schemas.tables.gold import FETCH_FAIRNESS, GOLD, RUNS, TABLES_OF_REPLAY
from schemas.tables.gold_limits import LIMIT_TABLES, PARTITION_LIMIT_HEADROOM, PARTITIONS_PER_BROKER
from schemas.tables.gold_sessions import SESSION_CACHE, SESSION_TABLES
from schemas.tables.silver import CAPTURES, CONNECTIONS, EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES, SILVER
from schemas.tables.table import Table
from tests.e2e.conftest import pages_left_out
from tests.lakes import queried, rows_by_key
from udfs.errors import LakeError

STORED = Path(__file__).parents[1] / "stored_lake/lake.tar.zst"
CAPTURE_ID, RUN_ID = "c40694c2d29d1ef5", "1c317a84232022fc"
SETTINGS = (
    "--set=consumer.fetch.max.bytes=32KiB,1MiB", "--set=max.incremental.fetch.session.cache.slots=8",
    "--set=producer.batch.size=4KiB", "--set=consumer.buffer.memory=1MiB", "--set=max.broker.partitions=100",
    "--run-at=2026-11-29T06:15:00Z",
)  # fmt: skip
OF_ITS_OWN = {CAPTURES: {CAPTURES.path, CAPTURES.decoder}}
"""Columns that differ although the same captures are read: the path of a capture, and the code that read it."""
SAME_REPLAYS = (
    *SESSION_TABLES,
    *(table for table in LIMIT_TABLES if table not in (PARTITION_LIMIT_HEADROOM, PARTITIONS_PER_BROKER)),
)  # fmt: skip
"""Tables in which the older release gave the same rows as today. The two that are left out depend on how a topic's
partitions are drawn to brokers, and the older release drew them anew for each lane. Other replays follow Kafka more
closely now. A table leaves this list when its replay is meant to give other rows."""

Rows = list[dict[str, Any]]


def stored_lake(folder: Path) -> str:
    """A copy of the stored lake in this folder."""
    with (
        STORED.open("rb") as packed,
        zstandard.ZstdDecompressor().stream_reader(packed) as plain,
        tarfile.open(fileobj=plain, mode="r|") as files,
    ):
        files.extractall(folder, filter="data")
    return str(folder)


@pytest.fixture
def older(tmp_path: Path) -> str:
    return stored_lake(tmp_path)


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The stored lake after `migrate`, as tests leave it."""
    lake = stored_lake(tmp_path_factory.mktemp("migrated"))
    assert run_command(["migrate", f"--lake={lake}"]) == 0
    return lake


@pytest.fixture(scope="module")
def of_today(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> str:
    """A lake that this code makes of the same capture."""
    lake = str(tmp_path_factory.mktemp("today") / "lake")
    with pages_left_out():
        assert run_command(pipeline_into(lake, repository)) == 0
    return lake


def pipeline_into(lake: str, repository: Path) -> list[str]:
    return ["pipeline", f"--captures={repository}/tests/captures/starve.pcap.zst", f"--lake={lake}", *SETTINGS]


def tables_in(lake: str) -> list[Table]:
    return [table for table in (*SILVER, *GOLD) if DeltaTable.is_deltatable(table_path(lake, table))]


def all_rows(lake: str, table: Table) -> Rows:
    return DeltaTable(table_path(lake, table)).to_pyarrow_table().to_pylist()


def part_of(table: Table, rows: Rows, columns: set[str]) -> list[Any]:
    """These columns of rows, in the order of the table's key."""
    key = [column for column in table.key if column in columns]
    values = [
        {name: sorted(of) if isinstance(of, list) else of for name, of in row.items() if name in columns}
        for row in rows
    ]
    return sorted(values, key=lambda row: [(row[column] is not None, row[column]) for column in key])


def test_every_job_says_what_the_lake_lacks(older: str, repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for job in (
        ["report"],
        ["replay"],
        ["gate", "--on=gold"],
        ["runs"],
        ["compare"],
        pipeline_into(older, repository)[:2],
    ):
        assert run_command([*job, f"--lake={older}"]) == 1, job
        said = capsys.readouterr().err
        assert "`migrate` with this --lake adds what an older release did not have" in said
        assert "Traceback" not in said
    assert "silver/exchanges is not the table this version writes" in said
    with pytest.raises(LakeError, match="`migrate` with this --lake"):
        open_lake(older)


def test_one_command_adds_what_the_lake_lacks(
    older: str, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {table: all_rows(older, table) for table in tables_in(older)}
    for flags in (["--dry-run"], []):
        assert run_command(["migrate", f"--lake={older}", "--json", *flags]) == 0
        said = json.loads(capsys.readouterr().out)
        assert {"silver/share_fetches", "gold/fetch_ranges", "gold/aim_settings"} <= set(said["new_tables"])
        assert (said["to_ingest"], said["to_replay"]) == ([CAPTURE_ID], [RUN_ID])
    for table in stored_tables(spark, older):
        assert set(read_table(spark, older, table).schema.names) == set(spark_schema(table).names)
    for table, rows in before.items():
        new = [column for column in table.columns if column not in rows[0]] if rows else []
        assert all_rows(older, table) == [{**row, **dict.fromkeys(new)} for row in rows]


def test_a_migrated_lake_has_todays_rows_in_the_columns_that_both_have(migrated: str, of_today: str) -> None:
    stored = {table: rows for table in (*SILVER, *SAME_REPLAYS) if (rows := all_rows(migrated, table))}
    assert {EXCHANGES, FETCH_PARTITIONS, CONNECTIONS, RECORD_BATCHES, SESSION_CACHE} <= stored.keys()
    for table, rows in stored.items():
        filled = {name for name in rows[0] if any(row[name] is not None for row in rows)}
        columns = filled - OF_ITS_OWN.get(table, set()) - {"run_id"}
        own = part_of(table, rows, columns)
        assert own == part_of(table, all_rows(of_today, table), columns), table.name


@pytest.fixture(scope="module")
def few(migrated: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The migrated lake, as a run of one replay leaves it: for each table that only Spark reaches, it takes seconds."""
    lake = str(tmp_path_factory.mktemp("few") / "lake")
    shutil.copytree(migrated, lake)
    for name, tables in TABLES_OF_REPLAY.items():
        for table in tables if name != OF_SESSIONS else ():
            shutil.rmtree(table_path(lake, table), ignore_errors=True)
    DeltaTable(table_path(lake, RUNS)).delete(f"{RUNS.algorithm} <> '{OF_SESSIONS}'")
    return lake


@pytest.fixture(params=["a folder", "an object store", "Spark's catalog", "Unity"])
def place(request: pytest.FixtureRequest, few: str, in_schema: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The flag that names the migrated lake, in each kind of place where jobs find a lake.

    Unity does not say which files a table has, so only the rows show what they lack.
    """
    if request.param == "an object store":
        monkeypatch.setattr(delta_tables, "workers_folder", lambda *_: None)
    if request.param == "Unity":
        monkeypatch.setattr(delta_log, "jvm_of_delta_spark", lambda _: None)
    return f"--catalog={in_schema}" if request.param in ("Spark's catalog", "Unity") else f"--lake={few}"


@pytest.fixture(scope="module")
def in_schema(few: str, spark: SparkSession) -> Iterator[str]:
    """A schema of Spark's catalog that has the tables of the migrated lake."""
    schema = "spark_catalog.older"
    spark.sql(f"CREATE SCHEMA {schema}")
    for table in tables_in(few):
        spark.sql(f"CREATE TABLE {schema}.{table.name} USING delta LOCATION '{table_path(few, table)}'")
    yield schema
    spark.sql(f"DROP SCHEMA {schema} CASCADE")


def test_rows_that_lack_a_required_value_are_refused_and_named(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["migrate", place, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["new_tables"], said["tables"]) == ([], [])
    assert (said["to_ingest"], said["to_replay"]) == ([CAPTURE_ID], [RUN_ID])
    for job, text in (
        (["report", f"--out={tmp_path}/page.html"], f"run {RUN_ID}"),
        (["replay"], f"capture set {CAPTURE_ID}"),
        (["gate", "--on=silver"], f"capture set {CAPTURE_ID}"),
    ):
        assert run_command([*job, place]) == 1
        assert f"{text} was written by an older release" in capsys.readouterr().err
    with pytest.raises(LakeError, match="run `ingest` for it again"):
        open_lake(place.removeprefix("--lake=").replace("--catalog=", "catalog:")).rows(EXCHANGES)


def test_a_migrated_lake_that_is_made_anew_has_the_rows_of_a_new_lake(
    of_today: str, migrated: str, repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    older = str(shutil.copytree(migrated, tmp_path / "lake"))
    with pages_left_out():
        assert run_command(pipeline_into(older, repository)) == 0
    ((run_id,),) = {(row[RUNS.run_id],) for row in queried(of_today, RUNS)}
    for table in tables_in(of_today):
        own = f"{table.replaced_by} IN ('{run_id}', '{CAPTURE_ID}')"
        made, new = (rows_by_key(table, queried(lake, table, where=own)) for lake in (older, of_today))
        assert made == new, table.name
    for job in (["report"], ["gate", "--on=gold"], ["runs", "--trend"]):
        assert run_command([*job, f"--lake={older}"]) == 0, job
    lake = open_lake(older)
    assert lake.replay_of("fetch_max_bytes").run_id == run_id
    assert lake.rows(FETCH_FAIRNESS).count() == len(queried(of_today, FETCH_FAIRNESS))
    capsys.readouterr()
    assert run_command(["migrate", f"--lake={older}"]) == 0
    left = " ".join(capsys.readouterr().out.split())
    assert (
        f"without values of new columns: {RUN_ID} `replay` with their settings makes them anew, under another id"
        in left
    )
    assert run_command(["prune", f"--run={RUN_ID}", f"--lake={older}"]) == 0
    capsys.readouterr()
    assert run_command(["migrate", f"--lake={older}"]) == 0
    assert capsys.readouterr().out == f"{older} has all tables and columns\n"
