"""Decoding Fetch frames on one core: refetch's kernel compared with kafka-clients' and kio's classes, over the same
frames.

Two rows are for whole frames with headers: ours, and what a user of kafka-clients calls. The other rows are for bodies
only: the reader that Kafka generates for a message, without the request and response objects around it, and kio's.
"""

from __future__ import annotations

import importlib
import os
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from tests.bench.capture_frames import FetchFrames
from tests.bench.table import ROUNDS, Timing, timed, told
from tests.oracle.conftest import KAFKA_NEWEST, SLF4J, find_jars
from udfs.wire.messages import decode_bodies

MOST_FRAMES, MOST_BYTES = 40_000, 16 << 20
"""The size of a batch, as in ingest: its chunks (`udfs.capture.packet_chunks.frames_by_chunk`) have 16 MiB or 100,000
packets, which are 42,000 fetches in sessions.pcap."""
FRAMES_OF_A_ROUND = 1_000_000
"""How many frames are decoded in a round, batch by batch, so that short disturbances of the machine matter little."""
KAFKA_CLIENTS = f"org.apache.kafka:kafka-clients:{KAFKA_NEWEST}"
JAVA_WARM_UP, KIO_SHARE = 30, 10


def compare(what: str, frames: Sequence[FetchFrames]) -> str:
    """Run all decoders over a batch of each message: first whole frames, then bodies."""
    size = sum(float((part.ends - part.starts).mean()) for part in frames)
    parts = [part.repeated(min(MOST_FRAMES, int(MOST_BYTES / size))) for part in frames]
    bodies = [part.bodies() for part in parts]
    passes = FRAMES_OF_A_ROUND // sum(map(len, parts))
    amount = passes * sum(map(len, parts))
    both = passes * list(zip(parts, bodies, strict=True))
    whole = timed(
        "refetch, frames", lambda: [len(decode_bodies(p.message, p.arena, *p.bodies()).fault) for p, _ in both]
    )
    alone = timed(
        "refetch, bodies", lambda: [len(decode_bodies(p.message, p.arena, *found).fault) for p, found in both]
    )
    sizes = ", ".join(f"{(p.ends - p.starts).mean():,.0f} B {p.message.name}" for p in parts)
    parse, read = java(parts, passes)
    return "\n".join((
        told(f"Decode {what}, one core; mean: {sizes}", amount, "frames", whole, [parse]),
        told("  their bodies alone", amount, "frames", alone, [read, *kio(parts, passes)]),
    ))  # fmt: skip


def java(parts: Sequence[FetchFrames], passes: int) -> Iterator[Timing]:
    """kafka-clients with its public classes, and with the reader below them, each after JAVA_WARM_UP passes."""
    source = Path(__file__).parent / "DecodeFrames.java"
    classpath = os.pathsep.join(map(str, find_jars(KAFKA_CLIENTS, SLF4J)))
    with tempfile.NamedTemporaryFile() as file:
        for part in parts:
            for request, frame, body in part.contents():
                file.write(struct.pack(">bi", part.is_request, len(request)) + request)
                file.write(struct.pack(">i", len(frame)) + frame + struct.pack(">i", body))
        file.flush()
        for way, name in (("parse", "parse*, frames"), ("read", "bare reader, bodies")):
            every = JAVA_WARM_UP + ROUNDS * passes
            command = ["java", "-Xmx4g", "-cp", classpath, str(source), file.name, str(every), way]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            of_pass = np.array(done.stdout.split()[JAVA_WARM_UP:], np.int64).reshape(ROUNDS, passes)
            yield Timing(f"kafka-clients {KAFKA_NEWEST}, {name}", (of_pass.sum(axis=1) / 1e9).tolist())


def kio(parts: Sequence[FetchFrames], passes: int) -> list[Timing]:
    """kio from PyPI, if it is installed, over a share of the bodies, with the time scaled up."""
    try:
        entity_reader = importlib.import_module("kio.serial").entity_reader
    except ImportError:
        return []
    work = []
    for part in parts:
        kind = "request" if part.is_request else "response"
        share = list(zip(part.contents(), part.request_versions.tolist(), strict=True))[: len(part) // KIO_SHARE]
        for (_, frame, body), version in share:
            schema = importlib.import_module(f"kio.schema.fetch.v{version}.{kind}")
            work.append((entity_reader(getattr(schema, part.message.name)), frame[body:]))

    def read() -> None:
        for reader, body in work:
            reader(body, 0)

    scale = passes * sum(map(len, parts)) / len(work)
    version = importlib.import_module("importlib.metadata").version("kio")
    return [Timing(f"kio {version}, bodies", [s * scale for s in timed("", read).seconds])]
