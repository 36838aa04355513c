"""An interrupt while Spark works: its jobs are cancelled, and what then fails is the interrupt."""

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
"""Modules of Py4J whose calls to Java an interrupt breaks off."""
_GROUPS: list[str] = []
"""The groups that the main thread's jobs are in, the innermost last."""
_PAUSE_S, _TRIES = 0.1, 50
"""The seconds between two tries to cancel, and how many tries may fail in a row."""


@contextmanager
def cancel_at_interrupt(spark: SparkSession) -> Iterator[None]:
    """Have SIGINT raise KeyboardInterrupt, and cancel the jobs of a session that this process has started: those that
    run, and those that the block, or a thread that it has begun, still submits.

    Spark's own handler cancels on the main thread's connection to Java. Where that waits for an answer both calls fail,
    and Py4J writes them to stderr.
    """

    over = Event()
    canceller = driver_of(spark).canceller()

    def interrupted(number: int, frame: FrameType | None) -> NoReturn:
        _INTERRUPTED.set()
        # The list is shorter once the main thread goes on.
        cancel = partial(_cancel_until, over, canceller, tuple(_GROUPS))
        Thread(target=cancel, name=CANCELLING, daemon=True).start()
        raise KeyboardInterrupt

    _INTERRUPTED.clear()
    signal.signal(signal.SIGINT, interrupted)
    # Of a call that an interrupt ends Py4J tells the root logger, with a stack trace; of a connection that is shut down
    # behind it, its own.
    for name in (None, "py4j.clientserver"):
        logging.getLogger(name).addFilter(_is_no_interrupt)
    try:
        with job_group(spark):
            yield
    finally:
        over.set()


@contextmanager
def job_group(spark: SparkSession, description: str | None = None) -> Iterator[str]:
    """Have the block's jobs be of one group, which an interrupt cancels; yields its name.

    Spark never again runs a job of a cancelled group, and one session may serve many processes: no name comes twice.
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
    """Cancel all jobs again and again until the work is over, and behind it those of its groups that come late.

    A call to Java that an interrupt ends has Py4J shut the connections of all threads. One that was just made for
    cancelling fails then, and what another thread waited for is sent to Java a second time, without its group.
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
