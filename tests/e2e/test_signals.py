"""A command that is ended by a signal, at any time, says so in one line, and leaves no process behind."""

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

from tests.processes_left import MARK, left, left_for_good

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")

SAID = {
    signal.SIGINT: "refetch: interrupted; the same command again leaves the same tables\n",
    signal.SIGTERM: "refetch: ended by SIGTERM; the same command again leaves the same tables\n",
    signal.SIGHUP: "refetch: ended by SIGHUP; the same command again leaves the same tables\n",
}
LISTENS_SOON_S, ENDS_SOON_S = 60, 10
"""Seconds in which a command begins to listen to signals, and in which it ends. It usually needs far less."""


@pytest.fixture
def mark() -> Iterator[str]:
    mark = uuid4().hex
    yield mark
    for process in left(mark):
        os.kill(int(process), signal.SIGKILL)


def ended(repository: Path, lake: Path, mark: str, by: signal.Signals, seconds: float) -> tuple[int, str]:
    """The exit code and stderr of a pipeline that gets a signal this many seconds after it began to listen."""
    capture = repository / "tests" / "captures" / "mixed.pcap.zst"
    command = [str(repository / "spark-submit.sh"), "pipeline", f"--captures={capture}", f"--lake={lake}"]
    environment = {**os.environ, MARK: mark, "REFETCH_PYTHON": sys.executable}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as running:
        wait_until_it_listens(Path("/proc") / str(running.pid))
        time.sleep(seconds)
        running.send_signal(by)
        _, said = running.communicate(timeout=ENDS_SOON_S)
    return running.returncode, said.decode()


def wait_until_it_listens(command: Path) -> None:
    """Wait until the shell has become Python and SIGTERM is caught. Before that a signal ends it like any program."""
    until = time.monotonic() + LISTENS_SOON_S
    while time.monotonic() < until:
        status = dict(line.split(":\t", 1) for line in (command / "status").read_text().splitlines())
        if status["Name"].startswith("python") and int(status["SigCgt"], 16) >> signal.SIGTERM - 1 & 1:
            return
        time.sleep(0.005)
    raise AssertionError(f"the command does not listen to signals after {LISTENS_SOON_S} s")


@pytest.mark.parametrize(
    ("by", "seconds"),
    [(signal.SIGINT, at) for at in (0.0, 0.2, 0.6, 1.0, 1.6, 2.4, 4.4)]
    + [(signal.SIGTERM, 0.0), (signal.SIGTERM, 3.0), (signal.SIGHUP, 1.0), (signal.SIGHUP, 3.0)],
)
def test_a_signal_ends_the_command_and_all_that_it_started(
    repository: Path, tmp_path: Path, mark: str, by: signal.Signals, seconds: float
) -> None:
    if signal.getsignal(by) == signal.SIG_IGN:
        pytest.skip(f"{by.name} is ignored, as under nohup, and stays so in what is started")
    code, said = ended(repository, tmp_path / "lake", mark, by, seconds)
    assert (code, said[said.rfind("refetch: ") :]) == (128 + by, SAID[by])
    assert "Traceback" not in said
    assert "Exception ignored" not in said
    assert left_for_good(mark) == []


@pytest.mark.parametrize("seconds", [0.6, 1.4, 3.0])
def test_nothing_outlives_a_command_that_is_killed(repository: Path, tmp_path: Path, mark: str, seconds: float) -> None:
    code, _ = ended(repository, tmp_path / "lake", mark, signal.SIGKILL, seconds)
    assert code == -signal.SIGKILL
    assert left_for_good(mark) == []
