"""A damaged capture gives what comes before the damage, and names the rest by reason, offset and bytes."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
import zstandard

from tests.unit.capture.packet_builders import (
    Packet,
    block,
    enhanced,
    ethernet,
    index,
    interface,
    ipv4,
    packets_of,
    payloads_of,
    pcap,
    read_bytes,
    read_rows,
    section,
    store,
    tcp,
)
from udfs.capture import compression
from udfs.capture.faults import CaptureFault, FaultReason
from udfs.capture.packet_table import LONGEST_RECORD, MOST_INTERFACES
from udfs.capture.packets import read_packets
from udfs.errors import AlienError, CaptureError

GOOD = pcap(packets_of(b"one", b"two"))
GOOD_NG = section() + interface() + b"".join(map(enhanced, packets_of(b"one", b"two")))


def check_fault(folder: Path, content: bytes, reason: FaultReason, offset: int) -> None:
    """The good part is read, and the fault covers all that follows it."""
    path = store(folder, content)
    read = index(path)
    assert read.faults == [CaptureFault(reason, offset, len(content) - offset)]
    assert read_bytes(read) == offset
    assert read_rows(path)["payload"].to_pylist() == [b"one", b"two"]


@pytest.mark.parametrize("cut", [1, 15, 16, 17, 72])
def test_a_pcap_may_end_within_a_packet(tmp_path: Path, cut: int) -> None:
    third = pcap([ethernet()])[24:]
    assert len(third) > 72
    check_fault(tmp_path, GOOD + third[:cut], FaultReason.PACKET_CUT, len(GOOD))


@pytest.mark.parametrize("cut", [1, 11, 12, 40])
def test_a_pcapng_may_end_within_a_block(tmp_path: Path, cut: int) -> None:
    check_fault(tmp_path, GOOD_NG + enhanced(ethernet())[:cut], FaultReason.PACKET_CUT, len(GOOD_NG))


def record_header(*, fraction: int = 0, captured: int = 60, original: int = 60) -> bytes:
    return struct.pack("<IIII", 1_700_000_000, fraction, captured, original) + bytes(captured)


GARBAGE: dict[str, bytes] = {
    "zeros": bytes(4096),
    "text": b"# a line of a log file that was appended\n" * 9,
    "another_capture": pcap([ethernet()]),
    "longer_than_any_packet": struct.pack("<IIII", 0, 0, 262_145, 262_145) + bytes(300_000),
    "more_captured_than_sent": record_header(original=59),
    "nothing_sent": record_header(captured=0, original=0),
    "a_fraction_beyond_a_second": record_header(fraction=1_000_000),
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_behind_pcap_packets_is_named(tmp_path: Path, garbage: bytes) -> None:
    check_fault(tmp_path, GOOD + garbage, FaultReason.PACKET_HEADER_IMPLAUSIBLE, len(GOOD))


def test_a_large_snaplen_allows_long_packets(tmp_path: Path) -> None:
    packet = Packet(ethernet(ipv4(tcp(b"k" * 300_000), total=0)))
    read = index(store(tmp_path, pcap([packet], snaplen=1 << 20)))
    assert (read.counts.tcp, read.faults) == (1, [])


BAD_BLOCKS: dict[str, bytes] = {
    "zeros": bytes(4096),
    "lengths_that_differ": block(5, bytes(8))[:-4] + struct.pack("<I", 24),
    "length_not_a_multiple_of_4": struct.pack("<II", 5, 21) + bytes(9) + struct.pack("<I", 21) + bytes(3),
    "length_below_12": struct.pack("<III", 5, 8, 8),
    "longer_than_any_block": struct.pack("<II", 5, LONGEST_RECORD + 4) + bytes(64),
    "section_without_byte_order": struct.pack("<III", 0x0A0D0D0A, 28, 7) + bytes(12) + struct.pack("<I", 28),
    "section_of_another_version": section(major=2),
    "section_too_short": block(0x0A0D0D0A, struct.pack("<IHH", 0x1A2B3C4D, 1, 0)),
    "interface_too_short": block(1, b"\x01\x00\x00\x00"),
    "interface_option_beyond_the_block": interface(options=struct.pack("<HH", 9, 400)),
}


@pytest.mark.parametrize("garbage", BAD_BLOCKS.values(), ids=BAD_BLOCKS.keys())
def test_a_bad_block_behind_pcapng_packets_is_named(tmp_path: Path, garbage: bytes) -> None:
    check_fault(tmp_path, GOOD_NG + garbage, FaultReason.BLOCK_MALFORMED, len(GOOD_NG))


def test_a_section_declares_a_bounded_number_of_interfaces(tmp_path: Path) -> None:
    head = section() + interface() * MOST_INTERFACES + b"".join(map(enhanced, packets_of(b"one", b"two")))
    check_fault(tmp_path, head + interface(), FaultReason.TOO_MANY_INTERFACES, len(head))


BAD_PACKETS: dict[str, bytes] = {
    "undeclared_interface": enhanced(ethernet(), number=1),
    "captured_beyond_the_block": enhanced(ethernet(), captured=400),
    "enhanced_block_too_short": block(6, bytes(16)),
    "time_beyond_int64_nanoseconds": enhanced(ethernet(), ticks=1 << 63),
}


@pytest.mark.parametrize("bad", BAD_PACKETS.values(), ids=BAD_PACKETS.keys())
def test_a_packet_block_that_contradicts_itself_is_counted_and_passed(tmp_path: Path, bad: bytes) -> None:
    path = store(tmp_path, section() + interface() + bad + enhanced(ethernet()))
    read = index(path)
    assert (read.counts.malformed, read.counts.tcp, read.faults) == (1, 1, [])
    assert read_rows(path)["packet_no"].to_pylist() == [1]


def test_a_simple_packet_needs_an_interface(tmp_path: Path) -> None:
    read = index(store(tmp_path, section() + block(3, struct.pack("<I", 60) + ethernet())))
    assert read.counts.malformed == 1


@pytest.mark.parametrize("content", [b"", gzip.compress(b""), zstandard.compress(b"")], ids=["plain", "gzip", "zstd"])
def test_an_empty_file_is_named(tmp_path: Path, content: bytes) -> None:
    read = index(store(tmp_path, content))
    assert read.faults == [CaptureFault(FaultReason.FILE_EMPTY, 0, 0)]
    assert (read.format, read.ranges) == ("none", [])


def test_a_file_header_may_be_cut(tmp_path: Path) -> None:
    read = index(store(tmp_path, GOOD[:23]))
    assert read.faults == [CaptureFault(FaultReason.FILE_HEADER_CUT, 0, 23)]
    assert (read.format, read.ranges) == ("pcap", [])


@pytest.mark.parametrize("magic", [b"\xd4\xc3", b"\xa1\xb2\x3c", b"\x0a\x0d\x0d"])
def test_a_file_header_may_be_cut_within_its_first_bytes(tmp_path: Path, magic: bytes) -> None:
    read = index(store(tmp_path, magic))
    assert (read.format, read.faults) == ("none", [CaptureFault(FaultReason.FILE_HEADER_CUT, 0, len(magic))])


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_a_cut_compressed_file_gives_the_packets_before_the_cut(tmp_path: Path, compress: object) -> None:
    assert callable(compress)
    whole = compress(GOOD)
    stored = whole + compress(pcap([ethernet()])[24:])[:-6]
    read = index(store(tmp_path, stored))
    assert read.faults[0] == CaptureFault(FaultReason.COMPRESSION_CUT, len(stored), 0)
    assert payloads_of(tmp_path, stored)[:2] == [b"one", b"two"]


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_what_follows_damage_in_a_compressed_file_is_counted_as_stored(tmp_path: Path, compress: object) -> None:
    assert callable(compress)
    whole = compress(pcap([ethernet()] * 200)) + compress(b"")
    stored = whole + b"\x00" * 50_000
    read = index(store(tmp_path, stored))
    assert [fault.reason for fault in read.faults] == [FaultReason.COMPRESSION_DAMAGED]
    assert (read.faults[0].offset + read.faults[0].bytes_not_read, read.size_bytes) == (len(stored), len(stored))
    assert read.counts.tcp == 200
    assert read_rows(tmp_path / "capture").num_rows == 200


def test_a_file_that_expands_without_measure_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "LEAST_LIMIT", 1 << 20)
    monkeypatch.setattr(compression, "MOST_EXPANSION", 10)
    incompressible = ethernet(ipv4(tcp(np.random.default_rng(7).bytes(15_000))))
    read = index(store(tmp_path, gzip.compress(pcap([incompressible] + [ethernet()] * 40_000))))
    assert read.faults[0].reason is FaultReason.COMPRESSION_EXCESSIVE
    assert read.faults[0].offset + read.faults[0].bytes_not_read == read.size_bytes
    assert 1 < read.counts.tcp < 40_001
    assert read_bytes(read) <= 1 << 20


ALIENS: dict[str, tuple[bytes, str]] = {
    "text": (b"hello, this is no capture", "text; "),
    "unknown": (b"\xd4\xc3\xb2\xa2" + bytes(40), "of no known format"),
    "printed": (
        b"12:00:00.0 IP 10.0.0.1.50000 > 10.0.0.2.9092: Flags [P.]\n",
        "text; `tcpdump -w FILE` writes a capture",
    ),
    "server_log": (
        b"[2026-01-31 12:00:00,123] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n",
        "a log of a broker, such as server.log, without requests; the request log has them",
    ),
    "html": (b"<!DOCTYPE html>", "HTML or XML, as a failed download leaves"),
    "png": (b"\x89PNG\r\n\x1a\n" + bytes(40), "an image"),
    "tar": (b"broker1.pcap".ljust(257, b"\0") + b"ustar  \0" + bytes(800), "a tar archive; unpack it first"),
    "zeros": (bytes(4096), "zeros, as a copy that was not finished has"),
    "feather 1": (b"FEA1" + bytes(40), "Feather of version 1; write the dump as Parquet"),
    "arrow stream": (b"\xff" * 4 + bytes(40), "an Arrow IPC stream; write the dump as Parquet"),
    "json": (b'{"request": 1}', "JSON text"),
    "gzip_of_text": (gzip.compress(b"hello, this is no capture"), "gzip of something that is not a capture"),
    "zstd_of_gzip": (zstandard.compress(gzip.compress(GOOD)), "decompress it once more"),
    "xz": (b"\xfd7zXZ\x00\x00\x00", "decompress it first"),
    "patched_pcap": (b"\x34\xcd\xb2\xa1" + bytes(40), "editcap"),
    "pcap_of_version_1": (pcap([], major=1), "major version 1, expected 2"),
}


@pytest.mark.parametrize(("content", "said"), ALIENS.values(), ids=ALIENS.keys())
def test_a_file_that_is_no_capture_is_refused_by_name(tmp_path: Path, content: bytes, said: str) -> None:
    path = store(tmp_path, content)
    with pytest.raises(AlienError, match=said) as refused:
        index(path)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize("name", ["absent", "."], ids=["absent", "a_folder"])
def test_a_file_that_cannot_be_read_is_refused_by_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(CaptureError, match="cannot be read"):
        index(tmp_path / name)


@pytest.mark.parametrize("changed", [GOOD[:-1], b"", GOOD[:24] + bytes(len(GOOD) - 24)], ids=["cut", "empty", "zeros"])
def test_a_file_that_changed_since_it_was_indexed_is_refused(tmp_path: Path, changed: bytes) -> None:
    path = store(tmp_path, GOOD)
    [whole] = index(path).ranges
    store(tmp_path, changed)
    with pytest.raises(CaptureError, match="changed since it was indexed"):
        list(read_packets(whole, file_no=0, buckets=8, batch_bytes=1 << 20))
