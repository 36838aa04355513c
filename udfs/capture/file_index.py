"""The index of a capture file. One sequential read counts its packets and divides it into ranges, so that each range
can be read by a task on its own."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from udfs.capture.compression import Compression, open_uncompressed, stored_compression
from udfs.capture.faults import CaptureFault, FaultReason
from udfs.capture.file_header import HEAD_BYTES, read_file_header
from udfs.capture.fingerprints import NO_SAMPLE, PacketSample
from udfs.capture.packet_counts import PacketCounter, PacketCounts
from udfs.capture.packet_ranges import PacketRange, cut_ranges
from udfs.capture.packet_walk import TO_THE_END, CaptureFormat, PacketWalk
from udfs.capture.storage import ByteStream, HashedFile, StreamWindow, open_stored
from udfs.capture.tcp_headers import TcpPackets

READ_BYTES = 1 << 16
WINDOW_BYTES = 4 << 20


@dataclass(frozen=True, eq=False)
class CaptureIndex:
    """What one capture file, frame dump or request log holds.

    sha256, size_bytes:      of the file as stored
    link_types:              LINKTYPE_ numbers of the packets, ascending
    snaplen:                 largest declared, in bytes; 0 where none was
    first_ts_ns, last_ts_ns: earliest and latest packet, ns since 1970-01-01 UTC; None if no packet has a time
    tcp_payload_captured:    TCP payload bytes in the file
    tcp_payload_on_wire:     TCP payload bytes before the snaplen cut
    bucket_payload_bytes:    int64[buckets], `tcp_payload_captured` by bucket of the connection
    doubled_packets:         packets with payload that `-i any` captured on two interfaces
    sample:                  a sample of the packets, with which files are compared
    ranges, faults:          together they cover every byte of the uncompressed stream except its header;
                             `compression_*` faults count bytes of the stored file
    log_lines:               for a request log: lines that are not blank
    forwarded_lines:         for a request log: lines about requests that another broker had forwarded
    rows_by_time:            False for a frame dump whose rows are not in the order of their times
    """

    path: str
    sha256: str
    size_bytes: int
    format: str
    compression: str
    link_types: tuple[int, ...]
    snaplen: int
    first_ts_ns: int | None
    last_ts_ns: int | None
    counts: PacketCounts
    tcp_payload_captured: int
    tcp_payload_on_wire: int
    bucket_payload_bytes: np.ndarray
    doubled_packets: int
    sample: PacketSample
    ranges: list[PacketRange]
    faults: list[CaptureFault]
    log_lines: int = 0
    forwarded_lines: int = 0
    rows_by_time: bool = True


OnPackets = Callable[[PacketWalk, TcpPackets], object]
"""A function that gets each table of packets of a walk, and the packets' headers. Both are valid until it returns."""


def index_capture(path: str, *, range_bytes: int, buckets: int, on_packets: OnPackets | None = None) -> CaptureIndex:
    """Open a capture, read it once and return its index.

    range_bytes: a range ends before the first record this far after its first byte; a compressed file is one range
    buckets:     the number of buckets for connections, the same as for `read_packets`
    on_packets:  is called with all packets, one table at a time

    Damage is in `faults`. It ends the index unless packets go on after it; everything before it counts. Raises
    CaptureError if the file cannot be read or is no capture, and ValueError if `range_bytes` or `buckets` is below 1.
    """
    with open_stored(path) as stored:
        return index_stored_capture(stored, path, range_bytes=range_bytes, buckets=buckets, on_packets=on_packets)


def index_stored_capture(
    raw: io.RawIOBase, path: str, *, range_bytes: int, buckets: int, on_packets: OnPackets | None = None
) -> CaptureIndex:
    """Read an open capture once and return its index; arguments and errors are those of `index_capture`."""
    if range_bytes < 1 or buckets < 1:
        raise ValueError(f"range_bytes and buckets must be 1 or more, got {range_bytes} and {buckets}")
    compression = stored_compression(raw)
    with HashedFile(raw, from_buffers=compression is Compression.NONE) as stored:
        return _index_file(stored, path, compression, range_bytes, buckets, on_packets)


def unread_index(path: str, *, buckets: int) -> CaptureIndex:
    """The index of a file that is no capture, of which nothing is read. Raises CaptureError if it cannot be opened."""
    with open_stored(path) as stored:
        digest = hashlib.file_digest(stored, "sha256").hexdigest()
        size_bytes = stored.tell()
    counter = PacketCounter(buckets)
    return CaptureIndex(
        path=path, sha256=digest, size_bytes=size_bytes, format=CaptureFormat.NONE.value, compression="none",
        link_types=(), snaplen=0, first_ts_ns=None, last_ts_ns=None, counts=counter.counts, tcp_payload_captured=0,
        tcp_payload_on_wire=0, bucket_payload_bytes=counter.bucket_payload_bytes, doubled_packets=0, sample=NO_SAMPLE,
        ranges=[], faults=[CaptureFault(FaultReason.NOT_A_CAPTURE, 0, size_bytes)],
    )  # fmt: skip


def _index_file(
    stored: HashedFile,
    path: str,
    compression: Compression,
    range_bytes: int,
    buckets: int,
    on_packets: OnPackets | None,
) -> CaptureIndex:
    faults: list[CaptureFault] = []
    is_plain = compression is Compression.NONE
    window = _first_window(
        stored if is_plain else open_uncompressed(io.BufferedReader(stored, READ_BYTES), compression, faults)
    )
    header = read_file_header(window.chunk[: min(window.end, HEAD_BYTES)].tobytes(), path, compression)
    walk = PacketWalk(
        window, header.format, big_endian=header.big_endian, interfaces=header.interfaces, at=header.first_byte
    )
    counter = PacketCounter(buckets)

    def visit(walk: PacketWalk) -> None:
        tcp_packets = counter.add(walk.window.chunk, walk.packets)
        if on_packets is not None:
            on_packets(walk, tcp_packets)

    ranges: list[PacketRange] = []
    if header.fault is None:
        step = range_bytes if compression is Compression.NONE else TO_THE_END
        ranges = cut_ranges(walk, visit, path=path, compression=compression, range_bytes=step)
    faults += walk.skipped
    reason, stopped_at = header.fault or walk.fault(), walk.offset
    not_read = walk.pending_bytes + window.skip_rest()
    if reason is not None:
        faults.append(CaptureFault(reason, stopped_at, not_read))
    captured, on_wire = counter.payload_bytes
    first_ts_ns, last_ts_ns = counter.span
    return CaptureIndex(
        path=path,
        sha256=stored.sha256,
        size_bytes=stored.size_bytes,
        format=header.format.value,
        compression=compression.value,
        link_types=counter.link_types,
        snaplen=walk.snaplen,
        first_ts_ns=first_ts_ns,
        last_ts_ns=last_ts_ns,
        counts=counter.counts,
        tcp_payload_captured=captured,
        tcp_payload_on_wire=on_wire,
        bucket_payload_bytes=counter.bucket_payload_bytes,
        doubled_packets=counter.fingerprints.doubled_packets,
        sample=counter.fingerprints.sample,
        ranges=ranges,
        faults=faults,
    )


def _first_window(stream: ByteStream) -> StreamWindow:
    window = StreamWindow(stream, base=0, length=None, capacity=WINDOW_BYTES)
    while window.end < HEAD_BYTES and window.refill(0):
        pass
    return window
