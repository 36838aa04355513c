"""On real captures the reader gives the same packets as dpkt, an independent reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.capture.packet_builders import column, index, read_rows

dpkt = pytest.importorskip("dpkt", reason="dpkt is not installed")
SHARED = Path(__file__).parents[4] / "shared" / "captures"
CAPTURES = sorted(SHARED.glob("*.pcap"))

pytestmark = pytest.mark.skipif(not CAPTURES, reason="../shared/captures is not there")

Segment = tuple[int, int, int, int, bytes]


def dpkt_segments(path: Path) -> tuple[int, list[Segment]]:
    """(number of packets, TCP segments). Segments: packet number, microseconds, sequence number, flags and payload."""
    segments = []
    packet_no = -1
    with path.open("rb") as file:
        for packet_no, (seconds, data) in enumerate(dpkt.pcap.Reader(file)):
            tcp = dpkt.ethernet.Ethernet(data).data.data
            if tcp.data or tcp.flags & 0x07:
                segments.append((packet_no, round(seconds * 1e6), tcp.seq, tcp.flags, bytes(tcp.data)))
    return packet_no + 1, segments


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_packets_equal_those_of_an_independent_reader(path: Path) -> None:
    count, expected = dpkt_segments(path)
    rows = read_rows(path, range_bytes=1 << 20, batch_bytes=300_000)
    columns = [column(rows, name) for name in ("packet_no", "ts_ns", "seq", "flags", "payload")]
    columns[1] = [ts_ns // 1000 for ts_ns in columns[1]]
    assert list(zip(*columns, strict=True)) == expected
    assert index(path).counts.packets == count


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_whole_captures_have_no_faults_and_weigh_their_payload(path: Path) -> None:
    read = index(path, range_bytes=1 << 20)
    assert read.faults == []
    assert read.tcp_payload_captured == read.tcp_payload_on_wire == read.bucket_payload_bytes.sum()
    assert read.counts.tcp == read.counts.packets
