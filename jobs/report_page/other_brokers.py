"""Brokers that are not Apache Kafka's: their vendors, and which of their rules the replays do not have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from pyspark.sql import Row

from jobs.captures.capture_quality import MOST_BROKERS
from jobs.terminal.wording import capitalized, quantity
from schemas.tables.algorithms import FETCH_MAX_BYTES, SESSION_CACHE
from schemas.tables.silver_quality import CAPTURE_QUALITY
from schemas.wire.vendors import AUTOMQ, CONFLUENT, OTHER, REDPANDA

WHOSE: Mapping[str, str] = {
    AUTOMQ: "AutoMQ's",
    CONFLUENT: "Confluent's",
    REDPANDA: "Redpanda's",
    OTHER: "not Apache Kafka's",
}
RULES: Mapping[str, Mapping[str, str]] = {
    AUTOMQ: {
        FETCH_MAX_BYTES: "AutoMQ reads partitions side by side, so a response can exceed max_bytes by up to one "
        "partition's limit"
    },
    REDPANDA: {
        FETCH_MAX_BYTES: "Redpanda shares kafka_max_bytes_per_fetch, 64 MiB unless set, equally among a fetch's "
        "partitions",
        SESSION_CACHE: "Redpanda has no slots for sessions: none evicts another, and each goes after 60 idle seconds "
        "unless set otherwise",
    },
}
"""The rule by which a vendor's brokers differ from a replay, by vendor and replay. AutoMQ: `readFromLocalLogV2` of
ElasticReplicaManager.scala. Redpanda: `fetch_ntps_in_parallel` of fetch.cc, fetch_session_cache.cc, configuration.cc.
"""


def brokers_by_vendor(quality: Row) -> Counter[str]:
    """How many brokers each vendor has, of the first MOST_BROKERS that are not Apache Kafka's.

    quality: the row of `capture_quality` for the whole capture set; null in lakes that did not look for vendors.
    """
    return Counter(each.rpartition(": ")[2] for each in quality[CAPTURE_QUALITY.other_brokers] or [])


def other_brokers_text(quality: Row) -> str:
    """`2 brokers are Redpanda's, and the replays follow Apache Kafka's rules`; empty if all can be Apache Kafka's."""
    by_vendor = brokers_by_vendor(quality)
    if not by_vendor:
        return ""
    whose = " and ".join(WHOSE[vendor] for vendor in sorted(by_vendor))
    count = by_vendor.total()
    are = f"{quantity(count, 'broker')}{' or more' if count == MOST_BROKERS else ''} {'is' if count == 1 else 'are'}"
    return f"{are} {whose} by the API versions offered, and the replays follow Apache Kafka's rules"


def other_broker_lines(quality: Row) -> Iterator[str]:
    """The summary's lines on brokers that are not Apache Kafka's, with what does not apply to them."""
    if text := other_brokers_text(quality):
        yield f"  {text}"
        for vendor in sorted(brokers_by_vendor(quality)):
            yield from (f"    {rule}" for rule in RULES.get(vendor, {}).values())


def other_rule_text(quality: Row, algorithm: str) -> str:
    """The rule of these brokers that a replay does not follow, as a sentence; empty if none is known."""
    rules = (RULES.get(vendor, {}).get(algorithm) for vendor in sorted(brokers_by_vendor(quality)))
    return next((f"{capitalized(rule)}." for rule in rules if rule), "")
