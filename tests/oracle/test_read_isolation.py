"""A fetch reads up to where Kafka's FetchIsolation says, whatever replica id it names."""

from __future__ import annotations

import pytest

from schemas.tables.event_kinds import LogEvent
from schemas.tables.silver import FETCH_PARTITIONS
from schemas.tables.steps import LOG_EVENTS
from tests.oracle.conftest import KAFKA_NEWEST, Jars, RunJava
from tests.oracle.test_fetch_order_and_reads import KAFKA_PARTS
from tests.silver_rows import plain, silver_rows
from tests.unit.replay.fetch_max_bytes.test_silver_events import NO_PROFILES, READ
from udfs.facts.fetches import READERS
from udfs.replay.fetch_max_bytes.silver_events import READ_COLUMNS, read_events

BOUNDS = {"LOG_END": None, "HIGH_WATERMARK": 90, "TXN_COMMITTED": 40}
IDS = (-4, -3, -2, -1, 0, 5)


@pytest.fixture(scope="module")
def isolation(jars: Jars, run_java: RunJava) -> list[str]:
    """FetchIsolation of every replica id, with read_uncommitted and read_committed."""
    classpath = jars(*(f"org.apache.kafka:{name}:{KAFKA_NEWEST}" for name in KAFKA_PARTS))
    return run_java("ReadIsolation.java", *classpath, arguments=[*map(str, IDS)]).split()


def test_a_fetch_reads_up_to_where_fetch_isolation_says(isolation: list[str]) -> None:
    """For example, id -2, a debugging consumer, reads up to the high watermark, and -3 up to the log end."""
    shown = {"high_watermark": 90, "last_stable_offset": 40}
    rows = [
        READ | shown | {"reader": READERS[int(number >= 0)].as_py(), "replica_id": number, "isolation_level": level}
        for number in IDS
        for level in (0, 1)
    ]
    t = LOG_EVENTS
    events = plain(read_events(silver_rows(FETCH_PARTITIONS, READ_COLUMNS, rows), NO_PROFILES))
    reads = [row for row in events if row[t.kind] == LogEvent.READ]
    assert [row[t.bound_low] for row in reads] == [BOUNDS[word] for word in isolation]
    assert all(row[t.bound_known] for row in reads)
