"""A damaged capture gives the packets before and after the damage, and a fault with its reason, offset and bytes."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
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
from udfs.capture import compression, packet_ranges
from udfs.capture.faults import CaptureFault, FaultReason
from udfs.capture.packet_table import LONGEST_RECORD, MOST_INTERFACES
from udfs.capture.packets import read_packets
from udfs.errors import AlienError, CaptureError

GOOD = pcap(packets_of(b"one", b"two"))
GOOD_NG = section() + interface() + b"".join(map(enhanced, packets_of(b"one", b"two")))


def check_fault(folder: Path, content: bytes, reason: FaultReason, offset: int) -> None:
    """Check that the part before the damage is read, and that the fault covers all bytes after it."""
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
    "longer_than_any_packet": struct.pack("<IIII", 0, 0, 262_145, 262_145) + bytes(300_000),
    "more_captured_than_sent": record_header(original=59),
    "nothing_sent": record_header(captured=0, original=0),
    "a_fraction_of_two_seconds": record_header(fraction=2_000_000),
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_after_pcap_packets_is_reported(tmp_path: Path, garbage: bytes) -> None:
    check_fault(tmp_path, GOOD + garbage, FaultReason.PACKET_HEADER_IMPLAUSIBLE, len(GOOD))


def check_skipped(folder: Path, content: bytes, skipped: list[tuple[int, int]], payloads: list[bytes]) -> None:
    """Check that only these bytes, (offset, how many), are skipped and reported, whatever the size of ranges."""
    path = store(folder, content)
    read = index(path)
    named = [CaptureFault(FaultReason.PACKET_HEADER_IMPLAUSIBLE, at, bytes_) for at, bytes_ in skipped]
    assert read.faults == named
    assert read_bytes(read) + sum(fault.bytes_not_read for fault in read.faults) == len(content)
    rows = read_rows(path)
    assert rows["payload"].to_pylist() == payloads
    assert rows["packet_no"].to_pylist() == list(range(len(payloads)))
    for range_bytes in (1, 100, 250):
        assert index(path, range_bytes=range_bytes).faults == named
        assert read_rows(path, range_bytes=range_bytes).combine_chunks().equals(rows.combine_chunks())


MANY = [str(number).encode() for number in range(12)]
BEHIND = pcap(packets_of(*MANY))[24:]


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE.keys())
@pytest.mark.parametrize(
    ("order", "compress"), [("<", bytes), (">", bytes), ("<", gzip.compress)], ids=["little", "big", "gzip"]
)
def test_packets_after_garbage_are_read(
    tmp_path: Path, garbage: bytes, order: str, compress: Callable[[bytes], bytes]
) -> None:
    before, behind = pcap(packets_of(b"one", b"two"), order=order), pcap(packets_of(*MANY), order=order)[24:]
    content = compress(before + garbage + behind)
    path = store(tmp_path, content)
    assert index(path).faults[0] == CaptureFault(FaultReason.PACKET_HEADER_IMPLAUSIBLE, len(before), len(garbage))
    assert read_rows(path)["payload"].to_pylist() == [b"one", b"two", *MANY]


def test_several_damaged_places_are_skipped_one_by_one(tmp_path: Path) -> None:
    content = GOOD + bytes(77) + BEHIND + b"\xff" * 300 + BEHIND
    second = len(GOOD) + 77 + len(BEHIND)
    check_skipped(tmp_path, content, [(len(GOOD), 77), (second, 300)], [b"one", b"two", *MANY, *MANY])


def test_a_second_capture_in_the_same_file_is_read(tmp_path: Path) -> None:
    check_skipped(tmp_path, GOOD + GOOD, [(len(GOOD), 24)], [b"one", b"two"] * 2)


def test_a_packet_with_a_bad_header_costs_no_other_packet(tmp_path: Path) -> None:
    bad = bytearray(pcap(packets_of(b"bad"))[24:])
    bad[8:12] = struct.pack("<I", 1 << 30)
    check_skipped(tmp_path, GOOD + bytes(bad) + BEHIND, [(len(GOOD), len(bad))], [b"one", b"two", *MANY])


def test_damage_that_is_longer_than_what_is_read_at_once_is_skipped(tmp_path: Path) -> None:
    check_skipped(tmp_path, GOOD + bytes(9 << 20) + BEHIND, [(len(GOOD), 9 << 20)], [b"one", b"two", *MANY])


def test_packets_after_damage_are_read_up_to_one_that_the_end_of_the_file_cuts(tmp_path: Path) -> None:
    read = index(store(tmp_path, GOOD + bytes(77) + BEHIND[:-3]))
    assert [(fault.reason, fault.offset) for fault in read.faults] == [
        (FaultReason.PACKET_HEADER_IMPLAUSIBLE, len(GOOD)),
        (FaultReason.PACKET_CUT, len(GOOD) + 77 + sum(16 + len(p.data) for p in packets_of(*MANY)[:-1])),
    ]


def test_damage_is_skipped_a_bounded_number_of_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packet_ranges, "MOST_SKIPPED", 1)
    content = GOOD + bytes(77) + BEHIND + bytes(300) + BEHIND
    read = index(store(tmp_path, content))
    assert [fault.bytes_not_read for fault in read.faults] == [77, 300 + len(BEHIND)]
    assert read_bytes(read) + sum(fault.bytes_not_read for fault in read.faults) == len(content)


@pytest.mark.parametrize("nanoseconds", [False, True])
def test_a_fraction_of_a_whole_second_is_carried(tmp_path: Path, nanoseconds: bool) -> None:
    """Writers that round, such as dpkt's, write such a fraction about once in a million packets."""
    second = 1_000_000_000 if nanoseconds else 1_000_000
    packets = [Packet(p.data, seconds=7, fraction=f) for p, f in zip(packets_of(b"a", b"b"), (second, 3), strict=True)]
    path = store(tmp_path, pcap(packets, nanoseconds=nanoseconds))
    assert index(path).faults == []
    assert read_rows(path)["ts_ns"].to_pylist() == [8_000_000_000, 7_000_000_000 + 3 * (1_000_000_000 // second)]


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
def test_a_bad_block_after_pcapng_packets_is_reported(tmp_path: Path, garbage: bytes) -> None:
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
def test_a_packet_block_that_contradicts_itself_is_counted_and_skipped(tmp_path: Path, bad: bytes) -> None:
    path = store(tmp_path, section() + interface() + bad + enhanced(ethernet()))
    read = index(path)
    assert (read.counts.malformed, read.counts.tcp, read.faults) == (1, 1, [])
    assert read_rows(path)["packet_no"].to_pylist() == [1]


def test_a_simple_packet_needs_an_interface(tmp_path: Path) -> None:
    read = index(store(tmp_path, section() + block(3, struct.pack("<I", 60) + ethernet())))
    assert read.counts.malformed == 1


@pytest.mark.parametrize("content", [b"", gzip.compress(b""), zstandard.compress(b"")], ids=["plain", "gzip", "zstd"])
def test_an_empty_file_is_reported(tmp_path: Path, content: bytes) -> None:
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


def test_decompression_of_a_file_that_expands_too_far_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
def test_a_file_that_is_no_capture_is_refused_in_a_message_that_names_it(
    tmp_path: Path, content: bytes, said: str
) -> None:
    path = store(tmp_path, content)
    with pytest.raises(AlienError, match=said) as refused:
        index(path)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize("name", ["absent", "."], ids=["absent", "a_folder"])
def test_a_file_that_cannot_be_read_is_refused_in_a_message_that_names_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(CaptureError, match="cannot be read"):
        index(tmp_path / name)


@pytest.mark.parametrize("changed", [GOOD[:-1], b"", GOOD[:24] + bytes(len(GOOD) - 24)], ids=["cut", "empty", "zeros"])
def test_a_file_that_changed_since_it_was_indexed_is_refused(tmp_path: Path, changed: bytes) -> None:
    path = store(tmp_path, GOOD)
    [whole] = index(path).ranges
    store(tmp_path, changed)
    with pytest.raises(CaptureError, match="changed since it was indexed"):
        list(read_packets(whole, file_no=0, buckets=8, batch_bytes=1 << 20))
