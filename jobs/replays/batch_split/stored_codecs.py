"""Topics whose batches brokers compress again: they are fetched in another codec than they were produced in."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from schemas.tables.silver import RECORD_BATCHES
from schemas.tables.values import FROM_PRODUCE

PRODUCED, FETCHED = "produced", "fetched"


def stored_codecs(batches: DataFrame) -> dict[str, str]:
    """For each topic with a batch that was fetched in another codec than it was produced in, the codec into which
    brokers compress its batches (compression.type). If there are several, it is that of the batch produced last.

    batches: rows of RECORD_BATCHES.
    """
    b = RECORD_BATCHES
    candidates = topics_in_several_codecs(batches)
    if not candidates:
        return {}
    of_them = batches.where(F.col(b.topic).isin(candidates) & F.col(b.base_offset).isNotNull())
    where = (b.topic, b.partition, b.base_offset, b.last_offset_delta)
    is_produced = F.col(b.source) == FROM_PRODUCE
    produced = of_them.where(is_produced & (F.coalesce(b.error_code, F.lit(0)) == 0)).select(
        *where, F.col(b.codec).alias(PRODUCED), b.request_time
    )
    fetched = of_them.where(~is_produced).select(*where, F.col(b.codec).alias(FETCHED)).distinct()
    changed = produced.join(fetched, [*map(str, where)]).where(F.col(PRODUCED) != F.col(FETCHED))
    last = F.max_by(FETCHED, F.struct(b.request_time, b.partition, b.base_offset)).alias(FETCHED)
    return {row[b.topic]: row[FETCHED] for row in changed.groupBy(b.topic).agg(last).collect()}


def topics_in_several_codecs(batches: DataFrame) -> list[str]:
    """The topics with a batch that was fetched in one codec, and a batch that was produced in another."""
    b, is_produced = RECORD_BATCHES, F.col(RECORD_BATCHES.source) == FROM_PRODUCE
    codecs = (F.collect_set(F.when(is_fit, F.col(b.codec))) for is_fit in (is_produced, ~is_produced))
    produced, fetched = (of.alias(name) for of, name in zip(codecs, (PRODUCED, FETCHED), strict=True))
    by_topic = batches.where(F.col(b.topic).isNotNull()).groupBy(b.topic).agg(produced, fetched)
    both = F.size(PRODUCED) * F.size(FETCHED) > 0
    several = F.size(F.array_union(PRODUCED, FETCHED)) > 1
    return sorted(row[b.topic] for row in by_topic.where(both & several).select(b.topic).collect())
