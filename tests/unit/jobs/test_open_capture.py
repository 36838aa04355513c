"""Captures opened without Spark: rows do not depend on threads and files, and some files cannot be opened."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import pyarrow as pa
import pytest

from jobs.captures import held_captures
from jobs.open_capture import TABLES, OpenCapture, open_capture
from schemas.wire.declared import FETCH
from tests.unit.capture.capture_files import (
    NUMBERS_OF_PACKETS,
    by_clock,
    records_of,
    rows_in_order,
    sample_capture,
    store,
    without,
)
from tests.unit.capture.conversations import OPENING, asks, batch, packets
from tests.unit.capture.frame_dumps import dumped, write_parquet
from tests.unit.capture.logged import heartbeat
from tests.unit.facts.brokers import asked
from udfs.capture import packet_store
from udfs.capture.packet_store import MemoryBudget
from udfs.errors import ArgumentError, CaptureError
from udfs.facts import arrow_tables
from udfs.facts.arrow_tables import PACKED_ROWS, arrow_schema

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


def test_a_table_has_the_same_rows_if_it_is_asked_for_alone(capture: OpenCapture) -> None:
    every = capture.tables()
    for name, table in every.items():
        assert rows(capture.rows(name), set()) == rows(table, set()), name


@pytest.mark.parametrize("threads", [1, 3, 16])
def test_rows_do_not_depend_on_threads(capture: OpenCapture, capture_file: Path, threads: int) -> None:
    expected = {name: rows(table, set()) for name, table in capture.tables().items()}
    found = open_capture(capture_file, threads=threads).tables()
    assert {name: rows(table, set()) for name, table in found.items()} == expected


def test_topics_that_fetches_name_by_id_have_the_names_from_metadata(capture: OpenCapture) -> None:
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


def test_files_that_are_no_captures_are_left_out_and_named(
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


def test_a_notebook_shows_how_much_a_capture_has_and_that_files_are_damaged(
    capture: OpenCapture, plain_file: Path, tmp_path: Path
) -> None:
    assert repr(capture) == f"<capture {capture.capture_id}: 4,232 packets of 1 file>"
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(plain_file.read_bytes()[:-1])
    found = open_capture(cut)
    damage = "1 fault of files, which `files` tells"
    assert repr(found) == f"<capture {found.capture_id}: 4,231 packets of 1 file; {damage}>"


def test_nothing_of_the_traffic_is_shown(capture: OpenCapture) -> None:
    assert "payload=" not in repr(vars(capture))


def test_two_opened_captures_are_never_equal(capture: OpenCapture, capture_file: Path) -> None:
    assert len({capture, capture, open_capture(capture_file)}) == 2


def test_a_tilde_is_the_home_folder(
    capture: OpenCapture, capture_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(capture_file, tmp_path / "mixed.pcap.zst")
    (tmp_path / "key").write_text("0123456789abcdef")
    monkeypatch.setenv("HOME", str(tmp_path))
    for named in ("~/mixed.pcap.zst", Path("~/mixed.pcap.zst"), "~"):
        assert open_capture(named, pseudonymise="~/key").capture_id == capture.capture_id


def test_all_cores_are_used_if_the_system_does_not_say_which_may_be_used(
    capture_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    assert open_capture(capture_file).held.threads == os.cpu_count()


def test_reading_of_files_ends_when_the_user_interrupts(
    capture_file: Path, plain_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, reads = list[str](), Event()
    waited_for, other = sorted(map(str, (capture_file, plain_file)))

    def read(memory: MemoryBudget, path: str) -> None:
        if path == waited_for:
            reads.wait()
            raise KeyboardInterrupt
        reads.set()
        until = monotonic() + 10
        try:
            while monotonic() < until:
                memory.take(0)
        except CaptureError:
            left.append(path)

    monkeypatch.setattr(held_captures, "_read_file", read)
    with pytest.raises(KeyboardInterrupt):
        open_capture(capture_file, plain_file, threads=2)
    assert left == [other]


def test_a_file_is_refused_if_its_content_is_larger_than_memory(plain_file: Path, tmp_path: Path) -> None:
    large = tmp_path / "large.pcap"
    large.write_bytes(plain_file.read_bytes())
    os.truncate(large, 1 << 40)  # takes no room
    with pytest.raises(CaptureError, match="more than 1,000 bytes of memory"):
        open_capture(large, most_bytes=1_000)


def test_the_message_says_that_memory_is_too_small_for_the_packets(
    capture_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(rows: int, dtype: object) -> None:
        raise MemoryError(f"malloc of size {rows} failed")

    monkeypatch.setattr(packet_store, "unwritten_array", fail)
    with pytest.raises(CaptureError, match=r"more memory than there is \(malloc of size \d+ failed\).*sh ingest` read"):
        open_capture(capture_file)


def test_so_few_rows_come_at_a_time_that_the_longest_texts_of_each_fit_into_a_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each partition of a fetch has the client's id. A hostile id of 1 MB makes more text than a column can have."""
    monkeypatch.setattr(arrow_tables, "MOST_TEXT_BYTES", PACKED_ROWS * len("127.0.0.1:50000"))
    partitions = [{"partition": n} for n in range(PACKED_ROWS + 1)]
    fetch = asked(FETCH.request, 4, 1, topics=[{"topic": b"orders", "partitions": partitions}])
    dump = write_parquet(tmp_path / "wide.parquet", dumped([batch(packets([*OPENING, asks(fetch)]))]))
    found = open_capture(dump).rows("fetch_partitions")
    assert found.num_rows == PACKED_ROWS + 1
    assert max(rows.num_rows for rows in found.to_batches()) <= PACKED_ROWS


