"""The files that workers write for a table: rows, layout as Delta's, and statistics that hold for every row."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.tables.gold import RUNS
from schemas.tables.silver import CAPTURES, CONNECTIONS, EXCHANGES, RECORD_BATCHES
from schemas.tables.table import Table
from tests.full_disk import files_of_at_most
from udfs.errors import LakeError
from udfs.facts.arrow_tables import arrow_schema, pack_rows
from udfs.facts.cluster_names import ClusterNames
from udfs.facts.table_files import DICTIONARY, DIFFERENCES, unpacked_rows, write_files

NAMES = ClusterNames(broker_of={"10.0.0.1:9092": "1"})
Row = dict[str, Any]


def packed(table: Table, *rows: Row) -> list[pa.RecordBatch]:
    """Rows of a capture set of which only some columns matter, packed."""
    of_set = [{"capture_id": "abc", **row} for row in rows]
    return list(pack_rows(table, pa.RecordBatch.from_pylist(of_set, schema=arrow_schema(table))))


def written(folder: Path, *parts: list[pa.RecordBatch]) -> list[Row]:
    """Rows of FILES for the files to which the packed rows were written."""
    folders = {EXCHANGES: str(folder / "exchanges"), CONNECTIONS: str(folder / "connections")}
    return write_files(unpacked_rows(chain(*parts), folders, NAMES), folders, "abc").to_pylist()


def stats_of(folder: Path, *parts: list[pa.RecordBatch]) -> Row:
    (file,) = written(folder, *parts)
    return json.loads(file["stats"])


def test_each_table_has_a_file_of_its_rows_without_the_column_of_its_folder(tmp_path: Path) -> None:
    exchanges = packed(EXCHANGES, {"exchange_no": 1, "broker": "10.0.0.1:9092"}), packed(EXCHANGES, {"exchange_no": 2})
    files = written(tmp_path, exchanges[0], packed(CONNECTIONS, {"connection_id": 7}), exchanges[1])
    assert [file["table"] for file in files] == ["exchanges", "connections"]
    held: tuple[list[tuple[int | None, str | None]], ...] = ([(1, "1"), (2, None)], [(None, None)])
    for file, rows in zip(files, held, strict=True):
        path = tmp_path / file["table"] / file["path"]
        found = pq.ParquetFile(path).read()
        table = EXCHANGES if file["table"] == "exchanges" else CONNECTIONS
        assert path.parent.name == "capture_id=abc"
        assert path.stat().st_size == file["size"]
        assert found.schema.names == [column for column in table.columns if column != "capture_id"]
        assert found.num_rows == len(rows)
        if table is EXCHANGES:
            assert list(zip(found["exchange_no"].to_pylist(), found["broker"].to_pylist(), strict=True)) == rows


def test_no_rows_are_no_file(tmp_path: Path) -> None:
    assert written(tmp_path, packed(EXCHANGES)) == []
    assert list(tmp_path.iterdir()) == []


def test_statistics_are_of_all_row_groups(tmp_path: Path) -> None:
    stats = stats_of(tmp_path, packed(EXCHANGES, {"exchange_no": 5}, {}), packed(EXCHANGES, {"exchange_no": -3}))
    number = "exchange_no"
    told = stats["numRecords"], stats["minValues"][number], stats["maxValues"][number], stats["nullCount"][number]
    assert told == (3, -3, 5, 1)


def test_a_column_of_nulls_has_no_bounds(tmp_path: Path) -> None:
    stats = stats_of(tmp_path, packed(EXCHANGES, {}, {}))
    assert (stats["minValues"], stats["maxValues"]) == ({}, {})
    assert stats["nullCount"]["exchange_no"] == 2


def test_times_are_cut_to_milliseconds(tmp_path: Path) -> None:
    times = datetime(2026, 1, 31, 12, 0, 0, 999_999, UTC), datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)
    stats = stats_of(tmp_path, packed(EXCHANGES, *({"request_time": time} for time in times)))
    assert stats["minValues"]["request_time"] == "1969-12-31T23:59:59.999Z"
    assert stats["maxValues"]["request_time"] == "2026-01-31T12:00:00.999Z"


def test_texts_have_no_bounds_in_the_log(tmp_path: Path) -> None:
    stats = stats_of(tmp_path, packed(EXCHANGES, {"client_id": "orders-service"}))
    assert "client_id" not in stats["minValues"]
    assert "orders-service" not in json.dumps(stats)


def test_the_log_has_the_capture_set_of_a_run_and_the_decoder_of_a_set(tmp_path: Path) -> None:
    """Commands ask for these of all runs or sets, and take them from the log."""
    runs = pa.RecordBatch.from_pylist([{"run_id": "r", "capture_id": "abc"}] * 2, schema=arrow_schema(RUNS))
    (file,) = write_files([(RUNS, runs)], {RUNS: str(tmp_path)}, "r").to_pylist()
    stats = json.loads(file["stats"])
    assert stats["minValues"] == stats["maxValues"] == {"capture_id": "abc"}
    assert stats["nullCount"]["capture_id"] == 0
    files = [{"capture_id": "abc", "decoder": decoder} for decoder in ("one", "another")]
    for held, of_all in (files[:1], {"decoder": "one"}), (files, {}):
        batch = pa.RecordBatch.from_pylist(held, schema=arrow_schema(CAPTURES))
        (file,) = write_files([(CAPTURES, batch)], {CAPTURES: str(tmp_path)}, "abc").to_pylist()
        assert json.loads(file["stats"])["minValues"] == of_all


def test_a_task_that_fails_leaves_no_file(tmp_path: Path) -> None:
    broken = pa.RecordBatch.from_pydict({"table": ["connections"], "rows": [b"no rows"]})
    with pytest.raises(pa.ArrowInvalid):
        written(tmp_path, packed(EXCHANGES, {"exchange_no": 1}), [broken])
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_rows_of_another_capture_set_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match=r"have capture_id \['abc', 'xyz'\], expected abc"):
        written(tmp_path, packed(EXCHANGES, {"exchange_no": 1}, {"exchange_no": 2, "capture_id": "xyz"}))
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_the_number_of_a_files_rows_is_returned(tmp_path: Path) -> None:
    (file,) = written(tmp_path, packed(EXCHANGES, {}, {}), packed(EXCHANGES, {}))
    assert file["rows"] == 3


def test_repeated_values_are_stored_once_in_a_dictionary(tmp_path: Path) -> None:
    """This holds for lists and maps, too, but not for times."""
    rows = [{"record_sizes": [100, 100], "codec": "zstd", "request_time": datetime(2026, 1, 31, tzinfo=UTC)}] * 2
    (file,) = write_files(
        unpacked_rows(packed(RECORD_BATCHES, *rows), [RECORD_BATCHES], None), {RECORD_BATCHES: str(tmp_path)}, "abc"
    ).to_pylist()
    group = pq.ParquetFile(tmp_path / file["path"]).metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    coded = {column.path_in_schema for column in columns if column.has_dictionary_page}
    assert {"record_sizes.list.element", "codec"} <= coded
    assert "request_time" not in coded


def test_times_and_numbers_that_hardly_repeat_are_kept_as_differences(tmp_path: Path) -> None:
    rows = [{"exchange_no": n, "request_packet": n << 20, "request_bytes": 100, "api_key": 1} for n in range(100)]
    (file,) = written(tmp_path, packed(EXCHANGES, *rows))
    group = pq.ParquetFile(tmp_path / file["table"] / file["path"]).metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    encoded = {column.path_in_schema: set(column.encodings) for column in columns}
    assert {"request_packet", "exchange_no", "request_time"} <= {c for c, of in encoded.items() if DIFFERENCES in of}
    assert DICTIONARY in encoded["request_bytes"]
    assert not {DIFFERENCES, DICTIONARY} & encoded["api_key"]


def test_if_the_disk_is_full_the_message_names_the_lake_and_no_file_is_left(tmp_path: Path) -> None:
    rows = packed(EXCHANGES, {"exchange_no": 1}, {"exchange_no": 2})
    with files_of_at_most(10), pytest.raises(LakeError, match=r"not be written: Error writing .*too large") as raised:
        written(tmp_path, rows)
    assert str(raised.value).startswith(f"{tmp_path}: ")
    assert not any(path.is_file() for path in tmp_path.rglob("*"))
