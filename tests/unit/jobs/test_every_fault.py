"""Whichever operation on a table's files fails, one line names the table, and the table is whole and can be written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.control import Control, environment, has_compiler

STRIDE = "11"
"""Every eleventh operation fails in turn. With 1, the test would take more than a minute."""


@pytest.mark.skipif(not has_compiler(), reason="the layer under all operations is made with a C compiler")
def test_a_failed_operation_on_a_table_gives_one_line_and_succeeds_when_repeated(
    repository: Path, tmp_path: Path
) -> None:
    lake, control = tmp_path / "lake", Control.made(tmp_path / "control")
    command = [sys.executable, "-m", "tests.faults.one_table", str(lake), STRIDE, "EIO"]
    below = os.environ | environment(control, [lake], by_audit=False)
    ended = subprocess.run(command, env=below, cwd=repository, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert int(ended.stdout.split()[0]) > 10, "a layer that fails nothing finds nothing"
