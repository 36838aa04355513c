"""The events that the replay of fetches makes from silver tables: clients, batches and reads."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest

from schemas.tables.event_kinds import LogEvent
from schemas.tables.silver import CONNECTIONS, EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
from schemas.tables.steps import LOG_EVENTS
from schemas.wire.errors import OFFSET_MOVED_TO_TIERED_STORAGE
from tests.gate_rows import TIME, Row
from tests.silver_rows import TIME_US, in_turn, plain, row_of, silver_rows, small_rows
from udfs.replay.fetch_max_bytes.settings import JAVA_3, JAVA_4, LIBRDKAFKA
from udfs.replay.fetch_max_bytes.silver_events import (
    BATCH_COLUMNS,
    LOGS,
    READ_COLUMNS,
    TieredTopics,
    batch_events,
    profiles_by_connection,
    read_events,
)
from udfs.replay.shared import client_software
from udfs.replay.shared.process_addresses import process_addresses
from udfs.replay.shared.processes import Processes
from udfs.replay.shared.silver_columns import ByConnection

LONGEST = 2**63 - 1
NO_PROFILES = ByConnection(np.zeros(0, np.int64), np.zeros(0, np.int64))
READ: Row = {"read_position": 0, "fetch_offset": 10, "reader": "consumer"}


def batches_in_log(rows: Iterable[Row]) -> list[Row]:
    return plain(batch_events(silver_rows(RECORD_BATCHES, BATCH_COLUMNS, rows)))


def reads(rows: Iterable[Row], kind: LogEvent = LogEvent.READ) -> list[Row]:
    """The events of one kind that are made from the rows."""
    events = plain(read_events(silver_rows(FETCH_PARTITIONS, READ_COLUMNS, rows), NO_PROFILES))
    return [row for row in events if row[LOG_EVENTS.kind] == kind]


@pytest.mark.parametrize(
    ("name", "version", "profile"),
    [
        ("apache-kafka-java", "3.9.1", JAVA_3), ("apache-kafka-java", "4.0.0", JAVA_4),
        ("apache-kafka-java", "unknown", JAVA_4), ("apache-kafka-java", "99999999999.0", JAVA_4),
        ("apache-kafka-java", "3" * 5000, JAVA_4), ("apache-kafka-java", "10.1", JAVA_4),
        ("apache-kafka-java", None, JAVA_4), ("apache-kafka-java", "3", JAVA_3),
        ("confluent-kafka-python", "2.1-rdkafka-2.1", LIBRDKAFKA), ("librdkafka", "2.1", LIBRDKAFKA),
        ("librdkafka", None, LIBRDKAFKA), ("sarama", "1.0", None), (None, None, None), (None, "2.1-rdkafka-2.1", None),
    ],
)  # fmt: skip
def test_a_clients_software_says_whose_rules_it_follows(
    name: str | None, version: str | None, profile: int | None
) -> None:
    """A client that is packed into another jar gives `unknown` as its version (AppInfoParser)."""
    exchange = {"connection_id": 5, "client_software_name": name, "client_software_version": version}
    of = client_software.software_rows(silver_rows(EXCHANGES, client_software.SOFTWARE_COLUMNS, [exchange]))
    profiles = profiles_by_connection(
        client_software.software_by_connection(pa.Table.from_batches(of, client_software.SOFTWARE))
    )
    fetches = silver_rows(FETCH_PARTITIONS, READ_COLUMNS, [READ | {"connection_id": number} for number in (5, 6)])
    rows = [row for row in plain(read_events(fetches, profiles)) if row[LOG_EVENTS.kind] == LogEvent.READ]
    assert [row[LOG_EVENTS.profile] for row in rows] == [profile, None]


def test_each_of_several_consumers_with_one_client_id_and_address_is_a_reader() -> None:
    """Its address has the port of its first connection. Of connection 4 it is not known whose it is."""
    there = [row_of(CONNECTIONS, connection_id=number, client=f"10.0.0.1:4000{number}") for number in range(1, 5)]
    columns = (CONNECTIONS.connection_id, CONNECTIONS.client)
    of = process_addresses(Processes({1: 1, 2: 1, 3: 3}, frozenset({4})), small_rows(CONNECTIONS, columns, there))
    rows = [READ | {"connection_id": number, "client_address": "10.0.0.1"} for number in range(1, 6)]
    events = plain(read_events(silver_rows(FETCH_PARTITIONS, READ_COLUMNS, rows), NO_PROFILES, processes=of))
    t = LOG_EVENTS
    assert {row[t.connection_id]: row[t.client_address] for row in events if row[t.kind] == LogEvent.READ} == {
        1: "10.0.0.1:40001", 2: "10.0.0.1:40001", 3: "10.0.0.1:40003", 4: "10.0.0.1", 5: "10.0.0.1"
    }  # fmt: skip


def test_a_batch_with_an_impossible_last_offset_or_size_is_not_in_the_log() -> None:
    batch = {"source": "fetch", "size_bytes": 70, "magic": 2, "record_count": 1, "base_offset": 10}
    rows = [batch | {"last_offset_delta": 4}, batch | {"base_offset": LONGEST, "last_offset_delta": 1}]
    rows.append(batch | {"last_offset_delta": 0, "size_bytes": 2**31 + 11})
    assert [row[LOG_EVENTS.last_offset] for row in batches_in_log(rows)] == [14]


def test_a_batch_without_offset_size_or_length_is_not_in_the_log() -> None:
    whole: Row = {"base_offset": 10, "last_offset_delta": 4, "size_bytes": 70}
    rows = [row_of(RECORD_BATCHES, source="fetch", **whole | {column: None}) for column in whole]
    assert batches_in_log(rows) == []
    (row,) = batches_in_log([row_of(RECORD_BATCHES, source="fetch", topic="t", **whole)])
    t = LOG_EVENTS
    assert (row[t.last_offset], row[t.topic_key], row[t.is_sparse]) == (14, "t", None)
    assert [row[column] for column in (t.is_old_format, t.append_after, t.append_before, t.api_version)] == [None] * 4


def test_a_produced_batch_is_in_the_log_unless_it_was_refused() -> None:
    batch: Row = {"base_offset": 10, "last_offset_delta": 0, "size_bytes": 70, "record_count": 1, "magic": 2}
    codes = (None, 0, 6)
    rows = [batch | {"source": source, "error_code": code} for source in ("produce", "fetch") for code in codes]
    t = LOG_EVENTS
    appended = [row[t.append_after] for row in batches_in_log(rows)]
    assert appended == [TIME_US, TIME_US, None, None, None]


def test_a_fetched_batch_shows_its_leaders_epoch_and_a_produced_one_when_it_came() -> None:
    batch = {"base_offset": 10, "last_offset_delta": 4, "size_bytes": 70, "partition_leader_epoch": 3}
    times = {"request_time": TIME, "response_time": TIME + timedelta(seconds=1)}
    rows = batches_in_log([batch | times | {"source": source} for source in ("produce", "fetch")])
    t, later = LOG_EVENTS, TIME_US + 1_000_000
    shown = [(row[t.leader_epoch], row[t.append_after], row[t.append_before]) for row in rows]
    assert shown == [(None, TIME_US, later), (3, None, later)]


@pytest.mark.parametrize(
    ("magic", "record_count", "is_sparse", "is_old"),
    [(2, 4, True, False), (2, 5, False, False), (1, 1, False, True), (2, 0, True, False)],
)
def test_a_batch_with_fewer_records_than_offsets_has_been_compacted(
    magic: int, record_count: int, is_sparse: bool, is_old: bool
) -> None:
    batch = {"source": "fetch", "base_offset": 10, "last_offset_delta": 4, "size_bytes": 70}
    (row,) = batches_in_log([batch | {"magic": magic, "record_count": record_count}])
    assert (row[LOG_EVENTS.is_sparse], row[LOG_EVENTS.is_old_format]) == (is_sparse, is_old)


def test_a_partition_that_a_response_leaves_out_keeps_the_last_stable_offset_of_the_response_before() -> None:
    """An incremental response leaves a partition out while neither of its offsets changes (FetchSession)."""
    read = READ | {"isolation_level": 1, "high_watermark": 90}
    rows = reads([read | {"last_stable_offset": 40, "response_position": None}, read | {"last_stable_offset": None}])
    t = LOG_EVENTS
    bounds = [(row[t.bound_low], row[t.bound_high], row[t.response_bound]) for row in rows]
    assert bounds == [(40, 40, 40), (90, 90, 90)]


def test_an_uncommitted_reader_reads_to_the_high_watermark_and_a_follower_to_the_end() -> None:
    shown = {"isolation_level": 0, "high_watermark": 90, "last_stable_offset": 40}
    consumer, follower = reads([READ | shown, READ | shown | {"reader": "follower"}])
    t = LOG_EVENTS
    assert [row[t.bound_low] for row in (consumer, follower)] == [90, None]
    assert [row[t.bound_known] for row in (consumer, follower)] == [True, True]


@pytest.mark.parametrize(
    ("stops", "is_sent"),
    [({"error_code": 6}, False), ({"preferred_read_replica": 0}, True), ({"diverging_epoch": 0}, False)],
)
def test_a_reader_that_is_sent_elsewhere_or_refused_reads_nothing(stops: Row, is_sent: bool) -> None:
    (row,) = reads([READ | stops | {"high_watermark": 90}])
    t = LOG_EVENTS
    assert (row[t.redirected], row[t.bound_low], row[t.response_bound], row[t.bound_known]) == (True, 10, None, True)
    assert row[t.sent_to_replica] is is_sent


def test_a_follower_whose_log_diverges_reads_nothing_and_shows_no_end_of_the_log() -> None:
    """The leader answers with the epoch at which they diverge, -1 for none, and no records (Partition.readRecords)."""
    follower = READ | {"reader": "follower", "returned_bytes": 0, "response_record_bytes": 0, "high_watermark": 90}
    rows = [follower | {"diverging_epoch": epoch} for epoch in (3, -1, None)]
    t = LOG_EVENTS
    assert [(row[t.redirected], row[t.bound_high]) for row in reads(rows)] == [(True, 10), (False, None), (False, None)]
    assert len(reads(rows, LogEvent.WITNESS)) == 2


@pytest.mark.parametrize(
    ("read", "may_be"),
    [
        ({"high_watermark": 90}, True),
        ({"high_watermark": 10}, False),
        ({"high_watermark": None}, False),
        ({"high_watermark": 90, "topic": "plain"}, False),
        ({"reader": "follower", "high_watermark": 90}, False),
        ({"reader": "follower", "error_code": OFFSET_MOVED_TO_TIERED_STORAGE}, True),
        ({"reader": "follower", "error_code": OFFSET_MOVED_TO_TIERED_STORAGE, "topic": "plain"}, True),
        ({"error_code": 6, "high_watermark": 90}, False),
    ],
    ids=["behind", "at the end", "nothing to read", "not tiered", "follower", "refused", "tiered after all", "stopped"],
)
def test_a_read_of_a_topic_with_tiered_storage_may_be_remote(read: Row, may_be: bool) -> None:
    rows = silver_rows(FETCH_PARTITIONS, READ_COLUMNS, [READ | {"topic": "tiered"} | read])
    for tiered in (TieredTopics(names=frozenset({"tiered"})), TieredTopics(True, frozenset({"plain"}))):
        events = plain(read_events(rows, NO_PROFILES, tiered))
        told = [row[LOG_EVENTS.may_be_remote] for row in events if row[LOG_EVENTS.kind] == LogEvent.READ]
        assert told == [may_be]


@pytest.mark.parametrize("lacking", ["read_position", "fetch_offset"])
def test_a_partition_that_the_broker_does_not_read_is_no_read(lacking: str) -> None:
    rows = [READ | {"returned_bytes": 5, "high_watermark": 9, lacking: None}]
    assert plain(read_events(silver_rows(FETCH_PARTITIONS, READ_COLUMNS, rows), NO_PROFILES)) == []


def test_a_read_with_all_nullable_columns_null_still_says_where_it_begins() -> None:
    bare = row_of(FETCH_PARTITIONS, topic="t", reader="consumer", read_position=0, fetch_offset=10)
    (row,) = reads([bare])
    t = LOG_EVENTS
    assert (row[t.client_id], row[t.topic_key], row[t.bound_low], row[t.bound_known]) == ("", "t", 10, False)
    flags = (t.refused, t.throttled, t.redirected, t.in_session, t.opens_session)
    assert [row[column] for column in flags] == [False] * len(flags)
    nothing = (t.request_time, t.response_time, t.response_bound, t.returned_bytes, t.profile)
    assert [row[column] for column in nothing] == [None] * len(nothing)
    assert reads([bare], LogEvent.WITNESS) == []


def test_a_fetch_is_in_a_session_if_its_response_or_else_its_request_says_so() -> None:
    ids = [(None, 0), (None, 7), (0, 7), (8, 0)]
    rows = reads([READ | {"response_session_id": response, "session_id": request} for response, request in ids])
    assert [row[LOG_EVENTS.in_session] for row in rows] == [False, True, False, True]


def test_reads_with_records_and_those_of_followers_show_where_a_log_ends() -> None:
    """A response with an error, throttled, redirected or cut does not show it."""
    records = READ | {"high_watermark": 90, "returned_bytes": 50}
    empty, follower = records | {"returned_bytes": 0}, records | {"reader": "follower", "returned_bytes": 0}
    disturbed: list[Row] = [
        {"response_error_code": 70}, {"throttle_time_ms": 5}, {"error_code": 6}, {"preferred_read_replica": 2},
        {"returned_bytes": None},
    ]  # fmt: skip
    showing = [records, follower]
    not_showing = [empty, records | {"high_watermark": None}, *(of | fault for of in showing for fault in disturbed)]
    rows = [row | {"exchange_no": number} for number, row in enumerate([*showing, *not_showing])]
    assert [row[LOG_EVENTS.exchange_no] for row in reads(rows, LogEvent.WITNESS)] == [0, 1]
    assert len(reads(rows)) == len(rows)


@pytest.mark.parametrize(
    ("shown", "found_nothing"),
    [({"min_bytes": 1}, True), ({"min_bytes": 2}, False), ({"min_bytes": 1, "is_delayed": False}, False)],
)
def test_a_parked_fetch_found_no_records_if_any_record_would_have_answered_it(shown: Row, found_nothing: bool) -> None:
    follower = READ | {"reader": "follower", "returned_bytes": 50, "is_delayed": True}
    for kind in (LogEvent.READ, LogEvent.WITNESS):
        assert [row[LOG_EVENTS.found_nothing] for row in reads([follower | shown], kind)] == [found_nothing]


@pytest.mark.parametrize("batch_rows", [1, 7, 10_000])
def test_the_batches_of_a_log_come_first_then_the_reads_that_show_its_end_then_all_reads(batch_rows: int) -> None:
    """A topic is identified by its id if that is shown. Batches come in the order of offsets, reads by time."""
    log = {"topic": "t", "topic_id": "id"}
    batches = [
        row_of(RECORD_BATCHES, source="fetch", base_offset=90 - at, last_offset_delta=0, size_bytes=70, **log)
        for at in range(10)
    ]
    shown = {"high_watermark": 90, "returned_bytes": 50, "topic_id": "id"}
    fetches = [
        READ | shown | {"topic": f"t{at % 2}", "exchange_no": at, "request_time": TIME - timedelta(seconds=at)}
        for at in range(10)
    ]
    events: list[pa.RecordBatch] = [
        *read_events(silver_rows(FETCH_PARTITIONS, READ_COLUMNS, fetches, batch_rows), NO_PROFILES),
        *batch_events(silver_rows(RECORD_BATCHES, BATCH_COLUMNS, batches, batch_rows)),
    ]
    t = LOG_EVENTS
    rows = [(row[t.kind], row[t.position]) for row in plain(in_turn(events, LOGS))]
    times = [TIME_US - at * 1_000_000 for at in range(9, -1, -1)]
    in_log = [(LogEvent.BATCH, offset) for offset in range(81, 91)]
    assert rows == in_log + [(kind, time) for kind in (LogEvent.WITNESS, LogEvent.READ) for time in times]


@pytest.mark.parametrize(
    ("shown", "records"),
    [
        ({"record_count": 3}, 3), ({"record_count": None}, 5), ({"record_count": 9}, 5), ({"record_count": -2}, 0),
        ({"record_count": 1, "is_control": True}, 0),
    ],
)  # fmt: skip
def test_a_consumer_gets_as_many_records_as_a_batch_says_and_none_of_a_control_batch(shown: Row, records: int) -> None:
    batch = {"source": "fetch", "base_offset": 10, "last_offset_delta": 4, "size_bytes": 70, "magic": 2}
    (row,) = batches_in_log([row_of(RECORD_BATCHES, **batch | shown)])
    assert row[LOG_EVENTS.records] == records


def test_only_batches_in_a_transaction_have_a_known_producer() -> None:
    batch = {"source": "fetch", "base_offset": 10, "last_offset_delta": 4, "size_bytes": 70, "producer_id": 7}
    rows = batches_in_log([batch | {"is_transactional": of} for of in (True, False)])
    assert [row[LOG_EVENTS.producer_id] for row in rows] == [7, None]


def test_each_aborted_transaction_that_a_response_names_is_an_event_of_the_log() -> None:
    none: Row = {"aborted_producer_ids": None, "aborted_first_offsets": None}
    named = READ | none | {"aborted_producer_ids": [7, 8], "aborted_first_offsets": [40, 12], "topic": "t"}
    rows = reads([named, READ | none], LogEvent.ABORTED)
    t = LOG_EVENTS
    assert [(row[t.topic], row[t.producer_id], row[t.position]) for row in rows] == [("t", 7, 40), ("t", 8, 12)]
