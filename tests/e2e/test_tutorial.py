"""docs/tutorial.md: every command does what the page says, and prints what the page shows. The first command does not
say what to replay.
"""

from __future__ import annotations

import re
import shlex
import shutil
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from jobs.cli import run_command
from jobs.replays.algorithms import ALGORITHMS
from schemas.tables.gold import RUNS
from tests.conftest import REPOSITORY
from tests.e2e.conftest import pages_left_out
from tests.lakes import queried

PAGE = (REPOSITORY / "docs/tutorial.md").read_text(encoding="utf-8")
COMMAND = "    ./spark-submit.sh "
REFUSED = 3


class Step(NamedTuple):
    """A command of the page, and those printed lines that the page shows."""

    arguments: list[str]
    shown: list[str]


def steps(rules: Path, lake: Path) -> list[Step]:
    """The page's commands in order, with this lake and these rules."""
    own = PAGE.replace("--lake=lake", f"--lake={lake}").replace("--gates=starved.yaml", f"--gates={rules}")
    found: list[Step] = []
    for line in re.sub(r"```.*?```", "", own, flags=re.DOTALL).splitlines():
        if line.startswith(COMMAND):
            found.append(Step(shlex.split(line)[1:], []))
        elif line.startswith("    ") and found:
            found[-1].shown.append(line.removeprefix("    "))
    return found


class Begun(NamedTuple):
    """The page's first command, which does not say what to replay: its lake, the lines that the page shows, and what it
    printed.
    """

    lake: Path
    step: Step
    out: str
    err: str


@pytest.fixture(scope="module")
def begun(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Begun:
    folder = tmp_path_factory.mktemp("tutorial")
    first = steps(folder / "starved.yaml", folder / "lake")[0]
    with (
        pages_left_out(),
        pytest.MonkeyPatch.context() as patched,
        redirect_stdout(StringIO()) as out,
        redirect_stderr(StringIO()) as err,
    ):
        patched.chdir(REPOSITORY)
        assert run_command(first.arguments) == 0
    return Begun(folder / "lake", first, out.getvalue(), err.getvalue())


@pytest.mark.usefixtures("tables_alone")
def test_all_five_are_replayed_and_the_stored_scenario_gives_the_same_run(
    begun: Begun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    t, lake = RUNS, tmp_path / "lake"
    shutil.copytree(begun.lake, lake)
    rows = queried(str(lake), t)
    assert {row[t.algorithm] for row in rows} == {*ALGORITHMS}
    assert all(3 <= len(row[t.lanes]) <= 13 for row in rows)
    for name in ALGORITHMS:
        assert re.search(rf"^refetch:   {name}: \S+=\S+,\S+", begun.err, re.MULTILINE), begun.err
    assert run_command(["pipeline", f"--scenario={lake / 'scenario.yaml'}", f"--lake={lake}"]) == 0
    assert f"run {rows[0][t.run_id]} was replayed before" in capsys.readouterr().err
    assert {row[t.run_id] for row in queried(str(lake), t)} == {rows[0][t.run_id]}


def check_shown(step: Step, printed: str) -> None:
    assert step.shown
    assert [line for line in step.shown if line not in printed.splitlines()] == []


@pytest.mark.usefixtures("no_page")
def test_the_tutorials_commands_print_what_it_shows(
    begun: Begun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(REPOSITORY)
    lake, rules = tmp_path / "lake", tmp_path / "starved.yaml"
    shutil.copytree(begun.lake, lake)
    text = re.search(r"```yaml\n# starved.yaml\n(.*?)```", PAGE, re.DOTALL)
    assert text is not None
    rules.write_text(text[1], encoding="utf-8")
    check_shown(begun.step, begun.out)
    _, *sound, starving = steps(rules, lake)
    for step, code in [*((step, 0) for step in sound), (starving, REFUSED)]:
        with redirect_stdout(StringIO()) as out:
            assert run_command(step.arguments) == code
        check_shown(step, out.getvalue())
