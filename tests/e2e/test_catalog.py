"""A lake whose tables have names in a catalog, here Spark's own. Jobs write and print the same as for a folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import redirect_stdout
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlparse

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from jobs.cli import run_command
from jobs.ingest import ingest
from jobs.lake.table_address import NEW_TABLE, table_path
from jobs.open_lake import open_lake
from jobs.replay import replay
from jobs.run import Run
from jobs.scenarios.scenario_file import resolve_scenario
from schemas.tables.gold import FETCH_RANGES, GOLD, RUNS
from schemas.tables.gold_aims import TRADE_OFF
from schemas.tables.gold_gates import GATE_RESULTS
from schemas.tables.gold_recommendations import RECOMMENDATIONS
from schemas.tables.silver import CAPTURES, EXCHANGES, SILVER
from schemas.tables.silver_shares import SHARE_FETCHES
from schemas.tables.table import Table
from tests.lakes import rows_by_key

SCHEMA = "spark_catalog.refetch"
IN_CATALOG = f"catalog:{SCHEMA}"
NIGHTS = [("starve", "2026-01-31T12:00:00Z"), ("mixed", "2026-02-01T12:00:00Z")]
SCENARIO = "replay: {fetch_max_bytes: {consumer.fetch.max.bytes: [32KiB, 1MiB]}}"


class Places(NamedTuple):
    """Two lakes with the same runs: a folder, and a schema whose tables Spark keeps in another folder."""

    lake: str
    warehouse: Path
    page: Path
    scenario: Path

    @property
    def flags(self) -> tuple[str, str]:
        """The flags that name the two lakes."""
        return f"--lake={self.lake}", f"--catalog={SCHEMA}"

    def tables(self) -> list[Table]:
        """The tables of the folder. Checks that the schema has the same ones."""
        tables = tables_in(self.lake)
        named = {path.name for path in self.warehouse.iterdir() if (path / "_delta_log").is_dir()}
        assert named == {table.name for table in tables}
        return tables

    def remove(self, spark: SparkSession, table: Table) -> None:
        """Remove a table from both lakes."""
        spark.sql(f"DROP TABLE {SCHEMA}.{table.name}")
        shutil.rmtree(self.warehouse / table.name, ignore_errors=True)  # Spark leaves what it has not made
        shutil.rmtree(table_path(self.lake, table))

    def rows(self) -> list[dict[str, list[Any]]]:
        """The rows of all tables by table name: those of the folder, then those of the schema."""
        return [
            {table.name: rows_at(table_path(self.lake, table), table) for table in self.tables()},
            {table.name: rows_at(f"{self.warehouse}/{table.name}", table) for table in self.tables()},
        ]


def tables_in(lake: str) -> list[Table]:
    """The tables of a folder."""
    return [table for table in (*SILVER, *GOLD) if DeltaTable.is_deltatable(table_path(lake, table))]


def rows_at(path: str, table: Table) -> list[Any]:
    return rows_by_key(table, DeltaTable(path).to_pyarrow_table().to_pylist())


@pytest.fixture(scope="module")
def places(spark: SparkSession, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    """The lakes, each with two nights. The first night's tables are written to the folder, and a copy of each gets a
    name in the schema: Spark would take a second to write each of them. The second night is made by the command.
    """
    folder = tmp_path_factory.mktemp("catalog")
    warehouse = Path(urlparse(str(spark.conf.get("spark.sql.warehouse.dir"))).path, "refetch.db")
    made = Places(str(folder / "lake"), warehouse, folder / "page.html", folder / "scenario.yaml")
    made.scenario.write_text(SCENARIO)
    capture, at = NIGHTS[0]
    scenario = resolve_scenario(str(made.scenario))
    first = Run(scenario, (sample(repository, capture),), made.lake, datetime.fromisoformat(at))
    replay(spark, first, ingest(spark, first))
    spark.sql(f"CREATE SCHEMA {SCHEMA}")
    for table in tables_in(made.lake):
        copy = shutil.copytree(table_path(made.lake, table), warehouse / table.name)
        spark.sql(f"CREATE TABLE {SCHEMA}.{table.name} USING delta LOCATION '{copy}'")
    for place in made.flags:
        assert run_command([*pipeline(made, repository, *NIGHTS[1]), place]) == 0
    yield made
    spark.sql(f"DROP SCHEMA {SCHEMA} CASCADE")


def sample(repository: Path, capture: str) -> Path:
    return repository / f"tests/captures/{capture}.pcap.zst"


def pipeline(places: Places, repository: Path, capture: str, at: str) -> list[str]:
    """A night's command, without the flag that names the lake."""
    captures = f"--captures={sample(repository, capture)}"
    return ["pipeline", captures, f"--scenario={places.scenario}", f"--run-at={at}", f"--out={places.page}"]


def printed(*arguments: str) -> str:
    """What a job prints. The job has to exit with 0."""
    with redirect_stdout(StringIO()) as out:
        assert run_command([*arguments]) == 0
    return out.getvalue()


