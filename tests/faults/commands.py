"""Running a command of which one operation fails, then the same command undisturbed; and what is wrong with both."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from tests.conftest import REPOSITORY
from tests.faults.control import KILL, Control, Failed, environment
from tests.faults.undisturbed import Home, Rows, TornTableError, lake_rows
from tests.processes_left import MARK, left, left_for_good

ENDS_S = 900
"""A command that takes more seconds than this hangs."""
SAID = "refetch: "


@dataclass
class Ended:
    """How a command ended: its exit code, its stderr, and the processes that still run after it."""

    code: int
    said: str
    left: list[str]


@dataclass
class Case:
    """A command whose n-th operation fails with an error: how it ended, and what is wrong with that."""

    number: int
    error: int
    ended: Ended
    failed: Failed | None
    faults: list[str] = field(default_factory=list)


@contextmanager
def layered(control: Control, home: Home, by_audit: bool) -> Iterator[Mapping[str, str]]:
    """The environment of a command that runs above a layer; after the block the layer fails no operation."""
    try:
        yield os.environ | home.environment | environment(control, home.watched, by_audit)
    finally:
        control.disarm()


def run(home: Home, variables: Mapping[str, str]) -> Ended:
    """Run the command with this environment, and kill the processes that it leaves."""
    mark = uuid4().hex
    command = [str(REPOSITORY / "spark-submit.sh"), *home.arguments]
    told = {**variables, MARK: mark, "REFETCH_PYTHON": sys.executable}
    try:
        ended = subprocess.run(command, env=told, capture_output=True, timeout=ENDS_S, check=False)
        return Ended(ended.returncode, ended.stderr.decode(errors="replace"), left_for_good(mark))
    except subprocess.TimeoutExpired as hung:
        return Ended(-signal.SIGALRM, (hung.stderr or b"").decode(errors="replace"), left(mark))
    finally:
        for process in left(mark):
            os.kill(int(process), signal.SIGKILL)


def undisturbed(home: Home) -> Rows:
    """The tables' rows after an undisturbed run. Raises RuntimeError if the run fails."""
    home.emptied()
    ended = run(home, os.environ | home.environment)
    if ended.code:
        raise RuntimeError(f"the undisturbed run ended with exit code {ended.code}: {ended.said}")
    return lake_rows(home.lake)


def traced(home: Home, control: Control, by_audit: bool) -> list[Failed]:
    """The operations of a run in which none fails, in order."""
    home.emptied()
    with layered(control, home, by_audit) as variables:
        control.trace()
        run(home, variables)
    return control.traced


def tried(home: Home, control: Control, number: int, error: int, expected: Rows, *, by_audit: bool) -> Case:
    """Run the command with this operation failing. If the command fails and leaves a lake, run it again undisturbed."""
    home.emptied()
    with layered(control, home, by_audit) as variables:
        control.arm(number, error)
        ended = run(home, variables)
    case = Case(number, error, ended, control.failed)
    case.faults += [*wrong_end(case), *([f"still running: {ended.left}"] if ended.left else [])]
    case.faults += wrong_rows(home.lake, expected if ended.code == 0 else None)
    if ended.code and home.lake.exists():
        again = run(home, os.environ | home.environment)
        case.faults += [f"the run after it: exit code {again.code}: {again.said}"] if again.code else []
        case.faults += [f"again: {fault}" for fault in wrong_rows(home.lake, expected)]
    return case


def wrong_rows(lake: Path, expected: Rows | None) -> list[str]:
    """The tables that are torn, or whose rows differ from the expected ones. expected: None if they are not known."""
    try:
        found = lake_rows(lake)
    except TornTableError as torn:
        return [f"torn: {torn}"]
    if expected is None:
        return []
    names = sorted({*expected, *found})
    return [
        f"{name}: {found.get(name)}, expected {expected.get(name)}"
        for name in names
        if found.get(name) != expected.get(name)
    ]


def wrong_end(case: Case) -> list[str]:
    """What is wrong with the exit code and the messages: a user has to be able to act on them."""
    code, said, failed = case.ended.code, case.ended.said, case.failed
    if failed is None or (case.error == KILL and code == -signal.SIGKILL):
        return []
    faults = [] if code in (0, 1, 2) else [f"exit code {code}"]
    faults += [f"stderr has {sign}" for sign in ("Traceback", "Exception ignored") if sign in said]
    told = [line for line in said.splitlines() if line.startswith(SAID)]
    if code and not (told and said[said.rfind(f"\n{SAID}") + 1 :].startswith(SAID)):
        faults.append("stderr does not end with an error of refetch")
    if code and case.error != KILL and not names(said, failed.path):
        faults.append("the messages do not name the file")
    return faults


def names(said: str, path: str) -> bool:
    """Whether messages name the file, or one of the four folders above it (such as the folder of its table)."""
    file = Path(path)
    return file.name in said or any(str(folder) in said for folder in file.parents[:4])
