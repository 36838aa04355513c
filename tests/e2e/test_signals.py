"""However a command is ended, and whenever: it says so in one line, and no process of it stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")

MARK = "REFETCH_TEST_MARK"
SAID = {
    signal.SIGINT: "refetch: interrupted; the same command again leaves the same tables\n",
    signal.SIGTERM: "refetch: ended by SIGTERM; the same command again leaves the same tables\n",
    signal.SIGHUP: "refetch: ended by SIGHUP; the same command again leaves the same tables\n",
}
ENDS_SOON_S, STAYS_S = 10, 5
"""A command ends well before the first; what is there after the second would be there after minutes."""


def left(mark: str) -> list[str]:
    """The processes that a command with this mark in its environment has begun and that still run."""
    return [process.name for process in Path("/proc").iterdir() if process.name.isdigit() and runs(process, mark)]


def runs(process: Path, mark: str) -> bool:
    try:
        state = (process / "stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z" and f"{MARK}={mark}".encode() in (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


@pytest.fixture
def mark() -> Iterator[str]:
    mark = uuid4().hex
    yield mark
    for process in left(mark):
        os.kill(int(process), signal.SIGKILL)


def ended(repository: Path, lake: Path, mark: str, by: signal.Signals, seconds: float) -> tuple[int, str]:
    """The exit code and the stderr of a pipeline that gets a signal after so many seconds."""
    capture = repository / "tests" / "captures" / "mixed.pcap.zst"
    command = [str(repository / "spark-submit.sh"), "pipeline", f"--captures={capture}", f"--lake={lake}"]
    environment = {**os.environ, MARK: mark, "REFETCH_PYTHON": sys.executable}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as running:
        time.sleep(seconds)
        running.send_signal(by)
        _, said = running.communicate(timeout=ENDS_SOON_S)
    return running.returncode, said.decode()


def check_nothing_is_left(mark: str) -> None:
    until = time.monotonic() + STAYS_S
    while left(mark) and time.monotonic() < until:
        time.sleep(0.1)
    assert left(mark) == []


@pytest.mark.parametrize(
    ("by", "seconds"),
    [(signal.SIGINT, at) for at in (0.6, 1.0, 1.4, 1.9, 2.5, 3.2, 5.0)]
    + [(signal.SIGTERM, 1.4), (signal.SIGTERM, 4.0), (signal.SIGHUP, 1.9), (signal.SIGHUP, 4.0)],
)
def test_a_signal_ends_the_command_and_all_that_it_started(
    repository: Path, tmp_path: Path, mark: str, by: signal.Signals, seconds: float
) -> None:
    code, said = ended(repository, tmp_path / "lake", mark, by, seconds)
    assert (code, said[said.rfind("refetch: ") :]) == (128 + by, SAID[by])
    assert "Traceback" not in said
    assert "Exception ignored" not in said
    check_nothing_is_left(mark)


@pytest.mark.parametrize("seconds", [1.4, 2.2, 4.0])
def test_nothing_outlives_a_command_that_is_killed(repository: Path, tmp_path: Path, mark: str, seconds: float) -> None:
    code, _ = ended(repository, tmp_path / "lake", mark, signal.SIGKILL, seconds)
    assert code == -signal.SIGKILL
    check_nothing_is_left(mark)
