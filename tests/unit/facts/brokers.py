"""Kafka messages as packets for tests of the rows made from them."""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from typing import Any

import pyarrow as pa

from schemas.wire.message import Field, Message
from tests.packed import unpack
from tests.unit.capture.conversations import OPENING, Connection, Segment, answers, asks, batch, cut, frame, packets
from tests.unit.wire.reference import default, encode, within
from udfs.capture.packets_by_connection import PacketsByConnection
from udfs.facts.record_sampling import RecordSampling
from udfs.facts.rows_from_packets import EarlierChunks, rows_from_packets
from udfs.facts.rows_from_packets import tables_of_chunk as decoded_tables

TOPIC_ID = bytes(range(16))
API_VERSIONS = 18  # its response header never has tags


def filled(fields: tuple[Field, ...], values: dict[str, Any]) -> dict[str, Any]:
    """The values, nested as given, with Kafka's defaults for all fields that are left out."""
    unknown = set(values) - {field.name for field in fields}
    assert not unknown, unknown
    struct_: dict[str, Any] = {}
    for field in fields:
        value = values.get(field.name, default(field))
        if field.fields and field.type.startswith("[]") and value is not None:
            value = [filled(field.fields, element) for element in value]
        struct_[field.name] = bytes(16) if field.type == "uuid" and value is None and field.tagged == "none" else value
    return struct_


def message(declared: Message, version: int, **values: Any) -> bytes:
    return encode(declared, version, filled(declared.fields, values))


def asked(declared: Message, version: int, correlation_id: int, *, client_id: bytes = b"app", **values: Any) -> bytes:
    """A request frame of this message."""
    header = struct.pack(">hhih", declared.api_key, version, correlation_id, len(client_id)) + client_id
    tags = b"\0" if within(version, declared.flexible) else b""
    return frame(header + tags + message(declared, version, **values))


def answered(declared: Message, version: int, correlation_id: int, **values: Any) -> bytes:
    """A response frame of this message."""
    tags = b"\0" if within(version, declared.flexible) and declared.api_key != API_VERSIONS else b""
    return frame(struct.pack(">i", correlation_id) + tags + message(declared, version, **values))


def turns(*frames: bytes) -> list[Segment]:
    """Segments of frames that are by turns a request and a response; None for one that is not there."""
    return [(answers if i % 2 else asks)(content) for i, content in enumerate(frames) if content]


def tables(
    *segments: Segment, connection: Connection | None = None, rows: int = 50_000, records: RecordSampling | None = None
) -> dict[str, list[dict[str, Any]]]:
    """Rows of each silver table from one opened connection."""
    packet_rows = batch(packets([*OPENING, *segments], connection))
    return tables_of(cut(packet_rows, rows), records, rows=rows, payload_bytes=1 << 24 if rows > 100 else 1)


def tables_of(
    batches: list[pa.RecordBatch], records: RecordSampling | None = None, **chunk_size: int
) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for packed in rows_from_packets(batches, "capture", None, records, None, **chunk_size):
        for content in unpack([packed]):
            found[packed["table"][0].as_py()] += content.to_pylist()
    for lines in found.values():
        lines.sort(key=repr)
    return found


def tables_held(packets: PacketsByConnection, parts: int) -> dict[str, list[dict[str, Any]]]:
    """As `tables_of`, from packets that are held in memory and decoded in this many parts."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for part in packets.parts(parts):
        for table, rows in decoded_tables(packets.frames(part), "capture", EarlierChunks()):
            found[table.name] += rows.to_pylist()
    for lines in found.values():
        lines.sort(key=repr)
    return found


def counts_by_connection(rows: list[dict[str, Any]]) -> dict[int, Counter[str]]:
    """Sums of EXCHANGE_COUNTS by connection: a connection has a row for each part of its exchanges."""
    found: dict[int, Counter[str]] = defaultdict(Counter)
    for row in rows:
        found[row["connection_id"]].update({name: n for name, n in row.items() if name != "connection_id"})
    return found
