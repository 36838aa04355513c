"""How many bytes Fetch requests and responses take in each version, computed from their declarations.

A size is that of a message's body without the header; tagged fields have their defaults.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from schemas.wire.fetch import FETCH_REQUEST, FETCH_RESPONSE
from schemas.wire.message import Field, Message
from udfs.columns.arrays import Ints, Record, read_only
from udfs.kernels.kernel import kernel
from udfs.wire.encoding import least_bytes
from udfs.wire.layout import is_version_in, newest_version

FIRST_WITH_TOPIC_IDS = 13
FORGOTTEN_BYTES = 4
VARINT_BITS = 7

TALLY = np.dtype(
    [(name, np.int64) for name in ("topic", "topics", "partitions", "in_topic", "bytes")],
    align=True,
)
"""A list of partitions while it is written. Neighbouring partitions of a topic share its name.

topic: that of the last partition. topics, partitions: how many were written. in_topic: partitions of the last topic.
bytes: those of the list, without the lengths of arrays that are not complete.
"""


class FetchSizes(NamedTuple):
    """Bytes of an empty message or an empty element, by version: int64[versions] each."""

    request: Ints
    request_topic: Ints
    request_partition: Ints
    forgotten_topic: Ints
    response: Ints
    response_topic: Ints
    response_partition: Ints
    is_flexible: Ints


@cache
def fetch_sizes() -> FetchSizes:
    """The sizes in all versions of Fetch."""

    def by_version(message: Message, *path: str) -> Ints:
        fields = message.fields
        for name in path:
            (fields,) = [field.fields for field in fields if field.name == name]
        return read_only(np.array([_least(fields, v, message) for v in range(versions)], np.int64))

    versions = newest_version(FETCH_REQUEST.versions) + 1
    flexible = [is_version_in(version, FETCH_REQUEST.flexible) for version in range(versions)]
    return FetchSizes(
        request=by_version(FETCH_REQUEST),
        request_topic=by_version(FETCH_REQUEST, "topics"),
        request_partition=by_version(FETCH_REQUEST, "topics", "partitions"),
        forgotten_topic=by_version(FETCH_REQUEST, "forgotten_topics_data"),
        response=by_version(FETCH_RESPONSE),
        response_topic=by_version(FETCH_RESPONSE, "responses"),
        response_partition=by_version(FETCH_RESPONSE, "responses", "partitions"),
        is_flexible=read_only(np.array(flexible).astype(np.int64)),
    )


def _least(fields: tuple[Field, ...], version: int, message: Message) -> int:
    return least_bytes(fields, version, is_version_in(version, message.flexible))


@kernel
def length_beyond_least(length: int, is_flexible: int) -> int:
    """How many bytes more the length of an array or text takes than the length of an empty one."""
    more, value = 0, (length + 1) >> VARINT_BITS
    while is_flexible == 1 and value > 0:
        more += 1
        value >>= VARINT_BITS
    return more


@kernel
def name_bytes(length: int, version: int, is_flexible: int) -> int:
    """How many bytes more a topic's name takes than an empty name; 0 in versions with topic ids."""
    return 0 if version >= FIRST_WITH_TOPIC_IDS else length + length_beyond_least(length, is_flexible)


@kernel
def record_length_bytes(length: int, is_flexible: int) -> int:
    """How many bytes more a `records` field takes than an empty one: the records, and their longer length."""
    return length + length_beyond_least(length, is_flexible)


@kernel
def tally_partitions(
    held: Record, topic: int, topic_bytes: int, partitions: int, partition_bytes: int, is_flexible: int
) -> None:
    """Add partitions of a topic to a list. topic_bytes: the bytes of the topic, which neighbours share."""
    if partitions == 0:
        return
    if held.topics == 0 or held.topic != topic:
        held.bytes += length_beyond_least(held.in_topic, is_flexible) + topic_bytes
        held.topic, held.in_topic = topic, 0
        held.topics += 1
    held.in_topic += partitions
    held.partitions += partitions
    held.bytes += partition_bytes


@kernel
def tallied_bytes(held: Record, is_flexible: int) -> int:
    """How many bytes more a complete list takes than an empty one."""
    return held.bytes + length_beyond_least(held.in_topic, is_flexible) + length_beyond_least(held.topics, is_flexible)
