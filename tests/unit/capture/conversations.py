"""Conversations for tests: each side's segments, the packets made from them, and what is found in these packets."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tests.unit.capture.packet_builders import ACK, BROKER, CLIENT, SYN
from udfs.capture.conversation import BEFORE_FIRST_FRAME, BEHIND_GAP, CUT_AT_END, IMPLAUSIBLE_HEADER
from udfs.capture.packet_chunks import frames_by_chunk
from udfs.capture.packets import PACKETS
from udfs.capture.sasl import SASL_TOKENS

HEARTBEAT, PRODUCE = 12, 0
ASKS, ANSWERS = 0, 1
PROTOCOLS = {0: "undecided", 1: "kafka", 2: "tls", 3: "other"}
REASONS = {
    BEFORE_FIRST_FRAME: "before_first_frame",
    BEHIND_GAP: "behind_gap",
    IMPLAUSIBLE_HEADER: "not_a_frame",
    CUT_AT_END: "cut_at_end",
    SASL_TOKENS: "sasl_tokens",
}
COUNTS = ("payload_bytes", "framed_bytes", "unframed_bytes", "repeated_bytes", "late_bytes", "missing_bytes")
PACKET_COUNTS = ("repeated_packets", "doubled_packets")
Batches = list[pa.RecordBatch]


def frame(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


def request(
    correlation_id: int,
    body: bytes = b"body",
    *,
    client_id: bytes | None = b"app",
    key: int = HEARTBEAT,
    version: int = 0,
) -> bytes:
    """A request frame with header v1."""
    length = -1 if client_id is None else len(client_id)
    return frame(struct.pack(">hhih", key, version, correlation_id, length) + (client_id or b"") + body)


def produce(correlation_id: int, acks: int, *, version: int = 7) -> bytes:
    """A Produce request to a topic of no partitions, before flexible versions."""
    transactional_id = struct.pack(">h", -1) if version >= 3 else b""
    body = transactional_id + struct.pack(">hiih1si", acks, 30_000, 1, 1, b"t", 0)
    return request(correlation_id, body, key=PRODUCE, version=version)


def response(correlation_id: int, body: bytes = b"answer") -> bytes:
    return frame(struct.pack(">i", correlation_id) + body)


@dataclass(frozen=True)
class Segment:
    """One TCP segment; `at` is its place in its side's stream, by default after what that side sent before."""

    side: int
    payload: bytes = b""
    flags: int = ACK
    at: int | None = None
    is_lost: bool = False
    captured: int | None = None


def asks(payload: bytes, **how: Any) -> Segment:
    return Segment(ASKS, payload, **how)


def answers(payload: bytes, **how: Any) -> Segment:
    return Segment(ANSWERS, payload, **how)


OPENING = (Segment(ASKS, flags=SYN), Segment(ANSWERS, flags=SYN | ACK))


@dataclass(frozen=True)
class Connection:
    """Endpoints, and each side's sequence number at stream offset 0; the client's address is the lower one."""

    client: tuple[str, int] = (CLIENT, 50000)
    broker: tuple[str, int] = (BROKER, 9092)
    first: tuple[int, int] = (1001, 2_000_001)
    incarnation: int = field(default=0, compare=False)

    @property
    def ends(self) -> tuple[bytes, bytes]:
        return end_bytes(*self.client), end_bytes(*self.broker)

    @property
    def key(self) -> bytes:
        return b"".join(sorted(self.ends))

    def direction(self, side: int) -> int:
        return side if self.ends[0] < self.ends[1] else 1 - side


def end_bytes(address: str, port: int) -> bytes:
    return b"\0" * 10 + b"\xff\xff" + ipaddress.IPv4Address(address).packed + struct.pack(">H", port)


def packets(
    segments: Iterable[Segment], connection: Connection | None = None, *, first_packet: int = 0
) -> list[dict[str, Any]]:
    """Rows of PACKETS. A lost segment has a place in the stream and a packet number, but no row."""
    connection = connection or Connection()
    sent, rows = [0, 0], []
    for number, segment in enumerate(segments, first_packet):
        at = sent[segment.side] if segment.at is None else segment.at
        sent[segment.side] = max(sent[segment.side], at + len(segment.payload))
        if segment.is_lost:
            continue
        rows.append(
            {
                "bucket": 0,
                "connection": connection.key,
                "direction": connection.direction(segment.side),
                "sort_ns": 1_700_000_000_000_000_000 + number * 1_000_000,
                "point": 0,
                "file_no": 0,
                "packet_no": number,
                "ts_ns": 1_700_000_000_000_000_000 + number * 1_000_000,
                "seq": (connection.first[segment.side] + at - (1 if segment.flags & SYN else 0)) % 2**32,
                "flags": segment.flags,
                "payload_bytes": len(segment.payload),
                "payload": segment.payload[: segment.captured],
            }
        )
    return rows


