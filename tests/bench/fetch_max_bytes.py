"""KIP-74 on one core, from rows of step tables to packed rows of gold tables: 32 lanes compared with one.

An event is a captured fetch. In the open loop each lane answers it. In the closed loop each lane sends as many fetches
instead as its limits require. All times are CPU time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.event_kinds import LogEvent
from schemas.tables.steps import LOG_EVENTS, READS
from schemas.tables.values import CONSUMER
from tests.bench.table import Timing, timed
from tests.sort_keys import SortKeys
from udfs.columns.arrays import Ints
from udfs.columns.arrow_columns import arrow_array
from udfs.columns.records import new_records
from udfs.columns.time_units import US_PER_MS
from udfs.facts.arrow_tables import make_rows, nulls_besides
from udfs.replay.fetch_max_bytes.partition_log.replay import read_rows
from udfs.replay.fetch_max_bytes.replay import replay_fetches
from udfs.replay.fetch_max_bytes.settings import FETCH_LIMITS, FetchLanes, as_captured_clients
from udfs.replay.shared.lanes import AS_CAPTURED

SEED, LANES = 74, 32
BEGIN = 1_700_000_000_000_000
KNOWN_BYTES_CAP, ROWS_A_BATCH = 64 << 20, 10_000
BATCH_RECORDS, PARTITIONS_SERVED = 10, 2
FETCH_EVERY_US, ANSWER_US, WAIT_US = 10 * US_PER_MS, 2 * US_PER_MS, 500 * US_PER_MS
SIZES = 800, 1200
"""The range of a batch's bytes. All batches of a reader have the same size."""
GRID = SIZES[0] // 2, 50 * SIZES[1]
"""fetch.max.bytes at the grid's ends: half a batch, and 50 batches."""


@dataclass(frozen=True)
class Shape:
    """Readers that read a backlog in turn, with two partitions in each fetch, and then send fetches without result for
    a while.
    """

    name: str
    readers: int
    partitions: int
    batches: int
    idle_fetches: int

    @property
    def backlog_fetches(self) -> int:
        """How many fetches of a reader have records."""
        return self.partitions * self.batches // PARTITIONS_SERVED

    @property
    def fetches(self) -> int:
        """How many fetches all readers send."""
        return self.readers * (self.backlog_fetches + self.idle_fetches)


SHAPES = (
    Shape("4 readers of 40 partitions", readers=4, partitions=40, batches=30, idle_fetches=50),
    Shape("300 readers of 4 partitions", readers=300, partitions=4, batches=4, idle_fetches=2),
)

Columns = dict[str, Any]


def batch_columns(shape: Shape, size: Ints) -> Columns:
    """The batches of every reader's own topic, as responses show them. size: int64[readers], bytes of each batch."""
    reader, partition, batch = (
        values.reshape(-1) for values in np.indices((shape.readers, shape.partitions, shape.batches), np.int64)
    )
    t, n = LOG_EVENTS, len(reader)
    return {
        t.topic: topics(reader),
        t.topic_key: topics(reader),
        t.partition: partition,
        t.kind: np.full(n, LogEvent.BATCH),
        t.position: BATCH_RECORDS * batch,
        t.last_offset: BATCH_RECORDS * batch + BATCH_RECORDS - 1,
        t.size_bytes: size[reader],
        t.append_before: np.full(n, BEGIN),
        t.is_old_format: np.zeros(n, np.bool_),
        t.is_sparse: np.zeros(n, np.bool_),
    }


def topics(reader: Ints) -> pa.Array[Any]:
    """The topic of each reader."""
    return pa.array([f"topic-{number}" for number in range(int(reader.max()) + 1)]).take(arrow_array(reader))


