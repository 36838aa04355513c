"""Benchmarks, each compared with a peer in the same run: medians of five rounds, on one core unless stated otherwise.

    python -m tests.bench [BENCHMARK...]

ingest and jobs run whole jobs: one round, on all cores, with a capture of 1 GB. ingest also runs on one core and with
4 GB; it takes half an hour and 10 GB of disk. jobs runs `ingest` and `replay` with the time of each stage, in ten
minutes. Needs a quiet machine, Java and Maven for kafka-clients, `pip install kio==0.6.5` for kio, and tshark on PATH.
A peer that is not installed is left out.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.bench import (
    batch_split,
    capture,
    consumer_memory,
    decode,
    fetch_max_bytes,
    ingest,
    jobs,
    partition_limits,
    session_cache,
)  # fmt: skip
from tests.bench.capture_frames import fetches, frames_of, full_fetches

CAPTURES = Path(__file__).resolve().parents[3] / "shared" / "captures"
SESSIONS, SPLIT = CAPTURES / "sessions.pcap", CAPTURES / "split.pcap"
PORTS = (29092, 29093, 29094)
CAPTURE_BYTES, GIGABYTE = 100_000_000, 1_000_000_000
CORES = os.sched_getaffinity(0)


def kafka_frames(path: Path) -> int:
    """How many Kafka frames a capture holds."""
    found = frames_of(path)
    return len(found.requests) - int(found.requests["is_open"].sum()) + len(found.responses)


def decoding() -> Iterator[str]:
    """Captured fetches, most of which are incremental and nearly empty, and full fetches."""
    yield decode.compare(f"Fetch frames of {SESSIONS.name}", fetches(SESSIONS))
    for partitions in (10, 50):
        yield decode.compare(f"full fetches v12 of {partitions} partitions", full_fetches(partitions, 12))


def reading() -> Iterator[str]:
    """Many small frames, and few large ones."""
    os.sched_setaffinity(0, CORES)
    for path in (SESSIONS, SPLIT):
        yield from capture.compare(path, CAPTURE_BYTES, PORTS, kafka_frames(path))


def replaying_session_cache() -> Iterator[str]:
    """Few and many partitions in each session compared with Kafka's class; then one busy broker and many quiet ones in
    32 lanes.
    """
    for partitions, rounds in ((4, 250), (40, 50)):
        yield session_cache.compare(partitions, rounds)
    for traffic in session_cache.SHAPES:
        yield session_cache.compare_lanes(traffic, 32)


def replaying_fetches() -> Iterator[str]:
    """Few large readers, and many small ones, in a grid of limits."""
    yield from map(fetch_max_bytes.compare_lanes, fetch_max_bytes.SHAPES)


def replaying_partition_limits() -> Iterator[str]:
    """Many small topics, and few large ones, under many limits."""
    for changes, partitions in ((10_000, 3), (100, 1_000)):
        yield partition_limits.compare_lanes(changes, partitions, 32)


def replaying_producers() -> Iterator[str]:
    """Few busy producers, and many that send little."""
    yield batch_split.compare_lanes(2, 3_000, 3, 4, 32)
    yield batch_split.compare_lanes(400, 8, 1, 3, 32)


def replaying_memory() -> Iterator[str]:
    """Few large units, and many small ones."""
    for units, events in ((2, 50_000), (500, 200)):
        yield consumer_memory.compare_lanes(units, events, 32)


def ingesting() -> Iterator[str]:
    """Many small frames, and few large ones."""
    os.sched_setaffinity(0, CORES)
    for path in (SESSIONS, SPLIT):
        yield from ingest.compare(path, GIGABYTE, PORTS, kafka_frames(path))


def running_jobs() -> Iterator[str]:
    """Many small frames, and few large ones."""
    os.sched_setaffinity(0, CORES)
    for path in (SESSIONS, SPLIT):
        yield from jobs.compare(path, GIGABYTE, PORTS, kafka_frames(path))


BENCHMARKS = {
    "decode": decoding, "capture": reading, "fetch_max_bytes": replaying_fetches, "consumer_memory": replaying_memory,
    "session_cache": replaying_session_cache, "batch_split": replaying_producers,
    "partition_limits": replaying_partition_limits, "ingest": ingesting, "jobs": running_jobs,
}  # fmt: skip


def wanted(argv: Sequence[str]) -> list[str]:
    """The requested benchmarks, all by default. Ends the process with a usage line if one does not exist."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Benchmarks, each compared with a peer.")
    parser.add_argument("names", nargs="*", metavar="BENCHMARK", help=f"{', '.join(BENCHMARKS)}; default: all")
    names: list[str] = parser.parse_args(argv).names
    if unknown := sorted(set(names) - set(BENCHMARKS)):
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    return names or list(BENCHMARKS)


if __name__ == "__main__":
    for name in wanted(sys.argv[1:]):
        os.sched_setaffinity(0, {max(CORES)})  # children inherit it
        for lines in BENCHMARKS[name]():
            sys.stdout.write(lines + "\n\n")
            sys.stdout.flush()
