"""Rows of the silver tables from Fetch, Produce and Metadata messages on the wire."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from schemas.wire.api_versions import API_VERSIONS_REQUEST, API_VERSIONS_RESPONSE
from schemas.wire.apis import API_KEYS
from schemas.wire.fetch import FETCH_REQUEST, FETCH_RESPONSE
from schemas.wire.join_group import JOIN_GROUP_REQUEST
from schemas.wire.metadata import METADATA_REQUEST, METADATA_RESPONSE
from schemas.wire.produce import PRODUCE_REQUEST, PRODUCE_RESPONSE
from schemas.wire.vendors import ALWAYS_OFFERED, NEWEST_VERSIONS
from tests.unit.capture.conversations import asks, request
from tests.unit.facts.brokers import TOPIC_ID, answered, asked, tables, turns
from tests.unit.wire.test_message_sets import inner, wrapper
from tests.unit.wire.test_record_batches import message, record_batch

BATCH = record_batch(base_offset=100, count=3)
Rows = list[dict[str, Any]]


def wanted(topic: bytes, *partitions: int, **values: Any) -> dict[str, Any]:
    return {"topic": topic, "partitions": [{"partition": p, "partition_max_bytes": 1000, **values} for p in partitions]}


def returned(topic: bytes, *partitions: tuple[int, bytes], **values: Any) -> dict[str, Any]:
    return {
        "topic": topic,
        "partitions": [{"partition_index": p, "high_watermark": 200, "records": r, **values} for p, r in partitions],
    }


def fetched(
    topics: list[dict[str, Any]],
    responses: list[dict[str, Any]],
    *,
    version: int = 12,
    correlation_id: int = 1,
    session: tuple[int, int] = (0, -1),
    answer: tuple[int, int] = (0, 0),
    throttle: int = 0,
    **values: Any,
) -> tuple[bytes, bytes]:
    """A fetch and its response; session and answer: (id, epoch) and (id, error)."""
    return (
        asked(
            FETCH_REQUEST,
            version,
            correlation_id,
            topics=topics,
            max_bytes=5000,
            session_id=session[0],
            session_epoch=session[1],
            **values,
        ),
        answered(
            FETCH_RESPONSE,
            version,
            correlation_id,
            responses=responses,
            session_id=answer[0],
            error_code=answer[1],
            throttle_time_ms=throttle,
        ),
    )


def fetch_rows(*exchanges: tuple[bytes, bytes], rows: int = 50_000) -> Rows:
    found = tables(*turns(*(content for exchange in exchanges for content in exchange)), rows=rows)["fetch_partitions"]
    return sorted(found, key=lambda row: (row["exchange_no"], row["read_position"] is None, row["read_position"]))


def test_a_fetch_has_a_row_for_each_partition_with_what_was_asked_for_and_returned() -> None:
    exchange = fetched(
        [wanted(b"clicks", 1, 0, fetch_offset=100), wanted(b"views", 0)],
        [returned(b"views", (0, b"")), returned(b"clicks", (0, BATCH * 2))],
    )
    rows = fetch_rows(exchange)
    assert [(row["topic"], row["partition"], row["read_position"], row["request_position"]) for row in rows] == [
        ("clicks", 1, 0, 0),
        ("clicks", 0, 1, 1),
        ("views", 0, 2, 2),
    ]
    assert [row["returned_bytes"] for row in rows] == [0, 2 * len(BATCH), 0]
    assert [row["response_position"] for row in rows] == [None, 1, 0]
    assert {(row["reader"], row["kind"], row["max_bytes"], row["client_id"]) for row in rows} == {
        ("consumer", "sessionless", 5000, "app")
    }
    assert {row["response_record_bytes"] for row in rows} == {2 * len(BATCH)}
    assert [row["fetch_offset"] for row in rows] == [100, 100, 0]


@pytest.mark.parametrize(
    ("version", "values", "replica_id"),
    [
        (12, {"replica_id": 2}, 2),
        (12, {"replica_id": 0}, 0),
        (17, {"replica_state": {"replica_id": 2, "replica_epoch": 5}}, 2),
    ],
)
def test_a_follower_is_known_by_its_replica_id_wherever_the_version_has_it(
    version: int, values: dict[str, Any], replica_id: int
) -> None:
    topics = [{"topic_id": TOPIC_ID, **wanted(b"", 0)}] if version > 12 else [wanted(b"t", 0)]
    (row,) = fetch_rows(fetched(topics, [], version=version, **values))
    assert (row["reader"], row["replica_id"]) == ("follower", replica_id)


def test_the_rows_of_a_session_name_what_the_fetch_leaves_out() -> None:
    opened = fetched([wanted(b"t", 0, 1)], [returned(b"t", (0, b""), (1, b""))], session=(0, 0), answer=(77, 0))
    first = fetched(
        [], [returned(b"t", (0, BATCH), high_watermark=300)], correlation_id=2, session=(77, 1), answer=(77, 0)
    )
    second = fetched([wanted(b"t", 0, fetch_offset=103)], [], correlation_id=3, session=(77, 2), answer=(77, 0))
    rows = fetch_rows(opened, first, second)
    assert [(row["exchange_no"], row["partition"], row["request_position"]) for row in rows] == [
        (0, 0, 0),
        (0, 1, 1),
        (1, 0, None),
        (1, 1, None),
        (2, 1, None),
        (2, 0, 0),
    ]
    assert [row["high_watermark"] for row in rows] == [200, 200, 300, 200, 200, 300]
    assert [row["kind"] for row in rows][::2] == ["full", "incremental", "incremental"]
    assert all(row["session_known"] for row in rows)
    assert fetch_rows(opened, first, second, rows=1) == rows


@pytest.mark.parametrize("error", [70, 71, 106])
def test_a_refused_fetch_keeps_its_error_and_reads_nothing(error: int) -> None:
    (row,) = fetch_rows(fetched([wanted(b"t", 0)], [], session=(77, 4), answer=(0, error)))
    assert (row["response_error_code"], row["read_position"], row["session_known"]) == (error, None, False)


def test_a_fetch_refused_for_its_topic_ids_belongs_to_the_session_that_the_capture_shows() -> None:
    opened = fetched([wanted(b"t", 0)], [returned(b"t", (0, b""))], session=(0, 0), answer=(77, 0), version=12)
    topics = [{"topic_id": TOPIC_ID, **wanted(b"", 0)}]
    by_id = fetched(topics, [], correlation_id=2, session=(77, 1), answer=(0, 106), version=13)
    row = fetch_rows(opened, by_id)[-1]
    assert (row["response_error_code"], row["read_position"], row["session_known"]) == (106, None, True)


def test_a_throttled_fetch_says_for_how_long() -> None:
    (row,) = fetch_rows(fetched([wanted(b"t", 0)], [], throttle=250))
    assert row["throttle_time_ms"] == 250


def test_a_partition_s_aborted_transactions_are_named_with_their_producers_and_first_offsets() -> None:
    aborted = [{"producer_id": 7, "first_offset": 40}, {"producer_id": 8, "first_offset": 12}]
    answer = [returned(b"t", (0, b"")), returned(b"u", (0, b""), aborted_transactions=aborted)]
    rows = fetch_rows(fetched([wanted(b"t", 0), wanted(b"u", 0), wanted(b"v", 0)], answer))
    named = [(row["aborted_producer_ids"], row["aborted_first_offsets"]) for row in rows]
    assert named == [(None, None), ([7, 8], [40, 12]), (None, None)]


def test_an_unanswered_fetch_has_no_returned_bytes() -> None:
    (row,) = tables(*turns(fetched([wanted(b"t", 0)], [])[0]))["fetch_partitions"]
    assert (row["returned_bytes"], row["response_time"], row["error_code"]) == (None, None, None)


def test_topics_by_id_have_the_id_as_kafka_prints_it() -> None:
    topics = [{"topic_id": TOPIC_ID, "partitions": [{"partition": 0}]}]
    responses = [{"topic_id": TOPIC_ID, "partitions": [{"partition_index": 0, "records": BATCH}]}]
    found = tables(*turns(*fetched(topics, responses, version=13)))
    assert {(row["topic"], row["topic_id"]) for row in found["fetch_partitions"]} == {(None, "AAECAwQFBgcICQoLDA0ODw")}
    assert {(row["topic"], row["topic_id"]) for row in found["record_batches"]} == {(None, "AAECAwQFBgcICQoLDA0ODw")}


def test_names_that_are_not_utf_8_are_kept_with_replacement_characters() -> None:
    (row,) = fetch_rows(fetched([wanted(b"bad\xff", 0)], []))
    assert row["topic"] == "bad\ufffd"


def test_fetched_batches_have_the_offsets_they_say_and_a_cut_one_is_marked() -> None:
    found = tables(*turns(*fetched([wanted(b"t", 0)], [returned(b"t", (0, BATCH + BATCH[:30]))])))["record_batches"]
    rows = in_order(found)
    assert [(row["position"], row["base_offset"], row["size_bytes"], row["available_bytes"]) for row in rows] == [
        (0, 100, len(BATCH), len(BATCH)),
        (1, 100, len(BATCH), 30),
    ]
    assert [(row["is_cut"], row["crc_valid"], row["record_count"]) for row in rows] == [
        (False, True, 3),
        (True, None, None),
    ]
    assert {row["source"] for row in rows} == {"fetch"}


def in_order(rows: Rows) -> Rows:
    return sorted(rows, key=lambda row: int(row["position"]))


def produced(acks: int, *errors_and_offsets: tuple[int, int], is_answered: bool = True) -> Rows:
    """Batches of a Produce request to partitions 0, 1, ... of two topics."""
    n = len(errors_and_offsets)
    topics = [
        {"name": name, "partition_data": [{"index": i, "records": BATCH} for i in range(n)]} for name in (b"a", b"b")
    ]
    responses = [
        {
            "name": name,
            "partition_responses": [
                {"index": i, "error_code": e, "base_offset": o}
                for i, (e, o) in reversed(list(enumerate(errors_and_offsets)))
            ],
        }
        for name in (b"b", b"a")
    ]
    reply = answered(PRODUCE_RESPONSE, 8, 1, responses=responses) if is_answered else b""
    return tables(*turns(asked(PRODUCE_REQUEST, 8, 1, acks=acks, topic_data=topics), reply))["record_batches"]


def test_produced_batches_have_the_offsets_their_response_assigns_partition_by_partition() -> None:
    rows = produced(-1, (0, 1000), (10, -1), (0, 3000))
    assert sorted(
        (row["topic"], row["partition"], row["base_offset"], row["error_code"]) for row in rows if row["topic"] == "a"
    ) == [
        ("a", 0, 1000, 0),
        ("a", 1, None, 10),
        ("a", 2, 3000, 0),
    ]
    assert {(row["source"], row["acks"]) for row in rows} == {("produce", -1)}
    assert len(rows) == 6


@pytest.mark.parametrize(("acks", "status"), [(0, "no_response"), (1, "unanswered")])
def test_produced_batches_without_response_have_no_offset(acks: int, status: str) -> None:
    rows = produced(acks, (0, 1), is_answered=False)
    assert {(row["base_offset"], row["error_code"], row["acks"]) for row in rows} == {(None, None, acks)}


def test_messages_of_a_produced_set_get_offsets_one_after_the_other() -> None:
    """Before Kafka 0.11 a producer may send many entries; a broker counts on from the offset it assigns."""
    entries = message(0, offset=0) + wrapper(1, 2, inner(1, 0, 1, 2)) + wrapper(1, 0, b"") + message(0, offset=0)
    request = asked(
        PRODUCE_REQUEST, 2, 1, acks=1, topic_data=[{"name": b"t", "partition_data": [{"index": 0, "records": entries}]}]
    )
    answer = {"name": b"t", "partition_responses": [{"index": 0, "base_offset": 1000}]}
    rows = tables(*turns(request, answered(PRODUCE_RESPONSE, 2, 1, responses=[answer])))["record_batches"]
    assert [(row["base_offset"], row["last_offset_delta"], row["record_count"]) for row in in_order(rows)] == [
        (1000, 0, 1),
        (1001, 2, 3),
        (1004, None, None),
        (None, 0, 1),
    ]
    assert [row["records_fault"] for row in in_order(rows)] == [None, None, "bad_records", None]


def test_a_fetched_wrapper_has_the_offsets_and_size_of_the_messages_in_it() -> None:
    whole = wrapper(1, 12, inner(1, 0, 1, 2))
    answer = [returned(b"t", (0, whole + whole[:-1]))]
    first, cut = in_order(tables(*turns(*fetched([wanted(b"t", 0)], answer, version=2)))["record_batches"])
    assert (first["base_offset"], first["last_offset_delta"], first["record_count"]) == (10, 2, 3)
    assert (first["uncompressed_bytes"], first["records_fault"]) == (len(inner(1, 0, 1, 2)), None)
    assert (cut["base_offset"], cut["last_offset_delta"], cut["records_fault"]) == (None, None, "cut")
    assert cut["size_bytes"] == len(whole)


METADATA = turns(
    asked(METADATA_REQUEST, 12, 1),
    answered(
        METADATA_RESPONSE,
        12,
        1,
        brokers=[
            {"node_id": 3, "host": b"kafka-3", "port": 9092, "rack": b"r1"},
            {"node_id": 1, "host": b"kafka-1", "port": 9093},
        ],
        topics=[
            {"name": b"gone", "error_code": 3, "topic_id": bytes(16)},
            {
                "name": b"t",
                "topic_id": TOPIC_ID,
                "is_internal": True,
                "partitions": [
                    {"partition_index": 4, "leader_id": 3, "leader_epoch": 9, "replica_nodes": [3, 1], "isr_nodes": [3]}
                ],
            },
        ],
    ),
)


def test_metadata_has_a_row_for_each_broker_each_partition_and_each_topic_without_partitions() -> None:
    rows = tables(*METADATA)["cluster_metadata"]
    by_entry = {
        kind: sorted((row for row in rows if row["entry"] == kind), key=lambda row: row["position"])
        for kind in ("broker", "topic", "partition")
    }
    assert [(row["node_id"], row["host"], row["port"], row["rack"]) for row in by_entry["broker"]] == [
        (3, "kafka-3", 9092, "r1"),
        (1, "kafka-1", 9093, None),
    ]
    assert [(row["topic"], row["error_code"], row["topic_id"]) for row in by_entry["topic"]] == [("gone", 3, None)]
    (row,) = by_entry["partition"]
    assert (row["topic"], row["topic_id"], row["is_internal"]) == ("t", "AAECAwQFBgcICQoLDA0ODw", True)
    assert (row["partition"], row["leader_id"], row["leader_epoch"], row["replica_nodes"], row["isr_nodes"]) == (
        4,
        3,
        9,
        [3, 1],
        [3],
    )


def test_a_topic_counts_as_named_if_the_request_asks_for_some_topics_and_not_for_all() -> None:
    topics = [{"name": b"t", "partitions": [{"partition_index": 0}]}, {"name": b"gone", "error_code": 3}]
    some, everything = [{"name": b"t"}, {"name": b"gone"}], None
    exchanges = [
        turn
        for number, names in enumerate((some, everything))
        for turn in (
            asked(METADATA_REQUEST, 9, number, topics=names), answered(METADATA_RESPONSE, 9, number, topics=topics)
        )
    ]  # fmt: skip
    rows = tables(*turns(*exchanges))["cluster_metadata"]
    assert {(row["exchange_no"], row["topic"], row["is_named"]) for row in rows} == {
        (0, "t", True), (0, "gone", True), (1, "t", False), (1, "gone", False),
    }  # fmt: skip


def offering(*versions: tuple[int, int]) -> list[dict[str, int]]:
    """APIs and the newest version of each."""
    return [{"api_key": key, "min_version": 0, "max_version": version} for key, version in versions]


@pytest.mark.parametrize(
    ("offered", "release"),
    [
        (((1, 18), (2, 11), (3, 13), (35, 5), (42, 2)), ["4.3"]),
        (((1, 11), (3, 9), (11, 6)), ["2.3"]),
        (((1, 3), (3, 2), (9, 2), (18, 0)), ["0.10.2"]),
        (((1, 2), (3, 1), (18, 0)), ["0.10.0"]),
        (((1, 18), (52, 2)), []),
    ],
    ids=["newest mark", "fetch sessions", "no fetch sessions yet", "oldest mark", "a controller"],
)  # fmt: skip
def test_a_brokers_release_is_known_by_the_versions_that_it_offers(
    offered: tuple[tuple[int, int], ...], release: list[str]
) -> None:
    both = asked(API_VERSIONS_REQUEST, 3, 1), answered(API_VERSIONS_RESPONSE, 3, 1, api_keys=offering(*offered))
    rows = tables(*turns(*both))["cluster_metadata"]
    assert [(row["entry"], row["release"]) for row in rows] == [("release", of) for of in release]


def vendors_in_rows(*offers: list[dict[str, int]]) -> list[str | None]:
    """The vendors in the rows from ApiVersions responses with these APIs."""
    exchanges = [
        turn
        for number, offer in enumerate(offers)
        for turn in (
            asked(API_VERSIONS_REQUEST, 3, number), answered(API_VERSIONS_RESPONSE, 3, number, api_keys=offer)
        )
    ]  # fmt: skip
    return [row["vendor"] for row in tables(*turns(*exchanges))["cluster_metadata"]]


def offer_of(release: str, **others: int) -> list[dict[str, int]]:
    """The APIs that a release of Apache Kafka always offers. others: APIs that it offers up to another version."""
    newest = dict(zip(ALWAYS_OFFERED, NEWEST_VERSIONS[release], strict=True)) | others
    return offering(*((API_KEYS[api], version) for api, version in newest.items()))


def between(before: str, behind: str, choice: int) -> list[dict[str, int]]:
    """What a build between two releases may offer. choice: bit N is 1 if the Nth API is as in the later release."""
    pairs = zip(ALWAYS_OFFERED, NEWEST_VERSIONS[before], NEWEST_VERSIONS[behind], strict=True)
    return offering(*((API_KEYS[api], pair[choice >> n & 1]) for n, (api, *pair) in enumerate(pairs)))


def test_brokers_of_apache_kafka_never_get_another_vendor() -> None:
    """Brokers of all releases, of builds between two, of later releases, and those for which a proxy hides APIs."""
    releases = list(NEWEST_VERSIONS)
    apaches = [offer_of(release) for release in releases]
    for before, behind in pairwise(releases):
        apaches += [between(before, behind, choice) for choice in (0b10101010101010, 0b01010101010101, 0b11, 0b1 << 13)]
    apaches += [offer_of(releases[-1], FETCH=19, API_VERSIONS=6), offer_of(releases[-1], PRODUCE=99)]
    apaches += [[of for of in offer_of("3.9") if of["api_key"] != API_KEYS[hidden]] for hidden in ALWAYS_OFFERED[4:]]
    apaches += [offer_of("4.4") + offering((95, 0), (499, 3)), offering((0, 9), (1, 12), (3, 11))]
    assert vendors_in_rows(*apaches) == [None] * len(apaches)


REDPANDA_24_3 = {
    0: (0, 7), 1: (4, 11), 2: (0, 4), 3: (0, 8), 8: (1, 8), 9: (1, 7), 10: (0, 3), 11: (0, 6), 12: (0, 4), 13: (0, 4),
    14: (0, 4), 15: (0, 5), 16: (0, 4), 18: (0, 3), 19: (0, 6), 35: (0, 2), 42: (0, 2),
}  # fmt: skip
REDPANDA_21_4 = {
    0: (3, 7), 1: (4, 11), 2: (0, 3), 3: (0, 7), 8: (1, 7), 9: (1, 4), 10: (0, 2), 11: (0, 4), 12: (0, 3), 13: (0, 2),
    14: (0, 3), 15: (0, 2), 16: (0, 2), 18: (0, 2),
}  # fmt: skip
"""By API, what `src/v/kafka/server/handlers` of redpanda-data/redpanda declares at the tags v24.3.1 and v21.4.12."""


def test_brokers_that_are_not_apache_kafkas_are_known_by_their_versions_and_keys() -> None:
    redpanda = [
        [{"api_key": key, "min_version": first, "max_version": last} for key, (first, last) in of.items()]
        for of in (REDPANDA_21_4, REDPANDA_24_3)
    ]
    oldest = [of | {"min_version": 0} for of in redpanda[1]]
    assert vendors_in_rows(*redpanda, oldest) == ["redpanda", "redpanda", "other"]
    own = [(501, 1), (520, 0), (602, 0), (10_000, 0), (14_999, 2), (15_000, 0), (32_767, 0)]
    assert vendors_in_rows(*(offer_of("3.9") + offering(key) for key in own)) == [
        "automq", "automq", "automq", "confluent", "confluent", "redpanda", "redpanda"
    ]  # fmt: skip
    others = [offer_of("3.9", FETCH=18), offer_of("2.6", PRODUCE=7), offer_of("4.4", METADATA=12)]
    assert vendors_in_rows(*others) == ["other"] * len(others)


def test_a_body_that_cannot_be_decoded_is_an_exchange_and_in_quarantine() -> None:
    found = tables(asks(request(1)), asks(request(2, b"\xff\xff\xff", key=1, version=11)))
    assert [row["status"] for row in found["exchanges"]] == ["unanswered", "unanswered"]
    assert [(row["direction"], row["reason"], row["exchange_no"]) for row in found["quarantine"]] == [
        ("request", "undecodable", 1)
    ]
    assert len({row["decode_fault"] for row in found["exchanges"]}) == 2


def test_exchanges_name_the_group_and_member_that_they_come_from() -> None:
    joins = [
        asks(asked(JOIN_GROUP_REQUEST, 5, n, group_id=b"readers", member_id=member))
        for n, member in enumerate((b"", b"app-1"), 1)
    ]
    for rows in (1, 50_000):
        found = tables(*joins, asks(request(3)), rows=rows)["exchanges"]
        named = {(row["correlation_id"], row["group_id"], row["member_id"]) for row in found}
        assert named == {(1, "readers", None), (2, "readers", "app-1"), (3, None, None)}


def test_no_table_has_a_byte_of_payload() -> None:
    secret = record_batch(records=b"4111-1111-1111-1111")
    found = tables(
        *turns(*fetched([wanted(b"t", 0)], [returned(b"t", (0, secret))])), asks(request(5, b"4111-1111-1111-1111"))
    )
    assert sum(map(len, found.values())) > 4
    assert "4111" not in repr(dict(found))
