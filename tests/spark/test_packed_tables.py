"""Tables whose files are written by workers look to every reader and writer as if Spark had written them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.gates.row_rules import Watch
from jobs.lake.delta_tables import read_table, rows_by_delta, rows_of_driver, stored_rows, write_table
from jobs.lake.lake_storage import workers_folder
from jobs.lake.packed_tables import write_packed
from jobs.lake.table_address import address_of, table_path
from jobs.lake.target import Target
from schemas.tables.gold import FIDELITY, RUNS
from schemas.tables.silver import CONNECTIONS, EXCHANGES, RECORD_BATCHES
from schemas.tables.silver_topics import TOPIC_CHANGES
from schemas.tables.table import Table
from tests.lakes import queried
from tests.spark.test_tables import EXAMPLES, examples
from udfs.errors import LakeError
from udfs.facts.arrow_tables import PACKED, arrow_schema, pack_rows


def packed(spark: SparkSession, rows: pa.Table, table: Table) -> DataFrame:
    """The rows of a table, packed as workers hand them on."""
    parts = (part for batch in rows.to_batches() for part in pack_rows(table, batch))
    return rows_of_driver(spark, pa.Table.from_batches(parts, PACKED))


def exchanges(capture_id: str, numbers: Iterable[int]) -> pa.Table:
    rows = [{"capture_id": capture_id, "exchange_no": number} for number in numbers]
    return pa.Table.from_pylist(rows, schema=arrow_schema(EXCHANGES))


def write(spark: SparkSession, lake: Path, capture_id: str, *numbers: int) -> None:
    """Let workers write exchanges of a capture set."""
    rows = packed(spark, exchanges(capture_id, numbers), EXCHANGES)
    write_packed(spark, rows, [EXCHANGES], Target(str(lake), capture_id, Watch()))


def numbers_in(lake: Path) -> list[tuple[str, int]]:
    return sorted((row["capture_id"], row["exchange_no"]) for row in queried(str(lake), EXCHANGES))


def in_order(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(str, rows))


EVERY_TYPE = (EXCHANGES, RECORD_BATCHES, TOPIC_CHANGES, FIDELITY, RUNS)
"""Tables that together have columns of every type."""


def test_tables_are_the_same_whoever_writes_them(spark: SparkSession, tmp_path: Path) -> None:
    identity = str(EXAMPLES["string"])
    of = {
        table: examples(table).filter(pa.compute.is_valid(pa.compute.field(table.replaced_by))) for table in EVERY_TYPE
    }
    for table, rows in of.items():
        write_table(rows_of_driver(spark, rows), str(tmp_path / "spark"), table, identity)
    all_packed = reduce(DataFrame.unionAll, (packed(spark, rows, table) for table, rows in of.items()))
    write_packed(spark, all_packed, EVERY_TYPE, Target(str(tmp_path / "workers"), identity, Watch()))
    for table in EVERY_TYPE:
        places = (address_of(str(tmp_path / who), table) for who in ("spark", "workers"))
        by_spark, by_workers = (rows_by_delta(spark, place, table) for place in places)
        assert by_workers.schema == by_spark.schema
        assert all(".zstd.parquet" in file for file in by_workers.inputFiles())
        assert in_order(by_workers.toArrow().to_pylist()) == in_order(by_spark.toArrow().to_pylist())
        there = (queried(str(tmp_path / who), table) for who in ("spark", "workers"))
        assert in_order(next(there)) == in_order(next(there)), "as another reader of Delta sees it"


def test_rows_take_the_place_of_those_of_their_capture_set_alone(spark: SparkSession, tmp_path: Path) -> None:
    write(spark, tmp_path, "a", 1, 2)
    write(spark, tmp_path, "b", 7)
    write(spark, tmp_path, "a", 3)
    assert numbers_in(tmp_path) == [("a", 3), ("b", 7)]
    write(spark, tmp_path, "b")
    assert numbers_in(tmp_path) == [("a", 3)]


def test_rows_that_spark_wrote_are_replaced_as_well(spark: SparkSession, tmp_path: Path) -> None:
    write_table(rows_of_driver(spark, exchanges("a", [1])), str(tmp_path), EXCHANGES, "a")
    write(spark, tmp_path, "a", 2)
    assert numbers_in(tmp_path) == [("a", 2)]
    write_table(rows_of_driver(spark, exchanges("a", [3])), str(tmp_path), EXCHANGES, "a")
    assert numbers_in(tmp_path) == [("a", 3)]


def test_rows_of_the_driver_and_of_spark_are_files_as_workers_write_them(spark: SparkSession, tmp_path: Path) -> None:
    watch, rows = Watch(), exchanges("a", range(3))
    to = Target(str(tmp_path), "a", watch)
    to.write(rows_of_driver(spark, rows), EXCHANGES)
    assert {file.name.split(".", 1)[1] for file in tmp_path.rglob("part-*")} == {"zstd.parquet"}
    to.write_here(spark, rows.slice(0, 2), EXCHANGES)
    assert numbers_in(tmp_path) == [("a", 0), ("a", 1)]
    assert {file.name.split(".", 1)[1] for file in tmp_path.rglob("part-*")} == {"zstd.parquet"}
    assert watch.counts()[EXCHANGES].checked == 2


def test_rows_with_other_columns_are_refused_whoever_has_them(spark: SparkSession, tmp_path: Path) -> None:
    to, rows = (
        Target(str(tmp_path), "a", Watch()),
        exchanges("a", [1]).rename_columns(["set", *(str(column) for column in EXCHANGES.columns[1:])]),
    )
    told = r"no column `capture_id`; unknown column `set`"
    with pytest.raises(LakeError, match=told):
        to.write(rows_of_driver(spark, rows), EXCHANGES)
    with pytest.raises(LakeError, match=told):
        to.write_here(spark, rows, EXCHANGES)


def test_a_lake_with_encoded_paths_is_read_and_replaced(spark: SparkSession, tmp_path: Path) -> None:
    """Delta's log had such paths before delta-rs wrote it."""
    write(spark, tmp_path, "a", 1, 2)
    write(spark, tmp_path, "b", 7)
    for log in (tmp_path / "silver/exchanges/_delta_log").glob("*.json"):
        log.write_text(log.read_text("utf-8").replace("capture_id=b/part", "capture_id%3Db/part"), "utf-8")
    for capture_id, numbers in (("a", [1, 2]), ("b", [7])):
        assert [
            row.exchange_no for row in stored_rows(spark, str(tmp_path), EXCHANGES, capture_id).collect()
        ] == numbers
    write(spark, tmp_path, "b", 8)
    write(spark, tmp_path, "a", 3)
    rows = read_table(spark, str(tmp_path), EXCHANGES).collect()
    assert sorted((row.capture_id, row.exchange_no) for row in rows) == [("a", 3), ("b", 8)]


