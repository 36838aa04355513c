"""The replay of batches reads from silver which batches producers sent, and who the producers are."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from jobs.replays.batch_split.job import default_linger_ms
from schemas.tables.silver import CONNECTIONS, EXCHANGES, RECORD_BATCHES
from schemas.tables.silver_topics import TOPIC_CHANGES
from schemas.tables.steps import SENT
from schemas.wire.apis import API_KEYS
from tests.gate_rows import TIME, Row
from tests.silver_rows import TIME_US, in_turn, plain, row_of, silver_rows, small_rows
from udfs.replay.batch_split.silver_events import (
    BATCH_COLUMNS,
    CHANGE_COLUMNS,
    CONNECTION_COLUMNS,
    LISTS,
    PRODUCERS,
    Producers,
    created_codecs,
    created_limits,
    producers_of,
    sent_batches,
)
from udfs.replay.shared import client_software
from udfs.replay.shared.process_addresses import process_addresses
from udfs.replay.shared.processes import Processes

NOW_MS = TIME_US // 1000
LONGEST = 2**63 - 1


def batch(connection: int, base_timestamp: int | None, **columns: Any) -> Row:
    """A produced batch, requested at TIME."""
    usual = {"source": "produce", "magic": 2, "size_bytes": 100, "client_id": "c", "client_address": "10.0.0.1"}
    times = {"request_time": TIME, "base_timestamp": base_timestamp}
    return row_of(RECORD_BATCHES, **{"connection_id": connection, **usual, **times, **columns})


def client(connection: int, name: str | None = None, version: str | None = None, **columns: Any) -> Row:
    said = {"client_software_name": name, "client_software_version": version}
    return row_of(CONNECTIONS, connection_id=connection, **said, **columns)


def request(connection: int, api: str, version: int) -> Row:
    return row_of(EXCHANGES, connection_id=connection, api_key=API_KEYS[api], api_version=version)


def creation(exchange: int, topic: str, max_message_bytes: int | None, **columns: Any) -> Row:
    """A topic's creation, which the broker does not refuse unless `columns` say so."""
    usual = {"kind": "create_topic", "topic": topic, "max_message_bytes": max_message_bytes}
    answer = {"exchange_no": exchange, "error_code": 0, "validate_only": False, "request_time": TIME}
    return row_of(TOPIC_CHANGES, **usual, **answer) | columns


def producers(clients: list[Row], requests: list[Row] | None = None) -> Producers:
    batches = client_software.software_rows(silver_rows(EXCHANGES, client_software.SOFTWARE_COLUMNS, requests or []))
    software = client_software.software_by_connection(pa.Table.from_batches(batches, client_software.SOFTWARE))
    return producers_of(small_rows(CONNECTIONS, CONNECTION_COLUMNS, clients), software, default_linger_ms)


def test_each_of_several_processes_with_one_client_id_and_address_has_the_port_of_its_first_connection() -> None:
    connections = [client(number, client=f"10.0.0.1:4000{number}") for number in range(1, 5)]
    there = small_rows(CONNECTIONS, (*CONNECTION_COLUMNS, CONNECTIONS.client), connections)
    processes = process_addresses(Processes({1: 1, 2: 1, 3: 3}, frozenset({4})), there)
    of = producers_of(there, {}, default_linger_ms, processes)
    rows = sent([batch(number, NOW_MS) for number in range(1, 6)], of)
    assert {row[SENT.connection_id]: (row[SENT.client_address], row[SENT.is_told_apart]) for row in rows} == {
        1: ("10.0.0.1:40001", True), 2: ("10.0.0.1:40001", True), 3: ("10.0.0.1:40003", True), 4: ("10.0.0.1", False),
    }  # fmt: skip
    assert {row[SENT.client_id] for row in rows} == {"c"}
    by_host = sent([batch(number, NOW_MS) for number in range(1, 4)], producers(connections), by_host=True)
    assert {row[SENT.client_address] for row in by_host} == {"10.0.0.1"}


def limits(changes: list[Row]) -> dict[str, int]:
    return created_limits(small_rows(TOPIC_CHANGES, CHANGE_COLUMNS, changes))


def sent(batches: list[Row], of: Producers, changes: list[Row] | None = None, *, by_host: bool = False) -> list[Row]:
    """Rows of SENT in the order in which they are replayed."""
    rows = silver_rows(RECORD_BATCHES, BATCH_COLUMNS, batches)
    return plain(in_turn(sent_batches(rows, of, limits(changes or []), by_host), PRODUCERS))


def test_a_client_whose_software_only_its_requests_have_is_what_they_say() -> None:
    """As those of a request log beside packets of a connection that is older than the capture."""
    said = {"client_software_name": "confluent-kafka-python", "client_software_version": "2.16.1-rdkafka-2.16.0"}
    of = producers([client(1), client(2)], [request(1, "PRODUCE", 10) | said, request(2, "PRODUCE", 10)])
    found = sent([batch(1, NOW_MS, client_id="rd"), batch(2, NOW_MS, client_id="other")], of)
    assert {row[SENT.client_id]: row[SENT.is_java] for row in found} == {"rd": False, "other": True}


