"""Rows of MEMORY_EVENTS as tests write them down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.memory_reasons import DRAINED
from schemas.tables.steps_memory import MEMORY_EVENTS
from udfs.columns.time_units import NEVER
from udfs.facts.arrow_tables import arrow_schema
from udfs.replay.consumer_memory.consumers import ConsumerEvents, Consumers
from udfs.replay.consumer_memory.settings import FETCH_LIMITS
from udfs.replay.consumer_memory.state import Traces
from udfs.replay.consumer_memory.traces import traces_of_responses
from udfs.replay.shared.fidelity_rows import NO_REASON

Row = dict[str, Any]
FETCH, PRODUCE, METADATA, HEARTBEAT = 1, 0, 3, 12


def row(side: str, unit: str, **columns: Any) -> Row:
    """A row. Columns that are not given are null, except for those of the key."""
    key = {"side": side, "unit": unit, "unit_address": "", "connection_id": 0, "exchange_no": 0, "kind": 0, "shard": 0}
    return {**dict.fromkeys(map(str, MEMORY_EVENTS.columns)), **key, **columns}


def fetch(
    time: int,
    came: int | None,
    size: int,
    partitions: Sequence[tuple[int, int, int]],
    connection: int = 0,
    unit: str = "app",
) -> list[Row]:
    """A fetch and its partitions: (partition, fetch offset, records of 10 bytes returned as one plain batch)."""
    at = {"time": time, "connection_id": connection, "exchange_no": time}
    rows = [row("consumer", unit, **at, came=came, size=size, max_bytes=1000, api_key=FETCH)]
    for partition, offset, records in partitions:
        limits = {"partition_key": partition, "broker_key": connection, "partition_max_bytes": 500}
        rows.append(row("consumer", unit, **at, kind=1, **limits, fetch_offset=offset, returned_bytes=10 * records))
        if records:
            batch = {"end_offset": offset + records, "records": records, "compressed": False, "size": 10 * records}
            rows.append(row("consumer", unit, **at, kind=2, partition_key=partition, **batch))
    return rows  # fmt: skip


def batches(rows: Sequence[Row], cut: int = 10_000) -> list[pa.RecordBatch]:
    """The rows in batches of `cut`."""
    schema = arrow_schema(MEMORY_EVENTS)
    return [pa.RecordBatch.from_pylist(list(rows[i : i + cut]), schema=schema) for i in range(0, len(rows), cut)]


def captured(rows: Sequence[Row], cut: int = 3) -> Consumers:
    """What one process exchanged. rows: in any order; the replay gets them in batches of `cut`."""
    events = ConsumerEvents()
    for batch in batches(sorted(rows, key=lambda of: (of["time"], of["connection_id"], of["kind"])), cut):
        events.add(batch, np.zeros(batch.num_rows, np.int64))
    return events.consumers(np.zeros(0, FETCH_LIMITS))


def received(rows: Sequence[Row], cut: int = 3) -> Traces:
    """The responses of one process as the replay takes them."""
    exchanges = captured(rows, cut).exchanges
    return traces_of_responses(exchanges[exchanges["complete_at"] != NEVER], 1)


def held(rows: Sequence[Row], cut: int = 3) -> list[int]:
    """How long each response is held (us), NEVER for one that is not given back."""
    return received(rows, cut).messages["held_us"].tolist()


def verdicts_of(found: Consumers) -> dict[str, int]:
    """How often each verdict on one process's partitions was given, by its word."""
    words = (NO_REASON, *DRAINED.words)
    return {word: count for word, count in zip(words, found.verdicts[0].tolist(), strict=True) if count}


def of_group(time: int, came: int | None, api_key: int) -> Row:
    """The consumer's own request to the coordinator."""
    at = {"time": time, "connection_id": 8, "exchange_no": time}
    return row("consumer", "app", **at, came=came, size=10, api_key=api_key)
