"""How Spark cuts the batches that workers get."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from jobs.cli import parse
from jobs.replays.algorithm import Source
from jobs.replays.consumer_memory.job import reads_logs
from jobs.resolve import resolve_run
from jobs.session.one_shuffle import UNLIMITED, batches_by_rows
from jobs.session.spark_properties import MOST_BATCH_BYTES
from schemas.tables import algorithms
from udfs.errors import CaptureError


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
    ("flags", "before", "reads"), [([], False, False), (LIMITED, True, False), (LIMITED, False, True)]
)
def test_a_replay_of_memory_reads_logs_again_where_no_replay_before_it_hands_on_what_consumers_receive(
    spark: SparkSession, flags: list[str], before: bool, reads: bool
) -> None:
    run = resolve_run(parse(["replay", "--lake=lake", *flags]))
    done = {algorithms.FETCH_MAX_BYTES: spark.range(0)} if before else {}
    assert reads_logs(Source(spark, run, "capture", "run", done)) == reads
