"""docs/tutorial.md: every command does what the page says, and prints what it shows."""

from __future__ import annotations

import re
import shlex
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest

from jobs.cli import run_command
from tests.conftest import REPOSITORY

PAGE = (REPOSITORY / "docs/tutorial.md").read_text(encoding="utf-8")
COMMAND = "    ./spark-submit.sh "
REFUSED = 3


class Step(NamedTuple):
    """A command of the page, and the lines that it shows of what that prints."""

    arguments: list[str]
    shown: list[str]


def steps(rules: Path, lake: Path) -> list[Step]:
    """The page's commands in their order, on this lake and with these rules."""
    own = PAGE.replace("--lake=lake", f"--lake={lake}").replace("--gates=starved.yaml", f"--gates={rules}")
    found: list[Step] = []
    for line in re.sub(r"```.*?```", "", own, flags=re.DOTALL).splitlines():
        if line.startswith(COMMAND):
            found.append(Step(shlex.split(line)[1:], []))
        elif line.startswith("    ") and found:
            found[-1].shown.append(line.removeprefix("    "))
    return found


def test_the_tutorials_commands_print_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    rules = tmp_path / "starved.yaml"
    text = re.search(r"```yaml\n# starved.yaml\n(.*?)```", PAGE, re.DOTALL)
    assert text is not None
    rules.write_text(text[1], encoding="utf-8")
    *sound, starving = steps(rules, tmp_path / "lake")
    for step, code in [*((step, 0) for step in sound), (starving, REFUSED)]:
        with redirect_stdout(StringIO()) as out:
            assert run_command(step.arguments) == code
        printed = out.getvalue().splitlines()
        assert step.shown
        assert [line for line in step.shown if line not in printed] == []
