"""Memory on the shared captures: what consumers held, compared with the silver tables and the clients' own reports."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.replay import replay
from jobs.run import Run
from jobs.scenarios.scenario_file import resolve_scenario
from schemas.tables import algorithms
from schemas.tables.gold import FIDELITY
from schemas.tables.gold_memory import BROKER_MEMORY, CONSUMER_MEMORY, CONSUMER_MEMORY_TIMELINE, PRODUCER_MEMORY
from schemas.tables.silver import EXCHANGES, RECORD_BATCHES
from tests.e2e.conftest import RUN_AT, WHAT_IF, CapturedLake


@pytest.fixture(scope="module")
def mixed(captured: Callable[[str], CapturedLake]) -> CapturedLake:
    return captured("mixed")


@pytest.fixture(scope="module")
def starve(captured: Callable[[str], CapturedLake]) -> CapturedLake:
    return captured("starve")


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


def test_no_batch_of_a_java_client_waits_for_the_default_buffer(mixed: CapturedLake) -> None:
    """aiokafka sends no software name, but it asks for versions as Kafka 0.10's client did, and produces as 2.1's."""
    f, p, b = FIDELITY, PRODUCER_MEMORY, RECORD_BATCHES
    rows = mixed.rows(f, where=f"{f.metric} = 'batches_without_wait'")
    produced = Counter(row[b.client_id] for row in mixed.rows(b, where=f"{b.source} = 'produce'"))
    found = {row[f.client_id]: (row[f.agreed], dict(row[f.reasons])) for row in rows}
    assert found == {
        client: (batches, {}) if client.startswith("java") else (0, {"not_a_java_client": batches})
        for client, batches in produced.items()
    }
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


def test_memory_is_replayed_alike_with_and_without_fetches(starve: CapturedLake, tmp_path: Path) -> None:
    """Together with a replay of fetches, the closed loop of that replay makes the responses under other limits."""
    both, lake = resolve_scenario(None, WHAT_IF["starve"]), shutil.copytree(starve.path, tmp_path / "lake")
    alone = replace(both, replay={algorithms.CONSUMER_MEMORY: both.replay[algorithms.CONSUMER_MEMORY]})
    done = replay(starve.spark, Run(alone, (starve.capture,), str(lake), RUN_AT), starve.capture_id)
    c, of_run = CONSUMER_MEMORY, replace(starve, path=str(lake), run_id=done.run_id, _read={})
    columns = [str(column) for column in c.columns if column != c.run_id]
    rows, rows_alone = (sorted(map(str, of.rows(c, *columns))) for of in (starve, of_run))
    assert done.run_id != starve.run_id
    assert rows_alone == rows != []


def test_other_fetch_limits_bring_other_responses_and_kip_74_bounds_what_is_held(starve: CapturedLake) -> None:
    c = CONSUMER_MEMORY
    rows = starve.rows(c)
    assert {row[c.responses_of] for row in rows if row[c.scenario] == "captured"} == {"capture"}
    limited = [row for row in rows if row[c.scenario] != "captured"]
    assert {row[c.responses_of] for row in limited} == {"closed_loop"}
    by_limit = {row[c.scenario]: row for row in limited if row[c.client_id] == "perf-consumer-client"}
    small, large = by_limit["consumer.fetch.max.bytes=32KiB"], by_limit["consumer.fetch.max.bytes=50MiB"]
    assert small[c.used_bytes_max] < large[c.used_bytes_max]
    assert small[c.responses] > large[c.responses]
    assert small[c.records] == large[c.records] > 0
    assert small[c.memory_bound_bytes] == 32 * 1024 * small[c.brokers]


def test_the_closed_loop_at_the_captured_settings_holds_what_the_capture_shows(starve: CapturedLake) -> None:
    f = FIDELITY
    rows = starve.rows(f, where=f"{f.metric} = 'closed_loop_held'")
    assert sum(row[f.checked] for row in rows) > 50
    assert sum(row[f.agreed] for row in rows) >= 0.9 * sum(row[f.checked] for row in rows)


def test_a_message_has_its_first_byte_no_later_than_its_last(starve: CapturedLake) -> None:
    x = EXCHANGES
    rows = starve.rows(x, where=f"{x.status} = 'answered'")
    assert all(row[x.request_first_time] <= row[x.request_time] for row in rows)
    assert all(row[x.response_first_time] <= row[x.response_time] for row in rows)
    took = [row for row in rows if row[x.response_first_time] < row[x.response_time]]
    assert took
    assert min(row[x.response_bytes] for row in took) > 4
    assert max(row[x.response_bytes] for row in rows) == max(row[x.response_bytes] for row in took)


def test_every_produce_request_is_held_until_its_response_or_a_fetch_of_its_batches_or_as_estimated(
    starve: CapturedLake,
) -> None:
    b, r = BROKER_MEMORY, RECORD_BATCHES
    rows = starve.rows(b, where=f"{b.scenario} = 'captured'")
    held = (b.held_until_response, b.held_until_fetched, b.held_as_logged, b.held_as_estimated)
    delayed = sum(row[column] for row in rows for column in held)
    produced = {(row[r.connection_id], row[r.exchange_no]) for row in starve.rows(r, where=f"{r.source} = 'produce'")}
    assert delayed >= len(produced) > 0
    assert sum(row[b.held_as_logged] for row in rows) == 0
    assert sum(row[b.held_as_estimated] for row in rows) > 0


def test_consumers_that_wait_for_records_keep_up_with_twice_the_traffic(mixed: CapturedLake, tmp_path: Path) -> None:
    """Such a lane is about consumers: brokers and producers have no rows in it."""
    lake, scenario = shutil.copytree(mixed.path, tmp_path / "lake"), resolve_scenario(None, ["traffic.speed=2"])
    alone = replace(scenario, replay={algorithms.CONSUMER_MEMORY: scenario.replay[algorithms.CONSUMER_MEMORY]})
    done = replay(mixed.spark, Run(alone, (mixed.capture,), str(lake), RUN_AT), mixed.capture_id)
    c, faster = CONSUMER_MEMORY, replace(mixed, path=str(lake), run_id=done.run_id, _read={})
    ratio = {row[c.client_id]: row[c.throughput_ratio] for row in faster.rows(c, where=f"{c.scenario} <> 'captured'")}
    assert {row[c.client_id] for row in mixed.rows(c)} == ratio.keys()
    waiting = [name for name in ratio if name.startswith(("aio", "kp", "rd"))]
    assert len(waiting) >= 4
    assert all(1.9 <= ratio[name] <= 2.0 for name in waiting)
    for table in (BROKER_MEMORY, PRODUCER_MEMORY):
        assert {row[table.scenario] for row in faster.rows(table)} == {"captured"}
