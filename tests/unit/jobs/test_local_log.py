"""Tables in folders, by delta-rs: a partition's files replace those that it had, and no other partition's."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

import jobs.lake.local_log
from jobs.lake.local_log import DataFile, LocalTable, open_local_table
from tests.full_disk import files_of_at_most
from udfs.errors import LakeError

SCHEMA = StructType([StructField("id", StringType(), metadata={"comment": "An id"}), StructField("size", LongType())])
Files = dict[str, list[str]]
A_DAY_S = 24 * 3600


def at(folder: Path) -> LocalTable:
    found = open_local_table(str(folder))
    assert found is not None
    return found


def replace(table: LocalTable, value: str, *names: str) -> None:
    """Replace the partition's files by files of these names."""
    files = [DataFile(f"id={value}/{name}.parquet", 1, 1, '{"numRecords":1}') for name in names]
    table.replace(SCHEMA, ("id", value), files)


def names_of(folder: Path, *values: str) -> Files:
    return {value: [Path(file).stem for file in at(folder).files(("id", value)) or ()] for value in values}


def commits(folder: Path) -> list[list[dict[str, Any]]]:
    """What each version of the log says."""
    logs = sorted((folder / "_delta_log").glob("*.json"))
    return [[json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()] for log in logs]


def logged(folder: Path, *actions: dict[str, Any]) -> None:
    """Add a version that somebody else has written."""
    version = len(commits(folder))
    text = "".join(f"{json.dumps(action)}\n" for action in actions)
    (folder / f"_delta_log/{version:020}.json").write_text(text, encoding="utf-8")


def test_files_replace_those_of_their_own_partition(tmp_path: Path) -> None:
    assert not tmp_path.joinpath("_delta_log").exists()
    assert at(tmp_path).schema is None
    replace(at(tmp_path), "a", "1", "2")
    replace(at(tmp_path), "b", "3")
    replace(at(tmp_path), "a", "4")
    assert names_of(tmp_path, "a", "b", "c") == {"a": ["4"], "b": ["3"], "c": []}
    assert at(tmp_path).schema == SCHEMA
    assert len(at(tmp_path).files() or ()) == 2


def test_replacing_no_files_by_none_adds_no_version(tmp_path: Path) -> None:
    replace(at(tmp_path), "a")
    assert len(commits(tmp_path)) == 1, "the table is made"
    replace(at(tmp_path), "a")
    assert len(commits(tmp_path)) == 1
    replace(at(tmp_path), "a", "1")
    replace(at(tmp_path), "a")
    assert names_of(tmp_path, "a") == {"a": []}


@pytest.mark.parametrize("there", [[], ["0"]], ids=["first rows", "rows that are there"])
def test_of_two_who_replace_the_same_rows_the_second_fails(tmp_path: Path, there: list[str]) -> None:
    replace(at(tmp_path), "b", "7")
    replace(at(tmp_path), "a", *there)
    first, second = at(tmp_path), at(tmp_path)
    replace(first, "a", "1")
    with pytest.raises(LakeError, match=r"has written the same rows at the same time: run the command again"):
        replace(second, "a", "2")
    assert names_of(tmp_path, "a", "b") == {"a": ["1"], "b": ["7"]}


def test_of_two_who_make_a_table_with_the_same_rows_the_second_fails(tmp_path: Path) -> None:
    first, second = at(tmp_path), at(tmp_path)
    replace(first, "a", "1")
    with pytest.raises(LakeError, match="run the command again"):
        replace(second, "a", "2")


@pytest.mark.parametrize("there", [[], ["0"]], ids=["first rows", "rows that are there"])
def test_two_may_replace_different_rows_at_the_same_time(tmp_path: Path, there: list[str]) -> None:
    for value in "ab":
        replace(at(tmp_path), value, *there)
    both = [at(tmp_path), at(tmp_path)]
    for table, value in zip(both, "ab", strict=True):
        replace(table, value, f"of-{value}")
    assert names_of(tmp_path, "a", "b") == {"a": ["of-a"], "b": ["of-b"]}


def test_two_may_make_the_same_table_with_different_rows(tmp_path: Path) -> None:
    both = [at(tmp_path), at(tmp_path)]
    for table, value in zip(both, "ab", strict=True):
        replace(table, value, f"of-{value}")
    assert names_of(tmp_path, "a", "b") == {"a": ["of-a"], "b": ["of-b"]}


def test_the_message_on_another_fault_has_what_delta_rs_says(tmp_path: Path) -> None:
    replace(at(tmp_path), "a", "1")
    (metadata,) = (action["metaData"] for action in commits(tmp_path)[0] if "metaData" in action)
    logged(tmp_path, {"metaData": {**metadata, "configuration": {"delta.appendOnly": "true"}}})
    with pytest.raises(LakeError, match=r"could not be changed: .*append") as raised:
        replace(at(tmp_path), "a", "2")
    assert "run the command again" not in str(raised.value)


