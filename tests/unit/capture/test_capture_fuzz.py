"""No content, however hostile, crashes a reader, makes it read beyond its bytes, or loses bytes without a report."""

from __future__ import annotations

import gzip
import io
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.capture.envelopes import ENVELOPES
from tests.unit.capture.packet_builders import (
    block,
    column,
    enhanced,
    ethernet,
    index,
    interface,
    ipv4,
    ipv6,
    obsolete,
    option,
    packets_of,
    pcap,
    read_bytes,
    read_rows,
    section,
    simple,
    store,
    tcp,
)
from udfs.capture.compression import Compression, decompress
from udfs.capture.packet_table import (
    BIG_ENDIAN,
    INTERFACE_COLUMNS,
    INTERFACE_COUNT,
    MOST_INTERFACES,
    PACKET,
    SECTION_SLOTS,
    STARTED,
    Section,
)
from udfs.capture.pcap import walk_pcap
from udfs.capture.pcapng import walk_pcapng
from udfs.capture.tcp_headers import CONNECTION_BYTES, TCP_PACKET, TcpPackets, parse_tcp_packets
from udfs.errors import CaptureError

FUZZ = settings(derandomize=True, max_examples=150, deadline=None)
KERNEL_FUZZ = settings(derandomize=True, max_examples=500, deadline=None)

PLAIN = pcap([*packets_of(b"one", b"two" * 100), ethernet(ipv6(), ethertype=0x86DD), ethernet(ipv4(protocol=17))])
BLOCKS = (
    section(">")
    + interface(">", options=option(9, b"\x89", ">"))
    + enhanced(ethernet(), ">")
    + block(10, bytes(20), ">")
    + section()
    + interface(snaplen=96)
    + b"".join(make(ethernet(ipv4(tcp(b"k" * 40)))) for make in (enhanced, obsolete, simple))
)
SEEDS = {
    "pcap": PLAIN,
    "pcapng": BLOCKS,
    "gzip": gzip.compress(PLAIN, mtime=0),
    "zstd": zstandard.compress(BLOCKS),
}
EACH_SEED = pytest.mark.parametrize("seed", SEEDS.values(), ids=SEEDS.keys())


def uncompressed_bytes(content: bytes, compression: Compression) -> int:
    """How many uncompressed bytes there are, up to any damage."""
    if compression is Compression.NONE:
        return len(content)
    return sum(map(len, decompress(io.BytesIO(content), compression, [])))


def check_accounting(content: bytes) -> None:
    """Check that header, ranges and faults cover the stream, and that ranges have the bytes that the index counted."""
    with tempfile.TemporaryDirectory() as folder:
        path = store(Path(folder), content)
        try:
            read = index(path, range_bytes=100)
        except CaptureError:
            return
        rows = read_rows(path, range_bytes=100, batch_bytes=200)
    of_stream = [fault for fault in read.faults if not fault.reason.value.startswith("compression_")]
    covered = read_bytes(read) + sum(f.bytes_not_read for f in of_stream)
    assert read.size_bytes == len(content)
    if not of_stream or of_stream[0].offset:
        assert covered == uncompressed_bytes(content, Compression(read.compression))
    assert sum(map(len, column(rows, "payload"))) == read.tcp_payload_captured
    assert sum(column(rows, "payload_bytes")) == read.tcp_payload_on_wire
    counted = vars(read.counts)
    assert counted["packets"] == sum(n for name, n in counted.items() if name not in ("packets", "without_time"))


