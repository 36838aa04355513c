"""A small capture set and run whose rows pass every shipped rule; and for each rule, a change that it refuses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from schemas.tables.gold import FETCH_CONSUMERS, FETCH_FAIRNESS, FIDELITY, RUNS
from schemas.tables.gold_sessions import SESSION_CACHE, SESSION_SLOTS
from schemas.tables.silver import CAPTURES, CONNECTIONS, EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
from schemas.tables.table import Column, Table
from udfs.facts.arrow_tables import arrow_schema

CAPTURE, RUN, LANES = "a-capture", "a-run", ("captured", "fetch.max.bytes=1MiB")
TIME = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
Row = dict[str, Any]

_TCP = {"client": "10.0.0.1:40000", "server": "10.0.0.2:9092", "requests": 9}
_BATCH = {"source": "fetch", "topic": "t", "partition_leader_epoch": 3, "size_bytes": 70, "available_bytes": 70}
GOOD: Mapping[Table, list[Row]] = {
    CAPTURES: [{"tcp_captured_bytes": 1000}],
    CONNECTIONS: [
        {"connection_id": 5, "payload_bytes": 1000, "framed_bytes": 900, "repeated_bytes": 100, **_TCP},
        {**_TCP, "connection_id": 7, "server": "10.0.0.3:9092"},
    ],
    EXCHANGES: [
        {"connection_id": 5, "exchange_no": 0, "api_name": "FETCH", "request_bytes": 100, "response_bytes": 400},
        {"connection_id": 5, "exchange_no": 1, "api_name": "FETCH", "request_bytes": 100, "response_bytes": 300},
    ],
    FETCH_PARTITIONS: [
        {"connection_id": 5, "exchange_no": 0, "topic": "t", "partition": partition, "returned_bytes": 140,
         "response_record_bytes": 280}
        for partition in (0, 1)
    ],
    RECORD_BATCHES: [
        _BATCH | {"connection_id": 5, "position": 0, "base_offset": 10, "last_offset_delta": 4},
        _BATCH | {"connection_id": 5, "position": 1, "base_offset": 15, "last_offset_delta": 0},
        _BATCH | {"connection_id": 6, "position": 0, "base_offset": 16, "last_offset_delta": 0},
    ],
    RUNS: [{"lanes": list(LANES), "algorithm": "fetch_max_bytes"}],
    FIDELITY: [
        {"algorithm": "fetch_max_bytes", "metric": metric, "checked": 100, "agreed": 100, "reader": "consumer"}
        for metric in ("fetches_with_records", "closed_loop_order")
    ],
    FETCH_CONSUMERS: [{"scenario": "captured", "mode": "open", "bytes": 280}],
    FETCH_FAIRNESS: [{"scenario": "captured", "mode": "open", "bytes": 140, "partition": n} for n in (0, 1)],
    SESSION_CACHE: [
        {"scenario": "captured", "captured_fetches": 2, "captured_request_bytes": 200, "captured_response_bytes": 700}
    ],
    SESSION_SLOTS: [{"scenario": "captured", "slots": 8, "slots_at_least": 8, "slots_at_most": 15}],
}  # fmt: skip

PLANTED: Mapping[str, tuple[Table, int, Row]] = {
    "captured_bytes_are_followed": (CAPTURES, 0, {"tcp_captured_bytes": 1001}),
    "files_are_read": (
        CAPTURES, 0,
        {"size_bytes": 99, "unread_bytes": 50, "compression": "none", "faults": ["block_malformed at byte 49"]},
    ),
    "connections_are_there_once": (EXCHANGES, 1, {"connection_id": 7, "exchange_no": 0, "response_bytes": 400}),
    "followed_bytes_have_a_place": (CONNECTIONS, 0, {"late_bytes": 1}),
    "framed_bytes_are_in_exchanges": (EXCHANGES, 1, {"response_bytes": 299}),
    "partitions_add_up_to_fetches": (FETCH_PARTITIONS, 1, {"returned_bytes": 139}),
    "no_negative_size": (EXCHANGES, 0, {"request_bytes": -1}),
    "no_negative_record_bytes": (FETCH_PARTITIONS, 0, {"returned_bytes": -1}),
    "no_negative_batch_size": (RECORD_BATCHES, 0, {"size_bytes": -61}),
    "response_after_request": (FETCH_PARTITIONS, 0, {"response_time": TIME.replace(hour=11)}),
    "time_goes_forward": (EXCHANGES, 0, {"request_time": TIME.replace(hour=13)}),
    "offsets_go_forward": (RECORD_BATCHES, 1, {"base_offset": 14}),
    "offsets_are_given_once": (RECORD_BATCHES, 2, {"base_offset": 13}),
    "fidelity_above_floor": (FIDELITY, 0, {"agreed": 98}),
    "closed_loop_fidelity_above_floor": (FIDELITY, 1, {"agreed": 89}),
    "captured_slots_are_possible": (SESSION_SLOTS, 0, {"slots": 1000}),
    "agreed_is_of_checked": (FIDELITY, 0, {"agreed": 101}),
    "scenario_is_in_runs": (FETCH_FAIRNESS, 0, {"scenario": "fetch.max.bytes=2MiB"}),
    "run_is_in_runs": (FETCH_CONSUMERS, 0, {"run_id": "a-killed-run"}),
    "captured_fetches_add_up": (SESSION_CACHE, 0, {"captured_fetches": 3}),
    "reader_totals_add_up": (FETCH_CONSUMERS, 0, {"bytes": 281}),
}  # fmt: skip
"""By rule: the table of a row, its place in GOOD, and what to change in it."""

_PLAIN: Mapping[str, Any] = {"string": "", "boolean": False, "double": 0.0, "timestamp": TIME}


def whole(table: Table, rows: Iterable[Row]) -> pa.Table:
    """The rows with all columns; a column that is not given is null, or has the plainest value that it can have."""
    filled = [{str(column): row.get(column, _value(column)) for column in table.columns} for row in rows]
    return pa.Table.from_pylist(filled, schema=arrow_schema(table))


def frame(spark: SparkSession, table: Table, rows: Iterable[Row]) -> DataFrame:
    """The rows with all columns, as a DataFrame."""
    return spark.createDataFrame(whole(table, rows))


def _value(column: Column) -> Any:
    ours = {"capture_id": CAPTURE, "run_id": RUN, "request_time": TIME, "response_time": TIME}
    if column in ours:
        return ours[column]
    if column.nullable and column != "fetch_replica_id":
        return None
    return [] if column.type.startswith(("array", "map")) else _PLAIN.get(column.type, 0)


def planted(rule: str) -> dict[Table, list[Row]]:
    """The good rows, with one changed so that the rule refuses it."""
    table, place, changes = PLANTED[rule]
    changed = [row | changes if i == place else row for i, row in enumerate(GOOD[table])]
    return {**GOOD, table: changed}