def batch(rows: Sequence[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=PACKETS)


def cut(rows: pa.RecordBatch, most: int) -> Batches:
    return [rows.slice(first, most) for first in range(0, rows.num_rows, most)]


@dataclass(frozen=True)
class Exchange:
    """A request and its response: the product's numbers and ids, and the bytes of both frames."""

    connection: tuple[bytes, int]
    number: int
    correlation_id: int
    request: bytes | None
    response: bytes | None
    status: str
    request_missing: int = 0
    response_missing: int = 0
    request_unsent: int = 0
    response_unsent: int = 0
    times: tuple[int, ...] = ()


@dataclass
class Conversation:
    """Everything that is found in packets, in an order that does not depend on how they are cut into batches."""

    exchanges: list[Exchange] = field(default_factory=list)
    losses: list[tuple[tuple[bytes, int], int, int, int, str, int]] = field(default_factory=list)
    connections: list[dict[str, Any]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))

    @property
    def only(self) -> dict[str, Any]:
        (connection,) = self.connections
        return connection

    def pairs(self) -> list[tuple[bytes | None, bytes | None]]:
        """(request, response), each without its size, by connection and number."""
        return [(exchange.request, exchange.response) for exchange in self.exchanges]

    def answered(self) -> list[int]:
        """Correlation ids of the requests that were answered."""
        return [exchange.correlation_id for exchange in self.exchanges if exchange.status == "answered"]

    def reasons(self) -> list[tuple[int, str]]:
        """(bytes, reason) of each range of bytes that is in no frame."""
        return [(loss[3], loss[4]) for loss in self.losses]


def content(arena: Any, row: Any) -> bytes:
    start = int(row["start"])
    return bytes(arena[start : start + int(row["prefix"])])


def understand(batches: Iterable[pa.RecordBatch], **chunk_size: int) -> Conversation:
    """Everything that is found in packet batches; chunk_size as for `frames_by_chunk`."""
    found = Conversation()
    for chunk in frames_by_chunk(batches, **chunk_size):
        keys = [(key, int(n)) for key, n in zip(chunk.endpoints, chunk.connections["incarnation"], strict=True)]
        for row in chunk.requests[chunk.requests["is_open"] == 0]:
            found.exchanges.append(exchange_of(chunk, keys, row))
        for row in chunk.responses[chunk.responses["partner"] < 0]:
            times = (int(row["first_time"]), int(row["last_time"]), int(row["first_packet"]), int(row["last_packet"]))
            found.exchanges.append(
                Exchange(
                    keys[row["connection"]],
                    int(row["number"]),
                    int(row["correlation_id"]),
                    None,
                    content(chunk.arena, row),
                    "orphan",
                    response_missing=int(row["missing"]),
                    response_unsent=int(row["unsent"]),
                    times=times,
                )
            )
        for loss in chunk.losses:
            where = keys[loss["connection"]], int(loss["direction"]), int(loss["stream_offset"]), int(loss["bytes"])
            found.losses.append((*where, REASONS[int(loss["reason"])], int(loss["packet"])))
        note_connections(found, chunk, keys)
    found.exchanges.sort(key=lambda exchange: (exchange.connection, exchange.number))
    found.losses.sort()
    found.connections.sort(key=lambda connection: connection["key"])
    return found


def exchange_of(chunk: Any, keys: list[tuple[bytes, int]], row: Any) -> Exchange:
    partner = int(row["partner"])
    reply = chunk.responses[partner] if partner >= 0 else None
    ends = [row] if reply is None else [row, reply]
    names = ("first_time", "last_time", "first_packet", "last_packet")
    return Exchange(
        keys[row["connection"]],
        int(row["number"]),
        int(row["correlation_id"]),
        content(chunk.arena, row),
        None if reply is None else content(chunk.arena, reply),
        "answered" if reply is not None else "unanswered" if row["awaits_response"] else "no_response",
        int(row["missing"]),
        0 if reply is None else int(reply["missing"]),
        int(row["unsent"]),
        0 if reply is None else int(reply["unsent"]),
        tuple(int(end[name]) for end in ends for name in names),
    )


def note_connections(found: Conversation, chunk: Any, keys: list[tuple[bytes, int]]) -> None:
    for c in range(chunk.finished):
        row = chunk.connections[c]
        sides = chunk.directions[2 * c : 2 * c + 2]
        counts = {name: int(sides[name].sum()) for name in COUNTS}
        found.counts = {name: found.counts[name] + counts[name] for name in COUNTS}
        found.connections.append(
            {
                "key": keys[c],
                "protocol": PROTOCOLS[int(row["protocol"])],
                "client": int(row["client"]) if row["client"] >= 0 else None,
                "began_before_capture": int(row["syn_sequence"]) < 0,
                **{
                    name: int(row[name])
                    for name in ("packets", "requests", "orphan_responses", "first_time", "last_time")
                },
                **counts,
                **{name: int(sides[name].sum()) for name in PACKET_COUNTS},
            }
        )


def accounted(found: Conversation) -> bool:
    """Whether each captured byte of payload counts exactly once, as framed, unframed, repeated or late."""
    return all(
        part["payload_bytes"]
        == part["framed_bytes"] + part["unframed_bytes"] + part["repeated_bytes"] + part["late_bytes"]
        for part in found.connections
    )


def talk(
    *segments: Segment, connection: Connection | None = None, is_opened: bool = True, **chunk_size: int
) -> Conversation:
    """What is found in the packets of one connection."""
    rows = packets([*OPENING, *segments] if is_opened else segments, connection)
    return understand(cut(batch(rows), chunk_size.get("rows", len(rows))), **chunk_size)


def shifted(rows: Iterable[dict[str, Any]], by: int) -> list[dict[str, Any]]:
    """The packets with higher numbers and later times, as later in a capture."""
    return [row | {"packet_no": row["packet_no"] + by, "ts_ns": row["ts_ns"] + by * 1_000_000} for row in rows]
