"""Packet batches in, frames out: the kernel gets packets in chunks, and what is unfinished goes over to the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from udfs.capture.chunk_output import LOSSES, REQUESTS, RESPONSES, found_before
from udfs.capture.connection_boundaries import IS_FRAME
from udfs.capture.conversation import CONNECTION
from udfs.capture.framing import FRAME
from udfs.capture.reassembly import converse
from udfs.capture.segments import DIRECTION, UNKNOWN, Arena, Packets
from udfs.capture.tcp_headers import ACK, CONNECTION_BYTES, SYN
from udfs.columns.arrays import Bytes, Ints, Records, edges, read_only
from udfs.columns.arrow_columns import binary_bytes, gathered_batches
from udfs.kernels.kernel import kernel
from udfs.wire.byte_spans import gathered
from udfs.wire.header import API_TABLE

K = TypeVar("K")
FILE_BITS = 40  # packets of one file fit in so many bits; the file's number is above them


@dataclass(frozen=True)
class Frames:
    """What one chunk of packets made complete.

    arena: uint8, every frame's bytes. requests, responses: FRAME[n]; the `partner` of a request is the index of its
    response, that of a response its request's. losses: LOSS[n]. connections, directions: CONNECTION[n], DIRECTION[2n],
    in their present state. endpoints: CONNECTION_BYTES bytes a connection. finished: how many connections have ended.
    """

    arena: Bytes
    requests: Records
    responses: Records
    losses: Records
    connections: Records
    directions: Records
    endpoints: list[bytes]
    finished: int


@dataclass
class Carried:
    """The connection that goes on in the next chunk."""

    endpoints: bytes | None = None
    connection: Records = field(default_factory=lambda: np.zeros(1, CONNECTION))
    directions: Records = field(default_factory=lambda: np.zeros(2, DIRECTION))
    requests: Records = field(default_factory=lambda: np.zeros(0, FRAME))
    request_bytes: Bytes = field(default_factory=lambda: np.zeros(0, np.uint8))
    packets: Packets | None = None
    next_place: int = 0


def packet_number(file_no: Ints, packet_no: Ints) -> Ints:
    """File and packet number as one int64."""
    return (file_no << FILE_BITS) | packet_no


def runs_of(changes: Ints, keys: list[K], rows: int, carried: K | None) -> tuple[Ints, list[K]]:
    """(run of each row, key of each run); run 0 is the carried connection's, if there is one.

    changes: rows that begin another run than the first. keys: of the runs of these rows.
    """
    run = np.zeros(rows, np.int64)
    run[changes] = 1
    run = np.cumsum(run)
    if carried is not None and keys[:1] != [carried]:
        return run + 1, [carried, *keys]
    return run, keys


@kernel
def find_changes(keys: Bytes, changes: Ints) -> int:
    """Write the rows of `keys`, uint8[n, 36], that differ from the one before: how many there are."""
    n = 0
    for row in range(1, len(keys)):
        for at in range(keys.shape[1]):
            if keys[row, at] != keys[row - 1, at]:
                changes[n] = row
                n += 1
                break
    return n


def endpoint_runs(keys: Bytes, carried: bytes | None) -> tuple[Ints, list[bytes]]:
    """`runs_of` equal rows of `keys`, uint8[n, 36]."""
    changes = np.empty(len(keys), np.int64)
    changes = changes[: find_changes(keys, changes)]
    starts = np.append(np.zeros(min(len(keys), 1), np.int64), changes)
    return runs_of(changes, [keys[start].tobytes() for start in starts], len(keys), carried)


def read_chunk(batch: pa.RecordBatch, carried: Carried) -> tuple[Packets, list[bytes]]:
    """The carried bytes and a chunk's packets, one behind the other, with the endpoints by run."""
    starts, payload = binary_bytes(batch["payload"])
    key_starts, key_bytes = binary_bytes(batch["connection"])
    keys = key_bytes[key_starts[0] : key_starts[-1]].reshape(-1, CONNECTION_BYTES)
    run, endpoints = endpoint_runs(keys, carried.endpoints)
    column = {name: batch[name].to_numpy().astype(np.int64) for name in batch.schema.names if name not in BINARY}
    fresh = Packets(
        run=run,
        direction=column["direction"],
        time=column["ts_ns"],
        place=np.arange(carried.next_place, carried.next_place + len(run)),
        number=packet_number(column["file_no"], column["packet_no"]),
        point=column["point"],
        sequence=column["seq"],
        flags=column["flags"],
        wire=column["payload_bytes"],
        captured=np.diff(starts),
        source=starts[:-1] - starts[0],
        offset=np.full(len(run), UNKNOWN),
        payload=payload[starts[0] : starts[-1]],
    )
    return (fresh if carried.packets is None else behind(carried.packets, fresh)), endpoints


BINARY = ("connection", "payload")


