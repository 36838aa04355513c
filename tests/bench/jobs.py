"""`ingest` and `replay` as a user runs them, with Java's start and the report: each stage, compared with tshark."""

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
"""Including the captured lane there are three lanes of fetch limits, four of slots, two of memory and two of partition
limits."""
STAGE = re.compile(r"^refetch: (.+?)  [\d,]+ tasks?  ([\d.,]+) s$", re.MULTILINE)
"""A job's line on stderr when a stage is done."""
ENDED = (0, EXIT_CODES[GateError])
"""In a repeated capture a client is in many places at the same time. The gold gate may refuse that, but the job is done
then."""


def stages(said: str) -> list[tuple[str, float]]:
    """The stages that a job has reported as done, and the seconds of each."""
    return [(name, float(seconds.replace(",", ""))) for name, seconds in STAGE.findall(said)]


def run_job(lake: Path, *arguments: str) -> list[tuple[str, float]]:
    """Run a job on a lake; returns its stages. Raises CalledProcessError if it fails."""
    command = [sys.executable, "-m", "jobs", *arguments, f"--lake={lake}"]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode not in ENDED:
        raise subprocess.CalledProcessError(done.returncode, command, stderr=done.stderr)
    return stages(done.stderr)


def compare(source: Path, size: int, ports: Sequence[int], frames_each: int) -> Iterator[str]:
    """Read a capture of at least `size` bytes with tshark, ingest it and replay it, once each."""
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
