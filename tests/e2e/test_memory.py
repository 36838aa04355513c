"""Memory of the shared captures: what consumers held, beside what the tables below and the clients themselves tell."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from schemas.tables.gold import FIDELITY
from schemas.tables.gold_memory import BROKER_MEMORY, CONSUMER_MEMORY, CONSUMER_MEMORY_TIMELINE, PRODUCER_MEMORY
from schemas.tables.silver import EXCHANGES, RECORD_BATCHES
from tests.e2e.conftest import CapturedLake


@pytest.fixture(scope="module")
def mixed(captured: Callable[[str], CapturedLake]) -> CapturedLake:
    return captured("mixed")


def test_every_response_of_a_consumer_is_counted(mixed: CapturedLake) -> None:
    c, x = CONSUMER_MEMORY, EXCHANGES
    expected: Counter[str] = Counter()
    for row in mixed.rows(x, where=f"{x.status} = 'answered'"):
        expected[row[x.client_id]] += row[x.response_bytes] - 4
    found = {row[c.client_id]: row[c.response_bytes] for row in mixed.rows(c)}
    assert len(found) >= 4
    assert found == {name: expected[name] for name in found}
    assert not [name for name in found if "fetcher" in name]


def test_the_next_fetch_of_a_partition_begins_where_its_records_ended(mixed: CapturedLake) -> None:
    f = FIDELITY
    rows = mixed.rows(f, where=f"{f.metric} = 'drained_partitions'")
    assert sum(row[f.checked] for row in rows) > 50
    assert [row for row in rows if row[f.agreed] != row[f.checked]] == []


def test_no_batch_of_a_capture_waits_for_the_default_buffer(mixed: CapturedLake) -> None:
    f, p, b = FIDELITY, PRODUCER_MEMORY, RECORD_BATCHES
    rows = mixed.rows(f, where=f"{f.metric} = 'batches_without_wait'")
    assert sum(row[f.agreed] for row in rows) == len(mixed.rows(b, where=f"{b.source} = 'produce'")) > 0
    assert all(row[p.used_bytes_max] <= row[p.buffer_bytes] for row in mixed.rows(p))


def test_consumers_got_at_least_the_records_that_they_reported(mixed: CapturedLake, shared_captures: Path) -> None:
    c = CONSUMER_MEMORY
    found = {row[c.client_id]: row[c.records] for row in mixed.rows(c)}
    lines = (shared_captures / "mixed.clients.jsonl").read_text().splitlines()
    reported = {row["group"]: row["records"] for row in map(json.loads, lines) if "group" in row and "records" in row}
    by_group = {group: found[name] for group in reported for name in found if name.endswith(f"-{group}")}
    assert by_group.keys() == reported.keys()
    assert all(by_group[group] >= reported[group] for group in reported)


def test_the_timeline_has_the_peak(mixed: CapturedLake) -> None:
    c, t = CONSUMER_MEMORY, CONSUMER_MEMORY_TIMELINE
    peaks: Counter[str] = Counter()
    for row in mixed.rows(t):
        peaks[row[t.client_id]] = max(peaks[row[t.client_id]], row[t.used_bytes_max])
    assert {row[c.client_id]: row[c.used_bytes_max] for row in mixed.rows(c)} == peaks


def test_every_broker_has_its_requests(mixed: CapturedLake) -> None:
    b, x = BROKER_MEMORY, EXCHANGES
    expected = Counter(row[x.broker] for row in mixed.rows(x) if row[x.request_time] is not None)
    assert {row[b.broker]: row[b.requests] for row in mixed.rows(b)} == expected
