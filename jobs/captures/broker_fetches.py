"""Which fetches brokers answer. Those of the metadata log are answered by controllers, and by other rules."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS
from schemas.wire.fetch_sessions import FINAL_EPOCH, FIRST_WITH_SESSIONS, NO_SESSION
from udfs.facts.metadata_log import METADATA_LOG


def partitions_of_brokers(rows: DataFrame) -> DataFrame:
    """The rows of other topics than the metadata log. rows: of FETCH_PARTITIONS."""
    return rows.where(~F.coalesce(F.col(FETCH_PARTITIONS.topic).isin(*METADATA_LOG), F.lit(False)))


def is_answered_by_broker() -> Column:
    """Whether a row of EXCHANGES, of a Fetch request, does not read the metadata log: see `fetches_metadata_log`."""
    x = EXCHANGES
    reads_log = (F.col(x.fetch_replica_id) >= 0) & (F.col(x.api_version) >= FIRST_WITH_SESSIONS)
    reads_log &= (F.col(x.fetch_session_id) == NO_SESSION) & (F.col(x.fetch_session_epoch) == FINAL_EPOCH)
    return ~F.coalesce(reads_log, F.lit(False))
