"""From a capture file to decoded rows in one process: refetch's ingest step beside tshark."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import partial
from pathlib import Path

from tests.bench.capture_frames import packets
from tests.bench.repeated_capture import repeat
from tests.bench.table import Timing, timed, told
from udfs.facts.build import facts

# What tshark is asked for; it decodes the whole message, as refetch does.
FIELDS = ("frame.number", "tcp.stream", "kafka.api_key", "kafka.correlation_id", "kafka.client_id", "kafka.len")
TSHARK_ROUNDS = 1
"""Each takes half a minute."""


def compare(source: Path, size: int, ports: tuple[int, ...], frames_each: int) -> str:
    """Both over every packet of a capture, which holds so many Kafka frames, repeated to at least `size` bytes."""
    with tempfile.TemporaryDirectory() as folder:
        capture = Path(folder) / source.name
        rounds = repeat(source, capture, size)
        ours = timed("refetch, all silver rows", lambda: sum(r.num_rows for r in facts(packets(capture), "bench")))
        peers = [tshark(capture, ports, TSHARK_ROUNDS)] if shutil.which("tshark") else []
        title = f"{source.name} repeated to {capture.stat().st_size / 1e6:.0f} MB, to rows, one process"
        return told(title, rounds * frames_each, "frames", ours, peers)


def tshark(capture: Path, ports: tuple[int, ...], rounds: int) -> Timing:
    """tshark told which ports are Kafka's: it does not recognise the protocol by itself."""
    command = ["tshark", "-r", str(capture), "-Y", "kafka", "-T", "fields"]
    command += [part for port in ports for part in ("-d", f"tcp.port=={port},kafka")]
    command += [part for field in FIELDS for part in ("-e", field)]
    version = subprocess.run(["tshark", "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
    run = partial(subprocess.run, command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return timed(f"tshark {version.rstrip('.')} -T fields", run, warm_up=0, rounds=rounds)
