"""Fetch sessions on one core: the replay of one lane beside Kafka's own FetchManager, and many lanes beside one.

All times are CPU time, Java's with its collector and compiler.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from time import process_time

import numpy as np

from tests.bench.table import ROUNDS, Timing, timed, told
from tests.oracle.conftest import SLF4J, find_jars, java_command
from udfs.columns.arrays import Ints, Records, read_only
from udfs.columns.time_units import US_PER_MS
from udfs.replay.session_cache.session_broker import new_broker
from udfs.replay.session_cache.session_cache import GREATEST_ID, SHARDS, CacheSettings
from udfs.replay.session_cache.session_entries import Partitions
from udfs.replay.session_cache.session_fetches import FETCH
from udfs.replay.session_cache.session_lanes import SessionLanes
from udfs.replay.session_cache.session_replay import go_on, take

KAFKA = "4.3.1"
ARTIFACTS = (
    *(f"org.apache.kafka:{name}:{KAFKA}" for name in ("kafka-server", "kafka-server-common", "kafka-clients")),
    "com.yammer.metrics:metrics-core:2.2.0",
    SLF4J,
)
CLIENTS, SLOTS, VERSION, JAVA_WARM_UP = 200, 800, 18, 5


def events(partitions: int, rounds: int) -> tuple[Records, Partitions]:
    """What a capture shows of the run that FetchSessionEvents.java makes: clients that fetch one after the other, a
    fetch a ms, first a full one; in each fetch one partition's high watermark has moved.
    """
    count = CLIENTS * rounds
    fetches = np.zeros(count, FETCH)
    number = np.arange(count)
    client, turn = number % CLIENTS, number // CLIENTS
    fetches["number"], fetches["connection"], fetches["version"] = number, client, VERSION
    fetches["request_us"] = number * US_PER_MS
    fetches["response_us"] = fetches["request_us"] + 1
    fetches["is_known"] = fetches["has_partitions"] = 1
    fetches["first"], fetches["end"] = number * partitions, (number + 1) * partitions
    fetches["response_session_id"] = client % SHARDS * (GREATEST_ID // SHARDS) + 1 + client
    fetches["epoch"] = turn
    fetches["session_id"] = np.where(turn == 0, 0, fetches["response_session_id"])
    partition, turn = np.tile(np.arange(partitions), count), np.repeat(turn, partitions)
    zeros, ones = np.zeros(len(partition), np.int64), np.ones(len(partition), np.int64)
    moved: Ints = turn // partitions + (partition <= turn % partitions)
    is_full, has_moved = turn == 0, partition == turn % partitions
    listed, returned = is_full.astype(np.int64), (is_full | has_moved).astype(np.int64)
    rows = (ones, ones, partition, ones, listed, returned, zeros, ones, zeros, zeros, moved, zeros, zeros, zeros - 1)
    return fetches, Partitions(*map(read_only, rows))


def lanes(slots: Ints) -> SessionLanes:
    """Lanes that differ in their slots."""
    n = len(slots)
    settings = CacheSettings(slots // SHARDS, np.full(n, SHARDS), np.full(n, 120_000), np.zeros(n, np.int64))
    return SessionLanes(tuple(map(str, slots.tolist())), settings)


def replay(fetches: Records, rows: Partitions, settings: SessionLanes) -> None:
    """All of it, from arrays to sums."""
    now = new_broker("1", settings, "bench")
    now.names["client\x00host"] = 0
    take(now, fetches.view(np.uint8).copy().view(FETCH), rows)
    go_on(now, None)


def compare(partitions: int, rounds: int) -> str:
    """One lane beside Kafka's class."""
    fetches, rows = events(partitions, rounds)
    ours = timed("refetch, one lane", lambda: replay(fetches, rows, lanes(np.array([SLOTS]))), clock=process_time)
    title = f"Fetch sessions of {partitions} partitions, {CLIENTS} clients, CPU time"
    return told(title, len(fetches), "fetches", ours, [java(partitions, rounds)])


def compare_lanes(partitions: int, rounds: int, count: int) -> str:
    """Many settings of the slots beside one, from all clients refused to none."""
    fetches, rows = events(partitions, rounds)
    many = lanes(np.linspace(0, SLOTS, count).astype(np.int64))
    ours = timed(f"refetch, {count} lanes", lambda: replay(fetches, rows, many), clock=process_time)
    one = timed("refetch, one lane", lambda: replay(fetches, rows, lanes(np.array([SLOTS]))), clock=process_time)
    return told(f"{count} lanes, sessions of {partitions} partitions, CPU time", len(fetches), "fetches", ours, [one])


def java(partitions: int, rounds: int) -> Timing:
    """Kafka's own class, after JAVA_WARM_UP repetitions for its compiler."""
    source = Path(__file__).parent / "FetchSessionEvents.java"
    numbers = (CLIENTS, partitions, rounds, SLOTS, JAVA_WARM_UP + ROUNDS)
    with tempfile.TemporaryDirectory() as classes:
        command = java_command(source, find_jars(*ARTIFACTS), Path(classes))
        done = subprocess.run([*command, *map(str, numbers)], capture_output=True, text=True, check=True)
    return Timing(f"kafka-server {KAFKA}", [int(ns) / 1e9 for ns in done.stdout.split()[JAVA_WARM_UP:]])
