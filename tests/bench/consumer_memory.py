"""Memory on one core: from rows of MEMORY_EVENTS to packed gold rows, in one lane and in a grid of pool sizes.

An event is a consumer's response, a broker's request or a producer's batch. All times are CPU time.
"""

from __future__ import annotations

from collections import deque
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.random import Generator, default_rng

from schemas.tables.event_kinds import MemoryEvent
from schemas.tables.steps_memory import MEMORY_EVENTS
from schemas.tables.values import BROKER, CONSUMER, PRODUCER
from schemas.wire.apis import API_KEYS
from tests.bench.table import timed
from udfs.columns.arrays import Ints, Records
from udfs.columns.arrow_columns import concatenate_batches
from udfs.columns.records import new_records
from udfs.facts.arrow_tables import make_rows, nulls_besides
from udfs.replay.consumer_memory.replay import replay_memory
from udfs.replay.consumer_memory.settings import (
    BUFFER_SETTINGS,
    FETCH_LIMITS,
    POOL_SETTINGS,
    QUEUE_SETTINGS,
    UNBOUNDED,
    MemoryLanes,
)
from udfs.replay.shared.lanes import AS_CAPTURED

Columns = dict[str, Ints]
T = MEMORY_EVENTS
ROWS_A_BATCH = 10_000
MS, MEMBERS = 1000, 4  # us; connections of a client
DELAYED = np.array([API_KEYS["PRODUCE"], API_KEYS["FETCH"], API_KEYS["METADATA"]])
PEAK = {CONSUMER: MEMBERS * 60_000, BROKER: 400_000, PRODUCER: 250_000}
"""The approximate peak of bytes that a unit of the traffic holds."""


def fetched(fetches: int, random: Generator) -> Columns:
    """A consumer's fetches. Each has two partitions with one batch each. The connection's next fetch asks for the same
    partitions again.
    """
    number = np.arange(fetches)
    connection, turn = number % MEMBERS, number // MEMBERS
    requested = number * 2 * MS + random.integers(0, MS, fetches)
    bytes_read = random.integers(100, 30_000, (fetches, 2))
    exchange: Columns = {
        T.time: requested, T.started: requested + MS // 2, T.came: requested + MS, T.connection_id: connection,
        T.size: bytes_read.sum(1) + 60, T.api_key: np.full(fetches, API_KEYS["FETCH"]), T.exchange_no: turn,
        T.kind: np.full(fetches, MemoryEvent.EXCHANGE), T.max_bytes: np.full(fetches, 1 << 20),
    }  # fmt: skip
    rows = [exchange]
    for place in range(2):
        of_fetch: Columns = {
            T.time: requested, T.connection_id: connection, T.exchange_no: turn,
            T.partition_key: connection * 2 + place, T.size: bytes_read[:, place],
        }  # fmt: skip
        partition: Columns = {
            T.kind: np.full(fetches, MemoryEvent.PARTITION), T.fetch_offset: turn * 10, T.broker_key: connection,
            T.partition_max_bytes: np.full(fetches, 1 << 19), T.returned_bytes: bytes_read[:, place],
        }  # fmt: skip
        batch: Columns = {
            T.kind: np.full(fetches, MemoryEvent.BATCH), T.end_offset: turn * 10 + 10,
            T.records: np.full(fetches, 10), T.compressed: np.zeros(fetches, np.int64),
        }  # fmt: skip
        rows += [of_fetch | partition, of_fetch | batch]
    return joined(rows)


def requested_of_broker(requests: int, random: Generator) -> Columns:
    """A broker's requests on 40 connections, a third of them held until they are handled."""
    number, time = np.arange(requests), np.sort(random.integers(0, requests * MS, requests))
    return {
        T.time: time, T.came: time, T.started: time - random.integers(0, MS, requests), T.connection_id: number % 40,
        T.exchange_no: number, T.size: random.integers(50, 100_000, requests), T.kind: np.zeros(requests, np.int64),
        T.held: random.integers(MS, 20 * MS, requests), T.api_key: DELAYED[random.integers(0, 3, requests)],
    }  # fmt: skip


