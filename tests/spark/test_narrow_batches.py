"""How Spark cuts the batches that workers get."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from jobs.cli import parse
from jobs.replays.algorithm import Source
from jobs.replays.consumer_memory import is_narrow
from jobs.replays.one_shuffle import UNLIMITED, batches_by_rows
from jobs.resolve import resolve_run
from jobs.session.spark_properties import MOST_BATCH_BYTES
from udfs.errors import CaptureError
from udfs.replay.fetch.fetch_report import ALGORITHM as FETCH_MAX_BYTES


def test_the_bytes_of_a_batch_are_limited_again_behind_a_replay_of_narrow_rows_even_where_it_is_refused(
    spark: SparkSession,
) -> None:
    def refused() -> None:
        with batches_by_rows(spark):
            assert spark.conf.get(MOST_BATCH_BYTES) == UNLIMITED != before
            raise CaptureError("refused")

    before = spark.conf.get(MOST_BATCH_BYTES)
    with pytest.raises(CaptureError):
        refused()
    assert spark.conf.get(MOST_BATCH_BYTES) == before


LIMITED = ["--set=consumer.fetch.max.bytes=1MiB"]


@pytest.mark.parametrize(
    ("flags", "before", "narrow"), [([], False, True), (LIMITED, True, True), (LIMITED, False, False)]
)
def test_a_replay_of_memory_that_has_the_logs_read_again_gets_batches_of_limited_bytes(
    spark: SparkSession, flags: list[str], before: bool, narrow: bool
) -> None:
    run = resolve_run(parse(["replay", "--lake=lake", *flags]))
    done = {FETCH_MAX_BYTES: spark.range(0)} if before else {}
    assert is_narrow(Source(spark, run, "capture", "run", done)) == narrow
