"""Ctrl-C while Spark works: one line, exit code 130."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread

import pyarrow as pa
import pytest
from pyspark import inheritable_thread_target
from pyspark.sql import SparkSession

from jobs.cli import INTERRUPTED, run_guarded
from jobs.lake.delta_tables import TASKS_AT_A_TIME, run_side_by_side
from jobs.terminal.failures import ReadableSparkFailures
from jobs.terminal.interrupts import CANCELLING, cancel_at_interrupt
from jobs.terminal.progress import stage

FOREVER_S = 300


def waiting(begun: Path) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function in which a worker waits for FOREVER_S. It makes the file `begun` when it starts to wait."""

    def wait(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begun.touch()
        time.sleep(FOREVER_S)
        yield from batches

    return wait


def interrupt_once(begun: Path) -> None:
    """Send SIGINT, as Ctrl-C does, as soon as a worker waits."""
    while not begun.exists():
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGINT)


def wait_until_cancelled() -> None:
    for thread in threading.enumerate():
        if thread.name == CANCELLING:
            thread.join()


@pytest.fixture(autouse=True)
def before(spark: SparkSession) -> Iterator[None]:
    handler = signal.getsignal(signal.SIGINT)
    yield
    wait_until_cancelled()
    with cancel_at_interrupt(spark):  # so that failures in later tests do not count as caused by this interrupt
        pass
    signal.signal(signal.SIGINT, handler)


def test_an_interrupt_ends_sparks_work_and_is_told_in_one_line(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"

    def work() -> None:
        with ReadableSparkFailures(), cancel_at_interrupt(spark):
            spark.range(1).mapInArrow(waiting(begun), "id bigint").collect()

    started = time.monotonic()
    Thread(target=interrupt_once, args=(begun,), daemon=True).start()
    assert run_guarded(work) == INTERRUPTED
    assert time.monotonic() - started < FOREVER_S / 10
    assert capsys.readouterr().err == "refetch: interrupted; the same command again leaves the same tables\n"
    assert caplog.text == ""
    assert spark.range(3).count() == 3


def test_an_interrupt_cancels_what_threads_do_side_by_side_and_what_they_still_submit(
    spark: SparkSession, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"

    def work() -> None:
        spark.range(1).mapInArrow(waiting(begun), "id bigint").collect()

    started = time.monotonic()
    Thread(target=interrupt_once, args=(begun,), daemon=True).start()
    with pytest.raises(KeyboardInterrupt), ReadableSparkFailures(), cancel_at_interrupt(spark), stage("try", spark):
        run_side_by_side(spark, [work] * 2 * TASKS_AT_A_TIME)
    assert time.monotonic() - started < FOREVER_S / 10
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()


def test_a_job_that_is_submitted_behind_an_interrupt_is_refused(spark: SparkSession) -> None:
    """So is a job that Java is about to submit for the main thread, which no longer waits for it."""
    cancelled = Event()

    def count() -> int:
        cancelled.wait(FOREVER_S)
        return spark.range(1).count()

    with ThreadPoolExecutor(1) as beside:
        with cancel_at_interrupt(spark), stage("try", spark):
            counted = beside.submit(inheritable_thread_target(spark)(count))
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        wait_until_cancelled()
        cancelled.set()
    with pytest.raises(Exception, match="SPARK_JOB_CANCELLED"):
        counted.result()
    assert spark.range(3).count() == 3


@pytest.mark.parametrize(("after", "told"), [(True, 0), (False, 1)])
def test_that_a_connection_is_shut_down_behind_an_interrupt_is_not_told(
    spark: SparkSession, caplog: pytest.LogCaptureFixture, after: bool, told: int
) -> None:
    with cancel_at_interrupt(spark):
        if after:
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        of_py4j = logging.getLogger("py4j.clientserver")
        of_py4j.handle(of_py4j.makeRecord(of_py4j.name, logging.ERROR, "clientserver.py", 1, "shutting down", (), None))
    assert len(caplog.records) == told


def test_what_fails_behind_an_interrupt_is_the_interrupt(spark: SparkSession) -> None:
    with cancel_at_interrupt(spark):
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt), ReadableSparkFailures():
            raise ConnectionRefusedError
