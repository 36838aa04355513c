"""However a capture is cut into ranges and batches, the same packets come out."""

from __future__ import annotations

import dataclasses
import gzip
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from tests.unit.capture.packet_builders import (
    Packet,
    block,
    column,
    enhanced,
    ethernet,
    header_bytes,
    index,
    interface,
    ipv4,
    option,
    pcap,
    read_rows,
    section,
    store,
    tcp,
)
from udfs.capture.packets import PACKETS

PAYLOADS = [bytes([65 + i % 26]) * (i * 37 % 1400) for i in range(60)]
SEGMENTS = [ethernet(ipv4(tcp(p, source=40_000 + i % 7, seq=i))) for i, p in enumerate(PAYLOADS)]


def sections() -> bytes:
    """Two sections of different byte order and clocks, with blocks without packets between them."""
    fine = option(9, b"\x09", ">")
    first = section("<") + interface("<") + b"".join(enhanced(s, "<", ticks=1000 + i) for i, s in enumerate(SEGMENTS))
    second = section(">") + block(0x0BAD, bytes(900), ">") + interface(">", options=fine)
    return first + second + b"".join(enhanced(s, ">", ticks=2000 + i) for i, s in enumerate(SEGMENTS))


CAPTURES = {
    "pcap": pcap([Packet(s, fraction=i) for i, s in enumerate(SEGMENTS)]),
    "pcapng": sections(),
    "gzip": gzip.compress(sections()),
}
EACH_CAPTURE = pytest.mark.parametrize("content", CAPTURES.values(), ids=CAPTURES.keys())


def at_once(rows: pa.Table) -> pa.Table:
    return rows.combine_chunks()


@EACH_CAPTURE
@pytest.mark.parametrize("range_bytes", [1, 100, 777, 5_000, 40_000])
def test_any_range_size_gives_the_same_rows(tmp_path: Path, content: bytes, range_bytes: int) -> None:
    path = store(tmp_path, content)
    assert at_once(read_rows(path, range_bytes=range_bytes)).equals(at_once(read_rows(path)))


@EACH_CAPTURE
@pytest.mark.parametrize("batch_bytes", [1, 100, 1_000, 65_536])
def test_any_batch_size_gives_the_same_rows(tmp_path: Path, content: bytes, batch_bytes: int) -> None:
    path = store(tmp_path, content)
    assert at_once(read_rows(path, batch_bytes=batch_bytes)).equals(at_once(read_rows(path)))


@pytest.mark.parametrize("range_bytes", [1, 777, 40_000])
@pytest.mark.parametrize("content", [CAPTURES["pcap"], CAPTURES["pcapng"]], ids=["pcap", "pcapng"])
def test_ranges_follow_each_other_over_the_whole_file(tmp_path: Path, content: bytes, range_bytes: int) -> None:
    read = index(store(tmp_path, content), range_bytes=range_bytes)
    ends = [header_bytes(read), *(r.first_byte + r.length for r in read.ranges)]
    assert [r.first_byte for r in read.ranges] == ends[:-1]
    assert ends[-1] == read.size_bytes == len(content)
    assert all(r.length < range_bytes + 1_600 for r in read.ranges)


def test_rows_are_the_packets_in_file_order(tmp_path: Path) -> None:
    rows = read_rows(store(tmp_path, CAPTURES["pcapng"]), range_bytes=3_000).to_pylist()
    carrying = [i for i, payload in enumerate(PAYLOADS) if payload]
    assert [row["packet_no"] for row in rows] == carrying + [len(PAYLOADS) + i for i in carrying]
    assert [row["payload"] for row in rows] == [PAYLOADS[i] for i in carrying] * 2
    assert [row["ts_ns"] for row in rows] == [(1000 + i) * 1000 for i in carrying] + [2000 + i for i in carrying]


@EACH_CAPTURE
def test_bucket_weights_are_the_payload_bytes_of_the_rows(tmp_path: Path, content: bytes) -> None:
    path = store(tmp_path, content)
    weights = dict.fromkeys(range(5), 0)
    for row in read_rows(path, buckets=5).to_pylist():
        weights[row["bucket"]] += len(row["payload"])
    assert index(path, buckets=5).bucket_payload_bytes.tolist() == list(weights.values())
    assert sum(weight > 0 for weight in weights.values()) > 1


def test_a_batch_holds_little_more_than_batch_bytes(tmp_path: Path) -> None:
    rows = read_rows(store(tmp_path, CAPTURES["pcap"]), batch_bytes=4_096)
    sizes = [sum(map(len, column(pa.table([chunk], ["payload"]), "payload"))) for chunk in rows["payload"].chunks]
    assert len(sizes) > 5
    assert max(sizes) <= 4_096


def test_a_range_has_only_plain_values_and_can_be_pickled(tmp_path: Path) -> None:
    ranges = index(store(tmp_path, CAPTURES["pcapng"]), range_bytes=3_000).ranges
    assert pickle.loads(pickle.dumps(ranges)) == ranges  # noqa: S301  # bytes made on the line itself
    kinds = {type(value) for r in ranges for value in dataclasses.asdict(r).values()}
    assert kinds == {str, int, bool, bytes}


@pytest.mark.parametrize(("range_bytes", "buckets"), [(0, 8), (-1, 8), (100, 0)])
def test_a_range_and_a_bucket_have_a_size(tmp_path: Path, range_bytes: int, buckets: int) -> None:
    with pytest.raises(ValueError, match="must be 1 or more"):
        index(store(tmp_path, CAPTURES["pcap"]), range_bytes=range_bytes, buckets=buckets)


def test_more_packets_than_one_table_holds_are_read(tmp_path: Path) -> None:
    path = store(tmp_path, pcap([ethernet()] * 40_000))
    rows = read_rows(path)
    assert rows.schema == PACKETS
    assert rows["packet_no"].to_pylist() == list(range(40_000))
    assert index(path).counts.tcp == 40_000
