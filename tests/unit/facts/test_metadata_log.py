"""Fetches of the metadata log are told from those of followers."""

from __future__ import annotations

import pyarrow as pa
import pytest

from schemas.tables.silver import FETCH_PARTITIONS
from tests.silver_rows import silver_rows
from udfs.facts.metadata_log import METADATA_LOG, fetches_metadata_log, without_metadata_log
from udfs.replay.shared.silver_work import outside_metadata_log

RAFT = {"replica_id": 1, "session_id": 0, "session_epoch": -1, "api_version": 17}


@pytest.mark.parametrize(
    ("differs", "reads"),
    [
        ({}, True),
        ({"replica_id": -1}, False),
        ({"replica_id": None}, False),
        ({"session_epoch": 0}, False),
        ({"session_epoch": None}, False),
        ({"session_id": 9}, False),
        ({"api_version": 6}, False),
    ],
    ids=["raft", "consumer", "cut", "first of a session", "cut before its epoch", "closes a session", "older broker"],
)
def test_a_replica_that_wants_no_session_reads_the_metadata_log(differs: dict[str, int | None], reads: bool) -> None:
    fetch = {name: pa.array([value], pa.int32()) for name, value in {**RAFT, **differs}.items()}
    assert fetches_metadata_log(**fetch).to_pylist() == [reads]


@pytest.mark.parametrize("topic", METADATA_LOG)
def test_replays_get_no_partition_of_the_metadata_log_by_name_or_by_id(topic: str) -> None:
    f = FETCH_PARTITIONS
    rows = [{str(f.topic): name, str(f.partition): number} for number, name in enumerate(("orders", topic, None))]
    batches = silver_rows(f, (f.topic, f.partition), rows)
    left = [row for batch in outside_metadata_log(iter, f.topic, batches) for row in batch.to_pylist()]
    assert [row[f.partition] for row in left] == [0, 2]


def test_rows_without_the_metadata_log_are_not_copied() -> None:
    rows = pa.RecordBatch.from_pydict({"topic": ["orders"]})
    assert without_metadata_log(rows, "topic") is rows
