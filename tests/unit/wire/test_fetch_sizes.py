"""The sizes of fetches are those of messages that a plain encoder writes."""

from __future__ import annotations

from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.wire.fetch import FETCH_REQUEST, FETCH_RESPONSE
from tests.bench.capture_frames import with_defaults
from tests.unit.wire.reference import Struct, encode, encode_length, within
from udfs.columns.records import new_records
from udfs.wire.fetch_sizes import (
    TALLY,
    fetch_sizes,
    length_beyond_least,
    name_bytes,
    record_length_bytes,
    tallied_bytes,
    tally_partitions,
)

VERSIONS = range(19)


def topic_of(path: str, name: bytes, partitions: list[Struct]) -> Struct:
    message = FETCH_RESPONSE if path == "responses" else FETCH_REQUEST
    return with_defaults(message, path) | {"topic": name, "topic_id": bytes(16), "partitions": partitions}


def request_bytes(version: int, **fields: object) -> int:
    return len(encode(FETCH_REQUEST, version, with_defaults(FETCH_REQUEST) | fields))


def response_bytes(version: int, responses: list[Struct]) -> int:
    return len(encode(FETCH_RESPONSE, version, with_defaults(FETCH_RESPONSE) | {"responses": responses}))


@pytest.mark.parametrize("version", VERSIONS)
def test_empty_messages_and_elements_have_the_bytes_that_are_written_for_them(version: int) -> None:
    sizes = fetch_sizes()
    partition = with_defaults(FETCH_REQUEST, "topics.partitions")
    returned = with_defaults(FETCH_RESPONSE, "responses.partitions")
    empty, answer = request_bytes(version), response_bytes(version, [])
    topic, response = topic_of("topics", b"", []), topic_of("responses", b"", [])
    assert len(sizes.request) == len(VERSIONS)
    assert sizes.is_flexible[version] == within(version, FETCH_REQUEST.flexible)
    assert (sizes.request[version], sizes.response[version]) == (empty, answer)
    with_topic = request_bytes(version, topics=[topic])
    assert sizes.request_topic[version] == with_topic - empty
    with_partition = request_bytes(version, topics=[topic | {"partitions": [partition]}])
    assert sizes.request_partition[version] == with_partition - with_topic
    assert sizes.response_topic[version] == response_bytes(version, [response]) - answer
    with_returned = response_bytes(version, [response | {"partitions": [returned]}])
    assert sizes.response_partition[version] == with_returned - response_bytes(version, [response])
    if version >= 7:
        forgotten = [topic_of("forgotten_topics_data", b"", [])]
        assert sizes.forgotten_topic[version] == request_bytes(version, forgotten_topics_data=forgotten) - empty


LENGTHS = st.integers(0, 300) | st.sampled_from([2**14 - 2, 2**14 - 1, 2**14, 2**21 - 2, 2**21 - 1, 2**28])


@given(LENGTHS, st.sampled_from(VERSIONS))
def test_longer_lengths_take_more_bytes_only_in_flexible_versions(length: int, version: int) -> None:
    flexible = within(version, FETCH_REQUEST.flexible)
    more = len(encode_length(length, 4, flexible)) - len(encode_length(0, 4, flexible))
    assert length_beyond_least(length, flexible) == more
    assert record_length_bytes(length, flexible) == length + more
    assert name_bytes(length, version, flexible) == (length + more if version < 13 else 0)


COUNTS = st.sampled_from([0, 1, 2, 126, 127, 128])
LISTED = st.lists(st.tuples(st.integers(0, 2), COUNTS), max_size=5)


@settings(max_examples=60)
@given(LISTED, st.sampled_from([4, 11, 12, 13, 18]))
def test_partitions_that_are_tallied_take_the_bytes_of_their_list(listed: list[tuple[int, int]], version: int) -> None:
    sizes, flexible = fetch_sizes(), within(version, FETCH_REQUEST.flexible)
    partition = with_defaults(FETCH_REQUEST, "topics.partitions")
    names = [b"", b"orders", b"x" * 127]
    held = new_records(TALLY, 1)
    for topic, count in listed:
        of_topic = int(sizes.request_topic[version]) + name_bytes(len(names[topic]), version, flexible)
        tally_partitions(held[0], topic, of_topic, count, count * int(sizes.request_partition[version]), flexible)
    in_topics = [
        (topic, sum(count for _, count in of)) for topic, of in groupby([e for e in listed if e[1]], lambda e: e[0])
    ]
    topics = [topic_of("topics", names[topic], [partition] * count) for topic, count in in_topics]
    written = request_bytes(version, topics=topics) - request_bytes(version)
    assert tallied_bytes(held[0], flexible) == written
    assert held[["topics", "partitions"]].tolist() == [(len(topics), sum(count for _, count in in_topics))]


@pytest.mark.parametrize("count", [126, 127])
def test_a_list_of_many_topics_has_a_longer_length_in_flexible_versions(count: int) -> None:
    version, held, sizes = 12, new_records(TALLY, 1), fetch_sizes()
    for topic in range(count):
        tally_partitions(held[0], topic, int(sizes.request_topic[version]), 1, int(sizes.request_partition[version]), 1)
    partition = with_defaults(FETCH_REQUEST, "topics.partitions")
    written = request_bytes(version, topics=[topic_of("topics", b"", [partition])] * count)
    assert tallied_bytes(held[0], 1) == written - request_bytes(version)
