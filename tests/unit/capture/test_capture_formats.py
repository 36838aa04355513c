"""Every file format and compression gives the packets that were put in, with their times."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

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
    obsolete,
    option,
    packets_of,
    payloads_of,
    pcap,
    read_bytes,
    rows_of,
    section,
    simple,
    store,
    tcp,
)
from udfs.capture.packets import PACKETS

SECONDS = 1_700_000_000
PACKET = ethernet()
ORDERS = pytest.mark.parametrize("order", ["<", ">"], ids=["little_endian", "big_endian"])


@ORDERS
@pytest.mark.parametrize(("nanoseconds", "ns"), [(False, 123_000), (True, 123)])
def test_pcap_times_are_nanoseconds_whatever_the_magic(tmp_path: Path, order: str, nanoseconds: bool, ns: int) -> None:
    [row] = rows_of(tmp_path, pcap([Packet(PACKET, SECONDS, 123)], order=order, nanoseconds=nanoseconds))
    assert row["ts_ns"] == SECONDS * 10**9 + ns
    assert row["payload"] == b"kafka"


def test_a_pcap_link_type_may_carry_a_frame_check_length(tmp_path: Path) -> None:
    assert payloads_of(tmp_path, pcap([PACKET], link_type=0x2400_0001)) == [b"kafka"]


@ORDERS
def test_pcapng_packets_of_every_block_type_are_read(tmp_path: Path, order: str) -> None:
    blocks = [section(order), interface(order), *[make(PACKET, order) for make in (enhanced, obsolete, simple)]]
    rows = rows_of(tmp_path, b"".join(blocks))
    assert [row["payload"] for row in rows] == [b"kafka"] * 3
    assert [row["ts_ns"] for row in rows] == [SECONDS * 10**9 + 5000, 7000, 0]
    assert index(tmp_path / "capture").counts.without_time == 1


@pytest.mark.parametrize(
    ("resolution", "ticks", "ns"),
    [
        (0, SECONDS, SECONDS * 10**9),
        (3, SECONDS * 1000 + 7, SECONDS * 10**9 + 7_000_000),
        (6, SECONDS * 10**6 + 7, SECONDS * 10**9 + 7000),
        (9, SECONDS * 10**9 + 7, SECONDS * 10**9 + 7),
        (0x80 | 10, SECONDS * 1024 + 512, SECONDS * 10**9 + 500_000_000),
        (0x80 | 32, SECONDS << 32 | 1 << 30, SECONDS * 10**9 + 250_000_000),
    ],
)
def test_pcapng_clock_resolution_may_be_a_power_of_ten_or_two(
    tmp_path: Path, resolution: int, ticks: int, ns: int
) -> None:
    blocks = section() + interface(options=option(9, bytes([resolution]))) + enhanced(PACKET, ticks=ticks)
    [row] = rows_of(tmp_path, blocks)
    assert row["ts_ns"] == ns


@ORDERS
def test_pcapng_time_offset_is_added_in_seconds(tmp_path: Path, order: str) -> None:
    options = option(14, struct.pack(order + "q", -3600), order)
    [row] = rows_of(tmp_path, section(order) + interface(order, options=options) + enhanced(PACKET, order))
    assert row["ts_ns"] == (SECONDS - 3600) * 10**9 + 5000


def test_clock_options_are_found_after_padded_ones(tmp_path: Path) -> None:
    options = option(2, b"lo") + option(9, b"\x09") + option(1, b"a comment") + option(14, struct.pack("<q", 3600))
    [row] = rows_of(tmp_path, section() + interface(options=options) + enhanced(PACKET, ticks=42))
    assert row["ts_ns"] == 3600 * 10**9 + 42


def test_options_after_the_end_of_options_are_not_read(tmp_path: Path) -> None:
    options = option(0, b"") + option(14, struct.pack("<q", -3600))
    [row] = rows_of(tmp_path, section() + interface(options=options) + enhanced(PACKET))
    assert row["ts_ns"] == SECONDS * 10**9 + 5000


def test_each_interface_has_its_own_link_type_and_clock(tmp_path: Path) -> None:
    raw, nanoseconds = ipv4(tcp(b"raw")), option(9, b"\x09")
    blocks = section() + interface() + interface(link_type=101, options=nanoseconds)
    rows = rows_of(tmp_path, blocks + enhanced(raw, number=1, ticks=42) + enhanced(PACKET, ticks=42))
    assert [(row["payload"], row["ts_ns"]) for row in rows] == [(b"raw", 42), (b"kafka", 42_000)]
    assert index(tmp_path / "capture").link_types == (1, 101)


def test_a_new_section_starts_with_its_own_byte_order_and_no_interfaces(tmp_path: Path) -> None:
    first = section("<") + interface("<") + interface("<", link_type=101) + enhanced(PACKET, "<")
    second = section(">") + interface(">", link_type=101) + enhanced(ipv4(tcp(b"second")), ">")
    undeclared = enhanced(PACKET, ">", number=1)
    assert payloads_of(tmp_path, first + second + undeclared) == [b"kafka", b"second"]
    assert index(tmp_path / "capture").counts.malformed == 1


def test_blocks_without_packets_are_skipped(tmp_path: Path) -> None:
    secrets, names, statistics = (block(kind, b"not kept") for kind in (10, 4, 5))
    custom, comment = block(0x0BAD, b"\x00" * 64), option(1, b"a comment")
    blocks = [
        section(),
        secrets,
        interface(options=comment),
        names,
        enhanced(PACKET, options=comment),
        custom,
        statistics,
    ]
    assert payloads_of(tmp_path, b"".join(blocks)) == [b"kafka"]
    assert index(tmp_path / "capture").faults == []


def test_a_simple_packet_is_as_long_as_its_interfaces_snaplen_allows(tmp_path: Path) -> None:
    kept = ethernet(ipv4(tcp(b"k" * 30), total=40 + 100))[:64]
    [row] = rows_of(tmp_path, section() + interface(snaplen=62) + simple(kept, original=154))
    assert row["payload"] == b"k" * 8
    assert row["payload_bytes"] == 100


def compressed_in_two(content: bytes, compress: object) -> bytes:
    assert callable(compress)
    return bytes(compress(content[:70]) + compress(content[70:]))


@pytest.mark.parametrize(
    ("compression", "compress"),
    [("gzip", gzip.compress), ("zstd", zstandard.compress)],
    ids=["gzip", "zstd"],
)
@pytest.mark.parametrize("format_", ["pcap", "pcapng"])
def test_compression_is_recognised_by_content_and_may_be_of_several_parts(
    tmp_path: Path, compression: str, compress: object, format_: str
) -> None:
    packets = packets_of(b"one", b"two", b"three")
    plain = {"pcap": pcap(packets), "pcapng": section() + interface() + b"".join(map(enhanced, packets))}[format_]
    content = compressed_in_two(plain, compress)
    assert payloads_of(tmp_path, content) == [b"one", b"two", b"three"]
    read = index(tmp_path / "capture", range_bytes=1)
    assert (read.compression, read.format, len(read.ranges)) == (compression, format_, 1)
    assert (read.size_bytes, read_bytes(read), read.faults) == (len(content), len(plain), [])


def test_a_skippable_zstd_frame_may_come_first(tmp_path: Path) -> None:
    skippable = struct.pack("<II", 0x184D2A50, 4) + b"skip"
    assert payloads_of(tmp_path, skippable + zstandard.compress(pcap([PACKET]))) == [b"kafka"]


def test_rows_have_the_declared_columns_and_plain_types(tmp_path: Path) -> None:
    assert [str(field.type) for field in PACKETS] == [
        "int32", "binary", "int8", "int64", "int32", "int32", "int64", "int64", "int64", "int16", "int32", "binary",
    ]  # fmt: skip
    [row] = rows_of(tmp_path, pcap([ethernet(ipv4(tcp(seq=0xFFFF_FFFF)))]))
    assert (row["file_no"], row["packet_no"], row["seq"], row["payload_bytes"]) == (3, 0, 0xFFFF_FFFF, 5)


def test_an_index_says_what_the_file_contains(tmp_path: Path) -> None:
    sent = Packet(ethernet(), SECONDS, 9)
    cut = Packet(ethernet()[:-2], SECONDS, 3, original=len(ethernet()))
    bare_ack = Packet(ethernet(ipv4(tcp(b""))), SECONDS, 4)
    content = pcap([sent, cut, bare_ack], snaplen=96)
    read = index(store(tmp_path, content))
    assert (read.first_ts_ns, read.last_ts_ns) == (SECONDS * 10**9 + 3000, SECONDS * 10**9 + 9000)
    assert (read.counts.packets, read.counts.tcp, read.snaplen, read.link_types) == (3, 3, 96, (1,))
    assert (read.tcp_payload_captured, read.tcp_payload_on_wire) == (8, 10)
    assert (read.size_bytes, read_bytes(read), read.faults) == (len(content), len(content), [])


def test_a_capture_without_packets_is_no_fault(tmp_path: Path) -> None:
    read = index(store(tmp_path, pcap([])))
    assert (read.counts.packets, read.first_ts_ns, read.ranges, read.faults) == (0, None, [], [])
