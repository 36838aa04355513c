"""Benchmarks, each beside its peer in the same run: medians of five rounds, on one core where nothing else is said.

    python -m tests.bench [decode] [capture] [sessions] [closed_loop] [consumer_memory] [ingest]

ingest is the job whole: one round, on all cores, of a capture of 1 GB, and of 4 GB; it takes half an hour and 10 GB.
Needs a quiet machine, Java and Maven for kafka-clients, `pip install kio==0.6.5` for kio and tshark on PATH; a peer
that is not there is left out.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.bench import capture, closed_loop, consumer_memory, decode, ingest, sessions
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
    """Fetches as captured, most of them incremental and all but empty, and full ones."""
    yield decode.compare(f"Fetch frames of {SESSIONS.name}", fetches(SESSIONS))
    for partitions in (10, 50):
        yield decode.compare(f"full fetches v12 of {partitions} partitions", full_fetches(partitions, 12))


def reading() -> Iterator[str]:
    """Many small frames, and few large ones."""
    os.sched_setaffinity(0, CORES)
    for path in (SESSIONS, SPLIT):
        yield from capture.compare(path, CAPTURE_BYTES, PORTS, kafka_frames(path))


def replaying_sessions() -> Iterator[str]:
    """Few and many partitions a session, and many lanes."""
    for partitions, rounds in ((4, 250), (40, 50)):
        yield sessions.compare(partitions, rounds)
    yield sessions.compare_lanes(40, 50, 32)


def replaying_closed_loop() -> Iterator[str]:
    """Few and many partitions, in a grid of limits."""
    for partitions, batches in ((8, 200), (40, 40)):
        yield closed_loop.compare_lanes(partitions, batches, 32)


def replaying_memory() -> Iterator[str]:
    """Few large units, and many small ones."""
    for units, events in ((2, 50_000), (500, 200)):
        yield consumer_memory.compare_lanes(units, events, 32)


def ingesting() -> Iterator[str]:
    """Many small frames, and few large ones."""
    os.sched_setaffinity(0, CORES)
    for path in (SESSIONS, SPLIT):
        yield from ingest.compare(path, GIGABYTE, PORTS, kafka_frames(path))


BENCHMARKS = {
    "decode": decoding, "capture": reading, "sessions": replaying_sessions, "closed_loop": replaying_closed_loop,
    "consumer_memory": replaying_memory, "ingest": ingesting,
}  # fmt: skip

if __name__ == "__main__":
    for name in sys.argv[1:] or BENCHMARKS:
        os.sched_setaffinity(0, {max(CORES)})  # children inherit it
        for lines in BENCHMARKS[name]():
            sys.stdout.write(lines + "\n\n")
            sys.stdout.flush()
