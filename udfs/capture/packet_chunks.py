"""Turns batches of packets into frames, a chunk at a time. What a chunk leaves unfinished is kept for the next one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from udfs.capture.chunk_output import LOSSES, REQUESTS, RESPONSES, new_output
from udfs.capture.connection_boundaries import IS_FRAME
from udfs.capture.conversation import FOLLOWED_CONNECTION
from udfs.capture.framing import FRAME
from udfs.capture.reassembly import Chunk, Followed, reassemble
from udfs.capture.segments import DIRECTION, Arena, Packets
from udfs.capture.tcp_headers import ACK, CONNECTION_BYTES, SYN
from udfs.columns.arrays import Bytes, Ints, Records, read_only, stretch_edges
from udfs.columns.arrow_columns import gather_batches, offsets_and_bytes
from udfs.columns.sentinels import UNKNOWN
from udfs.kernels.kernel import kernel
from udfs.wire.byte_spans import gather_spans
from udfs.wire.header import API_TABLE

K = TypeVar("K")
FILE_BITS = 40  # a packet's number in its file takes this many bits; the file's number is above them


@dataclass(frozen=True)
class Frames:
    """The frames that one chunk of packets completes.

    arena: uint8, the bytes of all frames. requests, responses: FRAME[n]; `partner` is the index of a request's
    response, or of a response's request. losses: LOSS[n]. connections, directions: FOLLOWED_CONNECTION[n] and
    DIRECTION[2n], with their state at the end of the chunk. endpoints: 36 bytes for each connection. finished: how many
    of the connections have ended.
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
class UnfinishedConnection:
    """The last connection of a chunk, which goes on in the next one; `endpoints` is None before the first chunk."""

    endpoints: bytes | None = None
    connection: Records = field(default_factory=lambda: np.zeros(1, FOLLOWED_CONNECTION))
    directions: Records = field(default_factory=lambda: np.zeros(2, DIRECTION))
    requests: Records = field(default_factory=lambda: np.zeros(0, FRAME))
    request_bytes: Bytes = field(default_factory=lambda: np.zeros(0, np.uint8))
    packets: Packets | None = None
    next_place: int = 0


def packet_number(file_no: Ints, packet_no: Ints) -> Ints:
    """File number and packet number as one number: int64[n]; file_no, packet_no: int64[n]."""
    return (file_no << FILE_BITS) | packet_no


def number_runs(changes: Ints, keys: list[K], rows: int, carried: K | None) -> tuple[Ints, list[K]]:
    """(number of each row's run, key of each run). A run is neighbouring rows with equal keys.

    changes: int64[n], the rows at which a new run begins, without the first row. keys: those of the rows' runs. rows:
    how many rows there are. carried: key of the connection that goes on from the last chunk: it is run 0, even if it
    has no rows in this chunk.
    """
    run = np.zeros(rows, np.int64)
    run[changes] = 1
    run = np.cumsum(run)
    if carried is not None and keys[:1] != [carried]:
        return run + 1, [carried, *keys]
    return run, keys


@kernel
def find_changes(keys: Bytes, changes: Ints) -> int:
    """Write to `changes`, int64[n], the rows of `keys`, uint8[n, 36], that differ from the row before; returns their
    number.
    """
    n = 0
    for row in range(1, len(keys)):
        for at in range(keys.shape[1]):
            if keys[row, at] != keys[row - 1, at]:
                changes[n] = row
                n += 1
                break
    return n


def endpoint_runs(keys: Bytes, carried: bytes | None) -> tuple[Ints, list[bytes]]:
    """Number the runs of packets with the same endpoints; keys: uint8[n, 36]. See `number_runs` for the rest."""
    changes = np.empty(len(keys), np.int64)
    changes = changes[: find_changes(keys, changes)]
    starts = np.append(np.zeros(min(len(keys), 1), np.int64), changes)
    return number_runs(changes, [keys[start].tobytes() for start in starts], len(keys), carried)


def read_chunk(batch: pa.RecordBatch, carried: UnfinishedConnection) -> tuple[Packets, list[bytes]]:
    """(packets left from the last chunk, followed by those of `batch`, a batch of PACKETS; 36 bytes for each run's
    endpoints).
    """
    starts, payload = offsets_and_bytes(batch["payload"])
    key_starts, key_bytes = offsets_and_bytes(batch["connection"])
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
    return (fresh if carried.packets is None else join_packets(carried.packets, fresh)), endpoints


BINARY = ("connection", "payload")


def join_packets(first: Packets, second: Packets) -> Packets:
    """The packets of `first`, followed by those of `second`."""
    pairs: Iterable[tuple[Any, Any]] = zip(first, second, strict=True)
    both = Packets._make(np.concatenate(pair) for pair in pairs)
    both.source[len(first.source) :] += len(first.payload)
    return both


