"""Frame dumps for tests, made of captures or written by hand."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.sort_keys import SortKeys
from udfs.capture.endpoints import connection_endpoints
from udfs.capture.frame_dump import index_frames, read_dump_frames
from udfs.capture.framing import SIZE_BYTES
from udfs.capture.packet_chunks import frames_by_chunk

FIELDS: list[pa.Field[Any]] = [
    pa.field("connection", pa.string()),
    pa.field("direction", pa.string()),
    pa.field("timestamp", pa.timestamp("ns", "UTC")),
    pa.field("frame", pa.binary()),
    pa.field("client_address", pa.string()),
    pa.field("broker", pa.string()),
]
DUMP = pa.schema(FIELDS)
Rows = list[dict[str, Any]]


def dumped(packets: Iterable[pa.RecordBatch]) -> pa.Table:
    """A dump of the frames in packets, in the order in which they were complete."""
    rows: Rows = []
    for chunk in frames_by_chunk(packets, rows=1 << 30, payload_bytes=1 << 30):
        lower, higher = (ends.to_pylist() for ends in connection_endpoints(b"".join(chunk.endpoints)))
        for direction, found in (("request", chunk.requests), ("response", chunk.responses)):
            for frame in found if direction == "response" else found[found["is_open"] == 0]:
                c = int(frame["connection"])
                is_lower = chunk.connections["client"][c] == 0
                start, end = int(frame["start"]), int(frame["start"] + frame["prefix"])
                rows.append(
                    {
                        "connection": f"{lower[c]}-{higher[c]}-{chunk.connections['incarnation'][c]}",
                        "direction": direction,
                        "timestamp": int(frame["last_time"]),
                        "frame": int(frame["size"]).to_bytes(SIZE_BYTES, "big") + chunk.arena[start:end].tobytes(),
                        "client_address": lower[c] if is_lower else higher[c],
                        "broker": higher[c] if is_lower else lower[c],
                    }
                )
    rows.sort(key=lambda row: row["timestamp"])
    return pa.Table.from_pylist(rows, DUMP)


def write_parquet(path: Path, table: pa.Table, **how: Any) -> Path:
    pq.write_table(table, path, **how)
    return path


def write_arrow(path: Path, table: pa.Table, *, rows: int = 100) -> Path:
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)
    return path


def packets_in_order(paths: Iterable[Path], *, range_bytes: int = 1 << 30) -> pa.RecordBatch:
    """The rows of dumps, in the order in which workers get them."""
    batches = [
        batch
        for number, path in enumerate(paths)
        for part in index_frames(str(path), range_bytes=range_bytes, buckets=1).ranges
        for batch in read_dump_frames(part, file_no=number, buckets=1)
    ]
    keys: SortKeys = [(name, "ascending") for name in ("connection", "sort_ns", "file_no", "packet_no")]
    return pa.Table.from_batches(batches).sort_by(keys).combine_chunks().to_batches()[0]