@FUZZ
@given(
    head=st.sampled_from([b"", PLAIN[:24], BLOCKS[:28], BLOCKS[:60], b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"]),
    rest=st.binary(max_size=400),
)
def test_random_bytes_are_accounted_for(head: bytes, rest: bytes) -> None:
    check_accounting(head + rest)


@EACH_SEED
def test_every_truncation_is_accounted_for(seed: bytes) -> None:
    for end in range(len(seed)):
        check_accounting(seed[:end])


@EACH_SEED
@FUZZ
@given(data=st.data())
def test_flipped_bits_are_accounted_for(seed: bytes, data: st.DataObject) -> None:
    content = bytearray(seed)
    for at in data.draw(st.lists(st.integers(0, len(seed) * 8 - 1), min_size=1, max_size=6)):
        content[at // 8] ^= 1 << at % 8
    check_accounting(bytes(content))


def poisoned(content: bytes, poison: int) -> np.ndarray:
    """`content` as a chunk, followed by 512 bytes that a kernel must not read."""
    return np.frombuffer(content + bytes([poison]) * 512, np.uint8).copy()


PACKET_STARTS = st.sampled_from(
    [
        b"", ethernet(), ipv4(), ipv6(), bytes(12) + b"\x81\x00", ethernet(ipv6(), ethertype=0x86DD),
        *(envelope(ethernet()) for envelope in ENVELOPES.values()),
    ]
)  # fmt: skip
LINK_TYPES = st.sampled_from([0, 1, 12, 101, 108, 113, 147, 228, 276])


def parsed(content: bytes, original: int, link_type: int, poison: int) -> tuple[list[Any], bytes]:
    packets = np.array([(0, len(content), original, 0, link_type)], PACKET)
    tcp_packets = TcpPackets(np.zeros(1, TCP_PACKET), np.zeros((1, CONNECTION_BYTES), np.uint8))
    parse_tcp_packets(poisoned(content, poison), packets, 8, tcp_packets)
    return tcp_packets.rows.tolist(), tcp_packets.connections.tobytes()


@KERNEL_FUZZ
@given(
    start=PACKET_STARTS,
    keep=st.integers(0, 80) | st.integers(0, 300),
    rest=st.binary(max_size=60),
    more=st.integers(0, 99),
    link_type=LINK_TYPES,
)
def test_headers_are_never_read_beyond_the_packet(
    start: bytes, keep: int, rest: bytes, more: int, link_type: int
) -> None:
    content = start[:keep] + rest
    results = [parsed(content, len(content) + more, link_type, poison) for poison in (0x00, 0x06, 0xFF)]
    assert results[0] == results[1] == results[2]
    [tcp_packet] = results[0][0]
    found = dict(zip(TCP_PACKET.names or (), tcp_packet, strict=True))
    assert 0 <= found["payload_captured"] <= min(found["payload_bytes"], len(content))
    assert found["payload_captured"] == 0 or found["payload_offset"] + found["payload_captured"] <= len(content)


def walked(content: bytes, poison: int, *, blocks: bool) -> tuple[Any, ...]:
    packets = np.zeros(64, PACKET)
    state = np.zeros(SECTION_SLOTS, np.int64)
    state[[BIG_ENDIAN, INTERFACE_COUNT, STARTED]] = 0, 1, 1
    interfaces = np.zeros((MOST_INTERFACES, INTERFACE_COLUMNS), np.int64)
    interfaces[0] = 1, 96, 6, 0
    walk = walk_pcapng if blocks else walk_pcap
    one_section = Section(state, interfaces)
    count, at, status = walk(poisoned(content, poison), len(content), 0, 1 << 40, one_section, packets)
    return count, at, status, packets[:count].tolist(), state.tolist(), interfaces[:3].tolist()


@KERNEL_FUZZ
@given(blocks=st.booleans(), keep=st.integers(0, 500), change=st.integers(0, 499), byte=st.integers(0, 255))
def test_records_are_never_read_beyond_the_chunk(blocks: bool, keep: int, change: int, byte: int) -> None:
    content = bytearray((BLOCKS if blocks else PLAIN[24:])[:keep])
    if change < len(content):
        content[change] = byte
    results = [walked(bytes(content), poison, blocks=blocks) for poison in (0x00, 0x06, 0xFF)]
    assert results[0] == results[1] == results[2]
    _, at, _, packets, *_ = results[0]
    assert at <= len(content)
    assert all(0 <= offset <= offset + captured <= at for offset, captured, *_ in packets)
