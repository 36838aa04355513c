"""What the replay of memory is told of exchanges."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from jobs.lake.delta_tables import no_rows
from jobs.replays.consumer_memory.events import produced_batches
from jobs.replays.consumer_memory.request_releases import with_releases
from schemas.tables.event_kinds import HandledBy
from schemas.tables.silver import EXCHANGES, RECORD_BATCHES
from schemas.tables.steps import MEMORY_EVENTS
from tests.gate_rows import TIME, frame

NAMES = {1: "apache-kafka-java", 2: "librdkafka", 3: None, 4: None}


@pytest.mark.parametrize(
    ("local_ms", "by"), [(-1.5, HandledBy.REQUEST_LOG), (1e300, HandledBy.RESPONSE), (9.2233e15, HandledBy.RESPONSE)]
)
def test_a_time_of_a_log_that_cannot_be_is_none(spark: SparkSession, local_ms: float, by: int) -> None:
    exchange = {"request_queue_time_ms": 1.0, "local_time_ms": local_ms, "status": "answered"}
    (row,) = with_releases(frame(spark, EXCHANGES, [exchange]), no_rows(spark, RECORD_BATCHES)).collect()
    start = int(TIME.timestamp() * 1_000_000)
    assert (row[MEMORY_EVENTS.released_by], row[MEMORY_EVENTS.released] - start) == (
        by,
        -500 if by == HandledBy.REQUEST_LOG else 0,
    )


def test_a_producer_is_a_java_client_by_its_name_or_unless_it_does_what_that_client_does_not(
    spark: SparkSession,
) -> None:
    """Clients before Kafka 2.4 have no name; the fourth produces as later ones do."""
    asks = {"api_name": "API_VERSIONS", "api_version": 0}
    versions = {1: 12, 2: 10, 3: 7, 4: 8}
    exchanges = [{"connection_id": n, "client_software_name": NAMES[n], **asks} for n in NAMES] + [
        {
            "connection_id": n,
            "exchange_no": 1,
            "client_software_name": NAMES[n],
            "api_name": "PRODUCE",
            "api_version": v,
        }
        for n, v in versions.items()
    ]
    batches = [{"connection_id": n, "source": "produce"} for n in (*NAMES, 5)]
    rows = produced_batches(frame(spark, RECORD_BATCHES, batches), frame(spark, EXCHANGES, exchanges)).collect()
    told = {row[MEMORY_EVENTS.connection_id]: row[MEMORY_EVENTS.is_java] for row in rows}
    assert told == {1: True, 2: False, 3: True, 4: False, 5: True}
