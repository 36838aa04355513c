"""Progress of a stage of work: a line that follows Spark's tasks on a terminal, plain log lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Event, Thread
from typing import TextIO

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from jobs.session.driver import driver_of
from jobs.terminal.interrupts import job_group

_EVERY_SECONDS = {True: 0.25, False: 30.0}
"""The seconds between two lines: on a terminal (True), in a log (False)."""


@dataclass(frozen=True)
class TaskProgress:
    """The tasks of a stage's Spark jobs so far: how many are done, how many are known, and the seconds since the start.
    More tasks become known as jobs start.
    """

    done: int
    total: int
    seconds: float

    def line(self, name: str) -> str:
        """`decode  12/40 tasks  3.1/s  ETA 9 s`. What is not known yet is left out."""
        parts = [name]
        if self.total:
            parts.append(f"{self.done}/{self.total} tasks")
        if self.done and self.seconds > 0:
            rate = self.done / self.seconds
            parts.append(f"{rate:.1f}/s")
            if self.done < self.total:
                parts.append(f"ETA {(self.total - self.done) / rate:.0f} s")
        return "  ".join(parts)


@contextmanager
def stage(name: str, spark: SparkSession, out: TextIO | None = None) -> Iterator[None]:
    """Show the progress of the Spark jobs that the block starts, then one line with its tasks and seconds.

    The jobs have `name` as their description, so that Spark's UI shows the stages of the pipeline. Output goes to
    stderr unless `out` is given. A terminal gets one line that follows the tasks; anything else gets a line at the
    start, every 30 s, and at the end.
    """
    out = out or sys.stderr
    started, driver = time.monotonic(), driver_of(spark)

    def progress() -> TaskProgress:
        done, total = driver.tasks(group)
        return TaskProgress(done, total, time.monotonic() - started)

    with job_group(spark, name) as group, _progress_lines(name, progress, out):
        yield
    last = progress()
    tasks = f"  {last.total} tasks" if last.total else ""
    _write_line(out, f"{name}{tasks}  {last.seconds:.1f} s", end="\n")


@contextmanager
def _progress_lines(name: str, progress: Callable[[], TaskProgress], out: TextIO) -> Iterator[None]:
    over = Event()
    terminal = out.isatty()

    def follow() -> None:
        # The gateway may go down. The work then fails itself, and reports it.
        with suppress(Py4JError):
            while not over.wait(_EVERY_SECONDS[terminal]):
                _write_line(out, progress().line(name), end="" if terminal else "\n")

    if not terminal:
        _write_line(out, f"{name} ...", end="\n")
    thread = Thread(target=follow, name="refetch-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        if terminal:
            _write_line(out, "", end="")


def _write_line(out: TextIO, line: str, end: str) -> None:
    # On a terminal: return to the first column, write the text, and erase the rest of an older line (ECMA-48 EL).
    out.write(f"\r{line}\x1b[K{end}" if out.isatty() else f"refetch: {line}{end}")
    out.flush()
