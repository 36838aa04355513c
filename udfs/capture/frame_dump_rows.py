"""Turns the rows of a frame dump into rows of PACKETS (docs/frames.md).

Everything is vectorised, except what is done once for each connection.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from udfs.capture.capture_points import LAST_NS
from udfs.capture.connection_boundaries import IS_REQUEST, IS_RESPONSE
from udfs.capture.endpoints import endpoint_bytes
from udfs.capture.faults import FaultReason
from udfs.capture.framing import MAX_FRAME_BYTES, MIN_FRAME_BYTES, SIZE_BYTES
from udfs.capture.packets import PACKETS
from udfs.capture.tcp_headers import bucket_of_connection
from udfs.columns.arrays import Bools, Ints
from udfs.columns.arrow_columns import offsets_and_bytes
from udfs.columns.time_units import NS_PER_MS, NS_PER_S, NS_PER_US

TEXT, BINARY, TIME = "string", "binary", "timestamp or int64 (ns)"
EXPECTED: Mapping[str, tuple[str, ...]] = {
    "connection": (TEXT, BINARY),
    "direction": (TEXT,),
    "timestamp": (TIME,),
    "frame": (BINARY,),
    "client_address": (TEXT,),
    "broker": (TEXT,),
}
"""The columns of a dump and the types that each may have."""
OPTIONAL = ("client_address", "broker")
NEEDED = tuple(name for name in EXPECTED if name not in OPTIONAL)
NS_PER_UNIT = {"s": NS_PER_S, "ms": NS_PER_MS, "us": NS_PER_US, "ns": 1}
FIRST_NS = 946_684_800 * NS_PER_S
"""2000-01-01. Kafka is younger, so an earlier time must be in another unit, such as ms in an int64."""
# Used for an address that a dump does not have: the address whose packets are discarded (RFC 6666).
NOWHERE = IPv6Address("100::").packed

RowFaults = dict[FaultReason, tuple[int, int, int]]


@dataclass(frozen=True)
class FrameRows:
    """A batch of a dump as PACKETS, and the wrong rows, which are not among them.

    faults: (number of the first such row in the batch, how many rows, bytes of their frames), by reason
    """

    packets: pa.RecordBatch
    faults: RowFaults


def type_kind(kind: pa.DataType) -> str:
    """The name that EXPECTED has for a type, or else the type's own name."""
    if isinstance(kind, pa.DictionaryType):
        return type_kind(kind.value_type)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return TEXT
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return BINARY
    return TIME if pa.types.is_timestamp(kind) or pa.types.is_int64(kind) else str(kind)


def packet_rows(batch: pa.RecordBatch, *, file_no: int, first_row: int, buckets: int, point: int) -> FrameRows:
    """A batch of a dump with checked columns, as rows of PACKETS.

    file_no, point: those of the dump. first_row: the number of the batch's first row in the dump.
    """
    batch = plain_columns(batch)
    wrong = wrong_rows(batch)
    is_good = ~np.any(list(wrong.values()), axis=0)
    numbers = np.flatnonzero(is_good)
    good = batch.filter(pa.array(is_good))
    frames = as_binary(good["frame"])
    is_request = to_numpy(pc.equal(as_binary(good["direction"]), pa.scalar(b"request")))
    connections, of_row = distinct_connections(good, buckets)
    client_is_higher = np.array([c.client_is_higher for c in connections], np.bool_)[of_row]
    times = as_nanoseconds(good["timestamp"])
    columns: dict[str, Any] = {
        "bucket": np.array([c.bucket for c in connections], np.int64)[of_row],
        "connection": pa.array([c.key for c in connections], pa.binary()).take(of_row),
        "direction": (is_request == client_is_higher).astype(np.int8),
        "sort_ns": times,
        "point": np.full(len(numbers), point),
        "file_no": np.full(len(numbers), file_no),
        "packet_no": numbers + first_row,
        "ts_ns": times,
        "seq": np.array([c.name for c in connections], np.int64)[of_row],
        "flags": np.where(is_request, IS_REQUEST, IS_RESPONSE),
        "payload_bytes": declared_bytes(frames),
        "payload": frames,
    }
    arrays = [pa.array(columns[field.name]).cast(field.type) for field in PACKETS]
    return FrameRows(pa.RecordBatch.from_arrays(arrays, schema=PACKETS), row_faults(batch, wrong))


def plain_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The columns in EXPECTED. Views become plain columns, because Arrow's functions take no views."""
    columns = {name: batch[name] for name in batch.schema.names if name in EXPECTED}
    kinds = {name: column.type for name, column in columns.items()}
    views = [name for name, kind in kinds.items() if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind)]
    return pa.RecordBatch.from_pydict(columns | {name: as_binary(columns[name]) for name in views})


def as_binary(column: pa.Array[Any]) -> pa.Array[Any]:
    """A column of text or bytes as bytes, because text in a dump may be invalid UTF-8."""
    values = column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column
    return values.cast(pa.binary())


def to_numpy(values: Any, null: object = None) -> Any:
    """The values of an Arrow array as numpy's, with `null` instead of nulls."""
    filled = values if null is None else pc.fill_null(values, null)
    return filled.to_numpy(zero_copy_only=False)


