"""The events that the replay of memory makes from silver tables: exchanges, partitions and batches."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from schemas.tables.event_kinds import HandledBy, MemoryEvent
from schemas.tables.silver import CONNECTIONS, EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
from schemas.tables.steps_memory import MEMORY_EVENTS
from schemas.tables.table import Table
from tests.gate_rows import TIME, Row
from tests.silver_rows import TIME_US, in_turn, plain, row_of, silver_rows, small_rows
from udfs.replay.consumer_memory.silver_events import (
    BATCH_COLUMNS,
    EXCHANGE_COLUMNS,
    PARTITION_COLUMNS,
    UNITS,
    batch_events,
    exchange_events,
    partition_events,
)
from udfs.replay.shared.process_addresses import ONE_ADDRESS_EACH, ProcessAddresses, process_addresses
from udfs.replay.shared.processes import Processes
from udfs.replay.shared.silver_columns import DELIVERY_TIMEOUT_MS, ByConnection
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD

T = MEMORY_EVENTS
NOW_MS = TIME_US // 1000
LONGEST = 2**63 - 1
NOBODY = ByConnection(np.zeros(0, np.int64), np.zeros(0, np.int64))
CONTROLLERS = ByConnection(np.array([77]), np.array([1]))


def exchange_rows(rows: list[Row], side: str, batch_rows: int = 10_000) -> list[Row]:
    librdkafka = ByConnection(np.array([5]), np.array([2016]))
    exchanges = silver_rows(EXCHANGES, EXCHANGE_COLUMNS, rows, batch_rows)
    events = plain(exchange_events(exchanges, librdkafka, CONTROLLERS, ONE_ADDRESS_EACH))
    return [row for row in events if row[T.side] == side]


def exchange(side: str, **columns: Any) -> Row:
    (row,) = exchange_rows([columns], side)
    return row


def batches(rows: list[Row], java: ByConnection = NOBODY, processes: ProcessAddresses = ONE_ADDRESS_EACH) -> list[Row]:
    return plain(batch_events(silver_rows(RECORD_BATCHES, BATCH_COLUMNS, rows), java, processes))


def batch(source: str, **columns: Any) -> Row:
    (row,) = batches([{"source": source} | columns])
    return row


def partitions(rows: list[Row]) -> list[Row]:
    return plain(partition_events(silver_rows(FETCH_PARTITIONS, PARTITION_COLUMNS, rows), ONE_ADDRESS_EACH))


def test_the_release_of_a_librdkafka_client_is_known() -> None:
    assert [exchange("consumer", connection_id=connection)[T.librdkafka] for connection in (5, 6)] == [2016, None]


def test_a_request_to_a_controller_takes_no_memory_of_a_broker() -> None:
    """The controller of the same process has a pool of its own; the client gets the response all the same."""
    rows = [{"connection_id": connection} for connection in (76, 77, 78)]
    assert [row[T.connection_id] for row in exchange_rows(rows, "broker")] == [76, 78]
    assert [row[T.connection_id] for row in exchange_rows(rows, "consumer")] == [76, 77, 78]


def test_a_message_takes_memory_for_all_its_bytes_but_the_size_field() -> None:
    sizes = {"request_bytes": 104, "response_bytes": 204}
    assert [exchange(side, **sizes)[T.size] for side in ("consumer", "broker")] == [200, 100]


@pytest.mark.parametrize(
    ("api_key", "error_code", "consumer", "broker"),
    [
        pytest.param(1, None, 5200, 100, id="a fetch response is cut"),
        pytest.param(1, 0, 200, 5100, id="the response was read, so the request is cut"),
        pytest.param(0, None, 200, 5100, id="a produce request is cut"),
        pytest.param(None, None, 5200, 100, id="the API is not known"),
    ],
)
def test_a_cut_message_takes_memory_for_the_bytes_that_the_capture_lacks(
    api_key: int | None, error_code: int | None, consumer: int, broker: int
) -> None:
    cut = {"request_bytes": 104, "response_bytes": 204, "missing_bytes": 5000}
    rows = [exchange(side, api_key=api_key, error_code=error_code, **cut) for side in ("consumer", "broker")]
    assert [row[T.size] for row in rows] == [consumer, broker]


def test_a_broker_holds_a_request_until_its_response_has_come_to_the_consumer() -> None:
    answer = {"status": "answered", "response_time": TIME + timedelta(seconds=2)}
    consumer, broker = (exchange(side, **answer) for side in ("consumer", "broker"))
    later = TIME_US + 2_000_000
    assert [consumer[column] for column in (T.time, T.came)] == [TIME_US, later]
    assert [broker[column] for column in (T.time, T.came, T.held, T.released)] == [TIME_US, TIME_US, 2_000_000, later]


@pytest.mark.parametrize("status", ["unanswered", "cut", ""])
def test_an_unanswered_request_brings_no_response_and_is_held_for_no_time(status: str) -> None:
    assert exchange("consumer", status=status)[T.came] is None
    assert exchange("broker", status=status, response_time=None)[T.held] == 0


@pytest.mark.parametrize(
    ("session_id", "epoch", "closes"),
    [(7, -1, True), (0, -1, False), (7, 0, False), (7, None, False), (None, 3, False)],
)
def test_a_fetch_of_a_session_with_the_final_epoch_closes_it(
    session_id: int | None, epoch: int | None, closes: bool
) -> None:
    row = exchange("consumer", fetch_session_id=session_id, fetch_session_epoch=epoch)
    assert bool(row[T.closes_session]) == closes


def test_an_exchange_with_all_nullable_columns_null_still_has_its_time() -> None:
    bare = row_of(EXCHANGES, request_time=TIME, broker="1", status="answered")
    (consumer,), (broker,) = (exchange_rows([bare], side) for side in ("consumer", "broker"))
    assert (consumer[T.unit], consumer[T.time], broker[T.unit], broker[T.unit_address]) == ("", TIME_US, "1", "")
    nothing = (T.started, T.came, T.max_bytes, T.api_key)
    assert [consumer[column] for column in nothing] == [None] * len(nothing)
    assert [broker[column] for column in (T.started, T.held, T.released, T.api_key)] == [None] * 4
    assert broker[T.released_by] == HandledBy.RESPONSE
    assert exchange_rows([row_of(EXCHANGES)], "broker") == []


def test_only_fetches_of_consumers_take_consumer_memory() -> None:
    rows: list[Row] = [{"reader": reader, "topic": "t", "read_position": 0} for reader in ("consumer", "follower")]
    rows.append(rows[0] | {"request_time": None})
    assert len(partitions(rows)) == 1


def test_a_partition_that_the_broker_does_not_read_has_no_fetch_offset() -> None:
    rows = [{"reader": "consumer", "fetch_offset": 10, "read_position": position} for position in (0, None)]
    assert [row[T.fetch_offset] for row in partitions(rows)] == [10, None]


def test_a_partition_with_all_nullable_columns_null_still_has_its_client_and_time() -> None:
    bare = row_of(FETCH_PARTITIONS, reader="consumer", request_time=TIME, topic="t", broker="1")
    (row,) = partitions([bare])
    assert (row[T.unit], row[T.time], row[T.kind]) == ("", TIME_US, MemoryEvent.PARTITION)
    assert [row[column] for column in (T.fetch_offset, T.partition_max_bytes, T.returned_bytes)] == [None] * 3


def test_a_partition_has_the_same_key_in_fetches_and_batches_and_no_other_has_it() -> None:
    of = [("t", 0), ("t", 1), ("u", 0), ("u", 1), ("", 0)]
    rows = [{"topic": topic, "partition": number} for topic, number in of]
    in_fetches = [row[T.partition_key] for row in partitions([row | {"reader": "consumer"} for row in rows])]
    in_batches = [row[T.partition_key] for row in batches([row | {"source": "fetch"} for row in rows[::-1]])]
    assert in_fetches == in_batches[::-1]
    assert len(set(in_fetches)) == len(of)


def test_only_the_received_bytes_of_a_cut_batch_count() -> None:
    shown: Row = {"base_offset": 10, "last_offset_delta": 4, "available_bytes": 70, "record_count": 5, "magic": 2}
    shown |= {"codec": "gzip", "uncompressed_bytes": 300}
    whole, cut = batch("fetch", **shown), batch("fetch", **shown, is_cut=True)
    columns = (T.size, T.end_offset, T.cut_end_offset, T.records, T.compressed, T.uncompressed)
    assert [whole[column] for column in columns] == [70, 15, None, 5, True, 300 + RECORD_BATCH_OVERHEAD]
    assert [cut[column] for column in columns] == [70, None, 15, None, False, None]


def test_only_compressed_batches_have_an_uncompressed_size_and_old_formats_add_no_header_to_it() -> None:
    plain_batch = batch("fetch", codec="none", uncompressed_bytes=300)
    assert (plain_batch[T.compressed], plain_batch[T.uncompressed]) == (False, None)
    for magic in (0, 1, None):
        assert batch("fetch", codec="gzip", uncompressed_bytes=300, magic=magic)[T.uncompressed] == 300


def test_an_impossible_offset_is_unknown() -> None:
    assert batch("fetch", base_offset=LONGEST, last_offset_delta=0)[T.end_offset] is None
    assert batch("fetch", base_offset=LONGEST - 1, last_offset_delta=0)[T.end_offset] == LONGEST
    assert batch("fetch", base_offset=10)[T.end_offset] is None


@pytest.mark.parametrize(
    ("age_ms", "is_append"),
    [(0, True), (20, True), (DELIVERY_TIMEOUT_MS, True), (DELIVERY_TIMEOUT_MS + 1, False), (-1, False)],
)
def test_a_produced_batch_takes_memory_from_its_first_record_on(age_ms: int, is_append: bool) -> None:
    """The timestamp of its first record counts if it can be by the client's clock."""
    row = batch("produce", timestamp_type="CreateTime", base_timestamp=NOW_MS - age_ms)
    assert (row[T.time], row[T.started]) == (TIME_US - age_ms * 1000 * is_append, TIME_US)