def test_another_comment_of_a_column_does_not_change_a_table(tmp_path: Path) -> None:
    replace(at(tmp_path), "a", "1")
    said = StructType([StructField("id", StringType(), metadata={"comment": "In other words"}), SCHEMA["size"]])
    at(tmp_path).replace(said, ("id", "a"), [DataFile("id=a/2.parquet", 1, 1, "{}")])
    assert at(tmp_path).schema == SCHEMA


def add_file(folder: Path, value: str, sizes: list[int | None], stats: dict[str, Any] | None) -> Path:
    """Make a file with these rows the partition's, with these statistics in the log; returns its path."""
    path = folder / f"id={value}/0.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table({"size": pa.array(sizes, pa.int64())}), path)
    logged_stats = json.dumps({"numRecords": len(sizes), **(stats or {})})
    at(folder).replace(SCHEMA, ("id", value), [DataFile(f"id={value}/0.parquet", 1, len(sizes), logged_stats)])
    return path


def bounds(least: int, greatest: int, nulls: int = 0) -> dict[str, Any]:
    return {"minValues": {"size": least}, "maxValues": {"size": greatest}, "nullCount": {"size": nulls}}


def values_in(folder: Path) -> set[tuple[str, int | None]]:
    columns: list[pa.Field[Any]] = [pa.field("id", pa.string()), pa.field("size", pa.int64())]
    rows = at(folder).different_values(pa.schema(columns), "id").to_pylist()
    return {(row["id"], row["size"]) for row in rows}


def test_values_come_from_statistics_if_all_rows_of_a_file_have_the_same(tmp_path: Path) -> None:
    for number, value in enumerate("abc"):
        add_file(tmp_path, value, [number, number], bounds(number, number)).unlink()
    assert values_in(tmp_path) == {("a", 0), ("b", 1), ("c", 2)}


@pytest.mark.parametrize(
    ("sizes", "stats"),
    [
        ([1, 2], bounds(1, 2)),
        ([1, None], bounds(1, 1, nulls=1)),
        ([None], {"nullCount": {"size": 1}}),
        ([7], None),
    ],
    ids=["several values", "one value and null", "only null", "no statistics"],
)
def test_values_come_from_the_rows_of_files_whose_statistics_do_not_tell(
    tmp_path: Path, sizes: list[int | None], stats: dict[str, Any] | None
) -> None:
    add_file(tmp_path, "a", sizes, stats)
    assert values_in(tmp_path) == {("a", size) for size in sizes}, "no other file has statistics"
    add_file(tmp_path, "b", [9], bounds(9, 9)).unlink()
    assert values_in(tmp_path) == {("b", 9), *(("a", size) for size in sizes)}


def test_a_table_without_files_has_no_values(tmp_path: Path) -> None:
    assert values_in(tmp_path) == set()
    replace(at(tmp_path), "a")
    assert values_in(tmp_path) == set()


@pytest.mark.parametrize("path", ["id%3Da/2.parquet", "file:///elsewhere/id=a/2.parquet", "/elsewhere/2.parquet"])
def test_a_table_whose_log_has_absolute_or_encoded_paths_is_left_to_delta(tmp_path: Path, path: str) -> None:
    replace(at(tmp_path), "a", "1")
    added = {"partitionValues": {"id": "a"}, "size": 1, "modificationTime": 0, "dataChange": True, "stats": None}
    logged(tmp_path, {"add": {**added, "path": path}})
    assert open_local_table(str(tmp_path)) is None


@pytest.mark.parametrize("protocol", [
    {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["fooBar"], "writerFeatures": ["fooBar"]},
    {"minReaderVersion": 4, "minWriterVersion": 7},
    {"minReaderVersion": 1, "minWriterVersion": 4},
])  # fmt: skip
def test_a_table_with_features_is_left_to_delta(tmp_path: Path, protocol: dict[str, Any]) -> None:
    replace(at(tmp_path), "a", "1")
    logged(tmp_path, {"protocol": protocol})
    assert open_local_table(str(tmp_path)) is None


def test_a_broken_log_is_left_to_delta(tmp_path: Path) -> None:
    replace(at(tmp_path), "a", "1")
    next((tmp_path / "_delta_log").glob("*.json")).write_text("no log", encoding="utf-8")
    assert open_local_table(str(tmp_path)) is None


@pytest.mark.parametrize("name", ["a%25", "a\\b", "a\tb", "a\x7f"])
def test_a_path_that_delta_rs_mistakes_for_another_is_not_given_to_it(tmp_path: Path, name: str) -> None:
    assert open_local_table(str(tmp_path / name)) is None


