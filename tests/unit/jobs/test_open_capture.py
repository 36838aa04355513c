"""Captures opened without Spark: their rows, whatever the threads and files, and what cannot be opened."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from jobs.open_capture import TABLES, OpenCapture, open_capture
from tests.unit.capture.capture_files import (
    NUMBERS_OF_PACKETS,
    by_clock,
    records_of,
    rows_in_order,
    sample_capture,
    store,
    without,
)
from tests.unit.capture.frame_dumps import dumped, write_parquet
from tests.unit.capture.logged import heartbeat
from udfs.errors import ArgumentError, CaptureError
from udfs.facts.arrow_tables import arrow_schema

OF_FILES = {"capture_id", *NUMBERS_OF_PACKETS}
OF_PACKETS = {*OF_FILES, "request_first_time", "response_first_time"}


@pytest.fixture(scope="module")
def capture_file(repository: Path) -> Path:
    return repository / "tests/captures/mixed.pcap.zst"


@pytest.fixture(scope="module")
def capture(capture_file: Path) -> OpenCapture:
    return open_capture(capture_file)


@pytest.fixture(scope="module")
def plain_file(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return store(tmp_path_factory.mktemp("plain") / "mixed.pcap", *sample_capture(repository, "mixed"))


def rows(table: pa.Table, left_out: set[str] = OF_FILES) -> list[str]:
    kept = [name for name in table.schema.names if name not in left_out]
    return sorted(map(repr, table.select(kept).to_pylist()))


def test_every_table_has_the_declared_columns(capture: OpenCapture) -> None:
    assert {name: table.schema for name, table in capture.tables().items()} == {
        name: arrow_schema(table) for name, table in TABLES.items()
    }


def test_a_table_has_the_same_rows_alone_as_among_all(capture: OpenCapture) -> None:
    every = capture.tables()
    for name, table in every.items():
        assert rows(capture.rows(name), set()) == rows(table, set()), name


@pytest.mark.parametrize("threads", [1, 3, 16])
def test_rows_do_not_depend_on_threads(capture: OpenCapture, capture_file: Path, threads: int) -> None:
    expected = {name: rows(table, set()) for name, table in capture.tables().items()}
    found = open_capture(capture_file, threads=threads).tables()
    assert {name: rows(table, set()) for name, table in found.items()} == expected


def test_topics_that_fetches_call_by_id_have_the_names_that_metadata_tells(capture: OpenCapture) -> None:
    told = capture.rows("cluster_metadata").select(["topic_id", "topic"]).drop_null().to_pylist()
    names = {row["topic_id"]: row["topic"] for row in told}
    fetched = capture.rows("fetch_partitions").select(["topic_id", "topic"]).drop_null().to_pylist()
    by_id = [row for row in fetched if row["topic_id"] in names]
    assert by_id
    assert all(row["topic"] == names[row["topic_id"]] for row in by_id)


def test_rotated_files_of_two_points_give_the_rows_of_the_capture(
    capture: OpenCapture, plain_file: Path, tmp_path: Path
) -> None:
    """Each point lost packets that the other has, and one's clock is 3 ms ahead."""
    link_type, packets = records_of(plain_file.read_bytes())
    points = {
        "one": without(packets, set(range(5, len(packets), 50))),
        "other": without(by_clock(packets, lambda time: time + 3_000), set(range(20, len(packets), 50))),
    }
    for name, part in points.items():
        for n in range(5):
            cut = part[n * len(part) // 5 : (n + 1) * len(part) // 5]
            store(tmp_path / f"{name}.pcap{n or ''}", link_type, cut)
    found = open_capture(tmp_path)
    for name in ("exchanges", "fetch_partitions", "record_batches"):
        assert rows(found.rows(name)) == rows(capture.rows(name)), name
    assert set(found.files["point"].to_pylist()) == {0, 1}


def test_a_dump_of_the_frames_gives_the_rows_of_the_capture(
    capture: OpenCapture, plain_file: Path, tmp_path: Path
) -> None:
    dump = write_parquet(tmp_path / "frames.parquet", dumped([rows_in_order([plain_file])]), row_group_size=300)
    found = open_capture(dump)
    for name in ("exchanges", "fetch_partitions", "record_batches"):
        assert rows(found.rows(name), OF_PACKETS) == rows(capture.rows(name), OF_PACKETS), name


def test_names_are_replaced_under_a_key(capture: OpenCapture, capture_file: Path, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("0123456789abcdef")
    found = open_capture(capture_file, pseudonymise=str(key)).tables()
    topics = {topic for topic in capture.rows("cluster_metadata")["topic"].to_pylist() if topic is not None}
    assert {"orders", "clicks"} <= topics
    for table in found.values():
        assert not topics & {text for row in table.to_pylist() for text in row.values() if isinstance(text, str)}


def test_what_is_no_capture_is_left_out_and_named(
    capture: OpenCapture, capture_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("nothing to see here, " * 100)
    found = open_capture(capture_file, notes)
    assert "notes.txt" in capsys.readouterr().err
    assert rows(found.rows("exchanges")) == rows(capture.rows("exchanges"))
    assert found.files.num_rows == 2


def test_a_capture_without_packets_has_tables_without_rows(tmp_path: Path) -> None:
    found = open_capture(store(tmp_path / "empty.pcap", 1, [])).tables()
    assert {table.num_rows for table in found.values()} == {0}


def test_what_cannot_be_opened_is_told(capture: OpenCapture, capture_file: Path, tmp_path: Path) -> None:
    log = tmp_path / "requests.log"
    log.write_text(heartbeat(7))
    with pytest.raises(CaptureError, match=r"requests\.log: open_capture reads packets and frames"):
        open_capture(log)
    with pytest.raises(ArgumentError, match=r"nowhere\.pcap: there is no such file"):
        open_capture(tmp_path / "nowhere.pcap")
    with pytest.raises(CaptureError, match="more than 1,000 bytes of memory"):
        open_capture(capture_file, most_bytes=1_000)
    with pytest.raises(ArgumentError, match="threads must be 1 or more, got 0"):
        open_capture(capture_file, threads=0)
    with pytest.raises(
        ArgumentError, match="no rows of capture_quality, nothing; there are those of connections, exch"
    ):
        capture.tables("nothing", "capture_quality", "exchanges")
