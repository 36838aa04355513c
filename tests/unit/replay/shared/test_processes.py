"""Processes with one client.id and address are told apart by producer ids, or by the correlation ids of requests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

import jobs.replays.client_processes as client_processes
from jobs.replays.algorithm import Source
from schemas.tables.silver import CONNECTIONS, EXCHANGES, RECORD_BATCHES
from schemas.wire.apis import API_KEYS
from tests.gate_rows import TIME, Row
from tests.silver_rows import row_of, silver_rows, small_rows
from udfs.replay.shared.client_connections import CONNECTION_COLUMNS
from udfs.replay.shared.client_software import (
    SOFTWARE,
    SOFTWARE_COLUMNS,
    Software,
    software_by_connection,
    software_rows,
)
from udfs.replay.shared.correlation_ids import (
    ALL_OF_FIRST,
    REQUEST_COLUMNS,
    REQUESTS,
    is_looked_at,
    request_rows,
    requests_by_connection,
)
from udfs.replay.shared.processes import Processes

BROKERS = ("10.0.0.9:9092", "10.0.0.9:9093")
PRODUCE, FETCH, HEARTBEAT = API_KEYS["PRODUCE"], API_KEYS["FETCH"], API_KEYS["HEARTBEAT"]


def process(first: int, start_ms: int, requests: int = 60, **more: Any) -> list[Row]:
    """The exchanges of a process: `requests` produce requests, one each ms, by turns to the brokers on the connections
    `first` and `first + 1`. Of each two, which it makes together, the second is written first.
    """
    rows = []
    for number in range(requests):
        time = TIME + timedelta(milliseconds=start_ms + (number ^ 1))
        usual = {"connection_id": first + number % 2, "exchange_no": number // 2, "correlation_id": number + 4}
        shown = {"client_id": "c", "client_address": "10.0.0.1", "api_key": PRODUCE, "request_first_time": time}
        rows.append(row_of(EXCHANGES, **usual | shown | more))
    return rows


def consumer(first: int, start_ms: int, requests: int = 200, **more: Any) -> list[Row]:
    """The exchanges of a consumer: as `process`, with fetches, but every fifth is a heartbeat on the connection
    `first + 2`, to the first broker.
    """
    rows = process(first, start_ms, requests, api_key=FETCH, **more)
    for number, row in enumerate(rows[4::5]):
        row.update(connection_id=first + 2, exchange_no=number, api_key=HEARTBEAT)
    return rows


def connections_of(exchanges: Sequence[Row]) -> list[Row]:
    """The connections of these exchanges; that with an even number is to the first broker."""
    times: dict[int, list[Any]] = {}
    for row in exchanges:
        times.setdefault(row["connection_id"], []).append(row["request_first_time"])
    return [
        row_of(CONNECTIONS, connection_id=number, server=BROKERS[number % 2], client=f"10.0.0.1:{40_000 + number}",
               first_time=min(of), last_time=max(of))
        for number, of in times.items()
    ]  # fmt: skip


def software_of(exchanges: Sequence[Row]) -> dict[int, Software]:
    rows = software_rows(silver_rows(EXCHANGES, SOFTWARE_COLUMNS, exchanges))
    return software_by_connection(pa.Table.from_batches(rows, SOFTWARE))


def told_apart(
    monkeypatch: pytest.MonkeyPatch,
    exchanges: Sequence[Row],
    batches: Sequence[Row] = (),
    cut: int = 10_000,
    late_ms: int = 0,
) -> Processes:
    """What the job finds in these silver rows, which tasks read `cut` rows at a time. late_ms: how long after the last
    request a connection's last packet comes.
    """
    rows = connections_of(exchanges)
    ended = [row | {"last_time": row["last_time"] + timedelta(milliseconds=late_ms)} for row in rows]
    there = small_rows(CONNECTIONS, CONNECTION_COLUMNS, ended)
    silver = {EXCHANGES: exchanges, RECORD_BATCHES: batches}

    def mapped(source: Source, reads: Sequence[Any], schema: pa.Schema) -> SimpleNamespace:
        (read,) = reads
        made = read.mapped(silver_rows(read.table, read.columns, silver[read.table], cut))
        return SimpleNamespace(toArrow=lambda: pa.Table.from_batches(made, schema))

    monkeypatch.setattr(client_processes, "mapped_silver", mapped)
    return client_processes.client_processes(cast(Source, None), there, software_of(exchanges))


def sets_of(found: Processes) -> list[list[int]]:
    """The connections of each process."""
    firsts = sorted(set(found.first.values()))
    assert all(found.first[first] == first for first in firsts)
    return sorted(sorted(number for number, of in found.first.items() if of == first) for first in firsts)


def test_a_process_alone_is_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither are processes told apart that have the name one after the other, or that no Java client is."""
    other: dict[str, Any] = {"client_software_name": "librdkafka", "client_software_version": "2.1"}
    for exchanges in (
        process(0, 0),
        process(0, 0) + process(2, 100),
        process(0, 0, **other) + process(2, 0, **other),
        process(0, 0) + [row | {"client_address": "10.0.0.2"} for row in process(2, 0)],
    ):
        assert told_apart(monkeypatch, exchanges) == Processes({}, frozenset())


