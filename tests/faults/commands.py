"""The command with an operation that fails: what it says and leaves, and what the same command makes of that."""

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
"""A command that takes longer hangs."""
SAID = "refetch: "


@dataclass
class Ended:
    """How a command ended: its exit code, what it said on stderr, and which processes it left."""

    code: int
    said: str
    left: list[str]


@dataclass
class Case:
    """A command with its n-th operation failing by an error: how it ended, and what is wrong with that."""

    number: int
    error: int
    ended: Ended
    failed: Failed | None
    faults: list[str] = field(default_factory=list)


@contextmanager
def layered(control: Control, home: Home, by_audit: bool) -> Iterator[Mapping[str, str]]:
    """The variables of a command that runs above a layer; the layer fails nothing behind the block."""
    try:
        yield os.environ | home.environment | environment(control, home.watched, by_audit)
    finally:
        control.disarm()


def run(home: Home, variables: Mapping[str, str]) -> Ended:
    """The command, with these variables; what of it is left is killed."""
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
    """What the tables have after a run that nothing disturbs. Raises RuntimeError where that fails."""
    home.emptied()
    ended = run(home, os.environ | home.environment)
    if ended.code:
        raise RuntimeError(f"the undisturbed run left with {ended.code}: {ended.said}")
    return lake_rows(home.lake)


def traced(home: Home, control: Control, by_audit: bool) -> list[Failed]:
    """The operations of a run in which none fails, in their order."""
    home.emptied()
    with layered(control, home, by_audit) as variables:
        control.trace()
        run(home, variables)
    return control.traced


def tried(home: Home, control: Control, number: int, error: int, expected: Rows, *, by_audit: bool) -> Case:
    """The command with this operation failing, and the same command once more."""
    home.emptied()
    with layered(control, home, by_audit) as variables:
        control.arm(number, error)
        ended = run(home, variables)
    case = Case(number, error, ended, control.failed)
    case.faults += [*wrong_end(case), *([f"left behind: {ended.left}"] if ended.left else [])]
    case.faults += wrong_rows(home.lake, expected if ended.code == 0 else None)
    if ended.code and home.lake.exists():
        again = run(home, os.environ | home.environment)
        case.faults += [f"again: left with {again.code}: {again.said}"] if again.code else []
        case.faults += [f"again: {fault}" for fault in wrong_rows(home.lake, expected)]
    return case


def wrong_rows(lake: Path, expected: Rows | None) -> list[str]:
    """The tables that are torn, or have other rows than expected if that is known."""
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
    """What is wrong with the exit code and with what was said: somebody has to be able to act on it."""
    code, said, failed = case.ended.code, case.ended.said, case.failed
    if failed is None or (case.error == KILL and code == -signal.SIGKILL):
        return []
    faults = [] if code in (0, 1, 2) else [f"left with {code}"]
    faults += [f"a {sign}" for sign in ("Traceback", "Exception ignored") if sign in said]
    told = [line for line in said.splitlines() if line.startswith(SAID)]
    if code and not (told and said[said.rfind(f"\n{SAID}") + 1 :].startswith(SAID)):
        faults.append("the last thing said is none of refetch's own errors")
    if code and case.error != KILL and not names(said, failed.path):
        faults.append("what was said does not name the file")
    return faults


def names(said: str, path: str) -> bool:
    """Whether the file is named, or the table or layer that it is of, or the cache."""
    file = Path(path)
    return file.name in said or any(str(folder) in said for folder in file.parents[:4])
