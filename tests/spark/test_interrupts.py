"""Ctrl-C while Spark works: one line, exit code 130."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from threading import Thread

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from jobs.cli import INTERRUPTED, guarded
from jobs.terminal.failures import spark_failures_told
from jobs.terminal.interrupts import cancel_at_interrupt

FOREVER_S = 300


def waiting(begun: Path) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a worker waits in for ever; `begun` is there once it does."""

    def wait(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begun.touch()
        time.sleep(FOREVER_S)
        yield from batches

    return wait


def interrupt_once(begun: Path) -> None:
    """Ctrl-C, when a worker is at work: no sooner, for a job that is still to be submitted is not cancelled."""
    while not begun.exists():
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def at_interrupt(spark: SparkSession) -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    cancel_at_interrupt(spark)
    yield
    cancel_at_interrupt(spark)  # what fails in later tests is not behind this interrupt
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("at_interrupt")
def test_an_interrupt_ends_sparks_work_and_is_told_in_one_line(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"

    def work() -> None:
        with spark_failures_told():
            spark.range(1).mapInArrow(waiting(begun), "id bigint").collect()

    started = time.monotonic()
    Thread(target=interrupt_once, args=(begun,), daemon=True).start()
    assert guarded(work) == INTERRUPTED
    assert time.monotonic() - started < FOREVER_S / 10
    assert capsys.readouterr().err == "refetch: interrupted; the same command again leaves the same tables\n"
    assert caplog.text == ""
    assert spark.range(3).count() == 3


@pytest.mark.usefixtures("at_interrupt")
@pytest.mark.parametrize(("after", "told"), [(True, 0), (False, 1)])
def test_that_a_connection_is_shut_down_behind_an_interrupt_is_not_told(
    caplog: pytest.LogCaptureFixture, after: bool, told: int
) -> None:
    if after:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    of_py4j = logging.getLogger("py4j.clientserver")
    of_py4j.handle(of_py4j.makeRecord(of_py4j.name, logging.ERROR, "clientserver.py", 1, "shutting down", (), None))
    assert len(caplog.records) == told


@pytest.mark.usefixtures("at_interrupt")
def test_what_fails_behind_an_interrupt_is_the_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), spark_failures_told():
        raise ConnectionRefusedError
