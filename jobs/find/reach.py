"""The value from which on a limit changes nothing, because nothing in the capture is larger."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import functions as F

from jobs.replays.algorithm import Source
from schemas.tables import algorithms
from schemas.tables.silver import EXCHANGES, RECORD_BATCHES

FETCH_LIMITS = (
    "consumer.fetch.max.bytes", "consumer.max.partition.fetch.bytes", "replica.fetch.response.max.bytes",
    "replica.fetch.max.bytes",
)  # fmt: skip


def reach_by_setting(source: Source, algorithm: str) -> Mapping[str, int]:
    """For each setting the value from which on a limit changes nothing; unknown ones are left out."""
    if algorithm == algorithms.FETCH_MAX_BYTES:
        return reach_of_fetches(source)
    if algorithm == algorithms.CONSUMER_MEMORY:
        return reach_of_fetches(source) | reach_of_pools(source)
    return {}


def reach_of_fetches(source: Source) -> dict[str, int]:
    """The reach of fetch limits, bytes: a fetch returns no more than all record batches in the capture."""
    b = RECORD_BATCHES
    size, count = F.sum(F.coalesce(b.size_bytes, b.available_bytes)), F.sum(F.coalesce(b.record_count, F.lit(1)))
    row = source.rows(b).agg(size.alias("size"), count.alias("count")).first()
    if row is None or not row["size"]:
        return {}
    return {**dict.fromkeys(FETCH_LIMITS, int(row["size"])), "consumer.max.poll.records": int(row["count"])}


def reach_of_pools(source: Source) -> dict[str, int]:
    """The reach of memory pools, bytes: a pool holds no more than all messages of the capture."""
    x = EXCHANGES
    sums = (F.sum(column).alias(column) for column in (x.request_bytes, x.response_bytes))
    row = source.rows(x).agg(*sums).first()
    if row is None or not row[x.response_bytes]:
        return {}
    return {
        "consumer.buffer.memory": int(row[x.response_bytes]),
        "broker.queued.max.request.bytes": int(row[x.request_bytes]),
    }