def of_both(places: Places, *arguments: str) -> list[Any]:
    """The JSON that a job prints of each lake, with LAKE in place of the lake's name."""
    told = (printed(*arguments, "--json", place) for place in places.flags)
    return [
        json.loads(of.replace(lake, "LAKE"), parse_float=nine_digits)
        for of, lake in zip(told, (places.lake, IN_CATALOG), strict=True)
    ]


def nine_digits(number: str) -> float:
    """A number rounded to the digits that do not depend on the order in which Spark adds."""
    return float(f"{float(number):.9g}")


def test_the_tables_have_the_same_rows_and_comments(places: Places, spark: SparkSession) -> None:
    in_folder, in_schema = places.rows()
    assert in_schema == in_folder
    assert {EXCHANGES.name, FETCH_RANGES.name, RUNS.name} <= in_schema.keys()
    made = RECOMMENDATIONS  # by the command, in both lakes
    columns = spark.read.table(f"{SCHEMA}.{made.name}").schema
    assert {f.name: f.metadata for f in columns} == {
        f.name: f.metadata for f in spark.read.format("delta").load(table_path(places.lake, made)).schema
    }
    detail = spark.sql(f"DESCRIBE DETAIL {SCHEMA}.{made.name}").first()
    assert detail is not None
    assert detail["partitionColumns"] == ["run_id"]
    assert detail["properties"].items() >= NEW_TABLE.items()


def test_runs_compare_and_migrate_print_the_same(places: Places) -> None:
    told = dict[str, Any]()
    for job in ("runs", "compare", "runs --trend", "migrate --dry-run"):
        in_folder, told[job] = of_both(places, *job.split())
        assert told[job] == in_folder, job
    assert told["runs"]["runs_in_all"] == 2


@pytest.mark.usefixtures("tables_alone")
def test_the_same_run_is_not_made_again(places: Places, repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capture, at = NIGHTS[1]
    for place in places.flags:
        assert run_command([*pipeline(places, repository, capture, at.replace("12:", "13:")), place]) == 0
        assert "was replayed before" in capsys.readouterr().err
    in_folder, in_schema = places.rows()
    assert in_schema == in_folder


def test_gates_and_pages_are_the_same(places: Places, tmp_path: Path) -> None:
    for place in places.flags:
        told = printed("gate", "--on=gold", place, f"--data-docs={tmp_path}")
        assert told == f"{tmp_path}/index.html\n"
    in_folder, in_schema = places.rows()
    assert in_schema == in_folder
    assert f"{SCHEMA}.recommendations, run" in printed("report", f"--out={places.page}", f"--catalog={SCHEMA}")
    assert IN_CATALOG in places.page.read_text()


def test_tables_that_an_older_release_did_not_have_are_made(places: Places, spark: SparkSession) -> None:
    before = places.rows()
    for table in (SHARE_FETCHES, TRADE_OFF):
        places.remove(spark, table)
    assert run_command(["replay", f"--catalog={SCHEMA}"]) == 1
    in_folder, in_schema = of_both(places, "migrate")
    assert in_schema == in_folder
    assert in_schema["new_tables"] == ["silver/share_fetches", "gold/trade_off"]
    assert places.rows() == before


def test_a_notebook_opens_the_lake_by_its_schema(places: Places) -> None:
    in_folder, in_schema = open_lake(places.lake), open_lake(IN_CATALOG)
    assert in_schema.replays == in_folder.replays
    for name in ("exchanges", "fetch_fairness", "lane_settings"):
        query = f"SELECT * FROM {name} ORDER BY ALL"  # noqa: S608 - tests' own words
        assert in_schema.sql(query).collect() == in_folder.sql(query).collect()
    assert in_schema.tables().collect() == in_folder.tables().collect()


FEW = (CAPTURES, RUNS, FETCH_RANGES, GATE_RESULTS)
"""Tables of each kind: the two that list capture sets and runs, one of a replay, and one with rows of sets and runs."""


@pytest.fixture
def few(places: Places, spark: SparkSession) -> Places:
    """The same lakes with few of their tables, since Spark takes seconds to prune or compact each table of a schema."""
    for table in places.tables():
        if table not in FEW:
            places.remove(spark, table)
    return places


def test_prune_removes_a_run_from_both(few: Places) -> None:
    """This is the last test, because it changes the lakes."""
    kept, run_id = (run["run_id"] for run in of_both(few, "runs")[0]["runs"])
    would = of_both(few, "prune", f"--run={run_id}", "--dry-run")
    assert would[1]["runs"] == would[0]["runs"] == [run_id]
    for place in few.flags:
        printed("prune", f"--run={run_id}", place)
    in_folder, in_schema = few.rows()
    assert in_schema == in_folder
    assert [run["run_id"] for run in of_both(few, "runs")[1]["runs"]] == [kept]
    assert {row[0] for row in in_schema[RUNS.name]} == {kept}
    printed("compact", f"--catalog={SCHEMA}")
    assert few.rows() == [in_folder, in_folder]