@pytest.mark.parametrize("cut", [1, 7, 10_000])
@pytest.mark.parametrize("start_ms", [0, 1, 30, 1000])
def test_correlation_ids_tell_processes_apart(monkeypatch: pytest.MonkeyPatch, start_ms: int, cut: int) -> None:
    """Whether they started at the same time or not."""
    found = told_apart(monkeypatch, process(0, 0, start_ms + 120) + process(2, start_ms), cut=cut)
    assert (sets_of(found), found.unknown) == ([[0, 1], [2, 3]], frozenset())


@pytest.mark.parametrize("start_ms", [30, 200])
def test_a_connection_opened_anew_goes_on_from_the_ids_of_its_process(
    monkeypatch: pytest.MonkeyPatch, start_ms: int
) -> None:
    """All connections of the first process break at the same time."""
    one = process(0, 0, 2 * start_ms + 120)
    for row in one[start_ms + 80 :]:
        row["connection_id"] += 4
        row["exchange_no"] -= start_ms // 2 + 40
    found = told_apart(monkeypatch, one + process(2, start_ms))
    assert (sets_of(found), found.unknown) == ([[0, 1, 4, 5], [2, 3]], frozenset())


def test_a_process_that_starts_anew_beside_another_is_a_third_one(monkeypatch: pytest.MonkeyPatch) -> None:
    found = told_apart(monkeypatch, process(0, 0, 400) + process(2, 0) + process(4, 100))
    assert (sets_of(found), found.unknown) == ([[0, 1], [2, 3], [4, 5]], frozenset())


def test_releases_tell_processes_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few requests there are."""
    java = "apache-kafka-java"
    one, other = (
        process(2 * n, 0, 4, client_software_name=java, client_software_version=f"4.{n}") for n in range(2)
    )  # fmt: skip
    found = told_apart(monkeypatch, one + other)
    assert found.first.keys() | found.unknown == {0, 1, 2, 3}
    assert all(len({number // 2 for number in members}) == 1 for members in sets_of(found))


def test_producer_ids_tell_processes_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few requests there are. A producer that gets another id keeps its connections."""
    ids = {0: (7, 0), 1: (0,), 2: (9,), 3: (9,)}
    batches = [
        row_of(RECORD_BATCHES, connection_id=number, source="produce", producer_id=producer_id)
        for number, of in ids.items()
        for producer_id in of
    ]
    exchanges = process(0, 0, 4) + process(2, 0, 4)
    found = told_apart(monkeypatch, exchanges, batches)
    assert (sets_of(found), found.unknown) == ([[0, 1], [2, 3]], frozenset())
    of_one = [row | {"producer_id": 7} for row in batches]
    assert told_apart(monkeypatch, exchanges, of_one) == Processes({}, frozenset())


def test_it_is_open_whose_a_connection_with_few_requests_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two connections to one broker are two processes' in any case."""
    found = told_apart(monkeypatch, process(0, 0, 12) + process(2, 500, 12) + process(4, 0, 8))
    assert 0 in found.unknown or 1 in found.unknown
    assert set(found.first.values()) >= {2}


