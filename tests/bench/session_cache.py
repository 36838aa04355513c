"""KIP-227 on one core: fetches in sessions, from step rows to packed gold rows, in one lane and in many, and compared
with Kafka's own FetchManager.

All times are CPU time; Java's include its garbage collector and compiler.
"""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.steps import SESSION_EVENTS
from tests.bench.table import ROUNDS, Timing, timed, told
from tests.oracle.conftest import SLF4J, find_jars, java_command
from udfs.columns.arrays import Bools
from udfs.columns.arrow_columns import arrow_array, concatenate_batches, dictionary_column
from udfs.columns.time_units import US_PER_MS
from udfs.facts.arrow_tables import make_rows, nulls_besides
from udfs.replay.session_cache.broker import new_broker
from udfs.replay.session_cache.events import OF_FETCH, Keys, ListedFetches, parts_by_life
from udfs.replay.session_cache.replay import replay_sessions, replay_until, take_fetches
from udfs.replay.session_cache.settings import CURRENT, SHARDS, SessionLanes, cache_settings
from udfs.replay.session_cache.state import GREATEST_ID

KAFKA = "4.3.1"
ARTIFACTS = (
    *(f"org.apache.kafka:{name}:{KAFKA}" for name in ("kafka-server", "kafka-server-common", "kafka-clients")),
    "com.yammer.metrics:metrics-core:2.2.0",
    SLF4J,
)
JAVA_WARM_UP = 5
SLOTS, EVICTION_MS, VERSION, RECORDS_BYTES, SEED = 800, 120_000, 18, 1000, 227
ROWS_A_BATCH = 10_000
"""As many rows as Spark puts into a batch."""


@dataclass(frozen=True)
class Traffic:
    """What a capture shows of some brokers: their clients fetch in turn, first in full, then in the granted session.

    longest_wait_ms: a response comes after a random part of it, and sometimes has a partition's records. Without a wait
    each fetch moves one partition's high watermark instead, as in FetchSessionEvents.java.
    """

    brokers: int
    clients: int  # of each broker
    partitions: int  # of each session
    rounds: int  # in each of which every client fetches once
    every_ms: int  # a fetch of any client
    longest_wait_ms: int = 0

    @property
    def fetches(self) -> int:
        """How many fetches all brokers get."""
        return self.brokers * self.clients * self.rounds


SHAPES = (
    Traffic(brokers=1, clients=200, partitions=4, rounds=250, every_ms=3, longest_wait_ms=500),
    Traffic(brokers=1, clients=200, partitions=40, rounds=50, every_ms=3, longest_wait_ms=500),
    Traffic(brokers=400, clients=10, partitions=4, rounds=10, every_ms=60, longest_wait_ms=500),
)
"""A busy broker with small and with large sessions, and many quiet brokers."""


def step_rows(traffic: Traffic) -> pa.RecordBatch:
    """The traffic as rows of SESSION_EVENTS: each fetch, followed by its partitions."""
    random = np.random.default_rng(SEED)
    return concatenate_batches([rows_of_broker(traffic, broker, random) for broker in range(traffic.brokers)])