def test_the_message_says_why_a_capture_cannot_be_opened(
    capture: OpenCapture, capture_file: Path, tmp_path: Path
) -> None:
    log = tmp_path / "requests.log"
    log.write_text(heartbeat(7))
    with pytest.raises(CaptureError, match=r"requests\.log: open_capture reads packets and frames; leave request logs"):
        open_capture(log)
    with pytest.raises(ArgumentError, match=r"nowhere\.pcap: there is no such file"):
        open_capture(tmp_path / "nowhere.pcap")
    with pytest.raises(CaptureError, match="more than 1,000 bytes of memory"):
        open_capture(capture_file, most_bytes=1_000)
    with pytest.raises(
        ArgumentError, match="no rows of capture_quality, nothing; there are those of connections, exch"
    ):
        capture.tables("nothing", "capture_quality", "exchanges")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "no captures given; name files, folders, patterns or URIs"),
        ({"captures": [["a.pcap", "b.pcap"]]}, "as text or a Path, got list; give several one by one"),
        ({"captures": [None]}, "a capture must be a path, as text or a Path, got NoneType$"),
        ({"captures": [b"a.pcap"]}, "a capture must be a path, as text or a Path, got bytes$"),
        ({"pseudonymise": b"a key"}, "pseudonymise must be a path, as text or a Path, got bytes$"),
        ({"threads": 0}, "threads must be a whole number, 1 or more, got 0"),
        ({"threads": "2"}, "threads must be a whole number, 1 or more, got '2'"),
        ({"most_bytes": "2 GiB"}, "most_bytes must be a whole number, 1 or more, got '2 GiB'"),
        ({"pseudonymise": "nowhere"}, "open_capture: pseudonymise nowhere: No such file"),
    ],
)
def test_arguments_of_a_wrong_type_are_refused(capture_file: Path, arguments: dict[str, Any], told: str) -> None:
    captures = arguments.pop("captures", [capture_file] if arguments else [])
    with pytest.raises(ArgumentError, match=told):
        open_capture(*captures, **arguments)


@pytest.mark.parametrize("names", [["exchanges", "connections"], None, "captures"])
def test_a_name_that_no_table_has_is_refused(capture: OpenCapture, names: Any) -> None:
    with pytest.raises(ArgumentError, match="named one by one, and those of captures in `files`"):
        capture.rows(names)


def test_many_request_logs_are_named_in_few_words(tmp_path: Path) -> None:
    for n in range(7):
        (tmp_path / f"{n}.log").write_text(heartbeat(n))
    with pytest.raises(CaptureError, match=r"\.log, 4 more: open_capture reads"):
        open_capture(tmp_path)
