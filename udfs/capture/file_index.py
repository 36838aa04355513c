"""The index pass: one sequential read of a capture that counts it and cuts it into ranges."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from udfs.capture.compression import Compression, open_stream, stored_compression
from udfs.capture.faults import CaptureFault, FaultReason
from udfs.capture.file_header import HEAD_BYTES, read_file_header
from udfs.capture.fingerprints import NO_SAMPLE, PacketSample
from udfs.capture.packet_counts import PacketCounter, PacketCounts
from udfs.capture.packet_ranges import PacketRange, cut_ranges
from udfs.capture.packet_walk import TO_THE_END, CaptureFormat, PacketWalk
from udfs.capture.storage import ByteStream, HashedFile, StreamWindow, open_stored

READ_BYTES = 1 << 16
WINDOW_BYTES = 4 << 20


@dataclass(frozen=True, eq=False)
class CaptureIndex:
    """What one capture file holds.

    sha256, size_bytes:      of the file as stored
    link_types:              LINKTYPE_ numbers of the packets, ascending
    snaplen:                 largest declared, in bytes; 0 where none was
    first_ts_ns, last_ts_ns: earliest and latest packet, ns since 1970-01-01 UTC; None where no packet has a time
    tcp_payload_captured:    TCP payload bytes in the file
    tcp_payload_on_wire:     TCP payload bytes before the snaplen cut
    bucket_payload_bytes:    int64[buckets], `tcp_payload_captured` by bucket of the connection
    doubled_packets:         packets with payload that the file has twice, as `-i any` sees them on two interfaces
    sample:                  of the packets, by which files are compared
    ranges, faults:          between them they have every byte of the uncompressed stream but those of its header;
                             `compression_*` faults are of the file as stored
    log_lines:               of a request log: lines that are not blank
    forwarded_lines:         ... of which so many are of requests that another broker had forwarded
    rows_by_time:            False for a frame dump with rows that come behind later ones
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


Parsed = Callable[[PacketWalk, np.ndarray, np.ndarray], object]
"""Sees a step of a walk and what TcpTable.parse made of its packets, all of which stays until it returns."""


def index_capture(path: str, *, range_bytes: int, buckets: int, parsed: Parsed | None = None) -> CaptureIndex:
    """Open a capture, read it once and return its index.

    range_bytes: a range ends before the first record this far behind its first byte; a compressed file is one range
    buckets:     number of buckets connections are spread over, the same as for `read_packets`
    parsed:      is called with all packets on the way, a table of them at a time

    Damage is told in `faults`, beside all that was read before it. Raises CaptureError where the file cannot be read or
    is no capture, and ValueError where `range_bytes` or `buckets` is below 1.
    """
    with open_stored(path) as stored:
        return index_stored_capture(stored, path, range_bytes=range_bytes, buckets=buckets, parsed=parsed)


def index_stored_capture(
    raw: io.RawIOBase, path: str, *, range_bytes: int, buckets: int, parsed: Parsed | None = None
) -> CaptureIndex:
    """The index of an open capture; for the rest see `index_capture`."""
    if range_bytes < 1 or buckets < 1:
        raise ValueError(f"range_bytes and buckets must be 1 or more, got {range_bytes} and {buckets}")
    compression = stored_compression(raw)
    with HashedFile(raw, from_buffers=compression is Compression.NONE) as stored:
        return _index(stored, path, compression, range_bytes, buckets, parsed)


def unread_index(path: str, *, buckets: int) -> CaptureIndex:
    """The index of a file of which nothing is read, because it is no capture. Raises CaptureError where it cannot be
    opened.
    """
    with open_stored(path) as stored:
        digest = hashlib.file_digest(stored, "sha256").hexdigest()
        size_bytes = stored.tell()
    tally = PacketCounter(buckets)
    return CaptureIndex(
        path=path, sha256=digest, size_bytes=size_bytes, format=CaptureFormat.NONE.value, compression="none",
        link_types=(), snaplen=0, first_ts_ns=None, last_ts_ns=None, counts=tally.counts, tcp_payload_captured=0,
        tcp_payload_on_wire=0, bucket_payload_bytes=tally.bucket_payload_bytes, doubled_packets=0, sample=NO_SAMPLE,
        ranges=[], faults=[CaptureFault(FaultReason.NOT_A_CAPTURE, 0, size_bytes)],
    )  # fmt: skip


def _index(
    stored: HashedFile, path: str, compression: Compression, range_bytes: int, buckets: int, parsed: Parsed | None
) -> CaptureIndex:
    faults: list[CaptureFault] = []
    is_plain = compression is Compression.NONE
    window = _first_window(
        stored if is_plain else open_stream(io.BufferedReader(stored, READ_BYTES), compression, faults)
    )
    header = read_file_header(window.chunk[: min(window.end, HEAD_BYTES)].tobytes(), path, compression)
    walk = PacketWalk(
        window, header.format, big_endian=header.big_endian, interfaces=header.interfaces, at=header.first_byte
    )
    tally = PacketCounter(buckets)

    def visit(walk: PacketWalk) -> None:
        found = tally.add(walk.window.chunk, walk.packets)
        if parsed is not None:
            parsed(walk, *found)

    ranges: list[PacketRange] = []
    if header.fault is None:
        step = range_bytes if compression is Compression.NONE else TO_THE_END
        ranges = cut_ranges(walk, visit, path=path, compression=compression, range_bytes=step)
    reason, stopped_at = header.fault or walk.fault(), walk.offset
    not_read = walk.pending_bytes + window.skip_rest()
    if reason is not None:
        faults.append(CaptureFault(reason, stopped_at, not_read))
    captured, on_wire = tally.payload_bytes
    first_ts_ns, last_ts_ns = tally.span
    return CaptureIndex(
        path=path,
        sha256=stored.sha256,
        size_bytes=stored.size_bytes,
        format=header.format.value,
        compression=compression.value,
        link_types=tally.link_types,
        snaplen=walk.snaplen,
        first_ts_ns=first_ts_ns,
        last_ts_ns=last_ts_ns,
        counts=tally.counts,
        tcp_payload_captured=captured,
        tcp_payload_on_wire=on_wire,
        bucket_payload_bytes=tally.bucket_payload_bytes,
        doubled_packets=tally.fingerprints.doubled_packets,
        sample=tally.fingerprints.sample,
        ranges=ranges,
        faults=faults,
    )


def _first_window(stream: ByteStream) -> StreamWindow:
    window = StreamWindow(stream, base=0, length=None, capacity=WINDOW_BYTES)
    while window.end < HEAD_BYTES and window.refill(0):
        pass
    return window