def rows_of_broker(traffic: Traffic, broker: int, random: np.random.Generator) -> pa.RecordBatch:
    """A broker's rows."""
    t, number = SESSION_EVENTS, np.arange(traffic.clients * traffic.rounds)
    turn, client = np.divmod(number, traffic.clients)
    fetch, position = (of.ravel() for of in np.mgrid[: len(number), -1 : traffic.partitions])
    is_fetch = position == OF_FETCH
    requested = number * traffic.every_ms * US_PER_MS
    answered = requested + 1 + random.integers(0, traffic.longest_wait_ms * US_PER_MS + 1, len(number))
    session = client % SHARDS * (GREATEST_ID // SHARDS) + 1 + client
    names = pa.array([f"client-{each}" for each in range(traffic.clients)], pa.string())
    of_fetches: dict[str, Any] = {
        t.client_id: dictionary_column(names, client[fetch]).cast(pa.string()), t.client_address: pa.repeat("10.0.0.1",
        len(fetch)), t.response_time: answered[fetch], t.api_version: np.full(len(fetch), VERSION),
        t.session_id: np.where(turn == 0, 0, session)[fetch], t.session_epoch: turn[fetch],
        **dict.fromkeys((t.is_cut, t.is_follower), np.zeros(len(fetch), np.bool_)),
        **dict.fromkeys((t.fetch_error, t.throttle_time_ms), np.zeros(len(fetch), np.int64)),
    }  # fmt: skip
    of_partitions: dict[str, Any] = {
        **partition_columns(traffic, random, is_fetch), t.response_session_id: session[fetch],
        **dict.fromkeys((t.session_known, t.is_wanted), np.ones(len(fetch), np.bool_)),
        **dict.fromkeys((t.topic_key, t.name_length, t.partition_max_bytes), np.ones(len(fetch), np.int64)),
    }  # fmt: skip
    given: dict[str, Any] = {
        t.broker: pa.repeat(f"{broker:04}", len(fetch)), t.position: position, t.partition: np.maximum(position, 0),
        t.connection_id: broker * traffic.clients + client[fetch], t.exchange_no: turn[fetch],
        t.request_time: requested[fetch], t.life: np.zeros(len(fetch), np.int64),
        **{name: known(column, is_fetch) for name, column in of_fetches.items()},
        **{name: known(column, ~is_fetch) for name, column in of_partitions.items()},
    }  # fmt: skip
    return make_rows(t, {**given, **nulls_besides(t, given, len(fetch))})


def partition_columns(traffic: Traffic, random: np.random.Generator, is_fetch: Bools) -> dict[str, Any]:
    """The columns of partitions' rows that change: a client's next fetch lists a partition with records again."""
    t, shape = SESSION_EVENTS, (traffic.rounds, traffic.clients, traffic.partitions)
    turn, _, partition = np.indices(shape)
    has_records = np.zeros(shape, np.bool_)
    has_moved = partition == turn % traffic.partitions
    if traffic.longest_wait_ms:
        has_records = has_moved = random.random(shape) < 0.5 / traffic.partitions
    offset: Any = np.cumsum(has_records, axis=0) - has_records
    is_listed = np.concatenate([np.ones((1, *shape[1:]), np.bool_), has_records[:-1]])
    columns = {
        t.is_listed: is_listed, t.is_returned: has_moved | (turn == 0), t.fetch_offset: offset,
        t.returned_bytes: has_records * RECORDS_BYTES, t.high_watermark: np.cumsum(has_moved, axis=0),
        t.preferred_read_replica: np.full(shape, -1),
        **dict.fromkeys((t.max_wait_ms, t.current_leader_epoch, t.log_start_offset, t.error_code), 0 * offset),
    }  # fmt: skip
    return {name: beside_fetches(values, is_fetch) for name, values in columns.items()}


def beside_fetches(values: Any, is_fetch: Bools) -> Any:
    """Values of partitions, as a column of all rows."""
    column = np.zeros(len(is_fetch), values.dtype)
    column[~is_fetch] = values.ravel()
    return column


def known(column: Any, is_known: Bools) -> pa.Array[Any]:
    """The column, null where not known."""
    if isinstance(column, pa.Array):
        return pa.compute.if_else(arrow_array(is_known), column, None)
    return arrow_array(column, is_known)


def lanes(*slots: int) -> SessionLanes:
    """Lanes that differ in their slots."""
    return SessionLanes(tuple(map(str, slots)), cache_settings(slots, SHARDS, EVICTION_MS, CURRENT))


def replay(batches: list[pa.RecordBatch], settings: SessionLanes) -> None:
    """From step rows to packed gold rows."""
    for _ in replay_sessions(batches, settings, "bench", "seed"):
        pass


def batches_of(traffic: Traffic) -> list[pa.RecordBatch]:
    """The traffic's step rows as Spark cuts them."""
    rows = step_rows(traffic)
    return [rows.slice(first, ROWS_A_BATCH) for first in range(0, rows.num_rows, ROWS_A_BATCH)]


def compare_lanes(traffic: Traffic, count: int) -> str:
    """Compare many numbers of slots with one. With the fewest all clients are refused, with the most none."""
    batches, grid = batches_of(traffic), np.linspace(0, SLOTS, count).astype(np.int64).tolist()
    best = [
        min(timed("", partial(replay, batches, settings), clock=process_time).seconds)
        for settings in (lanes(SLOTS), lanes(*grid))
    ]
    rates = [f"  {n:>3} lanes {s * 1e3:>10,.1f} ms {traffic.fetches * n / s:>14,.0f} lane-fetches/s"
             for n, s in zip((1, count), best, strict=True)]  # fmt: skip
    title = (
        f"Sessions of {traffic.partitions} partitions, {traffic.fetches:,} fetches of {traffic.brokers} brokers, "
        "CPU time of the best round"
    )
    return "\n".join([title, *rates, f"  {count} lanes take {best[1] / best[0]:.1f} times as long as one"])


def compare(partitions: int, rounds: int) -> str:
    """Compare one lane with Kafka's class, starting from the records of fetches, and from their step rows."""
    traffic = Traffic(brokers=1, clients=200, partitions=partitions, rounds=rounds, every_ms=1)
    batches, one = batches_of(traffic), lanes(SLOTS)
    parts = list(parts_by_life(batches, Keys()))

    def from_records() -> None:
        broker = new_broker("1", one, "bench")
        for part in parts:
            take_fetches(broker, ListedFetches(part.fetches.copy(), part.rows))
        replay_until(broker, None)

    ours = timed("refetch, one lane, from records", from_records, clock=process_time)
    whole = timed("refetch, one lane, from step rows", partial(replay, batches, one), clock=process_time)
    title = f"Fetch sessions of {partitions} partitions, {traffic.clients} clients, CPU time"
    return told(title, traffic.fetches, "fetches", ours, [whole, java(traffic)])


def java(traffic: Traffic) -> Timing:
    """Kafka's own class, after JAVA_WARM_UP repetitions for its compiler."""
    source = Path(__file__).parent / "FetchSessionEvents.java"
    numbers = (traffic.clients, traffic.partitions, traffic.rounds, SLOTS, JAVA_WARM_UP + ROUNDS)
    with tempfile.TemporaryDirectory() as classes:
        command = java_command(source, find_jars(*ARTIFACTS), Path(classes))
        done = subprocess.run([*command, *map(str, numbers)], capture_output=True, text=True, check=True)
    return Timing(f"kafka-server {KAFKA}", [int(ns) / 1e9 for ns in done.stdout.split()[JAVA_WARM_UP:]])