def produced(batches: int, random: Generator) -> Columns:
    """A producer's batches of 100 records, which linger 5 ms. Three batches go in a request to one of two brokers."""
    number = np.arange(batches)
    request, appended = number // 3, number // 3 * 4 * MS
    sent = appended + 5 * MS
    answered = sent + random.integers(4 * MS, 16 * MS, batches // 3 + 1)[request]
    return {
        T.time: appended, T.started: sent, T.came: answered, T.connection_id: request % 2, T.exchange_no: request,
        T.kind: np.full(batches, MemoryEvent.BATCH), T.size: random.integers(2_000, 16_000, batches),
        T.partition_key: number % 3, T.sequence: number // 3 * 100, T.records: np.full(batches, 100),
        T.compressed: np.zeros(batches, np.int64), T.error_code: np.zeros(batches, np.int64),
        T.first_timestamp: appended // MS, T.last_timestamp: sent // MS,
    }  # fmt: skip


def joined(parts: list[Columns]) -> Columns:
    """The rows of all parts, one after the other. Columns that a part lacks are -1."""
    names = {name for part in parts for name in part}
    return {name: np.concatenate([part.get(name, np.full(len(part[T.time]), -1)) for part in parts]) for name in names}


def rows_of_unit(side: str, unit: int, columns: Columns) -> pa.RecordBatch:
    """The unit's rows in the order that the replay needs; -1 is null."""
    order = np.lexsort(tuple(columns[name] for name in (T.kind, T.exchange_no, T.connection_id, T.time)))
    keys = {T.side: side, T.unit: f"unit {unit:05}", T.unit_address: "10.0.0.1"}
    given: dict[str, Any] = {str(name): pa.repeat(text, len(order)) for name, text in keys.items()}
    given |= {str(name): pa.array(values[order], mask=values[order] == -1) for name, values in columns.items()}
    return make_rows(T, {**given, **nulls_besides(T, given, len(order))})


def traffic(units: int, events: int) -> list[pa.RecordBatch]:
    """This many consumers, brokers and producers with this many events each, in batches as Spark cuts them."""
    random = default_rng(7)
    makers = {BROKER: requested_of_broker, CONSUMER: fetched, PRODUCER: produced}
    rows = [rows_of_unit(side, unit, make(events, random)) for side, make in makers.items() for unit in range(units)]
    whole = concatenate_batches(rows)
    return [whole.slice(first, ROWS_A_BATCH) for first in range(0, whole.num_rows, ROWS_A_BATCH)]


def lanes(count: int) -> MemoryLanes:
    """The captured lane without a bound, and lanes with pools from a quarter of the peak on."""

    def sizes(side: str, captured: int) -> Ints:
        return np.array([captured, *np.geomspace(PEAK[side] // 4, PEAK[side], count - 1)]).astype(np.int64)

    def pools(side: str) -> Records:
        size = sizes(side, UNBOUNDED)
        return new_records(POOL_SETTINGS, count, size=size, max_allocation=size, us_per_record=AS_CAPTURED)

    buffers = {"batch_size": 16_384, "max_block_us": 60_000 * MS, "threads": 1}
    return MemoryLanes(
        names=tuple(f"lane {lane}" for lane in range(count)),
        consumer=pools(CONSUMER),
        broker=pools(BROKER),
        producer=new_records(BUFFER_SETTINGS, count, buffer_memory=sizes(PRODUCER, 32 << 20), **buffers),
        queue=new_records(QUEUE_SETTINGS, count, max_kbytes=65536, min_messages=100_000, us_per_record=AS_CAPTURED),
        fetch_limits=new_records(
            FETCH_LIMITS, 1, max_bytes=AS_CAPTURED, partition_max_bytes=AS_CAPTURED, consumers=1, speed=1.0
        ),
        fetch_number=np.zeros(count, np.int64),
    )


def compare_lanes(units: int, events: int, count: int) -> str:
    """Compare many lanes with one: lane-events per second, and the ratio of their times."""
    batches = traffic(units, events)

    def seconds(lane_count: int) -> float:
        of = lanes(lane_count)
        return min(timed("", lambda: deque(replay_memory(batches, of, "bench"), 0), clock=process_time).seconds)

    best = {lane_count: seconds(lane_count) for lane_count in (1, count)}
    lines = [
        f"Memory of {units:,} consumers, brokers and producers each, {events:,} events each; CPU time, best round",
        *(
            f"  {n:>3} lanes {took:>8.2f} s {3 * units * events * n / took:>12,.0f} lane-events/s"
            for n, took in best.items()
        ),
        f"  {count} lanes take {best[count] / best[1]:.1f} times as long as one",
    ]
    return "\n".join(lines)
