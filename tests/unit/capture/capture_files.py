"""Splits captures into files and joins them again, and makes the tables of several files, for tests."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import zstandard

from schemas.tables.silver import CAPTURES, SILVER
from tests.packed import unpack
from tests.sort_keys import SortKeys
from tests.unit.capture.packet_builders import Packet, pcap
from udfs.capture.capture_points import file_orders, in_time_order
from udfs.capture.file_index import index_capture
from udfs.capture.packets import read_packets
from udfs.facts.arrow_tables import arrow_schema
from udfs.facts.continued_connections import EarlierSet
from udfs.facts.rows_from_packets import rows_from_packets

RECORD = struct.Struct("<IIII")
FILE_HEADER_BYTES, LINK_TYPE_AT = 24, 20
MICROSECONDS = 1_000_000
# Of the captures in tests/captures: Ethernet and IPv4 headers without options come before it.
SOURCE_PORT_AT, BROKER_PORTS = 34, range(29092, 29095)
NUMBERS_OF_PACKETS = {"request_packet", "response_packet", "packet"}
"""Columns that say in which file a packet is."""

Rows = list[dict[str, Any]]
Tables = dict[str, Rows]
Clock = Callable[[int], int]
"""From the capture's own microseconds to those of another clock."""


def records_of(content: bytes) -> tuple[int, list[Packet]]:
    """Link type and packets of a little-endian pcap file of microseconds."""
    (link_type,) = struct.unpack_from("<I", content, LINK_TYPE_AT)
    packets, at = [], FILE_HEADER_BYTES
    while at < len(content):
        seconds, fraction, captured, original = RECORD.unpack_from(content, at)
        at += RECORD.size + captured
        packets.append(Packet(content[at - captured : at], seconds, fraction, original))
    return link_type, packets


def sample_capture(repository: Path, name: str) -> tuple[int, list[Packet]]:
    """Link type and packets of a capture in tests/captures."""
    packed = (repository / f"tests/captures/{name}.pcap.zst").read_bytes()
    return records_of(zstandard.ZstdDecompressor().decompressobj().decompress(packed))


def microseconds(packet: Packet) -> int:
    return packet.seconds * MICROSECONDS + packet.fraction


def by_clock(packets: Iterable[Packet], clock: Clock) -> list[Packet]:
    """The packets with the times that another clock gives them."""
    times = [(packet, clock(microseconds(packet))) for packet in packets]
    return [Packet(p.data, time // MICROSECONDS, time % MICROSECONDS, p.original) for p, time in times]


def jittery(apart_us: int, jitter_us: int, seed: int) -> Clock:
    """A clock that is `apart_us` ahead. It is read up to `jitter_us` late, and never goes back."""
    chance, last = random.Random(seed), 0  # noqa: S311  (not for secrets)

    def read(time: int) -> int:
        nonlocal last
        last = max(last, time + apart_us + chance.randint(0, jitter_us))
        return last

    return read


def without(packets: Sequence[Packet], lost: set[int]) -> list[Packet]:
    return [packet for number, packet in enumerate(packets) if number not in lost]


def store(path: Path, link_type: int, packets: Sequence[Packet]) -> Path:
    path.write_bytes(pcap(packets, link_type=link_type))
    return path


def rows_in_order(paths: Iterable[Path], *, range_bytes: int = 1 << 30) -> pa.RecordBatch:
    """The packets of several files, in the order in which workers get them."""
    indexes = in_time_order([index_capture(str(path), range_bytes=range_bytes, buckets=1) for path in paths])
    batches = [
        batch
        for number, (index, order) in enumerate(zip(indexes, file_orders(indexes), strict=True))
        for part in index.ranges
        for batch in read_packets(part, file_no=number, buckets=1, batch_bytes=4 << 20, order=order)
    ]
    keys: SortKeys = [(name, "ascending") for name in ("connection", "sort_ns", "file_no", "packet_no")]
    return pa.Table.from_batches(batches).sort_by(keys).combine_chunks().to_batches()[0]


def tables_of(packets: pa.RecordBatch, earlier: EarlierSet | None = None, /, **chunk_size: int) -> Tables:
    """The silver rows of packets by table, in the order of their keys, without the columns that name packets.

    earlier: what is known about connections that continue from an earlier capture set.
    """
    tables: Tables = {table.name: [] for table in SILVER if table is not CAPTURES}
    for batch in rows_from_packets([packets], "a-capture", None, None, earlier, **chunk_size):
        for name in tables:
            packed = batch.filter(pa.compute.equal(batch["table"], pa.scalar(name)))
            for unpacked in unpack([packed.select(["rows"])]):
                tables[name] += unpacked.to_pylist()
    for table in SILVER:
        found = tables.get(table.name, [])
        found.sort(key=lambda row: [(row[column] is not None, row[column]) for column in table.key])
        tables[table.name] = [{k: v for k, v in row.items() if k not in NUMBERS_OF_PACKETS} for row in found]
    assert all(set(row) <= set(arrow_schema(t).names) for t in SILVER for row in tables[t.name])
    return tables


def at_client(packets: Iterable[Packet], delay_us: int) -> list[Packet]:
    """Packets captured at brokers, with the times at which clients see them: requests earlier, responses later."""

    def is_sent_by_broker(packet: Packet) -> bool:
        (source,) = struct.unpack_from(">H", packet.data, SOURCE_PORT_AT)
        return source in BROKER_PORTS

    packets = list(packets)
    answers = by_clock(filter(is_sent_by_broker, packets), lambda time: time + delay_us)
    requests = by_clock((p for p in packets if not is_sent_by_broker(p)), lambda time: time - delay_us)
    return sorted([*requests, *answers], key=microseconds)
