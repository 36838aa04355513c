"""The rules of the code: style, types, and which module may import which. Packages that are imported are declared, and
those that are declared are imported.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CHECKS = {
    "style": ["ruff", "check"],
    "format": ["ruff", "format", "--check", "-q"],
    "types": ["mypy"],
    "imports": ["lint-imports"],
    "dependencies": ["deptry", "."],
}


@pytest.mark.parametrize("command", CHECKS.values(), ids=CHECKS)
def test_the_code_keeps_its_rules(command: list[str], repository: Path) -> None:
    tool = Path(sys.executable).parent / command[0]
    answer = subprocess.run([tool, *command[1:]], cwd=repository, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
