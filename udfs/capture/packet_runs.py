"""Runs of packets for the shuffle: packets of one connection that were read together are one row.

The time that Spark takes depends on the number of rows: with a hundred packets in a run it takes a hundredth of the
time for the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from udfs.capture.tcp_headers import CONNECTION_BYTES
from udfs.columns.arrays import Bytes, Ints, stretch_edges
from udfs.columns.arrow_columns import arrow_array, arrow_array_over, binary_column, offsets_and_bytes
from udfs.wire.byte_spans import gather_spans

RUN_COLUMNS: Mapping[str, pa.DataType] = {
    "shard": pa.int32(),
    "connection": pa.binary(),
    "sort_ns": pa.int64(),
    "file_no": pa.int32(),
    "packet_no": pa.int64(),
    "point": pa.int32(),
}
"""Columns of a run. Its sort_ns and packet_no are those of its first packet, so that runs are sorted like packets."""
PACKET_COLUMNS: Mapping[str, np.dtype[Any]] = {
    "number": np.dtype(np.int64),
    "direction": np.dtype(np.int8),
    "ts_ns": np.dtype(np.int64),
    "seq": np.dtype(np.int64),
    "flags": np.dtype(np.int16),
    "payload_bytes": np.dtype(np.int32),
    "captured": np.dtype(np.int32),
}
"""Columns of the packets. A run has each column as the bytes of one array. number: packet_no. captured: payload bytes.
"""
_FIELDS: list[pa.Field[Any]] = [
    *(pa.field(name, kind) for name, kind in RUN_COLUMNS.items()),
    *(pa.field(name, pa.binary()) for name in PACKET_COLUMNS),
    pa.field("payload", pa.binary()),
]
PACKET_RUNS = pa.schema(_FIELDS)
SLICE_BYTES = 8 << 20
"""How many bytes of payload are taken out of runs at a time."""


def make_packet_runs(packets: pa.RecordBatch, shards: npt.NDArray[np.int32], *, in_order: bool) -> pa.RecordBatch:
    """The runs of a batch of PACKETS from one file, as rows of PACKET_RUNS.

    shards: int32[n], the shard of each packet's connection. in_order: whether the packets of each connection already
    come in the order in which they are framed; if not, every packet is a run of its own, so that they can be sorted.
    """
    order, first = _rows_by_connection(packets["connection"]) if in_order else (np.arange(len(packets)),) * 2
    bounds = np.append(first, len(order))
    starts, payload = offsets_and_bytes(packets["payload"])
    captured = np.diff(starts)[order].astype(np.int32)
    ends = stretch_edges(captured)
    of_packet = {
        "number": packets["packet_no"].to_numpy()[order],
        "captured": captured,
        **{name: packets[name].to_numpy()[order] for name in PACKET_COLUMNS if name in packets.schema.names},
    }
    heads = arrow_array_over(pa.int64(), len(first), order[first])
    columns: dict[str, pa.Array[Any]] = {name: packets[name].take(heads) for name in RUN_COLUMNS if name != "shard"}
    columns["shard"] = arrow_array_over(pa.int32(), len(first), shards[order[first]])
    for name, kind in PACKET_COLUMNS.items():
        columns[name] = binary_column(of_packet[name].astype(kind).view(np.uint8), bounds * kind.itemsize)
    columns["payload"] = binary_column(gather_spans(payload, starts[:-1][order], ends), ends[bounds])
    return pa.RecordBatch.from_arrays([columns[name] for name in PACKET_RUNS.names], schema=PACKET_RUNS)


def packets_of_runs(runs: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The packets in PACKET_RUNS, one in each row, with all columns of PACKETS except `bucket` and `sort_ns`.

    runs: a batch of PACKET_RUNS.
    """
    starts, _ = offsets_and_bytes(runs["payload"])
    slices = (starts[:-1] - starts[0]) // SLICE_BYTES
    cuts = [0, *(np.flatnonzero(np.diff(slices)) + 1).tolist(), len(runs)]
    for begin, end in pairwise(cuts):
        if end > begin:
            yield _packets_in(runs.slice(begin, end - begin))


def _packets_in(runs: pa.RecordBatch) -> pa.RecordBatch:
    each = {name: _values(runs[name], kind) for name, kind in PACKET_COLUMNS.items()}
    captured = each.pop("captured")
    number_starts, _ = offsets_and_bytes(runs["number"])
    counts = np.diff(number_starts) // PACKET_COLUMNS["number"].itemsize
    _, connections = _contents(runs["connection"])
    repeated = np.repeat(connections.reshape(-1, CONNECTION_BYTES), counts, axis=0)
    _, payload = _contents(runs["payload"])
    columns: dict[str, pa.Array[Any]] = {
        "packet_no": arrow_array(each.pop("number")),
        **{name: arrow_array(values) for name, values in each.items()},
        **{name: arrow_array(np.repeat(runs[name].to_numpy(), counts)) for name in ("file_no", "point")},
        "connection": binary_column(repeated.ravel(), np.arange(len(repeated) + 1) * CONNECTION_BYTES),
        "payload": binary_column(payload, stretch_edges(captured)),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _rows_by_connection(connections: pa.Array[Any]) -> tuple[Ints, Ints]:
    """(row numbers by connection, in their order within a connection; where each connection begins in these)."""
    codes = connections.dictionary_encode().indices.to_numpy()
    order: Ints = np.argsort(codes, kind="stable")
    return order, np.flatnonzero(np.diff(codes[order], prepend=-1))


def _contents(column: pa.Array[Any]) -> tuple[Ints, Bytes]:
    """(where each value of a binary column begins in the bytes, the bytes of all values one after the other)."""
    starts, content = offsets_and_bytes(column)
    return starts - starts[0], content[starts[0] : starts[-1]]


def _values(column: pa.Array[Any], kind: np.dtype[Any]) -> np.ndarray:
    _, content = _contents(column)
    return np.frombuffer(content.tobytes(), kind)
