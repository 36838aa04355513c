"""How a signal ends a command: at once, in one line, with every program that the command has started.

Standard library only: the set-up of the Python environment can be interrupted, too.

Python would raise KeyboardInterrupt in whatever the main thread is doing. If that is a hook that cannot raise, such as
one that logging has around a fork, the interrupt is lost and a lock may stay held for good. Therefore a thread of its
own ends the command, while the main thread waits. A command may end anywhere: the same command again leaves the same
tables.
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
"""The signals that end a command: Ctrl-C, the default of `kill` and of schedulers, and a terminal that is closed."""
MORE_THAN_SIGNALS = 128
"""A command that a signal ends leaves with the signal's number and this, as shells have it."""
_PATIENCE_S = 5.0
"""How long Java may take to delete its temporary files before it is killed, in seconds."""
_ENDED_BY = {signal.SIGINT: "interrupted", signal.SIGTERM: "ended by SIGTERM", signal.SIGHUP: "ended by SIGHUP"}
_SAME_TABLES = "the same command again leaves the same tables"


def end_at_signals() -> None:
    """From now on have the signals end this process, and what `end_at_exit` names. Main thread only.

    A signal that is ignored, as by `nohup` or in the background of a script, stays so. Those that `hold_signals` has
    held are let through.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    Thread(target=_end_at_first, args=(reading,), name="refetch-signals", daemon=True).start()
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _wait_for_the_end)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


def are_watched() -> bool:
    """Whether `end_at_signals` has made the signals end this process."""
    return any(signal.getsignal(number) == _wait_for_the_end for number in ENDING)


def end_plainly() -> None:
    """From now on have the signals end this process as they end any other: nothing is left to be done for them."""
    for number in ENDING:
        if signal.getsignal(number) == _wait_for_the_end:
            signal.signal(number, signal.SIG_DFL)


def hold_signals() -> None:
    """Hold the signals until `end_at_signals`, in the program that this process is about to become."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)


def interrupted_text(number: signal.Signals = signal.SIGINT) -> str:
    """What the screen says of a command that a signal has ended."""
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
    """Write a last line to stderr, past Python's own buffers, whose locks may be held; nothing is written behind it."""
    line = f"refetch: {text}\n"
    with suppress(OSError):
        os.write(2, f"\r\x1b[K{line}".encode() if os.isatty(2) else line.encode())
        if os.environ.get("REFETCH_TRACEBACK") == "1":
            faulthandler.dump_traceback(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