@pytest.mark.parametrize("cut", [1, 7, 1000])
def test_of_many_requests_few_are_looked_at(cut: int) -> None:
    exchanges = process(0, 0, 4000)
    rows = pa.Table.from_batches(request_rows(silver_rows(EXCHANGES, REQUEST_COLUMNS, exchanges, cut)), REQUESTS)
    found = requests_by_connection(rows)
    kept = {number: [int(pair[1] - 4) // 2 for pair in of] for number, of in found.items()}
    first = [*range(ALL_OF_FIRST)]
    assert {number: of[:ALL_OF_FIRST] for number, of in kept.items()} == {0: first, 1: first}
    assert all(of[-1] == 1999 and len(of) == ALL_OF_FIRST + 4 * 64 - 2 for of in kept.values())
    assert is_looked_at(np.arange(1 << 16)).sum() == ALL_OF_FIRST + 9 * 64


@pytest.mark.parametrize("start_ms", [0, 1, 30, 1000])
def test_correlation_ids_tell_consumers_apart_with_their_connections_to_coordinators(
    monkeypatch: pytest.MonkeyPatch, start_ms: int
) -> None:
    found = told_apart(monkeypatch, consumer(0, 0, start_ms + 400) + consumer(4, start_ms))
    assert (sets_of(found), found.unknown) == ([[0, 1, 2], [4, 5, 6]], frozenset())


def test_members_that_fetch_from_different_brokers_show_at_the_coordinator(monkeypatch: pytest.MonkeyPatch) -> None:
    """One has partitions of the first broker only, the other of the second."""
    one = [row | {"connection_id": row["connection_id"] & ~1} for row in consumer(0, 0)]
    other = [row | {"connection_id": 6 if row["api_key"] == HEARTBEAT else 5} for row in consumer(4, 90)]
    found = told_apart(monkeypatch, one + other)
    assert (sets_of(found), found.unknown) == ([[0, 2], [5, 6]], frozenset())


def test_a_consumer_alone_is_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else has its name: a producer, a consumer at another address or at another time. Nor are there two if
    the last packet of a connection comes after the next connection's begin.
    """
    later = consumer(4, 200)
    for exchanges, late_ms in (
        (consumer(0, 0), 0),
        (consumer(0, 0) + process(4, 0), 0),
        (consumer(0, 0) + later, 50),
        (consumer(0, 0) + [row | {"client_address": "10.0.0.2"} for row in consumer(4, 0)], 0),
    ):
        assert told_apart(monkeypatch, exchanges, late_ms=late_ms) == Processes({}, frozenset())


@pytest.mark.parametrize("count", [40, 200])
@pytest.mark.parametrize(("name", "unknown"), [("librdkafka", {0, 1, 4, 5}), ("sarama", set()), (None, set())])
def test_consumers_that_count_the_requests_of_each_connection_are_not_told_apart(
    monkeypatch: pytest.MonkeyPatch, name: str | None, unknown: set[int], count: int
) -> None:
    """Of librdkafka it is known that it has one connection to a broker, so that there must be several consumers. If the
    capture lacks their name, their ids show that they are no Java clients, however few there are.
    """
    exchanges = consumer(0, 0, count, client_software_name=name) + consumer(4, 30, client_software_name=name)
    counted: dict[int, int] = {}
    for row in exchanges:
        counted[row["connection_id"]] = row["correlation_id"] = counted.get(row["connection_id"], 7) + 1
    assert told_apart(monkeypatch, exchanges) == Processes({}, frozenset(unknown))


def test_a_consumer_that_may_have_another_connection_is_open_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection to the second broker with four fetches may be that of the first consumer, which has none there, or
    of one more. The second consumer has one.
    """
    one = [row | {"connection_id": row["connection_id"] & ~1} for row in consumer(0, 0)]
    few = [row | {"connection_id": 9, "correlation_id": 2_000 + row["correlation_id"]}
           for row in process(8, 60, 4, api_key=FETCH)]  # fmt: skip
    found = told_apart(monkeypatch, one + few + consumer(4, 30))
    assert (sets_of(found), found.unknown) == ([[4, 5, 6]], frozenset({0, 9}))


def test_one_consumer_that_is_no_java_client_is_told_from_java_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    java = consumer(0, 0, client_software_name="apache-kafka-java")
    found = told_apart(monkeypatch, java + consumer(4, 0, client_software_name="librdkafka"))
    assert (sets_of(found), found.unknown) == ([[0, 1, 2], [4, 5, 6]], frozenset())


def test_ids_by_which_connections_begin_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """All connections to listeners with SASL have the same ones."""
    exchanges = consumer(0, 0) + consumer(4, 30)
    begun = [
        row_of(EXCHANGES, connection_id=number, exchange_no=-3 + place, correlation_id=2**31 - 8 + place,
               api_key=API_KEYS[api], client_id="c", client_address="10.0.0.1", request_first_time=TIME)
        for number in (0, 1, 2, 4, 5, 6)
        for place, api in enumerate(("API_VERSIONS", "SASL_HANDSHAKE", "SASL_AUTHENTICATE"))
    ]  # fmt: skip
    found = told_apart(monkeypatch, begun + exchanges)
    assert (sets_of(found), found.unknown) == ([[0, 1, 2], [4, 5, 6]], frozenset())


def test_a_connection_without_any_counted_request_is_nobodys() -> None:
    assert requests_by_connection(REQUESTS.empty_table()) == {}
