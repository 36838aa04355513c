"""Captures with URIs are found, and read piece by piece, like those on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from jobs.captures.capture_index import BUCKETS, index_file
from jobs.captures.capture_rows import BATCH_BYTES
from jobs.captures.inputs import resolve_captures
from tests.unit.capture.capture_files import rows_in_order
from tests.unit.capture.frame_dumps import dumped, write_parquet
from tests.unit.capture.logged import heartbeat
from tests.unit.capture.object_store import ObjectStore, object_store
from udfs.capture.file_index import CaptureIndex, index_capture
from udfs.capture.packets import read_packets
from udfs.capture.storage import FIRST_READ_BYTES, MOST_READ_BYTES, open_stored, stored_bytes
from udfs.errors import ArgumentError, CaptureError

NAMES = (
    "a b.pcap",
    "b.pcapng.gz",
    "broker.log",
    "notes.txt",
    "odd[1].pcap",
    "100%25.pcap",
    "sub/c.pcap",
    "sub/deep/d.pcap",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in NAMES:
        path = tmp_path / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(heartbeat(1) if name.endswith(".log") else "text")
    return tmp_path / "files"


@pytest.fixture
def store(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    with object_store(folder, monkeypatch) as running:
        yield running


@pytest.fixture(params=["file", "s3"])
def uri(request: pytest.FixtureRequest, folder: Path, store: ObjectStore) -> Callable[[str], str]:
    """The URI of a file, folder or pattern in the folder."""
    return store.uri if request.param == "s3" else lambda name: f"file://{folder}/{name}"


def contents(named: str) -> list[str]:
    """The names of the files that are found, each checked to be readable by its URI."""
    found = [str(uri) for uri in resolve_captures([named])]
    for uri in found:
        with open_stored(uri) as stored:
            assert len(stored.readall() or b"") == stored_bytes(uri)
    return [uri.partition("?")[0].rpartition("/")[2] for uri in found]


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("", ["100%2525.pcap", "a%20b.pcap", "b.pcapng.gz", "broker.log", "odd%5B1%5D.pcap"]),
        ("sub", ["c.pcap"]),
        ("b.pcapng.gz", ["b.pcapng.gz"]),
        ("notes.txt", ["notes.txt"]),
        ("a b.pcap", ["a%20b.pcap"]),
        ("odd[1].pcap", ["odd%5B1%5D.pcap"]),
        ("?*.pcap", ["100%2525.pcap", "a%20b.pcap", "odd%5B1%5D.pcap"]),
        ("*/*.pcap", ["c.pcap"]),
        ("**/*.pcap", ["100%2525.pcap", "a%20b.pcap", "odd%5B1%5D.pcap", "c.pcap", "d.pcap"]),
    ],
)
def test_files_folders_and_patterns_are_found(uri: Callable[[str], str], named: str, expected: list[str]) -> None:
    assert contents(uri(named)) == expected


def test_uris_that_match_nothing_are_reported(uri: Callable[[str], str]) -> None:
    names = [uri("gone.pcap"), uri("*.arrow"), "ftp://host/x.pcap"]
    with pytest.raises(ArgumentError) as raised:
        resolve_captures(names)
    told = dict(zip(names, str(raised.value).splitlines()[1:], strict=True))
    assert told[names[0]].endswith("there is no such file or folder")
    assert told[names[1]].endswith("no file matches this pattern")
    assert "expected file://, s3://, gs://, abfss:// or hdfs://" in told[names[2]]


def test_a_bucket_that_is_not_there_is_named(store: ObjectStore) -> None:
    gone = store.uri("sub/c.pcap").replace("s3://bucket/", "s3://nobody/")
    with pytest.raises(ArgumentError, match=r"s3://nobody/sub/c\.pcap\?.*: there is no bucket nobody$"):
        resolve_captures([gone])


@pytest.mark.parametrize("key", ["sub/c.pcap", "sub", "sub/*.pcap"])
def test_the_message_on_a_store_that_refuses_says_what_to_check(store: ObjectStore, key: str) -> None:
    store.refuses = True
    with pytest.raises(ArgumentError, match=r"ACCESS_DENIED.*Check the name, the credentials \(environment, ") as told:
        resolve_captures([store.uri(key)])
    assert "made-up" not in str(told.value)


def test_a_uri_without_a_valid_host_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"tar://\[bucket/x\.pcap: .*expected file://, s3://"):
        resolve_captures(["tar://[bucket/x.pcap"])


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("s3://key:hunter2@bucket/x.pcap", "s3://key:***@bucket/x.pcap: "),
        ("s3://key:hunter2@hunter2@bucket/x.pcap?region=a", "s3://key:***@bucket/x.pcap?region=a: "),
        ("abfss://c@a.dfs.core.windows.net/x?sig=hunter2", "abfss://c@a.dfs.core.windows.net/x?***: "),
    ],
)
def test_a_uri_with_a_password_is_refused_and_named_without_it(uri: str, shown: str, tmp_path: Path) -> None:
    (tmp_path / "a.pcap").touch()
    with pytest.raises(ArgumentError) as raised:
        resolve_captures([str(tmp_path), uri])
    head, told = str(raised.value).splitlines()
    assert told.startswith(f"  {shown}a URI with a password or key in it")
    assert "hunter2" not in head + told


def packets_of(index: CaptureIndex) -> pa.Table:
    return pa.Table.from_batches(
        batch for r in index.ranges for batch in read_packets(r, file_no=0, buckets=1, batch_bytes=BATCH_BYTES)
    )


def test_a_range_reads_its_own_bytes_and_little_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared_captures: Path
) -> None:
    """The bytes are the same as those of a file on this machine."""
    shared = shared_captures / "starve.pcap"
    (tmp_path / "starve.pcap").write_bytes(shared.read_bytes())
    with object_store(tmp_path, monkeypatch) as store:
        indexes = [
            index_capture(path, range_bytes=2 << 20, buckets=BUCKETS)
            for path in (store.uri("starve.pcap"), str(shared))
        ]
        ours, theirs = indexes
        assert (ours.sha256, ours.counts, len(ours.ranges)) == (theirs.sha256, theirs.counts, 4)
        store.sent.clear()
        first = next(read_packets(ours.ranges[1], file_no=0, buckets=1, batch_bytes=1 << 20))
        assert first.num_rows > 0
        sent = store.sent["starve.pcap"]
        assert sent[0] == FIRST_READ_BYTES
        assert sum(sent) < 3 << 20
        assert max(sent) <= MOST_READ_BYTES
        assert packets_of(ours).equals(packets_of(theirs))


def test_logs_and_frame_dumps_are_read_by_uri(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repository: Path
) -> None:
    (tmp_path / "broker.log").write_text(heartbeat(1) + heartbeat(2))
    (tmp_path / "mixed.pcap.zst").write_bytes((repository / "tests/captures/mixed.pcap.zst").read_bytes())
    dump = dumped([rows_in_order([tmp_path / "mixed.pcap.zst"])])
    write_parquet(tmp_path / "frames.parquet", dump, row_group_size=100)
    with object_store(tmp_path, monkeypatch) as store:
        log, capture, frames = (index_file(store.uri(n)) for n in ("broker.log", "mixed.pcap.zst", "frames.parquet"))
        assert (store.opened["broker.log"], store.opened["mixed.pcap.zst"]) == (1, 1)
    assert (log.format, log.log_lines) == ("request_log", 2)
    assert (capture.format, capture.compression, capture.counts.packets) == ("pcap", "zstd", 4232)
    assert (frames.format, frames.counts.packets) == ("parquet", dump.num_rows)


def test_a_uri_that_is_gone_is_reported(store: ObjectStore) -> None:
    with pytest.raises(CaptureError, match=r"gone\.pcap.*: cannot be read"):
        index_file(store.uri("gone.pcap"))
