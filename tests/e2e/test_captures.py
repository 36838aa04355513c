"""The tables made from a real cluster's captures, compared with what its brokers logged about the same requests."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from schemas.tables import algorithms
from schemas.tables.fetch_reasons import OPEN_FETCHES
from schemas.tables.gold import FETCH_CONSUMERS, FIDELITY, RUNS
from schemas.tables.silver import CAPTURES, CONNECTIONS, EXCHANGES, FETCH_PARTITIONS, QUARANTINE, RECORD_BATCHES
from schemas.tables.silver_topics import CLUSTER_METADATA
from tests.e2e.conftest import CapturedLake, Rows
from tests.e2e.request_log import (
    LoggedRequest,
    Partition,
    produced_partitions,
    returned_partitions,
    wanted_partitions,
)

PRODUCE, FETCH = 0, 1
CLOCKS_APART = timedelta(milliseconds=50)
"""A log line is written after the response was sent, and its time is in milliseconds."""

IN_A_MESSAGE = f"{FETCH_PARTITIONS.request_position} IS NOT NULL OR {FETCH_PARTITIONS.response_position} IS NOT NULL"
"""Rows of `fetch_partitions` whose partition the request or the response names, not only the session."""

Exchange = tuple[int, int]


@pytest.fixture(scope="session", params=["mixed", "starve", "split", "sessions"])
def lake(request: pytest.FixtureRequest, captured: Callable[[str], CapturedLake]) -> CapturedLake:
    return captured(request.param)


def exchange_of(row: dict[str, Any]) -> Exchange:
    return row["connection_id"], row["exchange_no"]


def by_exchange(rows: Rows) -> dict[Exchange, Rows]:
    grouped: dict[Exchange, Rows] = defaultdict(list)
    for row in rows:
        grouped[exchange_of(row)].append(row)
    return grouped


def in_both(lake: CapturedLake, api_key: int) -> list[tuple[LoggedRequest, dict[str, Any]]]:
    """(log line, exchange) of each request of an API that is both in the log and in the capture."""
    ours = lake.exchanges
    return [(line, ours[key]) for key, line in lake.logged.items() if line.api_key == api_key and key in ours]


def answered_in_both(lake: CapturedLake, api_key: int) -> list[tuple[LoggedRequest, dict[str, Any]]]:
    """As `in_both`, for requests whose response is in the capture too."""
    return [(line, row) for line, row in in_both(lake, api_key) if row["status"] == "answered"]


def partition_named_as(line: LoggedRequest, row: dict[str, Any]) -> Partition:
    """The row's topic, by id or name as in a message of this version, and its partition."""
    has_ids = line.api_version >= 13
    return row["topic_id"] if has_ids else row["topic"], row["partition"]


def was_outside(lake: CapturedLake, line: LoggedRequest) -> bool:
    """Whether a request was answered before the capture began, or came after it had ended."""
    (capture,) = lake.rows(CAPTURES)
    came = line.completed - timedelta(milliseconds=line.taken_ms)
    return line.completed < capture["first_time"] or came > capture["last_time"] - CLOCKS_APART


def test_every_request_is_the_one_that_the_broker_logged(lake: CapturedLake) -> None:
    ours = lake.exchanges
    assert {
        key: (row["api_key"], row["api_name"], row["api_version"], row["client_id"])
        for key, row in ours.items()
        if key in lake.logged
    } == {
        key: (line.api_key, line.api_name, line.api_version, line.client_id)
        for key, line in lake.logged.items()
        if key in ours
    }


def test_every_request_of_the_capture_is_in_the_log(lake: CapturedLake) -> None:
    assert lake.exchanges.keys() - lake.logged.keys() == set()


def test_every_request_of_the_log_is_in_the_capture_or_was_outside_it(lake: CapturedLake) -> None:
    missed = [line for key, line in lake.logged.items() if key not in lake.exchanges]
    assert [line for line in missed if not was_outside(lake, line)] == []
    assert len(missed) < 0.05 * len(lake.logged)


