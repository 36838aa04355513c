"""From a capture file to decoded rows in one process: refetch's ingest step beside tshark."""

from __future__ import annotations

import shutil
import subprocess
from functools import partial
from pathlib import Path

from tests.bench.capture_frames import packets
from tests.bench.table import ROUNDS, Timing, timed, told
from udfs.facts.build import facts

# What tshark is asked for; it decodes the whole message, as refetch does.
FIELDS = ("frame.number", "tcp.stream", "kafka.api_key", "kafka.correlation_id", "kafka.client_id", "kafka.len")


def compare(capture: Path, ports: tuple[int, ...], frames: int) -> str:
    """Both over every packet of a capture that holds so many Kafka frames."""
    ours = timed("refetch, all silver rows", lambda: sum(rows.num_rows for rows in facts(packets(capture), "bench")))
    title = f"{capture.name}, {capture.stat().st_size / 1e6:.1f} MB, to rows, one process"
    return told(title, frames, "frames", ours, [tshark(capture, ports)] if shutil.which("tshark") else [])


def tshark(capture: Path, ports: tuple[int, ...], rounds: int = ROUNDS) -> Timing:
    """tshark told which ports are Kafka's: it does not recognise the protocol by itself."""
    command = ["tshark", "-r", str(capture), "-Y", "kafka", "-T", "fields"]
    command += [part for port in ports for part in ("-d", f"tcp.port=={port},kafka")]
    command += [part for field in FIELDS for part in ("-e", field)]
    version = subprocess.run(["tshark", "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
    run = partial(subprocess.run, command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return timed(f"tshark {version.rstrip('.')} -T fields", run, warm_up=0, rounds=rounds)