def as_nanoseconds(column: pa.Array[Any]) -> Ints:
    """The timestamps of a column, or its integers, which are already ns, as ns since 1970: int64[n].

    Null and times before 1970 become 0; times after LAST_NS become LAST_NS + 1.
    """
    per_unit = NS_PER_UNIT[column.type.unit] if isinstance(column.type, pa.TimestampType) else 1
    values = to_numpy(column.cast(pa.int64()), 0)
    return np.clip(values, 0, LAST_NS // per_unit + 1) * per_unit


def wrong_rows(batch: pa.RecordBatch) -> dict[FaultReason, Bools]:
    """Which rows of a batch of a dump are wrong, bool[n] by reason. A row with several reasons has only the first."""
    is_null = np.any([to_numpy(batch[name].is_null()) for name in NEEDED], axis=0)
    is_known = pc.is_in(as_binary(batch["direction"]), pa.array([b"request", b"response"]))
    times = as_nanoseconds(batch["timestamp"])
    wrong = {
        FaultReason.ROW_WITHOUT_VALUE: is_null,
        FaultReason.DIRECTION_UNKNOWN: ~to_numpy(is_known),
        FaultReason.TIMESTAMP_IMPLAUSIBLE: (times < FIRST_NS) | (times > LAST_NS),
        FaultReason.ADDRESS_MALFORMED: np.any([is_no_address(batch, name) for name in OPTIONAL], axis=0),
    }
    before = np.zeros(batch.num_rows, np.bool_)
    for reason, rows in wrong.items():
        wrong[reason] = rows & ~before
        before |= rows
    return wrong


def is_no_address(batch: pa.RecordBatch, name: str) -> Bools:
    """Which rows of a batch have a value in the column `name` that is not an address with a port: bool[n]."""
    if name not in batch.schema.names:
        return np.zeros(batch.num_rows, np.bool_)
    texts = as_binary(batch[name]).dictionary_encode()
    bad = [i for i, text in enumerate(texts.dictionary.to_pylist()) if parse_endpoint(text) is None]
    return np.isin(to_numpy(texts.indices, -1), bad)


def row_faults(batch: pa.RecordBatch, wrong: Mapping[FaultReason, Bools]) -> RowFaults:
    """The faults of a batch, as FrameRows has them; wrong: the wrong rows, bool[n] by reason."""
    sizes = np.diff(offsets_and_bytes(as_binary(batch["frame"]))[0])
    return {
        reason: (int(np.argmax(rows)), int(rows.sum()), int(sizes[rows].sum()))
        for reason, rows in wrong.items()
        if rows.any()
    }


def declared_bytes(frames: pa.Array[Any]) -> Ints:
    """The bytes that each of the frames, a binary column, had on the wire: int64[n].

    It is the frame's own size if that is plausible, but never less than the bytes that the dump has of the frame. A
    frame that is too short to have a size counts as SIZE_BYTES.
    """
    starts, data = offsets_and_bytes(frames)
    there = np.diff(starts)
    has_size = there >= SIZE_BYTES
    size = np.zeros(len(there), np.int64)
    for i in range(SIZE_BYTES):
        size[has_size] = size[has_size] << 8 | data[starts[:-1][has_size] + i]
    is_size = has_size & (size >= MIN_FRAME_BYTES) & (size <= MAX_FRAME_BYTES)
    return np.maximum(there, SIZE_BYTES + np.where(is_size, size, 0))


@dataclass(frozen=True)
class DumpedConnection:
    """A connection of a dump, in the form of PACKETS.

    key: its 36 bytes. client_is_higher: whether the higher endpoint is the client. name: its number, instead of a
    sequence number.
    """

    key: bytes
    client_is_higher: bool
    name: int
    bucket: int


def distinct_connections(batch: pa.RecordBatch, buckets: int) -> tuple[list[DumpedConnection], Ints]:
    """(the distinct connections of a batch's rows; int64[n], which of them each row has)."""
    columns = [
        as_binary(batch[name]) if name in batch.schema.names else pa.nulls(batch.num_rows, pa.binary())
        for name in ("connection", *OPTIONAL)
    ]
    encoded = [column.dictionary_encode() for column in columns]
    codes = np.stack([to_numpy(column.indices, -1) for column in encoded])
    distinct, of_row = np.unique(codes, axis=1, return_inverse=True)
    texts = [column.dictionary.to_pylist() for column in encoded]
    connections = [
        dumped_connection(*(text[code] if code >= 0 else None for text, code in zip(texts, row, strict=True)), buckets)
        for row in distinct.T.tolist()
    ]
    return connections, of_row.reshape(-1)


@lru_cache(maxsize=65_536)
def dumped_connection(connection: bytes, client: bytes | None, broker: bytes | None, buckets: int) -> DumpedConnection:
    """A connection, from its name in the dump and its addresses; each is None if the dump has none."""
    digest = hashlib.blake2b(connection, digest_size=8).digest()
    client_end = parse_endpoint(client) if client else None
    broker_end = parse_endpoint(broker) if broker else None
    ends = client_end or NOWHERE[:8] + digest + b"\0\0", broker_end or NOWHERE + b"\0\0"
    key = b"".join(sorted(ends))
    bucket = bucket_of_connection(np.frombuffer(bytearray(key), np.uint8), buckets)
    return DumpedConnection(key, ends[0] > ends[1], int.from_bytes(digest[:4], "big"), int(bucket))


@lru_cache(maxsize=65_536)
def parse_endpoint(text: bytes | None) -> bytes | None:
    """`10.0.0.1:9092` or `[2001:db8::1]:9092` as the 18 bytes of PACKETS; None for any other text."""
    host, _, port = (text or b"").decode("ascii", "replace").rpartition(":")
    try:
        address = ip_address(host[1:-1] if host.startswith("[") and host.endswith("]") else host)
    except ValueError:
        return None
    if not (port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) < 1 << 16):
        return None
    return endpoint_bytes(address, int(port))