def test_a_response_is_missing_only_where_the_connection_or_the_capture_ended_before_it(lake: CapturedLake) -> None:
    """Clients close connections on which they wait for a response. The broker logs the response all the same."""
    last = {row["connection_id"]: row["last_time"] for row in lake.rows(CONNECTIONS)}
    late = [(lake.logged[key], row) for key, row in lake.exchanges.items() if row["status"] == "unanswered"]
    assert [line.key for line, row in late if line.completed <= last[row["connection_id"]]] == []


def test_requests_by_api_version_and_client_are_as_many_as_the_broker_logged(lake: CapturedLake) -> None:
    captured = Counter((row["api_name"], row["api_version"], row["client_id"]) for row in lake.exchanges.values())
    logged = Counter(
        (line.api_name, line.api_version, line.client_id)
        for key, line in lake.logged.items()
        if key in lake.exchanges or not was_outside(lake, line)
    )
    assert captured == logged


def test_what_a_fetch_asked_for_is_what_the_broker_logged(lake: CapturedLake) -> None:
    t = FETCH_PARTITIONS
    rows = by_exchange(lake.rows(t, where=IN_A_MESSAGE))
    fetches = in_both(lake, FETCH)
    for line, exchange in fetches:
        asked = [row for row in rows.get(exchange_of(exchange), []) if row[t.request_position] is not None]
        asked.sort(key=lambda row: row[t.request_position])
        assert [
            (partition_named_as(line, row), row[t.fetch_offset], row[t.partition_max_bytes]) for row in asked
        ] == wanted_partitions(line.request), line.key


def test_limits_and_session_of_a_fetch_are_what_the_broker_logged(lake: CapturedLake) -> None:
    t = FETCH_PARTITIONS
    names = {
        t.max_bytes: "maxBytes", t.min_bytes: "minBytes", t.max_wait_ms: "maxWaitMs",
        t.isolation_level: "isolationLevel", t.session_id: "sessionId", t.session_epoch: "sessionEpoch",
    }  # fmt: skip
    told = by_exchange(
        lake.rows(
            t,
            t.connection_id,
            t.exchange_no,
            t.replica_id,
            t.reader,
            t.response_session_id,
            t.response_error_code,
            *names,
        )
    )
    without_rows: list[LoggedRequest] = []
    for line, exchange in in_both(lake, FETCH):
        rows = told.get(exchange_of(exchange), [])
        without_rows += [] if rows else [line]
        asked = {str(column): line.request[name] for column, name in names.items()}
        x = EXCHANGES
        assert [exchange[x.fetch_max_bytes], exchange[x.fetch_session_id], exchange[x.fetch_session_epoch]] == [
            line.request["maxBytes"], line.request["sessionId"], line.request["sessionEpoch"],
        ], line.key  # fmt: skip
        replica = line.request.get("replicaState", line.request).get("replicaId", -1)
        assert exchange[x.fetch_replica_id] == replica, line.key
        asked |= {"replica_id": replica, "reader": "consumer" if replica < 0 else "follower"}
        is_answered = exchange["status"] == "answered"
        answered = {
            "response_session_id": line.response["sessionId"] if is_answered else None,
            "response_error_code": line.response["errorCode"] if is_answered else None,
        }
        wanted = asked | answered | {"connection_id": exchange["connection_id"], "exchange_no": exchange["exchange_no"]}
        assert all(row == wanted for row in rows), line.key
    # A fetch that names no partition has no rows if it closes its session, or if the broker does not know the session.
    closing, session_not_found = -1, 70
    assert [line for line in without_rows if wanted_partitions(line.request) or line.response["responses"]] == []
    assert {
        (line.request["sessionEpoch"] == closing) or (line.response["errorCode"] == session_not_found)
        for line in without_rows
    } <= {True}


