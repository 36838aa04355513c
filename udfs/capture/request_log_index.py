"""The index of a request log: one sequential read recognises it, counts its lines and divides it into ranges."""

from __future__ import annotations

import io

import numpy as np

from udfs.capture.compression import Compression, open_uncompressed, stored_compression
from udfs.capture.faults import CaptureFault
from udfs.capture.file_index import CaptureIndex
from udfs.capture.fingerprints import NO_SAMPLE
from udfs.capture.line_blocks import line_blocks
from udfs.capture.log_lines import FINE, lines_of_block
from udfs.capture.magics import begins_capture
from udfs.capture.packet_counts import NO_PACKETS
from udfs.capture.packet_ranges import PacketRange
from udfs.capture.request_log_head import FREE_TEXT, JSON, READ_BYTES, REQUEST_LOG, UTC, head_of_file
from udfs.capture.storage import HashedFile
from udfs.errors import CaptureError

BLOCK_BYTES = 8 << 20


def index_stored_log(
    stored: io.RawIOBase, path: str, *, range_bytes: int, buckets: int, zone: str = UTC
) -> CaptureIndex | None:
    """The index of an open file if it is a request log, else None.

    range_bytes, buckets: as for `index_capture`. zone: the zone of times that name none, by its name in the IANA
    database or as +HH:MM. The connections in a log are not known yet, so its bytes are spread evenly over the buckets.
    Raises CaptureError if the file cannot be read, or is a request log in the free text of Kafka before 2.8.
    """
    head = head_of_file(stored)
    if begins_capture(head):
        return None
    if not JSON.search(head):
        if FREE_TEXT.search(head):
            raise CaptureError(
                f"{path}: a request log in free text, as Kafka before 2.8 writes it. refetch reads request logs in "
                "JSON (KIP-673); for older brokers capture packets with `tcpdump -s 0`."
            )
        return None
    stored.seek(0)
    compression = stored_compression(stored)
    with HashedFile(stored) as hashed:
        return _index_log(hashed, path, compression, range_bytes, buckets, zone)


def _index_log(
    stored: HashedFile, path: str, compression: Compression, range_bytes: int, buckets: int, zone: str
) -> CaptureIndex:
    faults: list[CaptureFault] = []
    starts: list[tuple[int, int]] = []
    lines = forwarded = end = 0
    first = last = None
    stream = open_uncompressed(io.BufferedReader(stored, READ_BYTES), compression, faults)
    for block in line_blocks(stream, block_bytes=min(BLOCK_BYTES, range_bytes)):
        may_cut = compression is Compression.NONE
        if not starts or (may_cut and block.first_byte >= starts[-1][0] + range_bytes):
            starts.append((block.first_byte, block.first_line))
        in_block = lines_of_block(block.content, zone)
        lines, forwarded = lines + len(in_block.number), forwarded + int(in_block.forwarded.sum())
        end = block.first_byte + len(block.content)
        times = in_block.completed[in_block.fault == FINE]
        if len(times):
            first = min(int(times.min()), first or int(times.min()))
            last = max(int(times.max()), last or 0)
    ends = [at for at, _ in starts[1:]] + [end]
    return CaptureIndex(
        path=path, sha256=stored.sha256, size_bytes=stored.size_bytes,
        format=REQUEST_LOG, compression=compression.value, link_types=(), snaplen=0,
        first_ts_ns=first, last_ts_ns=last, counts=NO_PACKETS, tcp_payload_captured=0, tcp_payload_on_wire=0,
        bucket_payload_bytes=np.full(buckets, end // buckets, np.int64),
        doubled_packets=0, sample=NO_SAMPLE,
        ranges=[
            PacketRange(
                path=path, compression=compression.value, format=REQUEST_LOG, big_endian=False, first_byte=at,
                length=stop - at, first_packet=line,
            )
            for (at, line), stop in zip(starts, ends, strict=True)
        ],
        faults=faults, log_lines=lines, forwarded_lines=forwarded,
    )  # fmt: skip
