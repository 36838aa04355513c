"""Run tests in a child process, in which kernels are Python and the time of each test is limited.

Each child is a fork of a process that has imported the libraries but no module of refetch. The child then imports
refetch's modules from the current folder, as they are at that moment.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple, NoReturn

# Imported so that the children have it already.
import llvmlite.binding
import numba
import pandas as pd
import pyarrow.compute
import pytest

__all__ = ["llvmlite", "numba", "pd", "pyarrow"]

MEMORY = 8 << 30
"""Limit of a child's address space, bytes: a loop that fills memory fails before the machine has none left."""
IMPORTS = 60.0
"""Seconds of processor time that importing the tests may take: many times what it needs."""
TOO_LONG = "takes too long without the JIT"
OPTIONS = ["-q", "-p", "no:cacheprovider", "-p", "no:faulthandler", "--durations=0", "--durations-min=60"]
Place = tuple[str, int]
"""A function: its file, and its first line, counting its decorators."""


class Test(NamedTuple):
    """A test that passes without the JIT: seconds of processor time, and the functions that it calls."""

    seconds: float
    calls: frozenset[Place]


class TimeLimit:
    """Sends SIGPROF to the process if a test or its fixtures take more than `seconds` of processor time, or if
    importing the tests takes more than IMPORTS + `seconds`. Without a handler (see `Calls`), the signal ends the
    process.

    What pytest does between tests and at the end is not limited: a failure there would end pytest itself.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        signal.setitimer(signal.ITIMER_PROF, IMPORTS + seconds)

    def pytest_collection_finish(self) -> None:
        """Stop the timer, since the tests are imported."""
        signal.setitimer(signal.ITIMER_PROF, 0)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self) -> Generator[None, object, object]:
        """Limit the time of fixtures."""
        return (yield from self._limited())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        """Limit the time of the test."""
        return (yield from self._limited())

    def _limited(self) -> Generator[None, object, object]:
        signal.setitimer(signal.ITIMER_PROF, self.seconds)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)


class FirstFailures:
    """Keeps Hypothesis from making examples that fail smaller, because all that counts is whether a test fails."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self) -> None:
        """Load a profile from which tests/conftest.py takes the phases of its own."""
        # pytest must have imported Hypothesis before.
        from hypothesis import Phase, settings

        settings.register_profile("mutation", phases=[Phase.explicit, Phase.generate])
        settings.load_profile("mutation")


class Calls:
    """Records which functions each test calls."""

    def __init__(self) -> None:
        self.root = f"{Path.cwd()}/"
        self.code: set[CodeType] = set()
        self.tests: dict[str, tuple[float, list[Place]]] = {}
        self.left_out: dict[str, str] = {}
        signal.signal(signal.SIGPROF, self.too_long)

    def too_long(self, _signal: int, _frame: FrameType | None) -> NoReturn:
        """Skip the rest of a test whose time is over. It is no failure, which Hypothesis would try again and again."""
        pytest.skip(TOO_LONG)

    def called(self, frame: FrameType, _event: str, _argument: object) -> None:
        """Note a function that is called; Python calls this trace function."""
        self.code.add(frame.f_code)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Note which functions a test and its fixtures call."""
        self.code.clear()
        begin = time.process_time()
        sys.settrace(self.called)
        try:
            result = yield
        finally:
            sys.settrace(None)
        ours = {
            (code.co_filename.removeprefix(self.root), code.co_firstlineno)
            for code in self.code
            if code.co_filename.startswith(self.root)
        }
        self.tests[item.nodeid] = time.process_time() - begin, sorted(ours)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Leave out a test that fails or takes too long. A test that is skipped for another reason calls nothing."""
        if report.failed or (report.skipped and TOO_LONG in str(report.longrepr)):
            self.left_out[report.nodeid] = str(report.longrepr).rpartition("\n")[2]


def calls_of(tests_in: Sequence[str], seconds: float) -> tuple[dict[str, Test], list[str]]:
    """(tests that pass without the JIT, each within `seconds`; names of the others). Raises SystemExit if pytest ends
    with anything else than passed or failed tests.
    """
    with tempfile.NamedTemporaryFile() as file:
        status = _in_child(tests_in, seconds, Path(file.name))
        if status not in (0, 1):
            where = Path(file.name).read_text()
            raise SystemExit(
                f"{tests_in}: pytest ended with {status} before anything was changed. Run these tests alone.\n{where}"
            )
        tests, left_out = json.loads(Path(file.name).read_text())
    kept = {name: Test(took, frozenset(map(tuple, calls))) for name, (took, calls) in tests.items()}
    return {name: test for name, test in kept.items() if name not in left_out}, sorted(left_out)


def outcome(tests: Sequence[str], seconds: float) -> str:
    """What notices a change in the current folder: `a test`, `the time limit`, `a crash`, or "" for nothing."""
    status = _in_child([*tests, "-x"], seconds, None)
    if status == -signal.SIGPROF:
        return "the time limit"
    return "" if status == 0 else "a test" if status > 0 else "a crash"


def _in_child(arguments: Sequence[str], seconds: float, calls: Path | None) -> int:
    """Run tests in a fork. Returns pytest's exit code, or minus the number of the signal that ended the fork."""
    sys.stdout.flush()
    kernels = tempfile.mkdtemp()
    if (child := os.fork()) == 0:
        os.environ["NUMBA_CACHE_DIR"] = kernels
        os._exit(_run(arguments, seconds, calls))
    _, status = os.waitpid(child, 0)
    shutil.rmtree(kernels)
    return os.waitstatus_to_exitcode(status)


def _run(arguments: Sequence[str], seconds: float, calls: Path | None) -> int:
    from tests.mutation import python_kernels  # imports refetch

    python_kernels.use()
    sys.dont_write_bytecode = calls is None
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if calls:
        faulthandler.enable(calls.open("w"))  # a crash says where it was, in place of the calls
    noted = Calls() if calls else None
    plugins = [TimeLimit(seconds), FirstFailures(), *([noted] if noted else [])]
    with (
        Path(os.devnull).open("w") as nothing,
        contextlib.redirect_stdout(nothing),
        contextlib.redirect_stderr(nothing),
    ):
        status = pytest.main([*OPTIONS, *arguments], plugins=plugins)
    if noted and calls:
        calls.write_text(json.dumps([noted.tests, noted.left_out]))
    return int(status)