def test_what_a_fetch_returned_is_what_the_broker_logged(lake: CapturedLake) -> None:
    t = FETCH_PARTITIONS
    rows = by_exchange(lake.rows(t, where=IN_A_MESSAGE))
    for line, exchange in answered_in_both(lake, FETCH):
        came = [row for row in rows.get(exchange_of(exchange), []) if row[t.response_position] is not None]
        came.sort(key=lambda row: row[t.response_position])
        assert [
            (partition_named_as(line, row), row[t.returned_bytes], row[t.error_code], row[t.high_watermark])
            for row in came
        ] == returned_partitions(line.response), line.key
        assert exchange["error_code"] == line.response["errorCode"] or any(row[t.error_code] for row in came), line.key


def test_a_partition_that_a_response_leaves_out_returned_nothing(lake: CapturedLake) -> None:
    t = FETCH_PARTITIONS
    left_out = f"{t.response_position} IS NULL AND {t.response_session_id} IS NOT NULL"
    assert [row for row in lake.rows(t, t.returned_bytes, where=left_out) if row[t.returned_bytes] != 0] == []


def test_batches_of_a_fetch_are_the_bytes_it_returned(lake: CapturedLake) -> None:
    t, b = FETCH_PARTITIONS, RECORD_BATCHES
    key = (t.connection_id, t.exchange_no, t.topic, t.partition)
    returned = {
        tuple(row[c] for c in key): row[t.returned_bytes]
        for row in lake.rows(t, *key, t.returned_bytes, where=f"{t.returned_bytes} > 0")
    }
    summed: Counter[tuple[Any, ...]] = Counter()
    for row in lake.rows(b, *key, b.available_bytes, where=f"{b.source} = 'fetch'"):
        summed[tuple(row[c] for c in key)] += row[b.available_bytes]
    assert dict(summed) == returned


def test_what_a_produce_request_brought_is_what_the_broker_logged(lake: CapturedLake) -> None:
    b = RECORD_BATCHES
    batches = by_exchange(lake.rows(b, where=f"{b.source} = 'produce'"))
    produced = in_both(lake, PRODUCE)
    for line, exchange in produced:
        brought: Counter[Partition] = Counter()
        for row in batches[exchange_of(exchange)]:
            brought[partition_named_as(line, row)] += row[b.available_bytes]
            assert row[b.acks] == line.request["acks"], line.key
        assert brought == produced_partitions(line.request), line.key
    assert produced


def test_where_and_whether_a_batch_was_appended_is_what_the_broker_logged(lake: CapturedLake) -> None:
    b = RECORD_BATCHES
    batches = by_exchange(lake.rows(b, where=f"{b.source} = 'produce'"))
    for line, exchange in answered_in_both(lake, PRODUCE):
        answers = {
            (topic.get("topicId") or topic["name"], part["index"]): part
            for topic in line.response.get("responses", [])
            for part in topic["partitionResponses"]
        }
        for row in batches[exchange_of(exchange)]:
            if answers and row[b.position] == 0:
                part = answers[partition_named_as(line, row)]
                assert row[b.error_code] == part["errorCode"], line.key
                appended_at = part["baseOffset"] if part["baseOffset"] >= 0 else None
                assert row[b.base_offset] == appended_at, line.key


def test_every_batch_of_the_capture_is_sound(lake: CapturedLake) -> None:
    b = RECORD_BATCHES
    rows = lake.rows(b, b.magic, b.is_cut, b.crc_valid, b.size_bytes, b.available_bytes)
    assert [row for row in rows if not row[b.is_cut] and (row[b.magic], row[b.crc_valid]) != (2, True)] == []
    assert [row for row in rows if not row[b.is_cut] and row[b.size_bytes] != row[b.available_bytes]] == []


def test_every_byte_is_in_an_exchange_or_named_as_lost(lake: CapturedLake) -> None:
    c, x, q = CONNECTIONS, EXCHANGES, QUARANTINE
    (capture,) = lake.rows(CAPTURES)
    connections, exchanges = lake.rows(c), lake.rows(x)
    by_connection: Counter[int] = Counter()
    for row in exchanges:
        by_connection[row[x.connection_id]] += row[x.request_bytes] + row[x.response_bytes]
    for row in connections:
        parts = (c.framed_bytes, c.unframed_bytes, c.repeated_bytes, c.late_bytes)
        assert row[c.payload_bytes] == sum(row[part] for part in parts), row
        assert row[c.framed_bytes] == by_connection[row[c.connection_id]], row
    assert capture[CAPTURES.tcp_captured_bytes] == sum(row[c.payload_bytes] for row in connections)
    assert capture[CAPTURES.tcp_captured_bytes] == capture[CAPTURES.tcp_payload_bytes]
    unframed = sum(row[q.bytes] for row in lake.rows(q) if row[q.exchange_no] is None)
    kafka = [row for row in connections if row[c.protocol] == "kafka"]
    assert unframed == sum(row[c.unframed_bytes] for row in kafka)