def test_a_batch_comes_with_the_codec_in_which_brokers_store_its_topic() -> None:
    rows = silver_rows(RECORD_BATCHES, BATCH_COLUMNS, [batch(1, NOW_MS, topic="t"), batch(1, NOW_MS, topic="u")])
    found = plain(
        in_turn(sent_batches(rows, producers([client(1)]), {}, by_host=False, stored={"u": "lz4"}), PRODUCERS)
    )
    assert {row[SENT.topic]: row[SENT.stored_codec] for row in found} == {"t": None, "u": "lz4"}


def test_a_topic_that_is_created_with_a_compression_type_has_its_batches_in_that_codec() -> None:
    """What counts is the last creation that was not refused; `producer` leaves batches as they come."""
    kinds = {"t": "zstd", "u": "uncompressed", "v": "producer", "w": None}
    made = [creation(number, topic, None, compression_type=kind) for number, (topic, kind) in enumerate(kinds.items())]
    again = [
        creation(7, "x", None, compression_type="gzip"),
        creation(8, "x", None),
        creation(9, "t", None, error_code=36),
    ]
    assert created_codecs(small_rows(TOPIC_CHANGES, CHANGE_COLUMNS, made + again)) == {"t": "zstd", "u": "none"}


def test_a_sequence_counts_only_with_a_producer_id() -> None:
    """Without a producer id, aiokafka writes 0 into every batch. That is not one batch sent again and again."""
    batches = [batch(1, NOW_MS, producer_id=producer, base_sequence=0) for producer in (7, -1, None)]
    rows = sent(batches, producers([client(1)]))
    assert {row[SENT.producer_id]: row[SENT.base_sequence] for row in rows} == {7: 0, -1: -1, None: -1}


def test_a_batch_comes_with_the_time_of_its_append_and_with_its_client() -> None:
    """A timestamp that cannot be from the client's clock, or is no time at all, is not used."""
    clients = [
        client(1, "apache-kafka-java", "4.3.1"), client(2, "apache-kafka-java", "4.1.0"),
        client(3, "librdkafka", "2.1"), client(4, None, None), client(5, "apache-kafka-java", "trunk"),
        client(6, "apache-kafka-java", "2147483647.2147483647"),
    ]  # fmt: skip
    made = [NOW_MS - 20, NOW_MS - 10**9, NOW_MS + 5, LONGEST, -LONGEST, NOW_MS]
    batches = [batch(number, at, topic=topic) for number, (at, topic) in enumerate(zip(made, "tuwwww", strict=True), 1)]
    batches += [batch(1, NOW_MS, source="fetch"), batch(1, NOW_MS, magic=1)]
    changes = [
        creation(1, "t", 4000), creation(2, "t", 5000), creation(3, "t", 6000, error_code=36),
        creation(4, "t", 7000, validate_only=True), creation(5, "u", None), creation(6, "v", 8000),
    ]  # fmt: skip
    rows = sent(batches, producers(clients), changes)
    assert len(rows) == 6
    by_connection, t = {row[SENT.connection_id]: row for row in rows}, SENT
    since = {number: row[t.append_from] - TIME_US for number, row in by_connection.items()}
    assert since == {1: -20_000, 2: 0, 3: 0, 4: 0, 5: 0, 6: 0}
    assert [by_connection[number][t.max_message_bytes] for number in (1, 2, 3)] == [5000, None, None]
    assert all(by_connection[1][column] == [] for column in (t.record_sizes, t.create_times, t.recompressed_bytes))
    software = {number: (row[t.is_java], row[t.halves]) for number, row in by_connection.items()}
    newest = (True, True)
    assert software == {1: newest, 2: (True, False), 3: (False, False), 4: newest, 5: newest, 6: newest}
    by_host = sent(batches, producers(clients), changes, by_host=True)
    assert {(row[t.client_id], row[t.client_address]) for row in by_host} == {("", "10.0.0.1")}


def test_a_client_that_produces_as_since_2_4_and_does_not_name_itself_is_not_kafkas_own() -> None:
    """kafka-go is one. If a connection began before the capture, it is unknown whether its client named itself."""
    shown = [(1, 0, 8), (2, 2, 7), (3, 3, 8), (4, None, 8)]
    requests = [request(n, "PRODUCE", version) for n, _, version in shown]
    requests += [request(n, "API_VERSIONS", version) for n, version, _ in shown if version is not None]
    of = producers([client(n) for n, _, _ in shown], requests)
    rows = sent([batch(n, NOW_MS) for n, _, _ in shown], of)
    assert {row[SENT.connection_id]: row[SENT.is_java] for row in rows} == {1: False, 2: True, 3: True, 4: True}


