"""Reads frame dumps: Parquet or Arrow files of Kafka frames that a proxy or an eBPF probe writes (docs/frames.md).

A frame becomes a row of PACKETS with a flag that marks it as a frame. After that it is treated like a captured packet,
except that no sequence number gives its place in the stream (`udfs.capture.reassembly`).
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from udfs.capture.capture_points import ALONE, FileOrder
from udfs.capture.faults import CaptureFault, FaultReason
from udfs.capture.file_index import CaptureIndex
from udfs.capture.fingerprints import NO_SAMPLE
from udfs.capture.frame_dump_rows import EXPECTED, OPTIONAL, RowFaults, packet_rows, type_kind
from udfs.capture.missing_sizes import request_frames, sizes_are_missing
from udfs.capture.packet_counts import NO_PACKETS
from udfs.capture.packet_ranges import PacketRange
from udfs.capture.storage import open_seekable, open_stored
from udfs.columns.arrays import Ints
from udfs.columns.arrow_columns import offsets_and_bytes
from udfs.errors import AlienError, CaptureError

PARQUET, ARROW = "parquet", "arrow"
MAGICS = {b"PAR1": PARQUET, b"ARROW1": ARROW}
ROWS = 1024
# Pages are read one by one, because a row group may be as large as the file. Their checksums are verified.
PIECEMEAL: dict[str, Any] = {"pre_buffer": False, "buffer_size": 1 << 20, "page_checksum_verification": True}
NO_SIZES = (
    "column frame has requests that begin with their header; expected each frame as it was sent, after the 4 bytes of "
    "its size: struct.pack('>i', len(frame)) + frame"
)
Dump = pq.ParquetFile | pa.ipc.RecordBatchFileReader


def dump_format(path: str) -> str | None:
    """PARQUET or ARROW, by the file's first bytes; None if it is no dump. Raises CaptureError if it cannot be read."""
    with open_stored(path) as stored:
        return stored_dump_format(stored)


def stored_dump_format(stored: io.RawIOBase) -> str | None:
    """PARQUET or ARROW, by the next bytes of an open file; None if it is no dump."""
    head = stored.read(8) or b""
    return next((kind for magic, kind in MAGICS.items() if head.startswith(magic)), None)


@contextmanager
def open_dump(path: str) -> Iterator[Dump]:
    """Open a dump and check its columns. Raises CaptureError, which lists all wrong columns."""
    kind = dump_format(path)
    try:
        with open_seekable(path) as stored:
            dump = pq.ParquetFile(stored, **PIECEMEAL) if kind == PARQUET else pa.ipc.open_file(stored)
            check_dump_columns(dump.schema_arrow if isinstance(dump, pq.ParquetFile) else dump.schema, path)
            yield dump
    except (pa.ArrowException, OSError) as error:
        fault = AlienError if isinstance(error, pa.ArrowException) else CaptureError
        raise fault(f"{path}: cannot be read as {kind} ({error}). Write the dump again.") from error


def check_dump_columns(schema: pa.Schema, path: str) -> None:
    """Raise CaptureError if columns are missing or have a wrong type. It names all of them."""
    faults = []
    for name, kinds in EXPECTED.items():
        places = schema.get_all_field_indices(name)
        if len(places) > 1:
            faults.append(f"column {name} is there {len(places)} times")
        elif not places and name not in OPTIONAL:
            faults.append(f"column {name} is missing; expected {' or '.join(kinds)}")
        elif places and type_kind(schema.field(places[0]).type) not in kinds:
            faults.append(f"column {name} is {schema.field(places[0]).type}; expected {' or '.join(kinds)}")
    if faults:
        raise dump_error(path, faults)


def dump_error(path: str, faults: Sequence[str]) -> CaptureError:
    """The error of a dump that is refused as a whole, for one or more faults."""
    count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
    lines = "".join(f"\n    {fault}" for fault in faults)
    return CaptureError(f"{path}: not a frame dump as docs/frames.md describes it: {count}{lines}")


def group_count(dump: Dump) -> int:
    """How many groups the dump has: Parquet's row groups or Arrow's record batches. Each can be read on its own."""
    return dump.num_row_groups if isinstance(dump, pq.ParquetFile) else dump.num_record_batches


def group_rows(dump: Dump, group: int) -> Iterator[pa.RecordBatch]:
    """The rows of one group, at most ROWS at a time; from a Parquet file only the columns in EXPECTED."""
    if isinstance(dump, pq.ParquetFile):
        names = [name for name in dump.schema_arrow.names if name in EXPECTED]
        yield from dump.iter_batches(batch_size=ROWS, row_groups=[group], columns=names)
        return
    batch = dump.get_batch(group)
    for first in range(0, batch.num_rows, ROWS):
        yield batch.slice(first, ROWS)


def read_dump_frames(
    r: PacketRange, *, file_no: int, buckets: int, order: FileOrder = ALONE
) -> Iterator[pa.RecordBatch]:
    """The frames of a range of a dump as batches of PACKETS; `first_byte` and `length` of the range count groups.

    Raises CaptureError if the dump can no longer be read.
    """
    with open_dump(r.path) as dump:
        row = r.first_packet
        for group in range(r.first_byte, r.first_byte + r.length):
            for batch in group_rows(dump, group):
                yield packet_rows(batch, file_no=file_no, first_row=row, buckets=buckets, point=order.point).packets
                row += batch.num_rows


