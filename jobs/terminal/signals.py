"""How a signal ends a command: at once, with one line, together with every program that the command has started.

Standard library only: the set-up of the Python environment can be interrupted, too.

Python would raise KeyboardInterrupt in whatever the main thread is doing. If that is a hook that cannot raise, such as
one that logging has around a fork, the interrupt is lost and a lock may be held for ever. Therefore a separate thread
ends the command, while the main thread waits. A command may end anywhere: running it again leaves the same tables.
"""

from __future__ import annotations

import faulthandler
import os
import select
import signal
import time
from contextlib import suppress
from threading import Thread
from types import FrameType
from typing import NoReturn

from jobs.session.child_process import end_children

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that end a command: those of Ctrl-C, of `kill` and schedulers by default, and of a closed terminal."""
MORE_THAN_SIGNALS = 128
"""The exit code of a command that a signal ends is this plus the signal's number, as in shells."""
_PATIENCE_S = 5.0
"""The seconds that Java has to delete its temporary files before it is killed."""
_ENDED_BY = {signal.SIGINT: "interrupted", signal.SIGTERM: "ended by SIGTERM", signal.SIGHUP: "ended by SIGHUP"}
_SAME_TABLES = "the same command again leaves the same tables"


def end_at_signals() -> None:
    """From now on the signals end this process, and the programs given to `end_at_exit`. Main thread only.

    A signal that is ignored, as by `nohup` or in the background of a script, stays ignored. Signals that `hold_signals`
    has held are delivered.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    # The thread itself takes no signal. Otherwise it could take one that the main thread holds for the next program,
    # and that signal would be lost.
    hold_signals()
    Thread(target=_end_at_first, args=(reading,), name="refetch-signals", daemon=True).start()
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _wait_for_the_end)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


def are_watched() -> bool:
    """Whether `end_at_signals` has made the signals end this process."""
    return any(signal.getsignal(number) == _wait_for_the_end for number in ENDING)


def end_plainly() -> None:
    """From now on the signals end this process as by default, because there is nothing left to clean up."""
    for number in ENDING:
        if signal.getsignal(number) == _wait_for_the_end:
            signal.signal(number, signal.SIG_DFL)


def hold_signals() -> None:
    """Hold the signals until `end_at_signals`, in the program that this process is about to become."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)


def interrupted_text(number: signal.Signals = signal.SIGINT) -> str:
    """The message for a command that a signal has ended."""
    return f"{_ENDED_BY[number]}; {_SAME_TABLES}"


def _wait_for_the_end(number: int, frame: FrameType | None) -> NoReturn:
    while True:
        time.sleep(_PATIENCE_S)


def _end_at_first(reading: int) -> None:
    number = next(byte_value for byte in iter(lambda: os.read(reading, 1), b"") if (byte_value := byte[0]) in ENDING)
    _write_last_line(interrupted_text(signal.Signals(number)))
    end_children(_PATIENCE_S, lambda: bool(select.select([reading], [], [], 0)[0]))
    os._exit(MORE_THAN_SIGNALS + number)


def _write_last_line(text: str) -> None:
    """Write a last line to stderr, without Python's own buffers, whose locks may be held. Nothing can be written after
    it.
    """
    line = f"refetch: {text}\n"
    with suppress(OSError):
        os.write(2, f"\r\x1b[K{line}".encode() if os.isatty(2) else line.encode())
        if os.environ.get("REFETCH_TRACEBACK") == "1":
            faulthandler.dump_traceback(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
