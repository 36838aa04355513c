"""Reads the TCP packets of one range of a capture as Arrow batches."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from udfs.capture.capture_points import ALONE, FileOrder
from udfs.capture.compression import Compression, open_uncompressed
from udfs.capture.packet_ranges import PacketRange
from udfs.capture.packet_walk import CaptureFormat, PacketWalk
from udfs.capture.storage import ByteStream, StreamWindow, open_stored
from udfs.capture.tcp_headers import CONNECTION_BYTES, TcpPackets, TcpTable
from udfs.columns.arrays import Ints
from udfs.columns.arrow_columns import arrow_array_over, binary_column
from udfs.errors import CaptureError
from udfs.kernels.kernel import kernel
from udfs.wire.byte_spans import gather_spans

PACKET_FIELDS: list[tuple[str, pa.DataType]] = [
    ("bucket", pa.int32()),
    ("connection", pa.binary()),
    ("direction", pa.int8()),
    ("sort_ns", pa.int64()),
    ("point", pa.int32()),
    ("file_no", pa.int32()),
    ("packet_no", pa.int64()),
    ("ts_ns", pa.int64()),
    ("seq", pa.int64()),
    ("flags", pa.int16()),
    ("payload_bytes", pa.int32()),
    ("payload", pa.binary()),
]
PACKETS = pa.schema(PACKET_FIELDS)
"""One TCP packet that carries payload, SYN, FIN or RST. The packets of a connection are in the order of (sort_ns,
file_no, packet_no).

bucket:        of the connection, from a digest of its 36 bytes
connection:    36 bytes: the lower endpoint, then the higher; an endpoint is 16 bytes of address (IPv4 as
               ::ffff:a.b.c.d) and the port, big endian; lower in byte order
