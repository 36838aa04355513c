"""How rows come to the workers: those that belong together in one task, in order, through one Arrow function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.session.spark_properties import MOST_BATCH_BYTES, SHUFFLE_PARTITIONS

PACKED_COLUMNS = "`table` string, rows binary"
"""PACKED of `udfs.facts.arrow_tables`, as Spark spells it."""
SHARD = "shard"
"""The column that tells the task."""

UNLIMITED = str((1 << 31) - 1)
"""Of MOST_BATCH_BYTES: what has Spark not ask for the size of a batch (BatchedPythonArrowInput, Spark 4.2)."""

InOrder = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def shards_of(spark: SparkSession) -> int:
    """How many tasks share the work: as many as in Spark's own shuffles, and no fewer than there are cores."""
    partitions = spark.conf.get(SHUFFLE_PARTITIONS, "") or ""
    # Databricks has `auto` there.
    return max(int(partitions) if partitions.isdecimal() else 1, spark.sparkContext.defaultParallelism)


@contextmanager
def batches_by_rows(spark: SparkSession) -> Iterator[None]:
    """While the block runs, Spark cuts batches for workers by their rows alone. Else it asks with each row how large
    the batch is by now, column by column, which takes as long as the row.
    """
    before = spark.conf.get(MOST_BATCH_BYTES)
    spark.conf.set(MOST_BATCH_BYTES, UNLIMITED)
    try:
        yield
    finally:
        spark.conf.set(MOST_BATCH_BYTES, str(before))


def shard(shards: int, *keys: str | Column) -> Column:
    """The shard of rows with these keys."""
    return F.pmod(F.xxhash64(*keys), F.lit(shards)).cast("int")


def packed_in_order(rows: DataFrame, shards: int, order: Sequence[str], replay: InOrder) -> DataFrame:
    """Rows of PACKED that `replay` makes of rows with the column SHARD, which come to it in this order without it;
    in any where no order is given."""
    dealt = rows.repartitionById(shards, SHARD)
    in_order = dealt.sortWithinPartitions(*order) if order else dealt
    return in_order.drop(SHARD).mapInArrow(replay, PACKED_COLUMNS)
