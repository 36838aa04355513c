"""The reads of fetches, with what was there to be read. They come from silver tables by way of partitions' logs."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame

from jobs.replays.algorithm import Source
from jobs.replays.silver import Read, client_software, dealt_silver
from jobs.session.one_shuffle import deal_again
from schemas.tables.silver import FETCH_PARTITIONS, RECORD_BATCHES
from udfs.replay.fetch_max_bytes.partition_log.replay import read_rows
from udfs.replay.fetch_max_bytes.silver_events import (
    BATCH_COLUMNS,
    LOGS,
    READ_COLUMNS,
    READERS,
    batch_events,
    profiles_by_connection,
    read_events,
)

KNOWN_BYTES_CAP = 64 << 20
"""Sizes of the batches that a read could return are handed on up to so many bytes. What lies beyond is unknown."""


def dealt_reads(source: Source, shards: int) -> DataFrame:
    """Rows of DEALT for the step READERS: one shuffle by partition."""
    profiles = profiles_by_connection(client_software(source))
    reads = [
        Read(RECORD_BATCHES, BATCH_COLUMNS, batch_events),
        Read(FETCH_PARTITIONS, READ_COLUMNS, partial(read_events, profiles=profiles)),
    ]
    logs = dealt_silver(source, LOGS, reads, shards)
    return deal_again(logs, LOGS, READERS, shards, partial(read_rows, byte_cap=KNOWN_BYTES_CAP))