@pytest.mark.parametrize("timestamp_type", ["LogAppendTime", None])
def test_a_timestamp_that_is_not_the_clients_does_not_say_when_it_appended(timestamp_type: str | None) -> None:
    assert batch("produce", timestamp_type=timestamp_type, base_timestamp=NOW_MS - 20)[T.time] == TIME_US


@pytest.mark.parametrize("timestamp", [LONGEST, -LONGEST - 1, None])
def test_an_impossible_timestamp_does_not_say_when_a_client_appended(timestamp: int | None) -> None:
    row = batch("produce", timestamp_type="CreateTime", base_timestamp=timestamp)
    assert (row[T.time], row[T.first_timestamp]) == (TIME_US, timestamp)


def test_an_unidentified_producer_counts_as_a_java_client() -> None:
    java = ByConnection(np.array([1, 2]), np.array([1, 0]))
    rows = batches([{"connection_id": number, "source": "produce"} for number in (1, 2, 5)], java)
    assert {row[T.connection_id]: row[T.is_java] for row in rows} == {1: True, 2: False, 5: True}


def three_processes() -> ProcessAddresses:
    """Of connections 1 and 2, of 3, and of 5. Of connection 4 it is not known whose it is."""
    clients = [row_of(CONNECTIONS, connection_id=n, client=f"10.0.0.1:4000{n}") for n in range(1, 5)]
    there = small_rows(CONNECTIONS, (CONNECTIONS.connection_id, CONNECTIONS.client), clients)
    return process_addresses(Processes({1: 1, 2: 1, 3: 3}, frozenset({4})), there)


