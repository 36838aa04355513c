"""What shows that a broker is not Apache Kafka's: the API versions that its ApiVersions response offers.

The sources are the Java classes of Kafka's own releases, with which `tests/oracle/test_releases.py` compares, and the
public sources of other vendors, which are named where they are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from schemas.wire.apis import API_KEYS

AUTOMQ, CONFLUENT, REDPANDA, OTHER = "automq", "confluent", "redpanda", "other"
"""Vendors of brokers; OTHER for a broker of an unknown vendor whose versions no release of Apache Kafka has."""

ALWAYS_OFFERED = (
    "PRODUCE", "FETCH", "LIST_OFFSETS", "METADATA", "OFFSET_COMMIT", "OFFSET_FETCH", "FIND_COORDINATOR", "JOIN_GROUP",
    "HEARTBEAT", "LEAVE_GROUP", "SYNC_GROUP", "DESCRIBE_GROUPS", "LIST_GROUPS", "API_VERSIONS",
)  # fmt: skip
"""APIs that a broker of Apache Kafka always answers itself, with any controller, settings and metadata version."""

NEWEST_VERSIONS: Mapping[str, tuple[int, ...]] = MappingProxyType({
    "0.10.0": (2, 2, 0, 1, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0),
    "0.10.1": (2, 3, 1, 2, 2, 1, 0, 1, 0, 0, 0, 0, 0, 0),
    "0.10.2": (2, 3, 1, 2, 2, 2, 0, 1, 0, 0, 0, 0, 0, 0),
    "0.11": (3, 5, 2, 4, 3, 3, 1, 2, 1, 1, 1, 1, 1, 1),
    "1.0": (5, 6, 2, 5, 3, 3, 1, 2, 1, 1, 1, 1, 1, 1),
    "1.1": (5, 7, 2, 5, 3, 3, 1, 2, 1, 1, 1, 1, 1, 1),
    "2.0": (6, 8, 3, 6, 4, 4, 2, 3, 2, 2, 2, 2, 2, 2),
    "2.1": (7, 10, 4, 7, 6, 5, 2, 3, 2, 2, 2, 2, 2, 2),
    "2.2": (7, 10, 5, 7, 6, 5, 2, 4, 2, 2, 2, 2, 2, 2),
    "2.3": (7, 11, 5, 8, 7, 5, 2, 5, 3, 2, 3, 3, 2, 2),
    "2.4": (8, 11, 5, 9, 8, 6, 3, 6, 4, 4, 4, 5, 3, 3),
    "2.5": (8, 11, 5, 9, 8, 7, 3, 7, 4, 4, 5, 5, 3, 3),
    "2.6": (8, 11, 5, 9, 8, 7, 3, 7, 4, 4, 5, 5, 4, 3),
    "2.7": (8, 12, 5, 9, 8, 7, 3, 7, 4, 4, 5, 5, 4, 3),
    "2.8": (9, 12, 6, 11, 8, 7, 3, 7, 4, 4, 5, 5, 4, 3),
    "3.0": (9, 12, 7, 11, 8, 8, 4, 7, 4, 4, 5, 5, 4, 3),
    "3.1": (9, 13, 7, 12, 8, 8, 4, 7, 4, 4, 5, 5, 4, 3),
    "3.2": (9, 13, 7, 12, 8, 8, 4, 9, 4, 5, 5, 5, 4, 3),
    "3.3": (9, 13, 7, 12, 8, 8, 4, 9, 4, 5, 5, 5, 4, 3),
    "3.4": (9, 13, 7, 12, 8, 8, 4, 9, 4, 5, 5, 5, 4, 3),
    "3.5": (9, 15, 8, 12, 8, 8, 4, 9, 4, 5, 5, 5, 4, 3),
    "3.6": (9, 15, 8, 12, 8, 8, 4, 9, 4, 5, 5, 5, 4, 3),
    "3.7": (10, 16, 8, 12, 9, 9, 4, 9, 4, 5, 5, 5, 4, 3),
    "3.8": (11, 16, 8, 12, 9, 9, 5, 9, 4, 5, 5, 5, 5, 3),
    "3.9": (11, 17, 9, 12, 9, 9, 6, 9, 4, 5, 5, 5, 5, 4),
    "4.0": (12, 17, 10, 13, 9, 9, 6, 9, 4, 5, 5, 6, 5, 4),
    "4.1": (13, 18, 10, 13, 9, 9, 6, 9, 4, 5, 5, 6, 5, 4),
    "4.2": (13, 18, 11, 13, 10, 10, 6, 9, 4, 5, 5, 6, 5, 4),
    "4.3": (13, 18, 11, 13, 10, 10, 6, 9, 4, 5, 5, 6, 5, 4),
    "4.4": (13, 18, 11, 13, 10, 10, 6, 9, 4, 5, 5, 6, 5, 5),
})  # fmt: skip
"""The newest version of each API of ALWAYS_OFFERED that a release offers, by release, in ascending order.

A build between two releases, or one that is configured to offer unstable versions, offers of each API at least the
version of the release before it, and at most that of the release after it.
"""


class OwnKeys(NamedTuple):
    """A vendor with its own APIs. Their keys go from `first` to `last`."""

    vendor: str
    first: int
    last: int


OWN_KEYS = (
    OwnKeys(AUTOMQ, 501, 602),
    OwnKeys(CONFLUENT, 10_000, 14_999),
    OwnKeys(REDPANDA, 15_000, 32_767),
)
"""AutoMQ: 501 to 520 and 600 to 602 (AutoMQ/automq, `common/message/*Request.json`). Confluent: above 10,000
(grepplabs/kafka-proxy, pull request 185). Redpanda: from 15,000 (redpanda-data/redpanda, `redpanda_api_key_base`).
Apache Kafka's own keys are below 100.
"""

REDPANDA_OLDEST: Mapping[int, int] = MappingProxyType(
    {API_KEYS["FETCH"]: 4, API_KEYS["OFFSET_COMMIT"]: 1, API_KEYS["OFFSET_FETCH"]: 1}
)
"""The oldest version that Redpanda 21.4 to 25.1 offers, by API (`src/v/kafka/server/handlers/*.h`). No release of
Apache Kafka begins OffsetCommit with version 1.
"""
