"""When a broker is done with a request whose memory it holds while it handles it (RequestChannel.Request, Kafka 4.4).

The memory comes back when the handler is done, which packets do not show. A request log tells it. Else a produce
request with acks=all is handled when its batches are in the log, which the first fetch shows that returns all of them:
the response comes later, when the replicas have them. Where neither tells, it is the response.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from schemas.tables.event_kinds import HandledBy
from schemas.tables.silver import EXCHANGES, RECORD_BATCHES
from schemas.tables.steps import MEMORY_EVENTS
from schemas.tables.values import FROM_FETCH, FROM_PRODUCE

ACKS_ALL = -1


def with_releases(exchanges: DataFrame, batches: DataFrame) -> DataFrame:
    """The exchanges with the columns released (us since 1970) and released_by of MEMORY_EVENTS, null without answer."""
    x, t = EXCHANGES, MEMORY_EVENTS
    key = [str(x.connection_id), str(x.exchange_no)]
    handled_us = F.round((F.col(x.request_queue_time_ms) + F.col(x.local_time_ms)) * 1000).try_cast("bigint")
    by_log = F.try_add(F.unix_micros(x.request_time), handled_us)  # a log may say anything
    answered = F.unix_micros(x.response_time)
    released = F.least(F.coalesce(by_log, F.col("fetched"), answered), answered)
    by_fetch = F.when(F.col("fetched") < answered, HandledBy.FETCH).otherwise(HandledBy.RESPONSE)
    by = F.when(by_log.isNotNull(), HandledBy.REQUEST_LOG).otherwise(by_fetch)
    found = exchanges.join(fetched_by(batches), key, "left").where(F.col(x.request_time).isNotNull())
    return found.withColumns({str(t.released): released, str(t.released_by): by.cast("tinyint")}).drop("fetched")


def fetched_by(batches: DataFrame) -> DataFrame:
    """A row a produce request with acks=all each of whose partitions some fetch returned: by when (us)."""
    b = RECORD_BATCHES
    key = [str(b.connection_id), str(b.exchange_no)]
    place = [str(column) for column in (b.broker, b.topic, b.partition, b.base_offset)]
    in_log = batches.where(F.col(b.base_offset).isNotNull() & F.col(b.topic).isNotNull())
    fetched = in_log.where((F.col(b.source) == FROM_FETCH) & F.col(b.response_time).isNotNull())
    seen = fetched.groupBy(*place).agg(F.min(F.unix_micros(b.response_time)).alias("seen"))
    produced = batches.where((F.col(b.source) == FROM_PRODUCE) & (F.col(b.acks) == ACKS_ALL))
    shown = produced.select(*key, *place).join(seen, place, "left").groupBy(*key)
    whole = F.count("seen") == F.count(F.lit(1))
    return shown.agg(F.when(whole, F.max("seen")).alias("fetched"))