def test_nothing_of_a_whole_capture_is_lost(lake: CapturedLake) -> None:
    c = CONNECTIONS
    assert {row[c.protocol] for row in lake.rows(c) if row[c.payload_bytes]} == {"kafka"}
    assert [row for row in lake.rows(c) if row[c.missing_bytes] or row[c.unframed_bytes] or row[c.late_bytes]] == []
    assert lake.rows(QUARANTINE) == []
    assert [row for row in lake.rows(EXCHANGES) if row[EXCHANGES.decode_fault] is not None] == []


def test_brokers_and_topics_have_their_names(lake: CapturedLake) -> None:
    """A topic that no Metadata response names has its id as name. Only followers fetch such topics here."""
    x, t, m = EXCHANGES, FETCH_PARTITIONS, CLUSTER_METADATA
    assert {row[x.broker] for row in lake.rows(x)} <= {"1", "2", "3"}
    named = {row[m.topic_id]: row[m.topic] for row in lake.rows(m, m.topic, m.topic_id) if row[m.topic_id]}
    topics = {(row[t.topic], row[t.topic_id], row[t.reader]) for row in lake.rows(t, t.topic, t.topic_id, t.reader)}
    assert [row for row in topics if row[0] != named.get(row[1], row[1])] == []
    assert {reader for topic, topic_id, reader in topics if topic == topic_id} <= {"follower"}


def test_the_clients_software_is_what_the_broker_logged(lake: CapturedLake) -> None:
    """It is what ApiVersions requests since version 3 say. For other clients a broker logs `unknown`."""
    x = EXCHANGES
    for line, row in [(line, lake.exchanges.get(line.key)) for line in lake.logged.values() if line.api_key == 18]:
        if row is not None:
            assert row[x.client_software_name] == line.request.get("clientSoftwareName"), line.key
            assert row[x.client_software_version] == line.request.get("clientSoftwareVersion"), line.key


def open_fidelity(lake: CapturedLake) -> Rows:
    """The rows about single fetches; test_closed_loop checks those about the closed loop."""
    return lake.rows(
        FIDELITY, where=f"{FIDELITY.algorithm} = '{algorithms.FETCH_MAX_BYTES}' AND {FIDELITY.metric} LIKE '%fetches%'"
    )


def fidelity(lake: CapturedLake, reader: str) -> Rows:
    return [row for row in open_fidelity(lake) if row[FIDELITY.reader] == reader]


def test_every_fetch_of_the_capture_is_checked_or_unknown(lake: CapturedLake) -> None:
    f, t = FIDELITY, FETCH_PARTITIONS
    judged = sum(row[f.checked] + row[f.unknown] for row in open_fidelity(lake))
    wanted = lake.rows(
        t, t.connection_id, t.exchange_no, where=f"{t.read_position} IS NOT NULL AND {t.fetch_offset} IS NOT NULL"
    )
    assert judged == len({exchange_of(row) for row in wanted})
    for row in open_fidelity(lake):
        assert row[f.agreed] <= row[f.checked], row
        assert sum(count for _, count in row[f.reasons]) == row[f.checked] - row[f.agreed] + row[f.unknown], row


def test_consumers_get_in_the_replay_what_they_got_in_the_capture(lake: CapturedLake) -> None:
    """Every byte of every partition agrees in every response with records, and nothing is unknown."""
    f = FIDELITY
    rows = [row for row in fidelity(lake, "consumer") if row[f.metric] == "fetches_with_records"]
    assert [row for row in rows if (row[f.checked], row[f.unknown]) != (row[f.agreed], 0)] == []
    got = lake.rows(FETCH_PARTITIONS, where="reader = 'consumer' AND returned_bytes > 0")
    assert sum(row[f.checked] for row in rows) == len({exchange_of(row) for row in got})