def no_packets() -> Packets:
    """A chunk without packets, which ends the last connection."""
    columns = {name: np.zeros(0, np.int64) for name in Packets._fields if name != "payload"}
    return Packets(**columns, payload=np.zeros(0, np.uint8))


def unfinished_connection(packets: Packets, result: Frames, kept: Ints) -> UnfinishedConnection:
    """What the next chunk needs of the last connection: its state, its open requests and its unframed bytes.

    packets, result: of this chunk. kept: int64[n, 4], pieces that are not framed yet, from `unframed_pieces`.
    """
    row, offset, skip, length = np.ascontiguousarray(kept.T)
    still_open = result.requests[result.requests["is_open"] == 1]
    spans = still_open["prefix"]
    request_bytes = gather_spans(result.arena, still_open["start"], stretch_edges(spans))
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
        payload=gather_spans(packets.payload, packets.source[row] + skip, stretch_edges(length)),
    )
    directions = result.directions[-2:].copy()
    next_place = int(packets.place[-1]) + 1
    return UnfinishedConnection(
        endpoints=result.endpoints[-1],
        connection=connection,
        directions=directions,
        requests=still_open,
        request_bytes=request_bytes,
        packets=kept_packets,
        next_place=next_place,
    )


def frames_by_chunk(
    batches: Iterable[pa.RecordBatch], *, rows: int = 100_000, payload_bytes: int = 16 << 20
) -> Iterator[Frames]:
    """The frames of every connection, chunk by chunk, from batches of PACKETS sorted by connection and in its order.

    rows, payload_bytes: the size of a chunk; the frames do not depend on it. Memory is bounded by it and by what cannot
    be decided yet: at most one frame (100 MiB), REORDER_BYTES of each direction, what the other side sends after a gap
    (at most twice OTHERS_BYTES), and MOST_OPEN_BYTES of requests.
    """
    carried = UnfinishedConnection()
    for chunk in gather_batches(batches, rows, payload_bytes):
        packets, endpoints = read_chunk(chunk, carried)
        result, kept = run_chunk(packets, endpoints, carried, is_last=False)
        yield result
        carried = unfinished_connection(packets, result, kept)
    if carried.endpoints is not None:
        packets = carried.packets if carried.packets is not None else no_packets()
        yield run_chunk(packets, [carried.endpoints], carried, is_last=True)[0]


def most_openings(packets: Packets) -> int:
    """The largest number of packets that may open another connection of the same endpoints.

    These are SYNs, frames with another name, and packets that follow a frame, which may have come in an earlier chunk.
    """
    is_frame = packets.flags & IS_FRAME != 0
    goes_on = is_frame[1:] & is_frame[:-1] & (packets.sequence[1:] == packets.sequence[:-1])
    opens = packets.flags & (SYN | ACK) == SYN
    follows = 1 + np.count_nonzero(is_frame[:-1] & ~is_frame[1:])
    return int(np.count_nonzero(opens) + np.count_nonzero(is_frame) - np.count_nonzero(goes_on) + follows)


def run_chunk(
    packets: Packets, endpoints: list[bytes], carried: UnfinishedConnection, *, is_last: bool
) -> tuple[Frames, Ints]:
    """(frames of a chunk; pieces of packets whose bytes the next chunk needs, int64[n, 4] from `unframed_pieces`).

    endpoints: of each run of packets. carried: what the last chunk left. is_last: whether no chunk follows.
    """
    carried_bytes = len(carried.request_bytes)
    arena = Arena(np.empty(carried_bytes + int(packets.captured.sum()), np.uint8), np.full(1, carried_bytes))
    arena.data[:carried_bytes] = carried.request_bytes
    most = len(endpoints) + most_openings(packets)
    connections, directions = np.zeros(most, FOLLOWED_CONNECTION), np.zeros(2 * most, DIRECTION)
    connections[:1], directions[:2] = carried.connection, carried.directions
    n, output, kept = reassemble(
        Chunk(
            packets._replace(payload=read_only(packets.payload)),
            is_carried=carried.endpoints is not None,
            is_last=is_last,
        ),
        Followed(connections, directions),
        new_output(carried.requests, len(packets.run)),
        arena=arena,
        apis=API_TABLE,
    )
    result = Frames(
        arena=arena.data,
        requests=output.requests[: output.counts[REQUESTS]],
        responses=output.responses[: output.counts[RESPONSES]],
        losses=output.losses[: output.counts[LOSSES]],
        connections=connections[:n],
        directions=directions[: 2 * n],
        endpoints=[endpoints[run] for run in connections["run"][:n]],
        finished=n if is_last else n - 1,
    )
    return result, kept
