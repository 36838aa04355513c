"""Spark's failures as one line: the root cause, and where the rest is."""

from __future__ import annotations

import logging
import re
from types import TracebackType

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger

from jobs.session.spark import spark_log
from jobs.terminal.interrupts import is_interrupted
from udfs.errors import SparkError

_PYTHON_FAULT = re.compile(r"(?:\A|^ .*)\n(?:\w+\.)*(\w+(?::.*)?)$", re.MULTILINE)
"""The line of a traceback that names the exception: the first line behind those of the calls, which are indented."""
_JAVA_CAUSE = re.compile(r"^(?:Caused by)?: (?:[\w$]+\.)*([\w$]+.*)$", re.MULTILINE)
_LONGEST = 500
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""The loggers to which pyspark writes, as lines of JSON, the exceptions that it also raises."""
_JAVA_GONE = (
    "its Java process has ended: somebody ended it, or the system did because memory ran out. Try the same command "
    "again, with less running beside it"
)


class ReadableSparkFailures:
    """Raise SparkError with the root cause instead of what Spark or its gateway raises in the block, and
    KeyboardInterrupt instead of what fails after an interrupt.
    """

    def __enter__(self) -> None:
        """Silence what Spark's client would log about failures that it also raises."""
        for name in _LOGGERS:
            PySparkLogger.getLogger(name).disabled = True
        logging.getLogger().addFilter(_is_no_lost_connection)

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Raise the readable error. A fault that comes neither from Spark nor from an interrupt stays unchanged."""
        logging.getLogger().removeFilter(_is_no_lost_connection)
        if isinstance(fault, Exception) and is_interrupted():  # an interrupt can appear as any error
            raise KeyboardInterrupt from fault
        if isinstance(fault, Py4JError | PySparkException | ConnectionError):
            raise _spark_error(fault) from fault


def _spark_error(fault: Exception) -> SparkError:
    cause = _JAVA_GONE if isinstance(fault, Py4JNetworkError | ConnectionError) else root_cause(str(fault))
    log = spark_log()
    where = f"Spark's log: {log}" if log.exists() else "More is in the log of Spark's driver"
    return SparkError(f"Spark failed: {cause}. {where}")


def _is_no_lost_connection(record: logging.LogRecord) -> bool:
    """Whether a record is something else than the stack trace that Py4J also logs when a connection to Java breaks."""
    fault = record.exc_info[1] if record.exc_info else None
    return not (record.module == "java_gateway" and isinstance(fault, Py4JNetworkError))


def root_cause(text: str) -> str:
    """The line of Spark's message with the cause: that of a Python worker, else Java's innermost one, else the first
    line.
    """
    _, traceback, worker = text.partition("Traceback (most recent call last):")
    if traceback and (faults := _PYTHON_FAULT.findall(worker.partition("\n\tat ")[0])):
        return _cut_to_longest(faults[-1])
    causes = _JAVA_CAUSE.findall(text)
    first = next((line for line in text.splitlines() if line.strip()), "no reason given")
    return _cut_to_longest(causes[-1] if causes else first)


def _cut_to_longest(line: str) -> str:
    line = line.strip().rstrip(".")
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
