"""A file of the lake that cannot be read is named in one line, whoever reads it: a worker or the driver."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.terminal.failures import root_cause
from schemas.tables.silver import CONNECTIONS
from udfs.errors import LakeError
from udfs.facts.arrow_tables import arrow_schema
from udfs.facts.table_files import write_files
from udfs.replay.shared.silver_files import FilePart, columns_in, file_parts, may_have

COLUMNS = (str(CONNECTIONS.connection_id), str(CONNECTIONS.server))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with three connections."""
    known = {"capture_id": "one", "server": "a:1"}
    rows = [{**known, "connection_id": number} for number in (1, 2, 3)]
    (batch,) = pa.Table.from_pylist(rows, schema=arrow_schema(CONNECTIONS)).to_batches()
    written = write_files([(CONNECTIONS, batch)], {CONNECTIONS: str(tmp_path)}, "one")
    return tmp_path / written["path"][0].as_py()


def gone(file: Path) -> None:
    file.unlink()


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-9])


def zeroed(file: Path) -> None:
    """Keep the footer, and overwrite all pages with zeros."""
    content = file.read_bytes()
    footer = int.from_bytes(content[-8:-4], "little") + 8
    file.write_bytes(content[:4] + bytes(len(content) - 4 - footer) + content[-footer:])


def test_the_columns_of_a_whole_file_are_read(file: Path) -> None:
    (part,) = file_parts(str(file), 1)
    (rows,) = columns_in(part, CONNECTIONS, COLUMNS)
    assert rows["connection_id"].to_pylist() == [1, 2, 3]
    assert rows["server"].to_pylist() == ["a:1"] * 3


def test_a_file_is_cut_into_parts_of_a_given_size_or_a_row_group(tmp_path: Path) -> None:
    rows = pa.table({"connection_id": range(5)})
    pq.write_table(rows, tmp_path / "five.parquet", row_group_size=1)
    each = [part.size for part in file_parts(str(tmp_path / "five.parquet"), 1)]
    assert len(each) == 5
    assert min(each) > 0
    parts = list(file_parts(str(tmp_path / "five.parquet"), 2 * max(each)))
    assert [part.groups for part in parts] == [(0, 1), (2, 3), (4,)]
    assert [part.size for part in parts] == [sum(each[first : first + 2]) for first in (0, 2, 4)]


def test_a_files_footer_says_which_values_it_cannot_have(tmp_path: Path) -> None:
    rows = pa.table({"replica": [-1, 2, -1], "none": pa.nulls(3, pa.int32()), "rack": ["", None, "a"]})
    pq.write_table(rows, path := str(tmp_path / "rows.parquet"), row_group_size=1)
    assert [may_have(path, "replica", least) for least in (2, 3)] == [True, False]
    assert [may_have(path, "rack", least) for least in ("\0", "b")] == [True, False]
    assert not may_have(path, "none", -1)
    assert not may_have(path, "a column of a later release", -1)
    pq.write_table(rows, path, write_statistics=False)
    assert may_have(path, "replica", 3), "without statistics it may"


def test_columns_that_the_file_of_an_older_release_lacks_are_null(file: Path) -> None:
    pq.write_table(pq.read_table(file, partitioning=None).drop_columns([*COLUMNS[1:], "client"]), file)
    (part,) = file_parts(str(file), 1)
    (rows,) = columns_in(part, CONNECTIONS, ("client", *COLUMNS))
    assert rows.schema.names == ["client", *COLUMNS]
    assert rows["connection_id"].to_pylist() == [1, 2, 3]
    assert {*rows["client"].to_pylist(), *rows["server"].to_pylist()} == {None}


@pytest.mark.parametrize("damage", [gone, cut])
def test_an_error_about_parts_of_a_file_that_cannot_be_read_names_the_file(
    file: Path, damage: Callable[[Path], None]
) -> None:
    damage(file)
    with pytest.raises(LakeError) as raised:
        list(file_parts(str(file), 1))
    assert_told(str(raised.value), file)


@pytest.mark.parametrize("damage", [gone, cut, zeroed])
def test_an_error_about_columns_of_a_file_that_cannot_be_read_names_the_file(
    file: Path, damage: Callable[[Path], None]
) -> None:
    damage(file)
    with pytest.raises(LakeError) as raised:
        list(columns_in(FilePart(str(file), (0,), 1), CONNECTIONS, COLUMNS))
    assert_told(str(raised.value), file)
    from_worker = (
        f"Traceback (most recent call last):\n  File x\nudfs.errors.LakeError: {raised.value}\n\n\tat org.apache"
    )
    assert root_cause(from_worker) == f"LakeError: {raised.value}", "a command whose worker reads it says the same"


def assert_told(message: str, file: Path) -> None:
    assert message.startswith(f"{file}: cannot be read: ")
    assert message.isprintable()
    assert message.endswith("run `ingest` with its captures and this lake again")
