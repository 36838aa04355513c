"""The layers of `tests.faults` make the n-th operation below the folders fail, in any process, and no other."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.control import ERRORS, KILL, Control, environment, has_compiler

LAYERS = [
    pytest.param(True, id="audit"),
    pytest.param(False, id="c", marks=pytest.mark.skipif(not has_compiler(), reason="no C compiler")),
]
OPENS = """\
import os, sys
for name in sys.argv[1:]:
    try:
        os.close(os.open(name, os.O_RDONLY))
    except OSError as fault:
        print(name, fault.errno)
"""


def opened(control: Control, under: Path, by_audit: bool, *files: Path) -> subprocess.CompletedProcess[str]:
    """Open files one after the other in a process above the layer, which prints those that fail."""
    below = os.environ | environment(control, [under], by_audit)
    command = [sys.executable, "-c", OPENS, *map(str, files)]
    return subprocess.run(command, env=below, capture_output=True, text=True, check=False)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Two files below the folder that is watched, and one beside it."""
    found = [tmp_path / name for name in ("in/a", "beside", "in/b")]
    for file in found:
        file.parent.mkdir(exist_ok=True)
        file.write_text("")
    return found


@pytest.mark.parametrize("by_audit", LAYERS)
def test_the_nth_operation_below_the_folders_fails_and_is_reported(
    tmp_path: Path, files: list[Path], by_audit: bool
) -> None:
    control = Control.made(tmp_path / "control")
    control.arm(2, ERRORS["ENOSPC"])
    answer = opened(control, tmp_path / "in", by_audit, *files, files[0])
    assert answer.stdout == f"{files[2]} {errno.ENOSPC}\n", answer.stderr
    assert control.failed is not None
    assert (control.failed.kind, control.failed.path) == ("open", str(files[2]))
    assert control.count == 3


@pytest.mark.parametrize("by_audit", LAYERS)
def test_the_process_is_killed_at_the_nth_operation(tmp_path: Path, files: list[Path], by_audit: bool) -> None:
    control = Control.made(tmp_path / "control")
    control.arm(1, KILL)
    assert opened(control, tmp_path / "in", by_audit, *files).returncode == -signal.SIGKILL
    assert control.count == 1


@pytest.mark.parametrize("by_audit", LAYERS)
def test_without_a_fault_all_operations_are_listed(tmp_path: Path, files: list[Path], by_audit: bool) -> None:
    control = Control.made(tmp_path / "control")
    control.trace()
    assert opened(control, tmp_path / "in", by_audit, *files).stdout == ""
    assert [(of.kind, of.path) for of in control.traced] == [("open", str(files[0])), ("open", str(files[2]))]
