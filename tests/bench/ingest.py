"""The ingest job as a user runs it, with the start of the JVM: compared with tshark, on one and two cores, and its
memory for two sizes."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.bench.capture import tshark
from tests.bench.repeated_capture import repeat
from tests.bench.table import timed, told

ROUNDS = 1
"""A round takes minutes; a median of more rounds would not show more."""
SECONDS_APART = 0.2


@dataclass
class Peak:
    """The most memory that one Python worker process had, in bytes of its own pages."""

    size: int = 0

    def watch(self, process: subprocess.Popen[bytes]) -> None:
        """Watch a job's workers until the job has ended."""
        while process.poll() is None:
            for worker in workers_of(process):
                self.size = max(self.size, worker)
            time.sleep(SECONDS_APART)


def workers_of(process: subprocess.Popen[bytes]) -> Iterator[int]:
    """The memory of each Python process below a job's JVM."""
    try:
        for child in psutil.Process(process.pid).children(recursive=True):
            if child.name().startswith("python"):
                memory = child.memory_info()
                yield memory.rss - memory.shared
    except psutil.NoSuchProcess:
        return


def ingest(capture: Path, cores: int) -> Peak:
    """Ingest a capture into a temporary lake. Returns how much memory its workers took."""
    peak = Peak()
    with tempfile.TemporaryDirectory() as lake:
        command = [sys.executable, "-m", "jobs", "ingest", f"--captures={capture}", f"--lake={lake}"]
        job = subprocess.Popen([*command, f"--master=local[{cores}]"], stdout=subprocess.DEVNULL)
        peak.watch(job)
        if job.returncode:
            raise subprocess.CalledProcessError(job.returncode, command)
    return peak


def compare(source: Path, size: int, ports: tuple[int, ...], frames_each: int) -> Iterator[str]:
    """Ingest a capture of at least `size` bytes on two cores and on one, and read it with tshark; then ingest one that
    is four times as large.
    """
    with tempfile.TemporaryDirectory() as folder:
        capture = Path(folder) / source.name
        frames = frames_each * repeat(source, capture, size)
        peaks: dict[str, Peak] = {}

        def by(cores: int, name: str) -> None:
            peaks[name] = ingest(capture, cores)

        two = timed("refetch ingest, local[2]", lambda: by(2, "once"), warm_up=0, rounds=ROUNDS)
        one = timed("refetch ingest, local[1]", lambda: by(1, "one core"), warm_up=0, rounds=ROUNDS)
        others = [tshark(capture, ports, ROUNDS)] if shutil.which("tshark") else []
        title = f"{source.name} repeated to {capture.stat().st_size / 1e9:.2f} GB, to Delta, JVM start included"
        yield told(title, frames, "frames", two, [one, *others])
        repeat(source, capture, 4 * size)
        by(2, "four times")
        told_sizes = ", ".join(f"{name} {peak.size / 1e6:,.0f} MB" for name, peak in peaks.items())
        yield f"  largest worker: {told_sizes}"
