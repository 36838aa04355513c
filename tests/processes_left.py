"""The processes that a command has begun and that still run, by a mark in its environment."""

from __future__ import annotations

import time
from pathlib import Path

MARK = "REFETCH_TEST_MARK"
STAYS_S = 5
"""What is there after so long would be there after minutes."""


def left(mark: str) -> list[str]:
    """The processes that a command with this mark in its environment has begun and that still run."""
    return [process.name for process in Path("/proc").iterdir() if process.name.isdigit() and runs(process, mark)]


def left_for_good(mark: str, seconds: float = STAYS_S) -> list[str]:
    """Those that are there after the seconds in which they should have ended."""
    until = time.monotonic() + seconds
    while left(mark) and time.monotonic() < until:
        time.sleep(0.1)
    return left(mark)


def runs(process: Path, mark: str) -> bool:
    """Whether a process of /proc runs and has the mark."""
    try:
        state = (process / "stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z" and f"{MARK}={mark}".encode() in (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
