"""Builders of packets and capture files for tests, with defaults for everything that a test does not care about."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from udfs.capture.file_index import CaptureIndex, index_capture
from udfs.capture.packets import PACKETS, read_packets

CLIENT, BROKER = "10.0.0.1", "10.0.0.2"
CLIENT6, BROKER6 = "2001:db8::1", "2001:db8::2"
FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
IPV4, IPV6, ARP = 0x0800, 0x86DD, 0x0806


def endpoint(address: str, port: int) -> bytes:
    """An endpoint as in rows of packets: an address of 16 bytes (IPv4's mapped into IPv6), and a port."""
    packed = ipaddress.ip_address(address).packed
    return (bytes(10) + b"\xff\xff" + packed if len(packed) == 4 else packed) + port.to_bytes(2, "big")


def tcp(payload: bytes = b"kafka", *, source: int = 50000, target: int = 9092, seq: int = 1, flags: int = ACK,
        options: bytes = b"", data_offset: int | None = None) -> bytes:  # fmt: skip
    words = 5 + len(options) // 4 if data_offset is None else data_offset
    return struct.pack(">HHIIHHHH", source, target, seq, 0, words << 12 | flags, 1024, 0, 0) + options + payload


def ipv4(payload: bytes | None = None, *, source: str = CLIENT, target: str = BROKER, protocol: int = 6,
         total: int | None = None, fragment: int = 0, options: bytes = b"",
         words: int | None = None) -> bytes:  # fmt: skip
    payload = tcp() if payload is None else payload
    words = 5 + len(options) // 4 if words is None else words
    total = 20 + len(options) + len(payload) if total is None else total
    addresses = ipaddress.IPv4Address(source).packed + ipaddress.IPv4Address(target).packed
    return (
        struct.pack(">BBHHHBBH", 0x40 | words, 0, total, 0, fragment, 64, protocol, 0) + addresses + options + payload
    )


def ipv6(payload: bytes | None = None, *, source: str = CLIENT6, target: str = BROKER6, following: int = 6,
         length: int | None = None) -> bytes:  # fmt: skip
    payload = tcp() if payload is None else payload
    length = len(payload) if length is None else length
    addresses = ipaddress.IPv6Address(source).packed + ipaddress.IPv6Address(target).packed
    return struct.pack(">IHBB", 6 << 28, length, following, 64) + addresses + payload


def ethernet(payload: bytes | None = None, *, ethertype: int = IPV4, vlans: Sequence[int] = ()) -> bytes:
    payload = ipv4() if payload is None else payload
    tags = b"".join(struct.pack(">HH", tag, 7) for tag in vlans)
    return bytes(12) + tags + struct.pack(">H", ethertype) + payload


@dataclass(frozen=True)
class Packet:
    """One packet of a capture; `original` is its length on the wire if that is more than `data`."""

    data: bytes
    seconds: int = 1_700_000_000
    fraction: int = 5
    original: int | None = None

    @property
    def wire_bytes(self) -> int:
        return len(self.data) if self.original is None else self.original


def packets_of(*payloads: bytes) -> list[Packet]:
    """One segment of a single connection for each payload."""
    starts = [sum(map(len, payloads[:i])) for i in range(len(payloads))]
    return [
        Packet(ethernet(ipv4(tcp(p, seq=1 + start))), fraction=i)
        for i, (p, start) in enumerate(zip(payloads, starts, strict=True))
    ]


def pcap(packets: Sequence[Packet | bytes], *, order: str = "<", nanoseconds: bool = False, link_type: int = 1,
         snaplen: int = 262144, major: int = 2) -> bytes:  # fmt: skip
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    records = [struct.pack(order + "IHHiIII", magic, major, 4, 0, 0, snaplen, link_type)]
    for packet in map(as_packet, packets):
        records.append(
            struct.pack(order + "IIII", packet.seconds, packet.fraction, len(packet.data), packet.wire_bytes)
        )
        records.append(packet.data)
    return b"".join(records)


def as_packet(packet: Packet | bytes) -> Packet:
    return packet if isinstance(packet, Packet) else Packet(packet)


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    body += bytes(-len(body) % 4)
    length = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + length + body + length


def section(order: str = "<", *, major: int = 1) -> bytes:
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, major, 0, -1), order)


def option(code: int, value: bytes, order: str = "<") -> bytes:
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def interface(order: str = "<", *, link_type: int = 1, snaplen: int = 0, options: bytes = b"") -> bytes:
    return block(1, struct.pack(order + "HHI", link_type, 0, snaplen) + options, order)


def enhanced(packet: Packet | bytes, order: str = "<", *, number: int = 0, ticks: int = 1_700_000_000_000_005,
             captured: int | None = None, options: bytes = b"") -> bytes:  # fmt: skip
    packet = as_packet(packet)
    captured = len(packet.data) if captured is None else captured
    head = struct.pack(order + "IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, captured, packet.wire_bytes)
    return block(6, head + packet.data + bytes(-len(packet.data) % 4) + options, order)


def obsolete(packet: bytes, order: str = "<", *, number: int = 0, drops: int = 0xFFFF, ticks: int = 7) -> bytes:
    head = struct.pack(order + "HHIIII", number, drops, ticks >> 32, ticks & 0xFFFFFFFF, len(packet), len(packet))
    return block(2, head + packet, order)


def simple(packet: bytes, order: str = "<", *, original: int | None = None) -> bytes:
    return block(3, struct.pack(order + "I", len(packet) if original is None else original) + packet, order)


def header_bytes(read: CaptureIndex) -> int:
    """The bytes of the file's header. A pcapng file has none: its section headers are blocks, too."""
    return 24 if read.format == "pcap" else 0


def read_bytes(read: CaptureIndex) -> int:
    """How many bytes of the uncompressed stream the header and the ranges have."""
    return header_bytes(read) + sum(part.length for part in read.ranges)


def index(path: Path, *, range_bytes: int = 1 << 30, buckets: int = 8) -> CaptureIndex:
    return index_capture(str(path), range_bytes=range_bytes, buckets=buckets)


def read_rows(path: Path, *, range_bytes: int = 1 << 30, batch_bytes: int = 1 << 20, buckets: int = 8) -> pa.Table:
    """All rows of a capture, read one range after the other."""
    ranges = index(path, range_bytes=range_bytes, buckets=buckets).ranges
    batches = [batch for r in ranges for batch in read_packets(r, file_no=3, buckets=buckets, batch_bytes=batch_bytes)]
    return pa.Table.from_batches(batches, PACKETS)


def column(rows: pa.Table, name: str) -> list[Any]:
    return rows[name].to_pylist()


def store(folder: Path, content: bytes, name: str = "capture") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def rows_of(folder: Path, content: bytes, **reading: Any) -> list[dict[str, Any]]:
    """Rows of a capture file with this content."""
    return read_rows(store(folder, content), **reading).to_pylist()


def payloads_of(folder: Path, content: bytes) -> list[bytes]:
    return [row["payload"] for row in rows_of(folder, content)]
