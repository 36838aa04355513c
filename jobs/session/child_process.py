"""Starts programs that end when this process ends, for whatever reason.

Standard library only: the set-up of the Python environment starts such programs, too. This file can be run itself and
then becomes the program: `python child_process.py PARENT PROGRAM ARGUMENT...`.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from subprocess import Popen

_PR_SET_PDEATHSIG = 1
_ANY_PARENT = 0
_NOT_STARTED = 127
_LOOK_EVERY_S = 0.02
_CHILDREN: list[Popen[bytes] | Popen[str]] = []


def bound_command(program: Sequence[str]) -> list[str]:
    """The command that runs a program which Ctrl-C does not reach and which Linux ends when this process ends.

    Linux ends the program when the thread that started it ends. So only the main thread asks Linux to do that.
    """
    is_main = threading.current_thread() is threading.main_thread()
    parent = os.getpid() if is_main else _ANY_PARENT
    return [sys.executable, "-I", "-S", __file__, str(parent), *program]


def end_at_exit(child: Popen[bytes] | Popen[str]) -> None:
    """Have `end_children` end this program as well."""
    _CHILDREN.append(child)


def end_children(seconds: float, is_enough: Callable[[], bool]) -> None:
    """End the programs of `end_at_exit`: by SIGTERM, and those that still run after `seconds`, or once `is_enough`
    returns True, by SIGKILL.

    It takes no lock that an interrupted thread may hold, such as the one in `Popen.poll`.
    """
    children = list(_CHILDREN)
    for child in children:
        _send_signal(child, signal.SIGTERM)
    until = time.monotonic() + seconds
    while any(map(_is_running, children)) and time.monotonic() < until and not is_enough():
        time.sleep(_LOOK_EVERY_S)
    for child in children:
        _send_signal(child, signal.SIGKILL)


def _send_signal(child: Popen[bytes] | Popen[str], number: signal.Signals) -> None:
    if _is_running(child):
        with suppress(ProcessLookupError):
            os.kill(child.pid, number)


def _is_running(child: Popen[bytes] | Popen[str]) -> bool:
    """Whether it runs. A child that nobody has waited for keeps its process id, so no other process can have it."""
    if child.returncode is not None:
        return False
    try:
        return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False


def _become_bound(parent: int, program: list[str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if parent != _ANY_PARENT:
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it has ended before it could be watched
            sys.exit(_NOT_STARTED)
    try:
        os.execvp(program[0], program)  # noqa: S606 - no shell is the point
    except OSError as fault:
        sys.exit(f"{program[0]}: {fault.strerror}")


if __name__ == "__main__":
    _become_bound(int(sys.argv[1]), sys.argv[2:])
