"""Packets that go through the shuffle as runs come out as they were read, in the order of their connections."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import udfs.capture.packet_runs
from udfs.capture.packet_runs import PACKET_RUNS, make_packet_runs, packets_of_runs
from udfs.capture.packets import PACKETS

BESIDES = ("bucket", "sort_ns")
"""The columns that only the shuffle needs."""
Row = dict[str, Any]


def packet(number: int, connection: int, payload: bytes = b"") -> Row:
    return {
        "bucket": connection, "connection": bytes([connection]) * 36, "direction": number % 2, "sort_ns": 10 * number,
        "point": 0, "file_no": 3, "packet_no": number, "ts_ns": 7 * number, "seq": 2**32 - 1 - number, "flags": 0x10,
        "payload_bytes": len(payload) + number % 3, "payload": payload,
    }  # fmt: skip


def batch_of(rows: list[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=PACKETS)


def runs(rows: list[Row], *, in_order: bool = True) -> pa.RecordBatch:
    shards = np.array([row["bucket"] % 2 for row in rows], np.int32)
    return make_packet_runs(batch_of(rows), shards, in_order=in_order)


def through(found: pa.RecordBatch) -> list[Row]:
    """The packets that come out of runs."""
    return [row for batch in packets_of_runs(found) for row in batch.to_pylist()]


def read(rows: list[Row]) -> list[Row]:
    return [{name: value for name, value in row.items() if name not in BESIDES} for row in rows]


CAPTURED = st.lists(st.tuples(st.integers(0, 3), st.binary(max_size=5)), max_size=20)


@given(CAPTURED)
def test_packets_come_out_as_they_went_in_by_connection(captured: list[tuple[int, bytes]]) -> None:
    rows = [packet(number, *each) for number, each in enumerate(captured)]
    found = runs(rows)
    assert found.schema == PACKET_RUNS
    assert len(found) == len({row["bucket"] for row in rows})
    for connection in range(4):
        own = found.filter(pa.array([row["connection"][0] == connection for row in found.to_pylist()], pa.bool_()))
        assert through(own) == read([row for row in rows if row["bucket"] == connection])


@given(CAPTURED)
def test_where_points_share_connections_every_packet_is_a_run(captured: list[tuple[int, bytes]]) -> None:
    rows = [packet(number, *each) for number, each in enumerate(captured)]
    found = runs(rows, in_order=False)
    order = [(row["sort_ns"], row["packet_no"]) for row in found.to_pylist()]
    assert order == [(row["sort_ns"], row["packet_no"]) for row in rows]
    assert through(found) == read(rows)


def test_a_run_is_ordered_by_its_first_packet_and_sent_where_its_connection_goes() -> None:
    rows = [packet(4, 1), packet(5, 2), packet(6, 1)]
    told = [(row["connection"][0], row["shard"], row["sort_ns"], row["packet_no"]) for row in runs(rows).to_pylist()]
    assert told == [(1, 1, 40, 4), (2, 0, 50, 5)]


@pytest.mark.parametrize("slice_bytes", [1, 7, 10_000])
def test_packets_come_a_bounded_number_of_bytes_at_a_time(slice_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [packet(number, number % 5, bytes([number]) * (number % 4)) for number in range(40)]
    found = runs(rows)
    whole = through(found)
    monkeypatch.setattr(udfs.capture.packet_runs, "SLICE_BYTES", slice_bytes)
    assert through(found) == whole
    assert len(list(packets_of_runs(found))) == {1: 5, 7: 5, 10_000: 1}[slice_bytes]
    assert [row["packet_no"] for row in through(found.slice(2, 2))] == [*range(2, 40, 5), *range(3, 40, 5)]
