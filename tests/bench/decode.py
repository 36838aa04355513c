"""Decoding Fetch frames on one core: refetch's kernel, kafka-clients' parser and kio's, over the same bodies."""

from __future__ import annotations

import importlib
import os
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.bench.capture_frames import Bodies
from tests.bench.table import ROUNDS, Timing, timed, told
from tests.oracle.conftest import KAFKA_NEWEST, SLF4J, find_jar
from udfs.wire.messages import decode

BATCH = 10_000
KAFKA_CLIENTS = f"org.apache.kafka:kafka-clients:{KAFKA_NEWEST}"
JAVA_WARM_UP, KIO_SHARE = 30, 10


def compare(what: str, bodies: Sequence[Bodies]) -> str:
    """The three contestants over a batch of each message."""
    bodies = [part.repeated(BATCH) for part in bodies]
    frames = sum(map(len, bodies))
    ours = timed("refetch", lambda: [decode(b.message, b.arena, b.starts, b.ends, b.versions) for b in bodies])
    sizes = ", ".join(f"{(b.ends - b.starts).mean():,.0f} B {b.message.name}" for b in bodies)
    return told(f"Decode {what}, one core; mean: {sizes}", frames, "frames", ours, [java(bodies), *kio(bodies)])


def java(bodies: Sequence[Bodies]) -> Timing:
    """kafka-clients, after JAVA_WARM_UP rounds for its compiler."""
    with tempfile.NamedTemporaryFile() as file:
        for part in bodies:
            is_request = part.message.name.endswith("Request")
            for version, body in part.contents():
                file.write(struct.pack(">hbhi", part.message.api_key, is_request, version, len(body)) + body)
        file.flush()
        source = Path(__file__).parent / "DecodeFrames.java"
        classpath = os.pathsep.join(str(find_jar(name)) for name in (KAFKA_CLIENTS, SLF4J))
        rounds = str(JAVA_WARM_UP + ROUNDS)
        command = ["java", "-Xmx4g", "-cp", classpath, str(source), file.name, rounds]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Timing(f"kafka-clients {KAFKA_NEWEST}", [int(ns) / 1e9 for ns in done.stdout.split()[JAVA_WARM_UP:]])


def kio(bodies: Sequence[Bodies]) -> list[Timing]:
    """kio from PyPI, over a share of the frames and scaled up, where it is installed."""
    try:
        entity_reader = importlib.import_module("kio.serial").entity_reader
    except ImportError:
        return []
    work = []
    for part in bodies:
        kind = "request" if part.message.name.endswith("Request") else "response"
        for version, body in list(part.contents())[: len(part) // KIO_SHARE]:
            schema = importlib.import_module(f"kio.schema.fetch.v{version}.{kind}")
            work.append((entity_reader(getattr(schema, part.message.name)), body))

    def read() -> None:
        for reader, body in work:
            reader(body, 0)

    scale = sum(map(len, bodies)) / len(work)
    version = importlib.import_module("importlib.metadata").version("kio")
    return [Timing(f"kio {version}", [s * scale for s in timed("", read).seconds])]
