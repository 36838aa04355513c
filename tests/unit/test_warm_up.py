"""No worker compiles a kernel: the warm-up has compiled them all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.kernels import calls


def test_every_kernel_that_python_calls_is_called_by_the_warm_up(repository: Path) -> None:
    command = [sys.executable, "-m", "tests.kernels"]
    told = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=600, check=False)
    assert told.returncode == 0, told.stderr
    assert told.stdout.split() == []


def test_kernels_that_python_calls_are_distinguished_from_those_that_kernels_call() -> None:
    called_by, by_python = calls()
    assert len(called_by) > len(by_python) > 0
