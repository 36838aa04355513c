"""Spark's own failures as one line: what went wrong at the root, and where the rest is."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger

from jobs.session.spark import spark_log
from jobs.terminal.interrupts import is_interrupted
from udfs.errors import SparkError

_PYTHON_FAULT = re.compile(r"^(?:\w+\.)*(\w+(?:Error|Exception|Exit)\b.*)$", re.MULTILINE)
_JAVA_CAUSE = re.compile(r"^(?:Caused by)?: (?:[\w$]+\.)*([\w$]+.*)$", re.MULTILINE)
_LONGEST = 500
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""The loggers to which pyspark writes, as lines of JSON, exceptions that it raises as well."""
_JAVA_GONE = (
    "its Java process has ended: somebody ended it, or the system did because memory ran out. Try the same command "
    "again, with less running beside it"
)


@contextmanager
def readable_spark_failures() -> Iterator[None]:
    """Raise SparkError with the root cause in place of what Spark or its gateway raises in the block, and
    KeyboardInterrupt in place of what fails behind an interrupt.
    """
    for name in _LOGGERS:
        PySparkLogger.getLogger(name).disabled = True
    logging.getLogger().addFilter(_is_no_lost_connection)
    try:
        yield
    except Exception as fault:
        # What an interrupt breaks fails as whatever was at work, so all is caught here; what is not Spark's goes on.
        if is_interrupted():
            raise KeyboardInterrupt from fault
        if not isinstance(fault, Py4JError | PySparkException | ConnectionError):
            raise
        is_gone = isinstance(fault, Py4JNetworkError | ConnectionError)
        log = spark_log()
        where = f"Spark's log: {log}" if log.exists() else "More is in the log of Spark's driver"
        raise SparkError(f"Spark failed: {_JAVA_GONE if is_gone else root_cause(str(fault))}. {where}") from fault
    finally:
        logging.getLogger().removeFilter(_is_no_lost_connection)


def _is_no_lost_connection(record: logging.LogRecord) -> bool:
    """Whether a record is no stack trace that Py4J logs, besides failing, where a connection to Java has broken."""
    fault = record.exc_info[1] if record.exc_info else None
    return not (record.module == "java_gateway" and isinstance(fault, Py4JNetworkError))


def root_cause(text: str) -> str:
    """The line of Spark's message that names the cause: a Python worker's own, else Java's innermost, else line one."""
    _, traceback, worker = text.partition("Traceback (most recent call last):")
    if traceback and (faults := _PYTHON_FAULT.findall(worker.partition("\n\tat ")[0])):
        return _cut_to_longest(faults[-1])
    causes = _JAVA_CAUSE.findall(text)
    first = next((line for line in text.splitlines() if line.strip()), "no reason given")
    return _cut_to_longest(causes[-1] if causes else first)


def _cut_to_longest(line: str) -> str:
    line = line.strip().rstrip(".")
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
