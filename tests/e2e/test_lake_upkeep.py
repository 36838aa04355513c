"""A lake that is used for a long time: old nights are removed, files are joined, and other rows stay as they were."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from jobs.cli import run_command
from jobs.ingest import ingest
from jobs.lake.delta_tables import check_tables, read_table
from jobs.lake.table_address import table_path
from jobs.open_lake import open_lake
from jobs.replay import replay
from jobs.run import Run
from jobs.scenarios.scenario_file import resolve_scenario
from schemas.tables.gold import FETCH_MEMORY, FETCH_RANGES, FIDELITY, GOLD, RUNS
from schemas.tables.gold_aims import TRADE_OFF
from schemas.tables.silver import CAPTURES, EXCHANGES, FETCH_PARTITIONS, SILVER
from schemas.tables.silver_shares import SHARE_FETCHES
from schemas.tables.table import Column, Table
from tests.e2e.conftest import RUN_AT, WHAT_IF, Nights, add_night
from tests.lakes import lake_rows, queried
from udfs.errors import LakeError


@pytest.fixture
def lake(nights: Nights, tmp_path: Path) -> str:
    """A copy of the lake of two nights, with pages of both."""
    copy = tmp_path / "lake"
    shutil.copytree(nights.lake, copy)
    for run, name in ((nights.first, f"-{nights.first.run_id}"), (nights.second, "")):
        (copy / f"report{name}.html").write_text(run.run_id)
        (copy / f"summary{name}.json").write_text(json.dumps({"run_id": run.run_id}))
    return str(copy)


def of_job(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The JSON that a job prints."""
    assert run_command([*arguments, "--json"]) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return told


def tables_in(lake: str) -> list[Any]:
    return [table for table in (*SILVER, *GOLD) if DeltaTable.is_deltatable(table_path(lake, table))]


def rows_in(lake: str) -> dict[str, list[tuple[Any, ...]]]:
    return lake_rows(lake, tables_in(lake))


def files_on_disk(lake: str) -> int:
    return sum("_delta_log" not in file.parts for file in Path(lake).rglob("*.parquet"))


