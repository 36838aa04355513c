"""`ingest` and `replay` as a user runs them, start of Java and report included, beside tshark, with each stage."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from jobs.cli import EXIT_CODES
from tests.bench.capture import tshark
from tests.bench.repeated_capture import repeat
from tests.bench.table import Timing, timed, told
from udfs.errors import GateError

LANES = (
    "--set=consumer.fetch.max.bytes=1MiB,8MiB", "--set=max.incremental.fetch.session.cache.slots=12,100,1000",
    "--set=consumer.buffer.memory=16MiB", "--set=max.broker.partitions=10", "--run-at=2026-01-01T00:00:00Z",
)  # fmt: skip
"""With the captured one three lanes of fetch limits, four of slots, two of memory and two of partition limits."""
STAGE = re.compile(r"^refetch: (.+?)  [\d,]+ tasks?  ([\d.,]+) s$", re.MULTILINE)
"""What a job says on stderr when a stage is done."""
ENDED = (0, EXIT_CODES[GateError])
"""A repeated capture has a client in many places at a time, which the gate of gold may refuse; the job is done then."""


def stages(said: str) -> list[tuple[str, float]]:
    """The stages that a job says it is done with, and the seconds of each."""
    return [(name, float(seconds.replace(",", ""))) for name, seconds in STAGE.findall(said)]


def run_job(lake: Path, *arguments: str) -> list[tuple[str, float]]:
    """Run a job on a lake; its stages. Raises CalledProcessError where it fails."""
    command = [sys.executable, "-P", "-m", "jobs", *arguments, f"--lake={lake}"]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode not in ENDED:
        raise subprocess.CalledProcessError(done.returncode, command, stderr=done.stderr)
    return stages(done.stderr)


def compare(source: Path, size: int, ports: Sequence[int], frames_each: int) -> Iterator[str]:
    """A capture of at least `size` bytes, read by tshark, ingested and replayed once each."""
    with tempfile.TemporaryDirectory() as folder:
        capture, lake = Path(folder) / source.name, Path(folder) / "lake"
        frames = frames_each * repeat(source, capture, size)
        took = list[tuple[str, float]]()

        def run(job: str, *flags: str) -> Timing:
            return timed(f"refetch {job}", lambda: took.extend(run_job(lake, job, *flags)), warm_up=0, rounds=1)

        ours = [run("ingest", f"--captures={capture}"), run("replay", *LANES)]
        peers = [tshark(capture, tuple(ports), 1)] if shutil.which("tshark") else []
        title = f"{source.name} repeated to {capture.stat().st_size / 1e9:.2f} GB, JVM start included"
        yield told(title, frames, "frames", ours[0], [*ours[1:], *peers])
        yield "\n".join(f"  {name:<42}{seconds:>8,.1f} s" for name, seconds in took)