def index_frames(path: str, *, range_bytes: int, buckets: int) -> CaptureIndex:
    """Read a dump once and return its index. Its rows count as packets, and wrong rows give faults.

    range_bytes: a range ends after the group with which its frames reach this many bytes. Raises CaptureError if the
    file is no dump, or has frames without their sizes.
    """
    indexer = DumpIndexer(path, buckets)
    with open_dump(path) as dump, open_stored(path) as stored:
        kind = PARQUET if isinstance(dump, pq.ParquetFile) else ARROW
        digest = hashlib.file_digest(stored, "sha256").hexdigest()
        for group in range(group_count(dump)):
            indexer.add_group(dump, group, kind, range_bytes)
        return indexer.index(kind, digest, stored.tell())


class DumpIndexer:
    """Makes the index of a dump, group by group."""

    def __init__(self, path: str, buckets: int) -> None:
        self._path, self._buckets = path, buckets
        self._rows = self._wrong = self._captured = self._on_wire = self._in_range = 0
        self._bucket_bytes = np.zeros(buckets, np.int64)
        self._times: list[int] = []
        self._by_time = True
        self._has_sizes = False
        self._ranges: list[PacketRange] = []
        self._faults: dict[FaultReason, CaptureFault] = {}

    def add_group(self, dump: Dump, group: int, kind: str, range_bytes: int) -> None:
        """Read a group and count its rows. If it cannot be read to its end, it is left out and noted as a fault."""
        first_row = row = self._rows
        parts = []
        try:
            for batch in group_rows(dump, group):
                read = packet_rows(batch, file_no=0, first_row=row, buckets=self._buckets, point=0)
                self._check_sizes(read.packets)
                parts.append((row, batch.num_rows, count_dumped_batch(read.packets, self._buckets), read.faults))
                row += batch.num_rows
        except (pa.ArrowException, OSError):
            self._note(FaultReason.ROWS_DAMAGED, first_row, 0)
            self._in_range = range_bytes
            return
        if self._in_range >= range_bytes or not self._ranges:
            self._ranges.append(
                PacketRange(
                    path=self._path,
                    compression="none",
                    format=kind,
                    big_endian=False,
                    first_byte=group,
                    length=0,
                    first_packet=first_row,
                )
            )
            self._in_range = 0
        self._ranges[-1] = replace(self._ranges[-1], length=group + 1 - self._ranges[-1].first_byte)
        for part in parts:
            self._add(*part)

    def _check_sizes(self, packets: pa.RecordBatch) -> None:
        """Check the first batch that has requests. Raises CaptureError if they lack their sizes."""
        requests = None if self._has_sizes else request_frames(packets)
        if requests is None or not len(requests):
            return
        if sizes_are_missing(requests):
            raise dump_error(self._path, [NO_SIZES])
        self._has_sizes = True

    def _add(self, first_row: int, rows: int, counts: BatchCounts, faults: RowFaults) -> None:
        self._rows += rows
        self._captured += int(counts.bucket_bytes.sum())
        self._in_range += int(counts.bucket_bytes.sum())
        self._on_wire += counts.on_wire
        self._bucket_bytes += counts.bucket_bytes
        if self._times and counts.times and counts.times[0] < self._times[1]:
            self._by_time = False
        self._by_time &= counts.by_time
        self._times = [f(self._times + counts.times) for f in (min, max)] if self._times + counts.times else []
        for reason, (row, count, size) in faults.items():
            self._wrong += count
            self._note(reason, first_row + row, size)

    def _note(self, reason: FaultReason, row: int, size: int) -> None:
        known = self._faults.get(reason, CaptureFault(reason, row, 0, "row"))
        self._faults[reason] = replace(known, bytes_not_read=known.bytes_not_read + size)

    def index(self, kind: str, sha256: str, size_bytes: int) -> CaptureIndex:
        """The index of the dump, after all of its groups were added."""
        counts = replace(NO_PACKETS, packets=self._rows, tcp=self._rows - self._wrong, malformed=self._wrong)
        first, last = self._times or (None, None)
        return CaptureIndex(
            path=self._path, sha256=sha256, size_bytes=size_bytes, format=kind,
            compression="none", link_types=(), snaplen=0, first_ts_ns=first, last_ts_ns=last, counts=counts,
            tcp_payload_captured=self._captured, tcp_payload_on_wire=self._on_wire,
            bucket_payload_bytes=self._bucket_bytes, doubled_packets=0, sample=NO_SAMPLE, ranges=self._ranges,
            faults=list(self._faults.values()), rows_by_time=self._by_time,
        )  # fmt: skip


@dataclass(frozen=True)
class BatchCounts:
    """Counts over a batch.

    times: earliest and latest time, empty for no rows. by_time: whether no row comes after a later one. on_wire: bytes
    on the wire. bucket_bytes: int64[buckets], captured bytes by bucket.
    """

    times: list[int]
    by_time: bool
    on_wire: int
    bucket_bytes: Ints


def count_dumped_batch(packets: pa.RecordBatch, buckets: int) -> BatchCounts:
    """Count over `packets`, a batch of PACKETS; times are ns since 1970."""
    sizes = np.diff(offsets_and_bytes(packets["payload"])[0])
    bucket_bytes = np.zeros(buckets, np.int64)
    np.add.at(bucket_bytes, packets["bucket"].to_numpy(), sizes)
    times = packets["ts_ns"].to_numpy()
    return BatchCounts(
        times=[int(times.min()), int(times.max())] if len(times) else [],
        by_time=bool(np.all(np.diff(times) >= 0)),
        on_wire=int(packets["payload_bytes"].to_numpy().sum()),
        bucket_bytes=bucket_bytes,
    )
