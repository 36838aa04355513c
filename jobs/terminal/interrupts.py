"""An interrupt while Spark works: its jobs are cancelled, and later failures count as the interrupt."""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from threading import Event, Thread
from types import FrameType
from typing import NoReturn
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from jobs.session.driver import Cancel, driver_of

CANCELLING = "refetch-cancel"
"""Name of the thread that cancels."""
_INTERRUPTED = Event()
_OF_PY4J = ("java_gateway", "clientserver")
"""Modules of Py4J whose calls to Java an interrupt breaks."""
_GROUPS: list[str] = []
"""The groups of the main thread's jobs, the innermost last."""
_PAUSE_S, _TRIES = 0.1, 50
"""The seconds between two tries to cancel, and how many tries may fail in a row."""


@contextmanager
def cancel_at_interrupt(spark: SparkSession) -> Iterator[None]:
    """While the block runs, SIGINT raises KeyboardInterrupt and cancels the jobs that this process has started in the
    session: those that run, and those that the block or its threads still submit.

    Spark's own handler cancels on the main thread's connection to Java. If that connection is waiting for an answer,
    both calls fail, and Py4J writes them to stderr.
    """

    over = Event()
    canceller = driver_of(spark).canceller()

    def interrupted(number: int, frame: FrameType | None) -> NoReturn:
        _INTERRUPTED.set()
        # The groups are copied here: the list gets shorter as soon as the main thread goes on.
        cancel = partial(_cancel_until, over, canceller, tuple(_GROUPS))
        Thread(target=cancel, name=CANCELLING, daemon=True).start()
        raise KeyboardInterrupt

    _INTERRUPTED.clear()
    signal.signal(signal.SIGINT, interrupted)
    # Py4J logs a call that an interrupt breaks to the root logger, with a stack trace, and the connection that is then
    # shut down to its own logger.
    for name in (None, "py4j.clientserver"):
        logging.getLogger(name).addFilter(_is_no_interrupt)
    try:
        with job_group(spark):
            yield
    finally:
        over.set()


@contextmanager
def job_group(spark: SparkSession, description: str | None = None) -> Iterator[str]:
    """Put the block's jobs into one group, which an interrupt cancels. Yields the group's name.

    Every name is used only once, because Spark never runs a job of a cancelled group again, and several processes may
    share a session.
    """
    group = f"refetch-{uuid4()}"
    _GROUPS.append(group)
    try:
        with driver_of(spark).in_group(group, description):
            yield group
    finally:
        _GROUPS.remove(group)


def is_interrupted() -> bool:
    """Whether SIGINT came since `cancel_at_interrupt`."""
    return _INTERRUPTED.is_set()


def _cancel_until(over: Event, cancel: Cancel, groups: tuple[str, ...]) -> None:
    """Cancel all jobs again and again until the work is over, and after that once more the late jobs of its groups.

    When an interrupt breaks a call to Java, Py4J shuts the connections of all threads. Then a connection that was just
    made for cancelling fails, and a request for which another thread was waiting is sent to Java again, without its
    group.
    """
    failed = 0
    while failed < _TRIES:
        time.sleep(_PAUSE_S)
        is_over = over.is_set()
        try:
            cancel(groups, not is_over)
        except (Py4JError, OSError):  # or Java has gone
            failed += 1
        else:
            if is_over:
                return
            failed = 0


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    return not (is_interrupted() and record.module in _OF_PY4J)
