"""Which replica serves a consumer with fetch-from-follower (KIP-392), and why that may not be known."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from udfs.replay.fetch_max_bytes.rack_reads import READS, located_reads

RACKS = {"1": "a", "2": "b", "3": "b", "10": "b", "4": "c"}
"""The rack of each broker, by node id."""


def located(isr: list[int] | None, client_rack: str | None = "b", leader: str = "1", **differs: Any) -> dict[str, Any]:
    """The located read of a partition with these replicas in sync."""
    read = {
        "client_id": "app", "client_address": "10.0.0.1", "client_rack": client_rack, "topic": "t", "partition": 0,
        "broker": leader, "leader": leader, "bytes": 7, "isr": isr, "api_version": 11, **differs,
    }  # fmt: skip
    (rows,) = located_reads([pa.RecordBatch.from_pylist([read], READS)], RACKS)
    (row,) = rows.to_pylist()
    assert {name: row[name] for name in ("broker", "bytes")} == {name: read[name] for name in ("broker", "bytes")}
    return row


def test_a_replica_in_the_consumers_rack_serves_it_instead_of_the_leader() -> None:
    row = located([4, 2, 1])
    assert (row["preferred"], row["preferred_rack"], row["leader_rack"], row["unknown_for"]) == ("2", "b", "a", None)


@pytest.mark.parametrize(
    ("isr", "client_rack", "leader", "version"),
    [
        ([1, 2], "a", "1", 11),
        ([1, 4], "b", "1", 11),
        ([1, 2], "b", "1", 10),
        ([3, 2], "b", "2", 11),
        ([1], "c", "1", 12),
    ],
    ids=["in its rack", "nobody in the rack", "an old request", "another in the leader's rack", "alone"],
)
def test_otherwise_the_leader_serves(isr: list[int], client_rack: str, leader: str, version: int) -> None:
    row = located(isr, client_rack, leader, api_version=version)
    assert (row["preferred"], row["preferred_rack"], row["unknown_for"]) == (leader, RACKS[leader], None)


def test_any_of_several_replicas_in_the_rack_may_serve() -> None:
    assert located([10, 3, 1, 2])["preferred"] == "2,3,10"


@pytest.mark.parametrize(
    ("isr", "client_rack", "leader", "why"),
    [
        ([1, 2], None, "1", "client_rack"),
        ([1, 2], "z", "1", "rack_of_no_broker"),
        ([1, 2], "b", "10.0.0.9:9092", "broker_rack"),
        ([1, 2, 77], "b", "1", "broker_rack"),
        (None, "b", "1", "replicas"),
    ],
)
def test_an_unknown_replica_has_a_reason(isr: list[int] | None, client_rack: str | None, leader: str, why: str) -> None:
    row = located(isr, client_rack, leader)
    assert (row["unknown_for"], row["preferred"], row["preferred_rack"]) == (why, None, None)


def test_a_leader_in_the_rack_needs_no_replicas() -> None:
    assert located(None, "a")["preferred"] == "1"
    assert located([1, 77], "a")["preferred"] == "1"


def test_no_reads_give_no_rows() -> None:
    assert [rows.num_rows for rows in located_reads([pa.RecordBatch.from_pylist([], READS)], RACKS)] == [0]
