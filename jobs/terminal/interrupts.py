"""An interrupt while Spark works: its jobs are cancelled, and what then fails is the interrupt."""

from __future__ import annotations

import logging
import signal
from contextlib import suppress
from threading import Event, Thread
from types import FrameType
from typing import NoReturn

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

_INTERRUPTED = Event()
_OF_PY4J = ("java_gateway", "clientserver")
"""Modules whose calls an interrupt ends."""


def cancel_at_interrupt(spark: SparkSession) -> None:
    """Have SIGINT cancel the jobs of a session that this process has started, and raise KeyboardInterrupt.

    Spark's own handler cancels on the main thread's connection to Java. Where that waits for an answer both calls fail,
    and Py4J writes them to stderr.
    """

    def cancel() -> None:
        with suppress(Py4JError, OSError):  # Java may have gone before
            spark.sparkContext.cancelAllJobs()

    def interrupted(number: int, frame: FrameType | None) -> NoReturn:
        _INTERRUPTED.set()
        Thread(target=cancel, name="refetch-cancel", daemon=True).start()
        raise KeyboardInterrupt

    _INTERRUPTED.clear()
    signal.signal(signal.SIGINT, interrupted)
    # Of a call that an interrupt ends Py4J tells the root logger, with a stack trace; of a connection that is shut down
    # behind it, its own.
    for name in (None, "py4j.clientserver"):
        logging.getLogger(name).addFilter(_is_no_interrupt)


def is_interrupted() -> bool:
    """Whether SIGINT came since `cancel_at_interrupt`."""
    return _INTERRUPTED.is_set()


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    return not (is_interrupted() and record.module in _OF_PY4J)