def behind(first: Packets, second: Packets) -> Packets:
    """Two sets of packets as one."""
    pairs: Iterable[tuple[Any, Any]] = zip(first, second, strict=True)
    joined = Packets._make(np.concatenate(pair) for pair in pairs)
    joined.source[len(first.source) :] += len(first.payload)
    return joined


def no_packets() -> Packets:
    """A chunk without packets, to end with."""
    columns = {name: np.zeros(0, np.int64) for name in Packets._fields if name != "payload"}
    return Packets(**columns, payload=np.zeros(0, np.uint8))


def carry(packets: Packets, endpoints: list[bytes], result: Frames, kept: Ints) -> Carried:
    """What the next chunk needs: the unfinished connection's state, its open requests and its unframed bytes."""
    row, offset, skip, length = np.ascontiguousarray(kept.T)
    still_open = result.requests[result.requests["is_open"] == 1]
    spans = still_open["prefix"]
    request_bytes = gathered(result.arena, still_open["start"], edges(spans))
    moved = np.cumsum(spans) - spans - still_open["start"]
    still_open["start"] += moved
    for name in ("client_id_start", "body_start"):
        known = still_open[name] >= 0
        still_open[name][known] += moved[known]
    still_open["connection"] = 0
    connection = result.connections[-1:].copy()
    connection["index"] = connection["run"] = connection["first_open"] = 0
    kept_packets = Packets(
        run=np.zeros(len(row), np.int64),
        direction=packets.direction[row],
        time=packets.time[row],
        place=packets.place[row],
        number=packets.number[row],
        point=np.full(len(row), UNKNOWN),
        sequence=packets.sequence[row],
        flags=np.zeros(len(row), np.int64),
        wire=length,
        captured=length,
        source=np.cumsum(length) - length,
        offset=offset,
        payload=gathered(packets.payload, packets.source[row] + skip, edges(length)),
    )
    directions = result.directions[-2:].copy()
    next_place = int(packets.place[-1]) + 1
    return Carried(result.endpoints[-1], connection, directions, still_open, request_bytes, kept_packets, next_place)


def frames(
    batches: Iterable[pa.RecordBatch], *, rows: int = 100_000, payload_bytes: int = 16 << 20
) -> Iterator[Frames]:
    """Frames of every connection in the packet batches, which come sorted by connection and in the order of PACKETS.

    rows, payload_bytes: how much to work on at a time; the frames do not depend on it. Memory is bounded by it and by
    what is not decided yet: at most one frame (100 MiB), REORDER_BYTES a direction, what the other side sends behind a
    gap (OTHERS_BYTES, twice at most), and MOST_OPEN_BYTES of requests.
    """
    carried = Carried()
    for chunk in gathered_batches(batches, rows, payload_bytes):
        packets, endpoints = read_chunk(chunk, carried)
        result, kept = run_chunk(packets, endpoints, carried, is_last=False)
        yield result
        carried = carry(packets, endpoints, result, kept)
    if carried.endpoints is not None:
        packets = carried.packets if carried.packets is not None else no_packets()
        yield run_chunk(packets, [carried.endpoints], carried, is_last=True)[0]


def openings(packets: Packets) -> int:
    """How many packets may open another connection of the same endpoints: a SYN, a frame of another name, a packet
    behind a frame, which may have come in an earlier chunk.
    """
    is_frame = packets.flags & IS_FRAME != 0
    goes_on = is_frame[1:] & is_frame[:-1] & (packets.sequence[1:] == packets.sequence[:-1])
    opens = packets.flags & (SYN | ACK) == SYN
    follows = 1 + np.count_nonzero(is_frame[:-1] & ~is_frame[1:])
    return int(np.count_nonzero(opens) + np.count_nonzero(is_frame) - np.count_nonzero(goes_on) + follows)


def run_chunk(packets: Packets, endpoints: list[bytes], carried: Carried, *, is_last: bool) -> tuple[Frames, Ints]:
    """Run the kernel over a chunk behind what was carried; the frames, and the rows whose bytes are still needed."""
    held = len(carried.request_bytes)
    arena = Arena(np.empty(held + int(packets.captured.sum()), np.uint8), np.full(1, held))
    arena.data[:held] = carried.request_bytes
    most = len(endpoints) + openings(packets)
    connections, directions = np.zeros(most, CONNECTION), np.zeros(2 * most, DIRECTION)
    connections[:1], directions[:2] = carried.connection, carried.directions
    n, found, kept = converse(
        packets._replace(payload=read_only(packets.payload)), connections, directions,
        found_before(carried.requests, len(packets.run)), arena, API_TABLE, carried.endpoints is not None, is_last,
    )  # fmt: skip
    result = Frames(
        arena.data,
        found.requests[: found.counts[REQUESTS]],
        found.responses[: found.counts[RESPONSES]],
        found.losses[: found.counts[LOSSES]],
        connections[:n],
        directions[: 2 * n],
        [endpoints[run] for run in connections["run"][:n]],
        n if is_last else n - 1,
    )
    return result, kept
