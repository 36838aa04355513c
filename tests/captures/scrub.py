"""Removes the record contents from a capture: scrub.py IN.pcap OUT.pcap.zst [--keep-records] [--earlier=SECONDS]

Every record batch keeps its 61-byte header, size and place. The rest becomes zeros, and the CRC is corrected. So sizes,
offsets, codecs, timing and TCP are as captured, and no key, value or header is left. This is for captures on a loopback
interface, without loss, of plain Kafka connections whose opening is in the capture.

--keep-records: keep the records, for producers whose records are made up. --earlier: subtract this many whole seconds
from the times of packets and batches, so that one capture can follow another.
"""

from __future__ import annotations

import argparse
import struct
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import zstandard

from schemas.wire.fetch import FETCH_RESPONSE
from schemas.wire.produce import PRODUCE_REQUEST
from udfs.capture.file_index import index_capture
from udfs.capture.packet_chunks import Frames, frames_by_chunk
from udfs.capture.packets import read_packets
from udfs.facts.exchanges import completed_exchanges
from udfs.facts.hashed_names import HashedNames
from udfs.facts.message_bodies import request_bodies, response_bodies
from udfs.wire.checksums import CRC32C, checksum
from udfs.wire.messages import decode_bodies
from udfs.wire.record_batches import walk_batches

HEADER_BYTES, CRC_AT, CRC_FROM, TIMES_AT = 61, 17, 21, 27
Rewritten = Callable[[bytes], bytearray]
"""From a batch, or the part of it that is there, to what is written."""


def rewritten(batch: bytes, *, keep_records: bool, earlier: int) -> bytearray:
    """A batch without its records' contents, unless they are kept, and with its two times (ms) moved back."""
    new = bytearray(batch if keep_records else batch[:HEADER_BYTES] + bytes(max(len(batch) - HEADER_BYTES, 0)))
    if earlier and len(new) >= TIMES_AT + 16:
        times = struct.unpack_from(">qq", new, TIMES_AT)
        struct.pack_into(">qq", new, TIMES_AT, *(time - 1000 * earlier for time in times))
    return new


def scrubbed(
    arena: np.ndarray, starts: np.ndarray, lengths: np.ndarray, rewrite: Rewritten
) -> list[tuple[int, bytes, bytes]]:
    """(arena position, old bytes, new bytes) of each batch in the record fields. A cut batch loses all its contents."""
    found = walk_batches(arena, starts, lengths)
    changes = []
    places = found.start.tolist(), found.available.tolist(), found.is_cut.tolist()
    for at, available, is_cut in zip(*places, strict=True):
        old = arena[at : at + available].tobytes()
        new = rewrite(old)
        if not is_cut:
            body = np.frombuffer(bytes(new), np.uint8)
            new[CRC_AT:CRC_FROM] = struct.pack(">I", int(checksum(CRC32C, body, CRC_FROM, len(new))))
        changes.append((at, old, bytes(new)))
    return changes


def record_changes(chunk: Frames, rewrite: Rewritten) -> list[tuple[bytes, int, int, bytes]]:
    """(endpoints, direction, stream offset, new bytes) of each batch in a chunk of frames."""
    exchanges = completed_exchanges(chunk, "", HashedNames())
    changes = []
    sides = (
        (0, PRODUCE_REQUEST, "topic_data.partition_data", request_bodies, "request"),
        (1, FETCH_RESPONSE, "responses.partitions", response_bodies, "response"),
    )
    for key, message, path, bodies_of, side in sides:
        which, bodies = bodies_of(exchanges, exchanges.of_api(key))
        decoded = decode_bodies(message, chunk.arena, *bodies)
        level = decoded.levels[path]
        frame = which[decoded.levels[path.rpartition(".")[0]].parent[level.parent]]
        starts, lengths = level.span("records")
        of = chunk.requests[exchanges.request] if side == "request" else chunk.responses[exchanges.response]
        client = chunk.connections["client"][exchanges.connection]
        for at, _, new in scrubbed(chunk.arena, starts, lengths, rewrite):
            row = int(frame[np.flatnonzero((starts <= at) & (at < starts + lengths))[0]])
            direction = int(client[row]) if side == "request" else 1 - int(client[row])
            endpoints = chunk.endpoints[exchanges.connection[row]]
            changes.append((endpoints, direction, int(of["stream_offset"][row]) + 4 + at - int(of["start"][row]), new))
    return changes


def main(source: str, target: str, *, keep_records: bool, earlier: int) -> None:
    """Write the scrubbed capture."""
    rewrite = partial(rewritten, keep_records=keep_records, earlier=earlier)
    index = index_capture(source, range_bytes=1 << 40, buckets=1)
    raw = bytearray(Path(source).read_bytes())
    batches = [b for r in index.ranges for b in read_packets(r, file_no=0, buckets=1, batch_bytes=1 << 30)]
    import pyarrow as pa

    packets = pa.Table.from_batches(batches).sort_by([("connection", "ascending"), ("packet_no", "ascending")])
    streams: dict[tuple[bytes, int], list[tuple[int, int, bytes]]] = defaultdict(list)
    first: dict[tuple[bytes, int], int] = {}
    places = payload_places(raw)
    for row in packets.to_pylist():
        key = (row["connection"], row["direction"])
        if row["flags"] & 2:
            first[key] = row["seq"] + 1
        if row["payload"]:
            streams[key].append(((row["seq"] - first[key]) % (1 << 32), places[row["packet_no"]], row["payload"]))
    whole = {key: bytearray(max(o + len(p) for o, _, p in parts)) for key, parts in streams.items()}
    for key, parts in streams.items():
        for offset, _, payload in parts:
            whole[key][offset : offset + len(payload)] = payload
    for chunk in frames_by_chunk(packets.to_batches()):
        for endpoints, direction, offset, new in record_changes(chunk, rewrite):
            whole[endpoints, direction][offset : offset + len(new)] = new
    for key, parts in streams.items():
        for offset, place, payload in parts:
            raw[place : place + len(payload)] = whole[key][offset : offset + len(payload)]
    move_packets(raw, earlier)
    Path(target).write_bytes(zstandard.ZstdCompressor(level=19).compress(bytes(raw)))


def packet_places(raw: bytes | bytearray) -> list[int]:
    """Where each packet's record begins in a little-endian pcap."""
    places, at = [], 24
    while at < len(raw):
        places.append(at)
        at += 16 + struct.unpack_from("<I", raw, at + 8)[0]
    return places


def payload_places(raw: bytes | bytearray) -> list[int]:
    """Where each packet's TCP payload begins in a little-endian pcap of Ethernet frames with IPv4."""
    places = []
    for at in packet_places(raw):
        ip = at + 16 + 14
        tcp = ip + 4 * (raw[ip] & 15)
        places.append(tcp + 4 * (raw[tcp + 12] >> 4))
    return places


def move_packets(raw: bytearray, earlier: int) -> None:
    """Subtract this many seconds from the time of each packet."""
    for at in packet_places(raw):
        struct.pack_into("<I", raw, at, struct.unpack_from("<I", raw, at)[0] - earlier)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--keep-records", action="store_true")
    parser.add_argument("--earlier", type=int, default=0)
    main(**vars(parser.parse_args()))
