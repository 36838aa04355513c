"""Frames from another tool give the same rows as packets, and wrong rows and columns are reported."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from schemas.tables.silver import EXCHANGES
from tests.unit.capture.capture_files import Tables, rows_in_order, sample_capture, store, tables_of
from tests.unit.capture.conversations import Conversation, accounted, frame, request, response, understand
from tests.unit.capture.frame_dumps import DUMP, dumped, packets_in_order, write_arrow, write_parquet
from udfs.capture.frame_dump import dump_format, index_frames
from udfs.errors import CaptureError

AT = 1_700_000_000_000_000_000
SAME = ("exchanges", "fetch_partitions", "record_batches", "cluster_metadata", "quarantine")
FIRST_TIMES = (EXCHANGES.request_first_time, EXCHANGES.response_first_time)
"""Columns that differ from those of packets, because a dump has only the time of each frame's last byte."""


@pytest.fixture(scope="module", params=["mixed", "starve"])
def capture(
    request: pytest.FixtureRequest, repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> pa.RecordBatch:
    folder = tmp_path_factory.mktemp("capture")
    return rows_in_order([store(folder / "whole.pcap", *sample_capture(repository, request.param))])


@pytest.fixture(scope="module")
def expected(capture: pa.RecordBatch) -> Tables:
    return tables_of(capture)


def only(tables: Tables) -> Tables:
    return {name: [{k: v for k, v in row.items() if k not in FIRST_TIMES} for row in tables[name]] for name in SAME}


def test_a_dump_gives_the_tables_of_the_packets(capture: pa.RecordBatch, expected: Tables, tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "frames", dumped([capture]), row_group_size=100)
    assert only(tables_of(packets_in_order([path]))) == only(expected)


def test_an_arrow_file_of_other_types_gives_the_same(capture: pa.RecordBatch, expected: Tables, tmp_path: Path) -> None:
    table = dumped([capture])
    types: dict[str, Any] = {
        "connection": pa.large_binary(), "direction": pa.large_string(), "timestamp": pa.int64(),
        "frame": pa.large_binary(), "client_address": pa.large_string(), "broker": pa.string(),
    }  # fmt: skip
    columns = {name: table[name].combine_chunks().cast(kind) for name, kind in types.items()}
    columns["broker"] = columns["broker"].dictionary_encode()
    path = write_arrow(tmp_path / "frames", pa.table({"more": pa.nulls(table.num_rows), **columns}))
    assert only(tables_of(packets_in_order([path]))) == only(expected)


def test_files_ranges_and_chunks_do_not_matter(capture: pa.RecordBatch, expected: Tables, tmp_path: Path) -> None:
    table = dumped([capture])
    half = table.num_rows // 2
    paths = [
        write_parquet(tmp_path / "late", table.slice(half), row_group_size=50),
        write_arrow(tmp_path / "early", table.slice(0, half)),
    ]
    rows = packets_in_order(paths, range_bytes=10_000)
    assert only(tables_of(rows)) == only(expected)
    assert only(tables_of(rows, rows=7, payload_bytes=1)) == only(expected)


def test_rows_are_taken_by_time_whatever_their_order(capture: pa.RecordBatch, expected: Tables, tmp_path: Path) -> None:
    table = dumped([capture])
    backwards = table.take(pa.array(range(table.num_rows - 1, -1, -1)))
    times = table["timestamp"].cast(pa.int64()).to_pylist()
    table = backwards if len(set(times)) == len(times) else table.take(by_name(table))
    assert only(tables_of(packets_in_order([write_parquet(tmp_path / "frames", table)]))) == only(expected)


def test_a_dump_tells_whether_its_rows_are_by_time(tmp_path: Path) -> None:
    """Rows that are not in order are sorted frame by frame. Rows without a usable time do not count."""
    frames = rows(*(("request", request(i)) for i in range(2500)))
    late = frames.slice(0, 3).set_column(2, "timestamp", pa.array([AT, -1, AT + 1], pa.timestamp("ns", "UTC")))
    swapped = frames.take(pa.array([*range(1999), 2000, 1999, *range(2001, 2500)]))
    for table, by_time in (
        (frames, True), (late, True), (swapped, False), (pa.concat_tables([frames, late]), False),
        (pa.concat_tables([frames, frames.slice(2499)]), True),
    ):  # fmt: skip
        path = write_parquet(tmp_path / "frames", table, row_group_size=2000)
        assert index_frames(str(path), range_bytes=1, buckets=1).rows_by_time is by_time


@pytest.mark.parametrize("write", [write_parquet, write_arrow])
def test_columns_of_views_are_read(tmp_path: Path, write: Any) -> None:
    """polars writes such columns."""
    table = rows(("request", request(1)), ("response", response(1)))
    fields = [pa.field("connection", pa.string_view()), pa.field("direction", pa.string_view()), table.schema.field(2)]
    viewed = table.cast(pa.schema([*fields, pa.field("frame", pa.binary_view())]))
    viewed = viewed.append_column(
        "more", pa.array([[1], None], pa.list_view(pa.int8()) if write is write_arrow else None)
    )
    assert understand([packets_in_order([write(tmp_path / "frames", viewed)])]).answered() == [1]


def by_name(table: pa.Table) -> Any:
    return pa.compute.sort_indices(table, [("connection", "descending"), ("timestamp", "ascending")])


def rows(*frames: tuple[str, bytes], **columns: Any) -> pa.Table:
    """The frames of a connection, one every millisecond."""
    given = [
        {"connection": "one", "direction": direction, "timestamp": AT + i * 1_000_000, "frame": content}
        for i, (direction, content) in enumerate(frames)
    ]
    return pa.Table.from_pylist(given, pa.schema(list(DUMP)[:4]))


def understood(tmp_path: Path, *frames: tuple[str, bytes]) -> Conversation:
    found = understand([packets_in_order([write_parquet(tmp_path / "frames", rows(*frames))])])
    assert accounted(found)
    return found


def test_a_cut_frame_costs_only_that_frame(tmp_path: Path) -> None:
    long = request(2, bytes(5000))
    found = understood(
        tmp_path, ("request", request(1)), ("request", long[:100]), ("request", request(3)),
        *(("response", response(i)) for i in (1, 2, 3)),
    )  # fmt: skip
    assert found.answered() == [1, 2, 3]
    assert [exchange.request_missing for exchange in found.exchanges] == [0, len(long) - 100, 0]


@pytest.mark.parametrize(
    "wrong",
    [
        bytes.fromhex("15030300") + bytes(12), b"\0\0\0\1abc", frame(b"no header here"), request(9) + b"more than it",
        b"\xff" * 40, b"\0\0", frame(b""),
    ],
    ids=["TLS", "too short", "no header", "too long", "negative", "no size", "empty"],
)  # fmt: skip
def test_a_malformed_frame_is_quarantined_and_the_next_is_read(tmp_path: Path, wrong: bytes) -> None:
    found = understood(
        tmp_path, ("request", request(1)), ("request", wrong), ("request", request(2)),
        ("response", response(1)), ("response", response(2)),
    )  # fmt: skip
    assert found.answered() == [1, 2]
    assert sum(size for size, _ in found.reasons()) in (len(wrong), len(b"more than it"))


def test_a_frame_without_a_byte_is_missing(tmp_path: Path) -> None:
    found = understood(tmp_path, ("request", request(1)), ("request", b""), ("request", request(2)))
    assert [exchange.correlation_id for exchange in found.exchanges] == [1, 2]
    assert found.only["missing_bytes"] == 4


def test_the_dump_says_who_is_the_client(tmp_path: Path) -> None:
    """Neither request has a client id, and the first one is of an unknown API."""
    unknown = request(1, client_id=None, key=900, version=3)
    found = understood(tmp_path, ("response", response(0)), ("request", unknown), ("response", response(1)))
    assert found.answered() == [1]
    assert (found.only["protocol"], found.only["orphan_responses"]) == ("kafka", 1)


def test_connections_with_the_same_addresses_and_other_names_are_different(tmp_path: Path) -> None:
    table = pa.concat_tables([rows(("request", request(1)), ("response", response(1)))] * 2)
    names = ["first", "first", "second", "second"]
    times = pa.array([AT + i for i in range(4)], pa.timestamp("ns"))
    table = table.set_column(0, "connection", pa.array(names)).set_column(2, "timestamp", times)
    for name, address in (("client_address", "10.0.0.1:5000"), ("broker", "[2001:db8::1]:9092")):
        table = table.append_column(name, pa.array([address] * 4))
    found = understand([packets_in_order([write_parquet(tmp_path / "frames", table)])])
    assert found.answered() == [1, 1]
    assert [connection["requests"] for connection in found.connections] == [1, 1]


def test_wrong_rows_are_left_out_and_reported(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(
        [
            {"connection": "c", "direction": "request", "timestamp": AT, "frame": request(1), "broker": "10.0.0.1:1"},
            {"connection": None, "direction": "request", "timestamp": AT, "frame": request(1)},
            {"connection": "c", "direction": "REQUEST", "timestamp": AT, "frame": request(1)},
            {"connection": "c", "direction": "request", "timestamp": -5, "frame": request(1)},
            {"connection": "c", "direction": "request", "timestamp": AT, "frame": b"123", "broker": "kafka-1:9092"},
            {"connection": "c", "direction": "request", "timestamp": AT, "frame": b"12", "client_address": "10.0.0.1"},
            {"connection": "c", "direction": "response", "timestamp": None, "frame": request(1)},
        ],
        DUMP,
    )
    index = index_frames(str(write_parquet(tmp_path / "frames", table)), range_bytes=1 << 20, buckets=4)
    assert (index.counts.packets, index.counts.tcp, index.counts.malformed) == (7, 1, 6)
    assert index.tcp_payload_captured == len(request(1)) == index.bucket_payload_bytes.sum()
    assert [(fault.reason.value, fault.unit, fault.offset, fault.bytes_not_read) for fault in index.faults] == [
        ("row_without_value", "row", 1, 2 * len(request(1))),
        ("direction_unknown", "row", 2, len(request(1))),
        ("timestamp_implausible", "row", 3, len(request(1))),
        ("address_malformed", "row", 4, 5),
    ]


@pytest.mark.parametrize("per_ns", [1_000, 1_000_000, 1_000_000_000])
def test_numbers_in_another_unit_than_ns_are_no_times(tmp_path: Path, per_ns: int) -> None:
    """As nanoseconds they would be times of 1970, and every duration would be too short."""
    table = rows(("request", request(1))).set_column(2, "timestamp", pa.array([AT // per_ns]))
    (fault,) = index_frames(str(write_parquet(tmp_path / "frames", table)), range_bytes=1, buckets=1).faults
    assert fault.reason.value == "timestamp_implausible"


def test_all_wrong_columns_are_reported_at_once(tmp_path: Path) -> None:
    table = pa.table({"connection": [1], "direction": ["request"], "frame": ["text"], "broker": [b"x"]})
    with pytest.raises(CaptureError) as raised:
        index_frames(str(write_parquet(tmp_path / "frames", table)), range_bytes=1, buckets=1)
    assert str(raised.value).splitlines() == [
        f"{tmp_path}/frames: not a frame dump as docs/frames.md describes it: 4 faults",
        "    column connection is int64; expected string or binary",
        "    column timestamp is missing; expected timestamp or int64 (ns)",
        "    column frame is string; expected binary",
        "    column broker is binary; expected string",
    ]


def frames_of(table: pa.Table) -> list[bytes]:
    return [frame for frame in table["frame"].to_pylist() if frame is not None]


def without_sizes(table: pa.Table) -> pa.Table:
    bare = pa.array([frame[4:] for frame in frames_of(table)], pa.binary())
    return table.set_column(table.schema.get_field_index("frame"), "frame", bare)


def test_frames_without_their_sizes_are_refused_and_not_decoded_as_something_else(
    capture: pa.RecordBatch, tmp_path: Path
) -> None:
    path = write_parquet(tmp_path / "frames", without_sizes(dumped([capture])))
    with pytest.raises(CaptureError) as raised:
        index_frames(str(path), range_bytes=1, buckets=1)
    assert str(raised.value).splitlines() == [
        f"{path}: not a frame dump as docs/frames.md describes it: 1 fault",
        "    column frame has requests that begin with their header; expected each frame as it was sent, after the 4 "
        "bytes of its size: struct.pack('>i', len(frame)) + frame",
    ]


@pytest.mark.parametrize("kept", [8, 12, 20, 300])
def test_cut_frames_are_not_mistaken_for_frames_without_sizes(
    capture: pa.RecordBatch, kept: int, tmp_path: Path
) -> None:
    """eBPF probes give such frames."""
    table = dumped([capture])
    cut = pa.array([frame[:kept] for frame in frames_of(table)], pa.binary())
    table = table.set_column(table.schema.get_field_index("frame"), "frame", cut)
    assert index_frames(str(write_parquet(tmp_path / "frames", table)), range_bytes=1, buckets=1).counts.tcp > 0


@pytest.mark.parametrize(
    "frames",
    [
        [("response", response(1)[4:])],
        [("request", b"\0\0")],
        [("request", request(1)[4:]), ("request", request(2))],
        [("request", b"\xff" * 40)],
    ],
    ids=["responses alone", "too short", "some", "no header anywhere"],
)
def test_reading_goes_on_if_the_rows_do_not_show_whether_they_have_sizes(
    frames: list[tuple[str, bytes]], tmp_path: Path
) -> None:
    path = write_parquet(tmp_path / "frames", rows(*frames))
    assert index_frames(str(path), range_bytes=1, buckets=1).counts.packets == len(frames)


@pytest.mark.parametrize("write", [write_parquet, write_arrow])
@pytest.mark.parametrize("damage", [lambda b: b[:-20], lambda b: b[:8], lambda b: b[:4] + bytes(len(b) - 4)])
def test_a_damaged_dump_is_refused_in_a_message_that_names_it(tmp_path: Path, write: Any, damage: Any) -> None:
    path = write(tmp_path / "frames", rows(("request", request(1))))
    path.write_bytes(damage(path.read_bytes()))
    if dump_format(str(path)) is not None:
        with pytest.raises(CaptureError, match=re.escape(f"{path}: cannot be read as ")):
            index_frames(str(path), range_bytes=1, buckets=1)


def test_damaged_rows_cost_only_their_row_group(tmp_path: Path) -> None:
    table = rows(*(("request", request(i, bytes([i]) * 300)) for i in range(30)))
    how: dict[str, Any] = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    path = write_parquet(tmp_path / "frames", table, row_group_size=10, **how)
    content = bytearray(path.read_bytes())
    at = content.index(request(15, bytes([15]) * 300))
    content[at + 20] ^= 1
    path.write_bytes(content)
    index = index_frames(str(path), range_bytes=1 << 20, buckets=1)
    assert [(fault.reason.value, fault.offset) for fault in index.faults] == [("rows_damaged", 10)]
    found = understand([packets_in_order([path])])
    assert [exchange.correlation_id for exchange in found.exchanges] == [*range(10), *range(20, 30)]


def test_the_example_of_the_documentation_is_read(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", (repository / "docs/frames.md").read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "docs/frames.md", "exec"), {})  # noqa: S102  # our own example
    tables = tables_of(packets_in_order([tmp_path / "frames.parquet"]))
    (exchange,) = tables["exchanges"]
    assert (exchange["api_name"], exchange["status"], exchange["client_id"]) == ("API_VERSIONS", "answered", "app")
    assert (exchange["broker"], exchange["client_address"]) == ("10.0.0.2:9092", "10.0.0.1")
