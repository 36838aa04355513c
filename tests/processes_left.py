"""The processes that a command has started and that still run, found by a mark in their environment."""

from __future__ import annotations

import time
from pathlib import Path

MARK = "REFETCH_TEST_MARK"
STAYS_S = 5
"""A process that still runs after these seconds would still run after minutes."""


def left(mark: str) -> list[str]:
    """The running processes that have this mark in their environment, which they got from their command."""
    return [process.name for process in Path("/proc").iterdir() if process.name.isdigit() and runs(process, mark)]


def left_for_good(mark: str, seconds: float = STAYS_S) -> list[str]:
    """The processes with this mark that still run after these seconds, in which they should have ended."""
    until = time.monotonic() + seconds
    while left(mark) and time.monotonic() < until:
        time.sleep(0.1)
    return left(mark)


def runs(process: Path, mark: str) -> bool:
    """Whether a process runs and has the mark. process: its folder in /proc."""
    try:
        state = (process / "stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z" and f"{MARK}={mark}".encode() in (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
