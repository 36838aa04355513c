"""How Spark cuts the batches that workers get."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from jobs.replays.one_shuffle import UNLIMITED, batches_by_rows
from jobs.session.spark_properties import MOST_BATCH_BYTES
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
