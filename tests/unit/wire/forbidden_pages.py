"""A page of memory outside of which no byte can be read, and a process that may die of reading there."""

from __future__ import annotations

import ctypes
import mmap
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

PROT_NONE = 0


def page_between_forbidden_ones() -> np.ndarray:
    """A page of memory. Any access to a byte before or after it kills the process."""
    size = mmap.PAGESIZE
    whole = np.frombuffer(mmap.mmap(-1, 3 * size), np.uint8)
    for forbidden in (0, 2 * size):
        assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(whole.ctypes.data + forbidden), size, PROT_NONE) == 0
    return whole[size : 2 * size]


def arenas(frame: bytes, page: np.ndarray) -> Iterator[np.ndarray]:
    """A frame at the beginning and at the end of the page."""
    for arena in (page[: len(frame)], page[len(page) - len(frame) :]):
        arena[:] = np.frombuffer(frame, np.uint8)
        yield arena


def run_apart(
    work: Callable[[], None], repository: Path, before: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a module's function in a process that may die. before: code that the process runs first."""
    code = f"from {work.__module__} import {work.__name__} as run; run()"
    known = {**os.environ, "PYTHONPATH": str(repository), **environment}
    command = [sys.executable, "-c", f"{before}\n{code}"]
    return subprocess.run(command, env=known, capture_output=True, text=True, check=False)
