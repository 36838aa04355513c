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

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

CANCELLING = "refetch-cancel"
"""Name of the thread that cancels."""
_INTERRUPTED = Event()
_OF_PY4J = ("java_gateway", "clientserver")
"""Modules whose calls an interrupt ends."""
_GROUP, _DESCRIPTION = "spark.jobGroup.id", "spark.job.description"
_GROUPS: list[str] = []
"""The groups that the main thread's jobs are in, the innermost last."""
_PAUSE_S, _TRIES = 0.1, 50
"""Between two tries to cancel, and how many may fail in a row."""


@contextmanager
def cancelled_at_interrupt(spark: SparkSession) -> Iterator[None]:
    """Have SIGINT raise KeyboardInterrupt, and cancel the jobs of a session that this process has started: those that
    run, and those that the block, or a thread that it has begun, still submits.

    Spark's own handler cancels on the main thread's connection to Java. Where that waits for an answer both calls fail,
    and Py4J writes them to stderr.
    """

    over = Event()
    java = None if is_remote() else spark.sparkContext._jsc.sc()

    def interrupted(number: int, frame: FrameType | None) -> NoReturn:
        _INTERRUPTED.set()
        if java is not None:
            # The list is shorter once the main thread goes on.
            cancel = partial(_cancel_until, over, java, tuple(_GROUPS))
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
    if is_remote():
        yield group
        return
    context = spark.sparkContext
    before = {key: context.getLocalProperty(key) for key in (_GROUP, _DESCRIPTION)}
    _GROUPS.append(group)
    try:
        for key, value in ((_GROUP, group), (_DESCRIPTION, description or before[_DESCRIPTION])):
            context.setLocalProperty(key, value)  # type: ignore[arg-type]  # None clears the property
        yield group
    finally:
        _GROUPS.remove(group)
        for key, value in before.items():
            context.setLocalProperty(key, value)  # type: ignore[arg-type]


def is_interrupted() -> bool:
    """Whether SIGINT came since `cancelled_at_interrupt`."""
    return _INTERRUPTED.is_set()


def _cancel_until(over: Event, java: JavaObject, groups: tuple[str, ...]) -> None:
    """Cancel all jobs again and again until the work is over, and behind it those of its groups that come late.

    A call to Java that an interrupt ends has Py4J shut the connections of all threads. One that was just made for
    cancelling fails then, and what another thread waited for is sent to Java a second time, without its group.
    """
    failed = 0
    while failed < _TRIES:
        time.sleep(_PAUSE_S)
        is_over = over.is_set()
        try:
            if not is_over:
                java.cancelAllJobs()
            for group in groups:
                java.cancelJobGroupAndFutureJobs(group)
        except (Py4JError, OSError):  # or Java has gone
            failed += 1
        else:
            if is_over:
                return
            failed = 0


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    return not (is_interrupted() and record.module in _OF_PY4J)