@pytest.mark.parametrize("table", [EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES], ids=lambda table: table.name)
def test_each_of_several_consumers_with_one_client_id_and_address_has_memory_of_its_own(table: Table) -> None:
    """Whatever table its messages come from. Its address has the port of its first connection."""
    of = three_processes()
    sent = [{"connection_id": n, "client_address": "10.0.0.1", "request_time": TIME} for n in range(1, 6)]
    if table == EXCHANGES:
        events = exchange_events(silver_rows(table, EXCHANGE_COLUMNS, sent), NOBODY, NOBODY, of)
    elif table == FETCH_PARTITIONS:
        rows = [row | {"reader": "consumer", "topic": "t", "partition": 0} for row in sent]
        events = partition_events(silver_rows(table, PARTITION_COLUMNS, rows), of)
    else:
        rows = [row | {"source": "fetch", "topic": "t", "partition": 0} for row in sent]
        events = batch_events(silver_rows(table, BATCH_COLUMNS, rows), NOBODY, of)
    found = {row[T.connection_id]: row[T.unit_address] for row in plain(events) if row[T.side] == "consumer"}
    assert found == {
        1: "10.0.0.1:40001", 2: "10.0.0.1:40001", 3: "10.0.0.1:40003", 4: "10.0.0.1", 5: "10.0.0.1"
    }  # fmt: skip