def test_prune_removes_a_capture_set_with_all_its_rows_and_keeps_the_other(
    nights: Nights, lake: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before, gone = rows_in(lake), (nights.first.capture_id, nights.first.run_id)
    would = of_job(capsys, "prune", f"--capture={nights.first.capture_id}", f"--lake={lake}", "--dry-run")
    assert rows_in(lake) == before
    told = of_job(capsys, "prune", f"--capture={nights.first.capture_id}", f"--lake={lake}")
    assert (told["capture_sets"], told["runs"]) == ([nights.first.capture_id], [nights.first.run_id])
    assert {**would, "dry_run": False, "files_removed": 0} == told
    assert told["pages"] == [f"report-{nights.first.run_id}.html", f"summary-{nights.first.run_id}.json"]
    assert Path(lake, "report.html").read_text() == nights.second.run_id
    after = rows_in(lake)
    assert after == {name: [row for row in rows if not any(of in row for of in gone)] for name, rows in before.items()}
    assert all(after[table.name] for table in (RUNS, CAPTURES, EXCHANGES, FIDELITY))
    assert open_lake(lake).capture_id == nights.second.capture_id


def test_prune_removes_a_run_and_keeps_its_captures(
    nights: Nights, lake: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = of_job(capsys, "prune", f"--run={nights.second.run_id}", f"--lake={lake}")
    assert (told["capture_sets"], told["runs"]) == ([], [nights.second.run_id])
    assert told["page_shows"] == nights.first.run_id
    assert Path(lake, "report.html").read_text() == nights.first.run_id
    assert {row[RUNS.run_id] for row in queried(lake, RUNS)} == {nights.first.run_id}
    assert {row[CAPTURES.capture_id] for row in queried(lake, CAPTURES)} == {
        nights.first.capture_id, nights.second.capture_id
    }  # fmt: skip


def test_prune_by_age_removes_only_older_runs(nights: Nights, lake: str, capsys: pytest.CaptureFixture[str]) -> None:
    at = "--run-at=2026-03-03T00:00:00Z"  # 30 days and 12 hours after the first run, 29 and 12 after the second
    told = of_job(capsys, "prune", "--older-than=30d", at, f"--lake={lake}", "--dry-run")
    assert (told["runs"], told["capture_sets"]) == ([nights.first.run_id], []), "its captures were written today"


def test_compact_leaves_fewer_files_and_the_same_rows(lake: str, capsys: pytest.CaptureFixture[str]) -> None:
    before, files = rows_in(lake), files_on_disk(lake)
    told = of_job(capsys, "compact", f"--lake={lake}", "--retention=0h")
    assert rows_in(lake) == before
    by_table = {of["table"]: (of["files_before"], of["files_after"]) for of in told["tables"]}
    assert by_table["gold/fidelity"][0] > by_table["gold/fidelity"][1] == 2, "one file a run"
    assert files_on_disk(lake) == files - told["files_removed"] + sum(after < was for was, after in by_table.values())


def without_column(lake: str, table: Table, column: Column) -> None:
    """Rewrite the table as a release wrote it that did not have the column."""
    path = table_path(lake, table)
    rows = DeltaTable(path).to_pyarrow_table().drop_columns([column])
    write_deltalake(path, rows, mode="overwrite", schema_mode="overwrite", partition_by=[table.replaced_by])


@pytest.fixture
def older_lake(lake: str) -> str:
    """A lake of two nights, by a release whose tables lacked some columns. Some of them must not be null today."""
    for column in (FETCH_PARTITIONS.readable_known, FETCH_PARTITIONS.is_delayed):
        without_column(lake, FETCH_PARTITIONS, column)
    without_column(lake, FETCH_RANGES, FETCH_RANGES.replications)
    return lake


NEW_TABLES = {"silver/share_fetches", "silver/share_partitions", "gold/trade_off", "gold/fetch_memory"}
"""Tables that an older release did not have. Each stands for others that are written together with it."""


@pytest.fixture
def lake_without_tables(lake: str) -> str:
    """A lake of two nights, by a release that did not have some tables."""
    for name in NEW_TABLES:
        shutil.rmtree(Path(lake, name))
    return lake


def test_a_lake_that_lacks_tables_is_refused_with_the_command_that_makes_them(
    lake_without_tables: str, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = lake_without_tables
    for table in (SHARE_FETCHES, TRADE_OFF, FETCH_MEMORY):
        with pytest.raises(LakeError, match=f"{table.name}: no such table; `migrate` with this --lake"):
            read_table(spark, lake, table)
    silver, gold = ({name for name in NEW_TABLES if name.startswith(layer)} for layer in ("silver", "gold"))
    for job, lacks in (("replay", silver), ("report", set())):
        assert run_command([job, f"--lake={lake}"]) == 1
        said = capsys.readouterr().err
        assert "no such table; `migrate` with this --lake adds what an older release did not have" in said
        assert {name for name in NEW_TABLES if f"{lake}/{name}:" in said} >= lacks, job
    with pytest.raises(LakeError, match="fetch_memory: no such table; `migrate`"):
        check_tables(spark, lake, gold_tables(gold))


def gold_tables(names: set[str]) -> list[Table]:
    return [table for table in GOLD if f"gold/{table.name}" in names]


@pytest.mark.usefixtures("tables_alone")
def test_a_migrated_lake_has_the_tables_that_an_older_release_did_not_have(
    nights: Nights, lake_without_tables: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = lake_without_tables
    migrated = of_job(capsys, "migrate", f"--lake={lake}")
    assert (set(migrated["new_tables"]), migrated["tables"]) == (NEW_TABLES, [])
    assert {table.name for table in tables_in(lake)} == {table.name for table in tables_in(nights.lake)}
    for table in tables_in(lake):
        migrated_table, new_one = (DeltaTable(table_path(of, table)) for of in (lake, nights.lake))
        assert migrated_table.schema().to_json() == new_one.schema().to_json()
        assert migrated_table.metadata().partition_columns == new_one.metadata().partition_columns
    assert of_job(capsys, "migrate", f"--lake={lake}")["new_tables"] == []
    assert run_command(["report", f"--lake={lake}"]) == 0
    assert run_command(["replay", "--set=max.incremental.fetch.session.cache.slots=8", f"--lake={lake}"]) == 0
    capsys.readouterr()


def test_the_screen_names_the_tables_that_are_made(
    lake_without_tables: str, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = {path: path.read_bytes() for path in Path(lake_without_tables).rglob("_delta_log/*")}
    assert run_command(["migrate", "--dry-run", f"--lake={lake_without_tables}"]) == 0
    assert {path: path.read_bytes() for path in Path(lake_without_tables).rglob("_delta_log/*")} == logs
    screen = " ".join(capsys.readouterr().out.split())
    assert all(name in screen for name in NEW_TABLES)
    assert "would have" in screen
    assert "nothing was changed: --dry-run" in screen


def test_a_lake_of_an_older_release_is_refused_with_the_command_that_migrates_it(
    older_lake: str, spark: SparkSession
) -> None:
    for table, column in ((FETCH_PARTITIONS, "readable_known"), (FETCH_RANGES, "replications")):
        with pytest.raises(LakeError, match=f"{table.name} is not .*no column `{column}`.*`migrate` with this"):
            read_table(spark, older_lake, table)


def test_a_migrated_lake_has_all_columns_and_is_used_again_once_its_rows_are_made_anew(
    nights: Nights, older_lake: str, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    night, both_sets = nights.first, sorted([nights.first.capture_id, nights.second.capture_id])
    migrated = of_job(capsys, "migrate", f"--lake={older_lake}")
    assert {of["table"]: sorted(of["new_columns"]) for of in migrated["tables"]} == {
        "silver/fetch_partitions": ["is_delayed", "readable_known"], "gold/fetch_ranges": ["replications"]
    }  # fmt: skip
    runs = sorted([night.run_id, nights.second.run_id])
    assert (migrated["to_ingest"], migrated["to_replay"]) == (both_sets, runs)
    assert {row[FETCH_PARTITIONS.is_delayed] for row in queried(older_lake, FETCH_PARTITIONS)} == {None}
    for job, text in (("report", f"run {night.run_id} .* `replay`"), ("replay", f"set {night.capture_id} .* `ingest`")):
        named = f"--run={night.run_id}" if job == "report" else f"--capture={night.capture_id}"
        assert run_command([job, named, f"--lake={older_lake}"]) == 1
        assert re.search(text, capsys.readouterr().err)
    again = Run(resolve_scenario(None, WHAT_IF["starve"], []), (night.capture,), older_lake, RUN_AT)
    assert replay(spark, again, ingest(spark, again)).run_id == night.run_id
    left = of_job(capsys, "migrate", f"--lake={older_lake}")
    second = nights.second
    assert (left["tables"], left["to_ingest"], left["to_replay"]) == ([], [second.capture_id], [second.run_id])
    of_night = {FETCH_PARTITIONS: night.capture_id, FETCH_RANGES: night.run_id}
    for table, identity in of_night.items():
        where = f"{table.replaced_by} = '{identity}'"
        assert queried(older_lake, table, where=where) == queried(nights.lake, table, where=where)


def test_a_dry_run_says_what_a_migration_would_do_and_changes_nothing(
    older_lake: str, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = {path: path.read_bytes() for path in Path(older_lake).rglob("_delta_log/*")}
    would = of_job(capsys, "migrate", "--dry-run", f"--lake={older_lake}")
    assert would["dry_run"]
    assert {path: path.read_bytes() for path in Path(older_lake).rglob("_delta_log/*")} == logs
    assert run_command(["migrate", "--dry-run", f"--lake={older_lake}"]) == 0
    screen = capsys.readouterr().out
    assert "that would have new columns" in screen
    assert "nothing was changed: --dry-run" in screen
    assert {**would, "dry_run": False} == of_job(capsys, "migrate", f"--lake={older_lake}")


def test_trends_leave_out_incomplete_runs_and_name_them(
    nights: Nights, older_lake: str, capsys: pytest.CaptureFixture[str]
) -> None:
    second, incomplete = nights.second, sorted([nights.first.run_id, nights.second.run_id])
    assert run_command(["migrate", f"--lake={older_lake}"]) == 0
    capsys.readouterr()
    assert run_command(["runs", "--trend", f"--lake={older_lake}"]) == 1
    assert f"{', '.join(incomplete)} were written by an older release" in capsys.readouterr().err
    for day, run_id in ((-5, "early"), (5, "late")):
        add_night(second.path, older_lake, day, {second.run_id: run_id, second.capture_id: f"set-{run_id}"})
        trend = of_job(capsys, "runs", "--trend", f"--lake={older_lake}")
        assert (trend["run_id"], sorted(trend["incomplete"])) == (run_id, incomplete)
    assert [night["run_id"] for night in trend["nights"]] == ["early", "late"]
    assert run_command(["runs", "--trend", f"--lake={older_lake}"]) == 0
    assert f"left out: {', '.join(incomplete)}" in re.sub(r"\s+", " ", capsys.readouterr().out)


def test_a_stored_night_stays_although_its_run_is_incomplete_now(
    nights: Nights, lake: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = of_job(capsys, "runs", "--trend", f"--lake={lake}")
    without_column(lake, FETCH_RANGES, FETCH_RANGES.replications)
    assert run_command(["migrate", f"--lake={lake}"]) == 0
    capsys.readouterr()
    assert of_job(capsys, "runs", "--trend", f"--lake={lake}") == kept
    assert kept["incomplete"] == []


def test_a_table_that_differs_in_more_than_missing_columns_is_not_migrated(
    older_lake: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = table_path(older_lake, FIDELITY)
    rows = DeltaTable(path).to_pyarrow_table()
    write_deltalake(
        path, rows.append_column("ours", rows["run_id"]), mode="overwrite", schema_mode="overwrite",
        partition_by=[str(FIDELITY.replaced_by)],
    )  # fmt: skip
    assert run_command(["migrate", f"--lake={older_lake}"]) == 1
    assert "gold/fidelity cannot be migrated: unknown column `ours`" in capsys.readouterr().err
    assert "readable_known" not in DeltaTable(table_path(older_lake, FETCH_PARTITIONS)).schema().to_json()