def test_a_target_takes_one_table_after_the_other_and_counts_their_rows(spark: SparkSession, tmp_path: Path) -> None:
    watch, rows = Watch(), packed(spark, exchanges("a", [1, 2]), EXCHANGES)
    to = Target(str(tmp_path), "a", watch)
    write_packed(spark, rows, [EXCHANGES], to)
    write_packed(spark, rows, [CONNECTIONS], to)
    assert {table: of.checked for table, of in watch.counts().items()} == {EXCHANGES: 2, CONNECTIONS: 0}


def test_files_are_passed_over_by_their_statistics_and_no_row_is_missed(spark: SparkSession, tmp_path: Path) -> None:
    parts = reduce(
        DataFrame.unionAll, (packed(spark, exchanges("a", range(n, n + 10)), EXCHANGES) for n in (0, 100, 200))
    )
    write_packed(spark, parts.repartition(3), [EXCHANGES], Target(str(tmp_path), "a", Watch()))
    rows = read_table(spark, str(tmp_path), EXCHANGES)
    assert rows.count() == 30
    for number in (0, 9, 105, 209):
        assert rows.where(F.col("exchange_no") == number).count() == 1
    assert rows.where("exchange_no between 50 and 60").count() == 0
    assert rows.agg(F.min("exchange_no"), F.max("exchange_no")).first() == (0, 209)


def test_a_table_of_other_columns_is_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    path = table_path(str(tmp_path), EXCHANGES)
    spark.range(3).write.format("delta").save(path)
    with pytest.raises(LakeError, match=r"silver/exchanges is not the table this version writes.*Use another --lake"):
        write(spark, tmp_path, "a", 1)
    assert spark.read.format("delta").load(path).count() == 3
    assert not list(tmp_path.rglob("*.zstd.parquet"))


@pytest.mark.parametrize("name", ["lake [1]", "lake *", "lake {a,b} ? #1 100% ü", "lake \\x 100%25", "lake \t"])
def test_a_lake_may_have_any_name(spark: SparkSession, tmp_path: Path, name: str) -> None:
    (tmp_path / "lake 1/silver").mkdir(parents=True)
    lake = tmp_path / name
    target = Target(str(lake), "a", Watch())
    for numbers in ([1, 2], [1, 2, 3]):
        write_packed(spark, packed(spark, exchanges("a", numbers), EXCHANGES), [EXCHANGES], target)
    assert stored_rows(spark, str(lake), EXCHANGES, "a").count() == read_table(spark, str(lake), EXCHANGES).count() == 3
    write_table(rows_of_driver(spark, exchanges("a", [4])), str(lake), EXCHANGES, "a")
    for rows in (stored_rows(spark, str(lake), EXCHANGES, "a"), read_table(spark, str(lake), EXCHANGES)):
        assert [row.exchange_no for row in rows.collect()] == [4]


@pytest.mark.parametrize("lake", ["{}/a lake", "file://{}/lake", "file:{}/lake"])
def test_workers_reach_a_lake_on_this_machine(spark: SparkSession, tmp_path: Path, lake: str) -> None:
    folder = workers_folder(spark, lake.format(tmp_path))
    assert folder is not None
    assert Path(folder).parent == tmp_path
    target = Target(lake.format(tmp_path), "a", Watch())
    write_packed(spark, packed(spark, exchanges("a", [1]), EXCHANGES), [EXCHANGES], target)
    assert numbers_in(Path(folder)) == [("a", 1)]
