"""The closed loop on the shared captures: it follows the captured traffic, and shows what other limits would do."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from schemas.tables.gold import FETCH_CONSUMERS, FETCH_FAIRNESS, FETCH_MEMORY, FETCH_TIMELINE, FIDELITY
from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS
from tests.e2e.conftest import CapturedLake

LEAST = {"order": 0.97, "bytes": 0.99, "catch_up": 0.95, "requests": 0.9}
"""The least share of agreement by metric: a little less than was measured on these captures."""


@pytest.mark.parametrize("name", ["starve", "mixed", "sessions"])
def test_under_the_captured_settings_the_closed_loop_agrees_with_the_capture(
    captured: Callable[[str], CapturedLake], name: str
) -> None:
    f, checked, agreed = FIDELITY, Counter[str](), Counter[str]()
    of_fetches = f"{f.algorithm} = 'fetch_max_bytes' AND {f.metric} LIKE 'closed_loop%'"
    for row in captured(name).rows(f, where=of_fetches):
        metric = row[f.metric].removeprefix("closed_loop_")
        checked[metric] += row[f.checked]
        agreed[metric] += row[f.agreed]
        assert row[f.unknown] == 0, row
        assert sum(count for _, count in row[f.reasons]) == row[f.checked] - row[f.agreed], row
    assert checked.keys() == LEAST.keys()
    assert [metric for metric, least in LEAST.items() if agreed[metric] < least * checked[metric]] == []


def test_each_of_several_consumers_with_one_client_id_and_address_is_a_reader(
    captured: Callable[[str], CapturedLake],
) -> None:
    """ConsumerPerformance has one client.id. The groups that requests name tell how many ran. Each read the whole topic
    of its group: four partitions, or forty.
    """
    lake, f, x, t = captured("sessions"), FETCH_FAIRNESS, EXCHANGES, FETCH_PARTITIONS
    of_client = f"{x.client_id} = 'perf-consumer-client'"
    groups = {row[x.group_id] for row in lake.rows(x, x.group_id, where=of_client)} - {None}
    read, got = defaultdict[str, set[tuple[str, int]]](set), Counter[str]()
    for row in lake.rows(f, where=f"{of_client} AND scenario = 'captured' AND mode = 'open'"):
        read[row[f.client_address]].add((row[f.topic], row[f.partition]))
        got[row[f.client_address]] += row[f.bytes]
    topics = {"narrow": 4, "fan": 40}
    expected = Counter("narrow" if group.startswith("jn") else "fan" for group in groups)
    assert expected == {"narrow": 4, "fan": 3}
    assert Counter(next(iter({topic for topic, _ in of})) for of in read.values()) == expected
    assert all(of == {(topic, n) for topic, _ in of for n in range(topics[topic])} for of in read.values())
    returned = lake.rows(t, t.returned_bytes, where=of_client)
    assert sum(got.values()) == sum(row[t.returned_bytes] or 0 for row in returned)


@pytest.fixture(scope="module")
def starve(captured: Callable[[str], CapturedLake]) -> CapturedLake:
    return captured("starve")


def test_every_lane_reads_the_backlog_and_no_other_bytes(starve: CapturedLake) -> None:
    """A lane fetches more than the capture did only if its limits cut batches off, or a reader left records unread."""
    c, t, got, last = FETCH_CONSUMERS, FETCH_PARTITIONS, Counter[str](), dict[tuple[int, int], dict[str, Any]]()
    for row in sorted(starve.rows(t, where=f"{t.reader} = 'consumer'"), key=lambda row: row[t.exchange_no]):
        got[row[t.client_id]] += row[t.returned_bytes] or 0
        last[row[t.connection_id], row[t.partition]] = row
    left = {row[t.client_id] for row in last.values() if row[t.fetch_offset] < (row[t.high_watermark] or 0)}
    rows = starve.rows(c, where="mode = 'closed' AND reader = 'consumer'")
    captured = {row[c.client_id]: row for row in rows if row[c.scenario] == "captured"}
    for row in rows:
        of_captured = captured[row[c.client_id]]
        assert row[c.bytes] - row[c.cut_tail_bytes] == of_captured[c.bytes] - of_captured[c.cut_tail_bytes], row
        assert row[c.catch_up_ms] is not None
    read = {client: row[c.bytes] for client, row in captured.items() if client not in left}
    assert read
    assert read == {client: got[client] for client in read}


def test_small_limits_make_readers_wait_and_large_ones_do_not(starve: CapturedLake) -> None:
    f = FETCH_FAIRNESS
    waits = {
        limit: max(
            row[f.longest_wait_requests]
            for row in starve.rows(f, where=f"mode = 'closed' AND scenario = 'consumer.fetch.max.bytes={limit}'")
        )
        for limit in ("32KiB", "50MiB")
    }
    assert waits["32KiB"] > waits["50MiB"] == 0


def test_the_timeline_adds_up_to_the_totals(starve: CapturedLake) -> None:
    t, c, by_lane = FETCH_TIMELINE, FETCH_CONSUMERS, Counter[tuple[str, str]]()
    for row in starve.rows(t, where="reader = 'consumer'"):
        by_lane[row[t.client_id], row[t.scenario]] += row[t.bytes]
    rows = starve.rows(c, where="mode = 'closed' AND reader = 'consumer'")
    assert by_lane == Counter({(row[c.client_id], row[c.scenario]): row[c.bytes] for row in rows})


def test_no_reader_holds_more_than_kip_74_allows(starve: CapturedLake) -> None:
    """Left out are readers with a first batch larger than the limits, and one name that two consumers share."""
    m, c = FETCH_MEMORY, FETCH_CONSUMERS
    over = {
        (row[c.client_id], row[c.scenario])
        for row in starve.rows(c, where="mode = 'closed'")
        if row[c.first_batch_overrides] or row[c.client_id] == "perf-consumer-client"
    }
    rows = [row for row in starve.rows(m) if (row[m.client_id], row[m.scenario]) not in over]
    assert rows
    assert [row for row in rows if row[m.bytes_max] > row[m.memory_bound_bytes]] == []
