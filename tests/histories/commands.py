"""Running the steps: most in this process, on one Spark session; each disturbed one in a process of its own."""

from __future__ import annotations

import io
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from jobs.cli import run_command
from jobs.flags import COMPACT, GATE, INGEST, LATEST, MIGRATE, PIPELINE, PRUNE, REPLAY, REPORT, RUNS
from tests.conftest import REPOSITORY
from tests.histories.model import Known
from tests.histories.steps import BY_SET, JAVA, SCENARIOS, TERM, TREND, Step
from tests.processes_left import MARK, left, left_for_good

PACKETS = {"a": ("starve", 0, 400), "b": ("crowded", 0, 400), "c": ("crowded", 400, 400)}
"""By content: the sample capture, the first of its packets, and how many packets."""
SCENARIO = {
    "sessions": "replay:\n  session_cache:\n    max.incremental.fetch.session.cache.slots: [8]\n",
    "limits": "replay:\n  partition_limits:\n    max.partitions: [300]\n",
}
HEAD, PACKET_HEAD = 24, 16
ENDS_S = 1800
"""A command that takes more seconds than this hangs, even on a busy machine."""
GONE_S = 60
"""A command's process that still runs after these seconds never ends; on a busy machine some take a while to end."""
PART = {INGEST: 0.6, REPLAY: 0.7, PIPELINE: 1.0, PRUNE: 0.4, COMPACT: 0.4, MIGRATE: 0.4}
"""By job: the time that it takes in a process of its own, divided by the time of `pipeline`."""


@dataclass
class Ended:
    """How a command ended: its exit code, its stderr, and the processes that still run after it."""

    code: int
    said: str
    left: list[str] = field(default_factory=list)


@dataclass
class Home:
    """The folder of a history: its lake, captures and scenarios."""

    folder: Path
    begin: datetime

    @property
    def lake(self) -> Path:
        """The lake, which may not exist."""
        return self.folder / "lake"

    def prepare(self) -> None:
        """Make the folder anew, with the scenarios."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        for name in SCENARIOS:
            (self.folder / f"{name}.yaml").write_text(SCENARIO[name])

    def capture(self, content: str, file: str) -> Path:
        """Write a capture with this content under this name."""
        path = self.folder / f"{file}.pcap"
        path.write_bytes(packets(*PACKETS[content]))
        return path


def packets(sample: str, first: int, count: int) -> bytes:
    """Some packets of a sample capture, as a pcap file."""
    with pa.input_stream(str(REPOSITORY / "tests" / "captures" / f"{sample}.pcap.zst"), compression="zstd") as stream:
        content = stream.read()
    order = "<" if content[:1] in (b"\xd4", b"\x4d") else ">"
    places = [HEAD]
    while len(places) <= first + count and places[-1] < len(content):
        (size,) = struct.unpack_from(f"{order}I", content, places[-1] + 8)
        places.append(places[-1] + PACKET_HEAD + size)
    return content[:HEAD] + content[places[first] : places[-1]]


def arguments(step: Step, home: Home, known: Known) -> list[str]:
    """The command line of a step."""
    told = [RUNS, "--trend"] if step.job == TREND else [step.job]
    told.append(f"--lake={home.lake}")
    if step.job in (INGEST, PIPELINE):
        told.append(f"--captures={home.capture(step.content, step.file)}")
    if step.goes_on:
        told.append(f"--continue={LATEST if step.goes_on == LATEST else known.set_id(step.goes_on)}")
    if step.job in (REPLAY, PIPELINE, INGEST):
        told.append(f"--scenario={home.folder / (step.scenario or SCENARIOS[0])}.yaml")
    if step.job == GATE:
        told.append(f"--on={step.by}")
    if step.job in (REPLAY, PIPELINE, PRUNE, GATE):
        told.append(f"--run-at={(home.begin + timedelta(hours=step.clock)).isoformat()}")
    if step.content and (step.job == REPLAY or step.by == BY_SET):
        told.append(f"--capture={known.set_id(step.content)}")
    elif step.content and step.job in (REPORT, PRUNE):
        told.append(f"--run={known.run_id(step.content, step.scenario)}")
    told += [f"--older-than={step.days}d"] if step.days else []
    told += ["--retention=0h"] if step.at_once else []
    return told + (["--dry-run"] if step.dry_run else [])


def done_here(told: list[str]) -> Ended:
    """Run a command in this process."""
    out, said = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(said):
        code = run_command(told)
    return Ended(code, said.getvalue())


class Child:
    """A command in a process of its own."""

    def __init__(self, told: list[str], home: Home) -> None:
        """Start the command."""
        self.mark, self.began = uuid4().hex, time.monotonic()
        self._said = home.folder / f"said-{self.mark}"
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "jobs", *told, "--master=local[1]"], cwd=REPOSITORY,
                env={**os.environ, MARK: self.mark}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said,
            )  # fmt: skip

    def kill(self, victim: str, seconds: float) -> None:
        """Kill the victim this many seconds after the start, unless the command has ended."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.0, self.began + seconds - time.monotonic()))
            return
        if victim != JAVA:
            self._process.send_signal(signal.SIGTERM if victim == TERM else signal.SIGKILL)
            return
        for process in left(self.mark):
            if is_java(process):
                os.kill(int(process), signal.SIGKILL)

    def ended(self) -> Ended:
        """Wait for the command to end, and kill the processes that it leaves."""
        try:
            code = self._process.wait(ENDS_S)
        except subprocess.TimeoutExpired:
            code = -signal.SIGALRM
        stay = left_for_good(self.mark, GONE_S)
        for process in stay:
            with suppress(ProcessLookupError):
                os.kill(int(process), signal.SIGKILL)
        said = self._said.read_text(errors="replace")
        self._said.unlink()
        return Ended(code, said, stay)


def is_java(process: str) -> bool:
    """Whether a process is Java's."""
    with suppress(OSError):
        return (Path("/proc") / process / "comm").read_text().strip() == "java"
    return False