def test_consumers_get_nothing_in_the_replay_where_they_got_nothing_in_the_capture(lake: CapturedLake) -> None:
    f = FIDELITY
    rows = [row for row in fidelity(lake, "consumer") if row[f.metric] == "empty_fetches"]
    assert [row for row in rows if row[f.checked] != row[f.agreed]] == []


def test_followers_agree_wherever_the_capture_orders_append_and_read(lake: CapturedLake) -> None:
    f = FIDELITY
    rows = fidelity(lake, "follower")
    checked, agreed = sum(row[f.checked] for row in rows), sum(row[f.agreed] for row in rows)
    assert agreed >= 0.99 * checked
    known = OPEN_FETCHES.counted_as("unknown")
    for row in rows:
        unknown = sum(count for reason, count in row[f.reasons] if reason in known)
        assert unknown == row[f.unknown], row


def test_the_run_says_what_it_assumed(lake: CapturedLake) -> None:
    (run,) = lake.rows(RUNS, where=f"{RUNS.algorithm} = 'fetch_max_bytes'")
    assert (run[RUNS.run_id], run[RUNS.capture_id]) == (lake.run_id, lake.capture_id)
    assert "broker.fetch.max.bytes" in run[RUNS.assumed]


@pytest.fixture(scope="session")
def starve(captured: Callable[[str], CapturedLake]) -> CapturedLake:
    return captured("starve")


def consumers(lake: CapturedLake, lane: str) -> dict[str, dict[str, Any]]:
    """Each consumer's row of a lane."""
    c = FETCH_CONSUMERS
    rows = [
        row for row in lake.rows(c, where="mode = 'open'") if row[c.reader] == "consumer" and row[c.scenario] == lane
    ]
    assert rows
    return {row[c.client_id]: row for row in rows}


def test_a_smaller_fetch_max_bytes_bounds_every_response(starve: CapturedLake) -> None:
    """The exception is a first batch, which comes whole however large it is."""
    b, c = RECORD_BATCHES, FETCH_CONSUMERS
    largest_batch = max(row[b.size_bytes] for row in starve.rows(b, b.size_bytes, where=f"{b.size_bytes} IS NOT NULL"))
    for limit, lane in ((32 << 10, "consumer.fetch.max.bytes=32KiB"), (128 << 10, "consumer.fetch.max.bytes=128KiB")):
        for client, row in consumers(starve, lane).items():
            most = largest_batch if row[c.first_batch_overrides] else limit
            assert row[c.response_bytes_max] <= max(limit, most), (lane, client)


def test_a_smaller_fetch_max_bytes_starves_more(starve: CapturedLake) -> None:
    c = FETCH_CONSUMERS
    lanes = [f"consumer.fetch.max.bytes={limit}" for limit in ("32KiB", "128KiB", "50MiB")]
    small, medium, large = (consumers(starve, lane) for lane in lanes)
    for client in small:
        rows = (small[client], medium[client], large[client])
        empty = [row[c.empty_though_available] for row in rows]
        assert empty == sorted(empty, reverse=True), client
        assert [row[c.bytes] for row in rows] == sorted(row[c.bytes] for row in rows), client
    assert sum(row[c.empty_though_available] for row in small.values()) > sum(
        row[c.empty_though_available] for row in large.values()
    )


def test_the_captured_lane_returns_what_was_captured(starve: CapturedLake) -> None:
    t, c = FETCH_PARTITIONS, FETCH_CONSUMERS
    got: Counter[str] = Counter()
    for row in starve.rows(t, t.client_id, t.returned_bytes, where=f"{t.reader} = 'consumer'"):
        got[row[t.client_id]] += row[t.returned_bytes] or 0
    assert {client: row[c.bytes] for client, row in consumers(starve, "captured").items()} == dict(got)