direction:     0 = sent by the lower endpoint, 1 = by the higher
sort_ns:       orders the packets of several files and never goes back within one (`udfs.capture.capture_points`)
point:         capture point
packet_no:     among all the file's packets, from 0
ts_ns:         ns since 1970-01-01 UTC on the clock of the first point; 0 if the capture has no time
seq:           sequence number as sent, 0 to 2**32 - 1
flags:         the TCP header's 12 bits, FIN = 1, SYN = 2, RST = 4
payload_bytes: on the wire
payload:       as captured; shorter than `payload_bytes` if the snaplen cut it
"""

SKIPPED_AT_ONCE = 1 << 20


class Kept(NamedTuple):
    """Columns of the packets that are kept, with room for all packets."""

    bucket: np.ndarray  # int32[n]
    connection: np.ndarray  # uint8[n, 36]
    direction: np.ndarray  # int8[n]
    packet: Ints  # index of the packet
    seq: Ints
    flags: np.ndarray  # int16[n]
    payload_bytes: np.ndarray  # int32[n]
    payload_start: Ints  # in the chunk
    payload_end: Ints  # int64[n + 1]: 0, then where each row's payload ends in the batch


def unwritten_columns(packets: int) -> Kept:
    """Columns with room for this many packets, which `keep_packets` fills."""
    return Kept(
        bucket=np.empty(packets, np.int32),
        connection=np.empty((packets, CONNECTION_BYTES), np.uint8),
        direction=np.empty(packets, np.int8),
        packet=np.empty(packets, np.int64),
        seq=np.empty(packets, np.int64),
        flags=np.empty(packets, np.int16),
        payload_bytes=np.empty(packets, np.int32),
        payload_start=np.empty(packets, np.int64),
        payload_end=np.zeros(packets + 1, np.int64),
    )


@kernel
def keep_packets(tcp_packets: TcpPackets, kept: Kept) -> int:
    """Write the kept packets, one after another, and return how many there are."""
    n = 0
    for i in range(len(tcp_packets.rows)):
        tcp = tcp_packets.rows[i]
        if not tcp["kept"]:
            continue
        for at in range(CONNECTION_BYTES):
            kept.connection[n, at] = tcp_packets.connections[i, at]
        kept.bucket[n], kept.direction[n], kept.packet[n] = tcp["bucket"], tcp["direction"], i
        kept.seq[n], kept.flags[n] = tcp["seq"], tcp["flags"]
        kept.payload_bytes[n], kept.payload_start[n] = tcp["payload_bytes"], tcp["payload_offset"]
        kept.payload_end[n + 1] = kept.payload_end[n] + tcp["payload_captured"]
        n += 1
    return n


def read_packets(
    r: PacketRange, *, file_no: int, buckets: int, batch_bytes: int, order: FileOrder = ALONE
) -> Iterator[pa.RecordBatch]:
    """The TCP packets of a range that matter to a connection, in file order, as batches of schema PACKETS.

    file_no:     number of the file, for every row
    batch_bytes: bytes of the capture that are read at a time; a batch's payload is not larger, unless one record is. It
                 changes only where batches are cut, never the rows.
    order:       the file's place among others

    Raises CaptureError if the file has changed since it was indexed.
    """
    with open_stored(r.path) as stored:
        window = StreamWindow(open_range(stored, r), base=r.first_byte, length=r.length, capacity=batch_bytes)
        walk = PacketWalk(
            window,
            CaptureFormat(r.format),
            big_endian=r.big_endian,
            interfaces=r.interface_table(),
            packet_no=r.first_packet,
        )
        table = TcpTable(buckets)
        latest = r.latest_ns
        while walk.advance():
            running = np.maximum.accumulate(np.maximum(walk.packets["ts_ns"], latest))
            latest = int(running[-1]) if len(running) else latest
            batch = _packets_batch(walk, table.parse(window.chunk, walk.packets), running, file_no, order)
            if batch.num_rows:
                yield batch
        end = r.first_byte + r.length
        if walk.offset != end:
            raise CaptureError(
                f"{r.path}: changed since it was indexed: packets of the range from byte {r.first_byte} reach to byte "
                f"{end}, found packets up to byte {walk.offset}. Ingest the file again once it is no longer written to."
            )


def open_range(stored: io.RawIOBase, r: PacketRange) -> ByteStream:
    """The uncompressed stream of a stored file from the range's first byte on."""
    compression = Compression(r.compression)
    if compression is Compression.NONE:
        stored.seek(r.first_byte)
    stream = open_uncompressed(io.BufferedReader(stored), compression, [])
    if compression is not Compression.NONE:
        StreamWindow(stream, base=0, length=r.first_byte, capacity=SKIPPED_AT_ONCE).skip_rest()
    return stream


def _packets_batch(
    walk: PacketWalk, tcp_packets: TcpPackets, running: Ints, file_no: int, order: FileOrder
) -> pa.RecordBatch:
    """The last step of a walk as PACKETS; running: int64[n], ns, latest time in the file up to each packet."""
    kept = unwritten_columns(len(tcp_packets.rows))
    n = keep_packets(tcp_packets, kept)
    packet = kept.packet[:n]
    values = {
        "bucket": kept.bucket[:n],
        "direction": kept.direction[:n],
        "sort_ns": order.ordered(running[packet]),
        "point": np.full(n, order.point, np.int32),
        "file_no": np.full(n, file_no, np.int32),
        "packet_no": packet + (walk.packet_no - len(walk.packets)),
        "ts_ns": order.dated(walk.packets["ts_ns"][packet]),
        "seq": kept.seq[:n],
        "flags": kept.flags[:n],
        "payload_bytes": kept.payload_bytes[:n],
    }
    columns = {name: arrow_array_over(PACKETS.field(name).type, n, array) for name, array in values.items()}
    columns["connection"] = binary_column(kept.connection[:n].ravel(), np.arange(n + 1) * CONNECTION_BYTES)
    ends = kept.payload_end[: n + 1]
    columns["payload"] = binary_column(gather_spans(walk.window.chunk, kept.payload_start[:n], ends), ends)
    return pa.RecordBatch.from_arrays([columns[name] for name in PACKETS.names], schema=PACKETS)