@pytest.mark.parametrize(
    ("version", "halves"),
    [
        ("4.2", True), ("4.1.9", False), ("3.9.1", False), ("10.0.0", True), (None, True), ("", True), ("4", True),
        ("4.x", True), ("+-4.1", True), ("--1.0", True), ("9" * 5000 + ".1", True), ("4." + "9" * 5000, True),
        ("٣.٩", True), ("3.9-SNAPSHOT", True),
    ],
)  # fmt: skip
def test_a_client_may_split_in_halves_unless_its_release_is_known_to_be_older(
    version: str | None, halves: bool
) -> None:
    """No version that a client writes ends a run."""
    (row,) = sent([batch(1, NOW_MS)], producers([client(1, "apache-kafka-java", version)]))
    assert row[SENT.halves] == halves


@pytest.mark.parametrize(("version", "linger_ms"), [("4.0.0", 5), ("3.9.1", 0), ("2.8", 0), (None, 5), ("trunk", 5)])
def test_a_client_lingers_as_its_release_does_by_default(version: str | None, linger_ms: int) -> None:
    """KIP-1030 raised the default from 0 to 5 ms in 4.0."""
    (row,) = sent([batch(1, NOW_MS)], producers([client(1, "apache-kafka-java", version)]))
    assert row[SENT.linger_ms] == linger_ms


def test_a_producer_whose_connection_is_not_captured_from_its_beginning_began_before_the_capture() -> None:
    of = producers([client(n, began_before_capture=n == 2) for n in (1, 2)])
    rows = sent([batch(n, NOW_MS) for n in (1, 2, 3)], of)
    assert [(row[SENT.connection_id], row[SENT.began_before]) for row in rows] == [(1, False), (2, True)]


def test_the_last_creation_of_a_topic_counts_whatever_the_order_of_rows() -> None:
    later = creation(0, "t", 7, request_time=TIME + timedelta(seconds=1))
    changes = [later, creation(9, "t", 5), creation(1, "t", None, request_time=None), creation(3, "u", 2)]
    changes.append(creation(4, "u", 3, kind="alter_configs"))
    assert limits(changes) == limits(changes[::-1]) == {"t": 7, "u": 2}


def test_a_topic_whose_last_creation_has_no_limit_has_none() -> None:
    assert limits([creation(1, "t", 5), creation(2, "t", None), creation(3, "u", 1, validate_only=None)]) == {}


def test_a_batch_with_all_nullable_columns_null_still_has_its_request_time() -> None:
    bare = row_of(RECORD_BATCHES, source="produce", magic=2, size_bytes=100, request_time=TIME, connection_id=1)
    unknown = bare | {"size_bytes": None}
    (row,) = sent([bare, unknown, bare | {"magic": None}], producers([client(1)]))
    t = SENT
    assert (row[t.client_id], row[t.append_from], row[t.base_sequence]) == ("", TIME_US, -1)
    nothing = (t.response_time, t.producer_id, t.codec, t.error_code, t.max_message_bytes, t.keyless_records)
    assert [row[column] for column in nothing] == [None] * len(nothing)
    assert [row[column] for column in LISTS] == [[], [], []]


def test_an_unknown_list_is_empty_among_known_ones() -> None:
    sizes = [[3, 4], None, [], [5], None]
    rows = [batch(1, NOW_MS - 9 + n, record_sizes=of) for n, of in enumerate(sizes)]
    assert [row[SENT.record_sizes] for row in sent(rows, producers([client(1)]))] == [[3, 4], [], [], [5], []]
    parts = silver_rows(RECORD_BATCHES, BATCH_COLUMNS, rows)
    cut = [part.slice(at, 2) for part in parts for at in (0, 2, 4)]
    made = plain(sent_batches(cut, producers([client(1)]), {}, by_host=False))
    assert [row[SENT.record_sizes] for row in made] == [[3, 4], [], [], [5], []]


@pytest.mark.parametrize("batch_rows", [1, 7])
def test_batches_without_a_client_id_and_with_an_empty_one_are_of_one_producer(batch_rows: int) -> None:
    """However rows are cut, a producer's batches are in the order in which it began to fill them."""
    batches = [batch(1, NOW_MS - n, exchange_no=n, client_id=("", None, "c")[n % 3]) for n in range(20)]
    of = producers([client(1)])
    rows = sent(batches, of)
    in_time = [n for n in range(19, -1, -1) if n % 3 < 2]
    assert [row[SENT.exchange_no] for row in rows if row[SENT.client_id] == ""] == in_time
    cut = silver_rows(RECORD_BATCHES, BATCH_COLUMNS, batches, batch_rows)
    assert plain(in_turn(sent_batches(cut, of, {}, by_host=False), PRODUCERS)) == rows