def test_each_of_several_producers_with_one_client_id_and_address_has_a_buffer_of_its_own() -> None:
    """Its address has the port of its first connection. Of connection 4 it is not known whose it is."""
    sent = [{"connection_id": number, "source": "produce", "client_address": "10.0.0.1"} for number in range(1, 6)]
    rows = {
        row[T.connection_id]: (row[T.unit_address], row[T.is_told_apart])
        for row in batches(sent, processes=three_processes())
    }
    assert rows == {
        1: ("10.0.0.1:40001", True), 2: ("10.0.0.1:40001", True), 3: ("10.0.0.1:40003", True), 4: ("10.0.0.1", False),
        5: ("10.0.0.1", True),
    }  # fmt: skip


def test_a_sequence_counts_only_with_a_producer_id() -> None:
    rows = batches([{"source": "produce", "producer_id": of, "base_sequence": 3} for of in (7, -1, None)])
    assert [row[T.sequence] for row in rows] == [3, -1, -1]


def test_batches_of_one_partition_and_producer_have_a_key_of_their_own() -> None:
    of: list[tuple[Any, ...]] = [
        (topic, part, producer, epoch) for topic in "tu" for part in (0, 1) for producer in (7, -1) for epoch in (0, 1)
    ]
    of += [("t", 0, None, None), ("t", 0, 7, None)]
    names = ("topic", "partition", "producer_id", "producer_epoch")
    rows = [dict(zip(names, values, strict=True)) | {"source": "produce"} for values in of]
    keys = [row[T.partition_key] for row in batches(rows)]
    assert len(set(keys)) == len(of)
    assert [row[T.partition_key] for row in batches(rows[::-1])] == keys[::-1]


@pytest.mark.parametrize("source", ["produce", "fetch"])
def test_a_batch_with_all_nullable_columns_null_still_has_its_size(source: str) -> None:
    bare = row_of(RECORD_BATCHES, source=source, request_time=TIME, available_bytes=70, topic="t")
    (row,) = batches([bare, row_of(RECORD_BATCHES, source=source)])
    side = "producer" if source == "produce" else "consumer"
    assert (row[T.side], row[T.unit], row[T.size], row[T.time]) == (side, "", 70, TIME_US)
    assert [row.get(column) for column in (T.records, T.end_offset, T.uncompressed, T.came)] == [None] * 4


def events_of(rows: list[Row], batch_rows: int) -> list[pa.RecordBatch]:
    """All events of some fetches, each with two partitions and two batches."""
    read = {"reader": "consumer", "read_position": 0, "topic": "t"}
    parts = [row | read | {"partition": number} for row in rows for number in (1, 0)]
    fetched = [row | {"source": "fetch", "topic": "t", "available_bytes": size} for row in rows for size in (9, 5)]
    return [
        *batch_events(silver_rows(RECORD_BATCHES, BATCH_COLUMNS, fetched, batch_rows), NOBODY, ONE_ADDRESS_EACH),
        *partition_events(silver_rows(FETCH_PARTITIONS, PARTITION_COLUMNS, parts, batch_rows), ONE_ADDRESS_EACH),
        *exchange_events(silver_rows(EXCHANGES, EXCHANGE_COLUMNS, rows, batch_rows), NOBODY, NOBODY, ONE_ADDRESS_EACH),
    ]


@pytest.mark.parametrize("batch_rows", [1, 7, 10_000])
def test_each_exchange_of_a_client_comes_before_its_partitions_and_these_before_its_batches(batch_rows: int) -> None:
    """A client without a name and one with an empty name count as the same client."""
    rows = [
        {"exchange_no": at, "client_id": ("", None, "c")[at % 3], "request_time": TIME - timedelta(seconds=at)}
        for at in range(12)
    ]
    events = plain(in_turn(events_of(rows, batch_rows), UNITS))
    in_time = [at for at in range(11, -1, -1) if at % 3 < 2]
    kinds = (MemoryEvent.EXCHANGE, *[MemoryEvent.PARTITION] * 2, *[MemoryEvent.BATCH] * 2)
    of_unnamed = [row for row in events if (row[T.side], row[T.unit]) == ("consumer", "")]
    assert [(row[T.exchange_no], row[T.kind]) for row in of_unnamed] == [(at, kind) for at in in_time for kind in kinds]
    assert [row[T.size] for row in of_unnamed if row[T.kind] == MemoryEvent.BATCH] == [5, 9] * len(in_time)
    assert events == plain(in_turn(events_of(rows[::-1], batch_rows), UNITS))
