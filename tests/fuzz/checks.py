"""What holds for every input, however hostile: no crash, each byte is counted, and chunks make no difference."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from schemas.tables.steps import EXCHANGE_COUNTS
from tests.packed import unpack
from tests.request_logs import index_request_log
from tests.unit.capture.conversations import batch, cut
from tests.unit.facts.brokers import counts_by_connection, tables_held, tables_of
from udfs.capture.file_index import index_capture
from udfs.capture.packet_store import MemoryBudget, PacketStore
from udfs.capture.packets import read_packets
from udfs.capture.packets_by_connection import packets_by_connection
from udfs.capture.request_log import read_requests
from udfs.errors import CaptureError
from udfs.facts.rows_from_log import LINE_ORDER, READ_KEYS, rows_from_log

Tables = Mapping[str, list[dict[str, Any]]]
PACKET_ORDER = ("connection", "sort_ns", "file_no", "packet_no")


def check_packets(rows: list[dict[str, Any]]) -> int:
    """Check packets in one chunk and in small ones. Returns the number of rows, as the other checks do."""
    whole = tables_of([batch(rows)])
    for most in (1, 3):
        assert_same(whole, tables_of(cut(batch(rows), most), rows=most, payload_bytes=1))
    return checked(whole)


def check_file(chance: random.Random, folder: Path, content: bytes) -> int:
    """Check a capture file that is read in ranges and chunks of random size, and one that is held in memory."""
    path = folder / "capture"
    path.write_bytes(content)
    try:
        index = index_capture(str(path), range_bytes=chance.choice([1 << 30, 5_000, 60_000]), buckets=4)
    except CaptureError:
        return 0
    parts = [b for part in index.ranges for b in read_packets(part, file_no=0, buckets=4, batch_bytes=1 << 20)]
    if not parts:
        return 0
    packets = in_order(parts, PACKET_ORDER)
    whole = tables_of(packets.to_batches())
    assert sum(row["payload_bytes"] for row in whole["connections"]) == index.tcp_payload_captured
    store = PacketStore(MemoryBudget(1 << 30))
    index_capture(str(path), range_bytes=1 << 30, buckets=4, on_packets=store.add)
    in_memory = packets_by_connection([store.content], in_order=chance.choice([True, False]))
    assert_same(whole, tables_held(in_memory, chance.choice([1, 5])))
    most = chance.choice([1, 2, 7, 50])
    assert_same(whole, tables_of(packets.to_batches(max_chunksize=most), rows=most, payload_bytes=1))
    return checked(whole)


def check_log(chance: random.Random, folder: Path, content: bytes) -> int:
    """Check a request log that is read twice, as two files."""
    path = folder / "log"
    path.write_bytes(content)
    try:
        index = index_request_log(str(path), range_bytes=chance.choice([1 << 20, 3_000]), buckets=4)
    except CaptureError:
        return 0
    if index is None:
        return 0
    block_bytes = chance.choice([1 << 20, 500])
    parts = [
        lines
        for file_no in (0, 1)
        for part in index.ranges
        for lines in read_requests(part, file_no=file_no, bodies_of=READ_KEYS, block_bytes=block_bytes)
    ]
    lines = in_order(parts, LINE_ORDER)
    whole = log_tables(lines, 10_000)
    assert_same(whole, log_tables(lines, chance.choice([1, 3, 7])))
    assert_keys(whole)
    return sum(map(len, whole.values()))


def in_order(batches: list[pa.RecordBatch], columns: tuple[str, ...]) -> pa.Table:
    return pa.Table.from_batches(batches).sort_by([(name, "ascending") for name in columns]).combine_chunks()


def log_tables(lines: pa.Table, most: int) -> Tables:
    """Rows by table; repeated lines are summed up by file."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for packed in rows_from_log(lines.to_batches(max_chunksize=most), "capture", rows=most):
        for content in unpack([packed]):
            found[packed["table"][0].as_py()] += content.to_pylist()
    repeated: dict[str, int] = defaultdict(int)
    for row in found.pop("repeated_lines", []):
        repeated[str(row["file_no"])] += row["lines"]
    return {name: sorted(rows, key=repr) for name, rows in found.items()} | {"repeated": [dict(repeated)]}


def checked(tables: Tables) -> int:
    """Check that every captured byte is counted exactly once, and that keys are unique. Returns the number of rows."""
    for row in tables["connections"]:
        parts = ("framed_bytes", "unframed_bytes", "repeated_bytes", "late_bytes")
        assert sum(row[part] for part in parts) == row["payload_bytes"], row
        assert 0 <= row["sasl_token_bytes"] <= row["unframed_bytes"], row
    exchanged = sum(row["request_bytes"] + row["response_bytes"] for row in tables["exchanges"])
    assert exchanged == sum(row["framed_bytes"] for row in tables["connections"])
    quarantined = sum(row["bytes"] for row in tables["quarantine"] if row["exchange_no"] is None)
    assert quarantined == sum(row["unframed_bytes"] for row in tables["connections"] if row["protocol"] == "kafka")
    assert_keys(tables)
    return sum(map(len, tables.values()))


def assert_keys(tables: Tables) -> None:
    for name, key in {"connections": ("connection_id",), "exchanges": ("connection_id", "exchange_no")}.items():
        keys = [tuple(row[part] for part in key) for row in tables.get(name, [])]
        assert len(keys) == len(set(keys)), name


def assert_same(whole: Tables, pieces: Tables) -> None:
    """Other chunks give the same rows, and for counts the same sums."""
    found, expected = comparable(pieces), comparable(whole)
    different = [name for name in sorted(found.keys() | expected.keys()) if found.get(name) != expected.get(name)]
    assert not different, f"other rows in other chunks: {', '.join(different)}"


def comparable(tables: Tables) -> dict[str, Any]:
    return {
        name: counts_by_connection(rows) if name == EXCHANGE_COUNTS.name else rows
        for name, rows in tables.items()
        if rows
    }
