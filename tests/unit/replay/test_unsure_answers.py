"""Fetches whose answer the capture lacks, and fetches that some append has woken."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from schemas.tables.gold import FETCH_CONSUMERS, FETCH_FAIRNESS
from schemas.tables.steps import READS
from schemas.tables.table import Table
from tests.packed import unpack
from udfs.columns.time_units import NEVER
from udfs.facts.arrow_tables import arrow_schema
from udfs.replay.fetch_max_bytes.client_pace import as_captured_clients
from udfs.replay.fetch_max_bytes.fetch_lanes import FetchLanes
from udfs.replay.fetch_max_bytes.fetch_read import Lanes
from udfs.replay.fetch_max_bytes.fetch_replay import replay_fetches
from udfs.replay.fetch_max_bytes.fidelity import Known, lowest_available
from udfs.replay.shared.lanes import AS_CAPTURED

READ: dict[str, object] = {
    "topic": "orders", "partition": 0, "broker": "1", "client_address": "10.0.0.9", "client_id": "c",
    "reader": "consumer", "connection_id": 1, "exchange_no": 0, "request_time": 0, "response_time": 1,
    "max_wait_ms": 500, "max_bytes": 1 << 20,
    "session_known": True, "redirected": False, "refused": False, "throttled": False, "read_position": 0,
    "partition_max_bytes": 1 << 20, "returned_bytes": 10, "bound_known": True, "log_known": True, "batch_sizes": [10],
    "available_low": 10, "available_high": 10, "first_append": None, "available_first": 10,
}  # fmt: skip


def replayed(table: Table, *reads: dict[str, object]) -> list[dict[str, object]]:
    """The table's rows of a replay of the captured settings, in open loop."""
    captured = Lanes(*(np.array([value]) for value in (AS_CAPTURED, AS_CAPTURED, 55 << 20, 0)))
    clients = as_captured_clients(1)
    batches = pa.Table.from_pylist(list(reads), schema=arrow_schema(READS)).to_batches()
    packed = replay_fetches(batches, FetchLanes(("captured",), captured, captured, clients, clients), "run")
    return [
        row
        for part in packed
        if part["table"][0].as_py() == table.name
        for rows in unpack([part])
        for row in rows.to_pylist()
        if row["mode"] == "open"
    ]


def test_a_partition_that_only_unanswered_fetches_wanted_has_no_row() -> None:
    unanswered = READ | {
        "partition": 1,
        "exchange_no": 1,
        "request_time": 2,
        "response_time": None,
        "returned_bytes": None,
    }
    assert [(row["partition"], row["bytes"]) for row in replayed(FETCH_FAIRNESS, READ, unanswered)] == [(0, 10)]
    (consumer,) = replayed(FETCH_CONSUMERS, READ, unanswered)
    assert (consumer["requests"], consumer["partitions"]) == (1, 1)


def lowest(first_append: list[int], returned: list[int]) -> list[int]:
    """The least that was there for the partitions of one fetch, none of which surely had any of their 10 bytes."""
    n = len(returned)
    flags, none = np.zeros(n, np.bool_), np.zeros(n, np.int64)
    first = np.array(first_append)
    told = flags, flags, ~flags, flags, ~flags, ~flags, flags, flags, flags, flags
    known = Known(*told, none, none + 10, first, none + 10, np.array(returned))
    return lowest_available(known, none, 1, none, NEVER).tolist()


def test_the_one_partition_that_may_have_had_records_woke_the_fetch() -> None:
    assert lowest([NEVER, 5], [0, 10]) == [0, 10]


def test_between_several_partitions_it_is_not_known_which_woke_the_fetch() -> None:
    """Times of appends are the earliest possible: the earlier one may well have come later."""
    assert lowest([3, 5], [0, 10]) == [0, 0]


def test_a_fetch_that_returned_nothing_was_not_woken() -> None:
    assert lowest([NEVER, 5], [0, 0]) == [0, 0]