@pytest.mark.parametrize("name", ["a%b", "a b", "ü#1?", "[*]{}", "relative/../a"])
def test_other_paths_are_given_to_delta_rs(tmp_path: Path, name: str) -> None:
    replace(at(tmp_path / name), "a", "1")
    assert names_of(tmp_path / name, "a") == {"a": ["1"]}
    assert (tmp_path / name / "_delta_log").is_dir()


def test_hadoops_checksum_of_a_checkpoint_is_removed_before_the_log_changes(tmp_path: Path) -> None:
    replace(at(tmp_path), "a", "1")
    left = tmp_path / "_delta_log/._last_checkpoint.crc"
    left.write_bytes(b"crc")
    replace(at(tmp_path), "a", "2")
    assert not left.exists()


def test_a_log_is_read_from_its_last_checkpoint_on(tmp_path: Path) -> None:
    for number in range(12):
        replace(at(tmp_path), "a", str(number))
    assert list((tmp_path / "_delta_log").glob("*.checkpoint.parquet"))
    assert names_of(tmp_path, "a") == {"a": ["11"]}


def test_reading_many_files_is_left_to_delta_which_skips_some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs.lake.local_log, "FEW_FILES", 1)
    replace(at(tmp_path), "a", "1", "2")
    replace(at(tmp_path), "b", "3")
    assert at(tmp_path).files(("id", "a")) is None
    assert at(tmp_path).files() is None
    assert names_of(tmp_path, "b") == {"b": ["3"]}


def test_a_log_that_does_not_fit_on_a_full_disk_gives_one_plain_line(tmp_path: Path) -> None:
    replace(at(tmp_path), "a", "1")
    with files_of_at_most(10), pytest.raises(LakeError, match=r"its log could not be written: .*too large") as raised:
        replace(at(tmp_path), "a", "2")
    told = str(raised.value)
    assert told.startswith(f"{tmp_path}: ")
    assert told.isprintable()
    assert names_of(tmp_path, "a") == {"a": ["1"]}


def test_a_log_is_read_once_while_it_has_no_newer_version(tmp_path: Path) -> None:
    replace(at(tmp_path), "a", "1")
    assert at(tmp_path).log is at(tmp_path).log
    before = at(tmp_path)
    replace(at(tmp_path), "b", "2")
    assert names_of(tmp_path, "a", "b") == {"a": ["1"], "b": ["2"]}
    assert [Path(file).stem for file in before.all_files()] == ["1"], "it stays as it was when it was opened"


def test_a_table_that_is_made_again_in_the_same_place_is_read_again(tmp_path: Path) -> None:
    replace(at(tmp_path), "a", "1")
    assert names_of(tmp_path, "a") == {"a": ["1"]}
    shutil.rmtree(tmp_path / "_delta_log")
    replace(at(tmp_path), "a", "2")
    assert names_of(tmp_path, "a") == {"a": ["2"]}


def test_files_are_opened_for_their_numbers_of_rows_if_the_log_lacks_them(tmp_path: Path) -> None:
    (tmp_path / "id=b").mkdir()
    pq.write_table(pa.table({"size": [1, 2, 3]}), tmp_path / "id=b/2.parquet")
    replace(at(tmp_path), "a", "1")
    at(tmp_path).replace(SCHEMA, ("id", "b"), [DataFile("id=b/2.parquet", 1, 3, "{}")])
    table = at(tmp_path)
    assert not (tmp_path / "id=a").exists(), "the log alone has it"
    assert table.row_count(table.all_files()) == 1 + 3
    assert table.row_count(table.all_files(("id", "b"))) == 3
    assert table.row_count([]) == 0


def test_a_table_is_written_without_reading_its_log_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace(at(tmp_path), "a", "1")
    table, read = at(tmp_path), list[object]()
    monkeypatch.setattr(jobs.lake.local_log, "DeltaTable", read.append)
    replace(table, "b", "2")
    assert read == []
    monkeypatch.undo()
    assert table.log is not None
    assert (table.log.version(), table.log.transaction_version("id=b")) == (0, None), "others read the same log"
    assert names_of(tmp_path, "a", "b") == {"a": ["1"], "b": ["2"]}


def test_a_log_keeps_as_few_files_after_many_nights_as_after_some(tmp_path: Path) -> None:
    numbers = list[int]()
    for night in range(60):
        replace(at(tmp_path), f"n{night}", "1")
        files = [*(tmp_path / "_delta_log").iterdir()]
        numbers.append(len(files))
        for file in files:  # another day has passed
            at_time = file.stat().st_mtime - A_DAY_S
            os.utime(file, (at_time, at_time))
    # A week of versions, up to ten from the checkpoint before it on, up to ten since the last one; and checkpoints.
    assert max(numbers) <= 7 + 10 + 10 + 3
    assert len(at(tmp_path).all_files()) == 60
