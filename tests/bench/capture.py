"""From a capture file to decoded rows in one process: refetch without Spark, compared with tshark, which has one
thread.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from jobs.open_capture import open_capture
from schemas.tables.silver import EXCHANGES
from tests.bench.repeated_capture import repeat
from tests.bench.table import Timing, timed, told

# The fields that tshark prints. It decodes the whole message, as refetch does.
FIELDS = ("frame.number", "tcp.stream", "kafka.api_key", "kafka.correlation_id", "kafka.client_id", "kafka.len")
ROWS = {"the rows of exchanges": (EXCHANGES.name,), "the rows of all silver tables": ()}
"""Exchanges have the same as tshark and 40 columns more; the other tables have every partition and batch."""
WARM_UP = 3
"""Rounds that do not count: after them the kernels are loaded, and Arrow's pool has the memory."""
TSHARK_ROUNDS = 1
"""Each round takes half a minute."""


def compare(source: Path, size: int, ports: tuple[int, ...], frames_each: int) -> Iterator[str]:
    """Run both over every packet of a capture that is repeated to at least `size` bytes. frames_each: the Kafka frames
    in one repetition.
    """
    with tempfile.TemporaryDirectory() as folder:
        capture = Path(folder) / source.name
        frames = repeat(source, capture, size) * frames_each
        peers = [tshark(capture, ports, TSHARK_ROUNDS)] if shutil.which("tshark") else []
        title = f"{source.name} repeated to {capture.stat().st_size / 1e6:.0f} MB, in one process, to"
        for what, tables in ROWS.items():
            ours, alone = (opened(capture, tables, threads) for threads in (os.cpu_count() or 1, 1))
            yield told(f"{title} {what}", frames, "frames", ours, [alone, *peers])


def opened(capture: Path, tables: tuple[str, ...], threads: int) -> Timing:
    """Open the capture and make rows of these tables."""
    cores = "one thread" if threads == 1 else f"{threads} threads"
    name, work = f"refetch, {cores}", lambda: open_capture(capture, threads=threads).tables(*tables)
    return timed(name, work, warm_up=WARM_UP)


def tshark(capture: Path, ports: tuple[int, ...], rounds: int) -> Timing:
    """Run tshark. It gets Kafka's ports, because it does not recognise the protocol by itself."""
    command = ["tshark", "-r", str(capture), "-Y", "kafka", "-T", "fields"]
    command += [part for port in ports for part in ("-d", f"tcp.port=={port},kafka")]
    command += [part for field in FIELDS for part in ("-e", field)]
    version = subprocess.run(["tshark", "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
    run = partial(subprocess.run, command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return timed(f"tshark {version.rstrip('.')} -T fields", run, warm_up=0, rounds=rounds)
