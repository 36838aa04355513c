"""How rows get to the tasks that replay them: a shard's rows go in order to one Arrow function in one task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from jobs.session.driver import driver_of
from jobs.session.spark_properties import SHUFFLE_PARTITIONS
from udfs.replay.shared.dealing import deal_on, replay_dealt
from udfs.replay.shared.dealt_rows import DEALT, FIRST, SHARD, UNIT, Step

PACKED_COLUMNS = "`table` string, rows binary"
"""The schema PACKED of `udfs.facts.arrow_tables`, as DDL for Spark."""
InOrder = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def shard_count(spark: SparkSession) -> int:
    """How many tasks share the work: as many as in Spark's own shuffles, but at least as many as there are cores."""
    partitions = spark.conf.get(SHUFFLE_PARTITIONS, "") or ""
    # On Databricks it is `auto`.
    return max(int(partitions) if partitions.isdecimal() else 1, driver_of(spark).cores())


def shard_column(shards: int, *keys: str | Column) -> Column:
    """The shard of a row, by its keys: a whole number from 0 to `shards` - 1."""
    return F.pmod(F.xxhash64(*keys), F.lit(shards)).cast("int")


def replay_in_order(rows: DataFrame, shards: int, order: Sequence[str], replay: InOrder) -> DataFrame:
    """Rows of PACKED that `replay` makes from the rows of each shard.

    rows: with the column SHARD; `replay` gets them without it. order: the columns by which they are sorted for
    `replay`; empty if the order does not matter.
    """
    of_shard = rows.repartitionById(shards, SHARD)
    in_order = of_shard.sortWithinPartitions(*order) if order else of_shard
    return in_order.drop(SHARD).mapInArrow(replay, PACKED_COLUMNS)


def replay_shards(dealt: DataFrame, step: Step, shards: int, replay: InOrder) -> DataFrame:
    """Rows of PACKED that `replay` makes from the rows of each shard. It gets them in the order of the step.

    dealt: rows of DEALT, of shards 0 to `shards` - 1.
    """
    return _parts_in_order(dealt, shards).mapInArrow(partial(replay_dealt, replay, step), PACKED_COLUMNS)


def deal_again(dealt: DataFrame, step: Step, to: Step, shards: int, events: InOrder) -> DataFrame:
    """Rows of DEALT for the step `to`, which `events` makes from the rows of each shard. It gets them in the order of
    `step`.
    """
    on = partial(deal_on, events, step, to, shards)
    return _parts_in_order(dealt, shards).mapInArrow(on, from_arrow_schema(DEALT))


def _parts_in_order(dealt: DataFrame, shards: int) -> DataFrame:
    return dealt.repartitionById(shards, SHARD).sortWithinPartitions(UNIT, FIRST)