def read_columns(shape: Shape, size: Ints, chance: np.random.Generator) -> Columns:
    """The reads of every fetch, in the order of a session: partitions that were served come last the next time."""
    count = shape.backlog_fetches + shape.idle_fetches
    reader, fetch, place = (
        values.reshape(-1) for values in np.indices((shape.readers, count, shape.partitions), np.int64)
    )
    has_records = fetch < shape.backlog_fetches
    served = PARTITIONS_SERVED * np.minimum(fetch, shape.backlog_fetches)
    turn = served + place
    batch = np.minimum(turn // shape.partitions, shape.batches)
    returned = np.where(has_records & (place < PARTITIONS_SERVED), size[reader], 0)
    steps = np.where(np.arange(count) <= shape.backlog_fetches, FETCH_EVERY_US, WAIT_US + FETCH_EVERY_US)
    jitter = chance.integers(0, FETCH_EVERY_US // 4, (shape.readers, count))
    begins = BEGIN + chance.integers(0, 100 * FETCH_EVERY_US, (shape.readers, 1))
    request = (begins + np.cumsum(steps + jitter, axis=1))[reader, fetch]
    t, n = LOG_EVENTS, len(reader)
    end = np.full(n, BATCH_RECORDS * shape.batches)
    yes, no = np.ones(n, np.bool_), np.zeros(n, np.bool_)
    return {
        t.topic: topics(reader),
        t.topic_key: topics(reader),
        t.partition: turn % shape.partitions,
        t.kind: np.full(n, LogEvent.READ),
        t.position: request,
        t.broker: pa.repeat("1", n),
        t.client_address: pa.repeat("10.0.0.1", n),
        t.client_id: pa.array([f"app-{number}" for number in range(shape.readers)]).take(arrow_array(reader)),
        t.reader: pa.repeat(CONSUMER, n),
        t.connection_id: reader,
        t.exchange_no: fetch,
        t.request_time: request,
        t.response_time: request + np.where(has_records, ANSWER_US, WAIT_US),
        t.api_version: np.full(n, 12),
        t.max_wait_ms: np.full(n, WAIT_US // US_PER_MS),
        t.max_bytes: PARTITIONS_SERVED * size[reader],
        t.min_bytes: np.ones(n, np.int64),
        t.in_session: yes,
        t.opens_session: fetch == 0,
        t.profile: np.zeros(n, np.int64),
        t.fetch_offset: BATCH_RECORDS * batch,
        t.bound_low: end,
        t.bound_high: end,
        t.bound_known: yes,
        t.response_bound: end,
        t.readable_known: yes,
        t.redirected: no,
        t.sent_to_replica: no,
        t.may_be_remote: no,
        t.refused: no,
        t.throttled: no,
        t.read_position: place,
        t.partition_max_bytes: size[reader],
        t.returned_bytes: returned,
        t.response_record_bytes: np.where(has_records, PARTITIONS_SERVED * size[reader], 0),
    }


def log_events(shape: Shape) -> list[pa.RecordBatch]:
    """The input of the pass over partitions. A read with records also shows where segments end."""
    chance = np.random.default_rng(SEED)
    size = chance.integers(*SIZES, shape.readers)
    found = rows(read_columns(shape, size, chance))
    witnesses = found.filter(pa.array(found[LOG_EVENTS.returned_bytes].to_numpy() > 0))
    kinds = make_rows(
        LOG_EVENTS, {**columns_of(witnesses), LOG_EVENTS.kind: np.full(witnesses.num_rows, LogEvent.WITNESS)}
    )
    t = LOG_EVENTS
    return in_order(
        [rows(batch_columns(shape, size)), kinds, found],
        [t.topic_key, t.partition, t.kind, t.position, t.connection_id, t.exchange_no],
    )


def columns_of(batch: pa.RecordBatch) -> Columns:
    """The columns of a batch by name."""
    return dict(zip(batch.schema.names, batch.columns, strict=True))


def rows(columns: Columns) -> pa.RecordBatch:
    """Rows of LOG_EVENTS; all other columns are null."""
    n = len(columns[LOG_EVENTS.partition])
    return make_rows(LOG_EVENTS, {**columns, **nulls_besides(LOG_EVENTS, columns, n)})


def in_order(batches: list[pa.RecordBatch], columns: Sequence[str]) -> list[pa.RecordBatch]:
    """The rows sorted by these columns, cut as Spark cuts them."""
    keys: SortKeys = [(str(column), "ascending") for column in columns]
    return pa.Table.from_batches(batches).sort_by(keys).combine_chunks().to_batches(max_chunksize=ROWS_A_BATCH)


def reads_of(events: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Run the pass over partitions."""
    return list(read_rows(events, KNOWN_BYTES_CAP))


def lanes_of(*max_bytes: int) -> FetchLanes:
    """Lanes that differ in fetch.max.bytes."""
    n = len(max_bytes)
    limits = new_records(
        FETCH_LIMITS, n, max_bytes=max_bytes, partition_max_bytes=AS_CAPTURED, broker_max_bytes=55 << 20
    )
    clients = as_captured_clients(n)
    return FetchLanes(tuple(map(str, max_bytes)), limits, limits, clients, clients, np.ones(len(max_bytes)))


def compare_lanes(shape: Shape) -> str:
    """Compare a grid of fetch.max.bytes with its middle. The grid's lanes send twice to a 25th of the fetches."""
    events = log_events(shape)
    r = READS
    order = [r.client_id, r.client_address, r.reader, r.request_time, r.connection_id, r.exchange_no, r.read_position]
    read_batches = in_order(reads_of(events), order)

    def replay(lanes: FetchLanes) -> None:
        for _ in replay_fetches(read_batches, lanes, "bench"):
            pass

    grid = np.geomspace(*GRID, LANES).astype(np.int64).tolist()
    logs = timed("the pass over partitions", lambda: reads_of(events), clock=process_time)
    one = timed("one lane", lambda: replay(lanes_of(grid[LANES // 2])), clock=process_time)
    many = timed(f"{LANES} lanes", lambda: replay(lanes_of(*grid)), clock=process_time)
    return lines(shape, logs, one, many)


def lines(shape: Shape, logs: Timing, one: Timing, many: Timing) -> str:
    """The best round of each, which is the one with the least other work on the machine."""
    found = [f"KIP-74, {shape.name}, {shape.fetches:,} fetches, CPU time"]
    for timing, lanes in ((logs, 1), (one, 1), (many, LANES)):
        best, amount = min(timing.seconds), lanes * shape.fetches
        found.append(f"  {timing.name:<28}{best * 1000:>9,.1f} ms  {amount / best:>12,.0f} lane-fetches/s")
    found.append(f"  {LANES} lanes take {min(many.seconds) / min(one.seconds):.1f} times as long as one")
    return "\n".join(found)
