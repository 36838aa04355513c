"""How much a librdkafka consumer can have in its queue, whatever the application does.

A fetcher asks while the queue is below its thresholds, and what it asks for then comes on top, from each broker. It is
counted as it is queued, uncompressed; limits of fetches are of compressed bytes. What librdkafka counts are the
values of messages, without keys and headers (rko_len); each message takes MESSAGE_BYTES more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Records
from udfs.columns.groups import group_numbers

MESSAGE_BYTES = 350
"""Memory that librdkafka takes for a message beside its records: 329 to 439 bytes were measured (VALIDATION.md)."""
DEFAULT_MAX_BYTES, DEFAULT_MESSAGE_MAX_BYTES = 50 << 20, 1_000_000
"""fetch.max.bytes and message.max.bytes by default."""


class FetchBounds(NamedTuple):
    """What bounds a consumer's fetches (bytes).

    is_captured: the lane leaves the limits as captured. asks_less: the client itself asks for less, because its queue
    is smaller.
    """

    max_bytes: int
    partition_max_bytes: int
    is_captured: bool
    asks_less: bool = False


def default_max_bytes(max_queued_bytes: int) -> int:
    """What a consumer asks for in one fetch that sets no fetch.max.bytes: no more than queued.max.messages.kbytes, of
    1,024 bytes here, and no less than message.max.bytes (rd_kafka_conf_finalize).
    """
    return min(DEFAULT_MAX_BYTES, max(max_queued_bytes // 1000 * 1024, DEFAULT_MESSAGE_MAX_BYTES))


def asked_max_bytes(captured: int, captured_queue: int, queue: int) -> int:
    """What is asked for in one fetch with another queue: bytes. captured: bytes that are asked for with the
    captured queue; if these are what the client asks for by default, it asks for its default here as well.
    """
    return default_max_bytes(queue) if captured == default_max_bytes(captured_queue) else captured


class Bound(NamedTuple):
    """The most that a queue can have. threshold: bytes at which nothing more is asked for. overshoot: bytes that can
    still come then. messages: how many can be in the queue.
    """

    threshold: int
    overshoot: int
    messages: int

    @property
    def queued(self) -> int:
        """The most bytes of values in the queue."""
        return self.threshold + self.overshoot

    @property
    def memory(self) -> int:
        """The most bytes of memory that the queue takes, about."""
        return self.queued + self.messages * MESSAGE_BYTES


def bound_of(fetches: Records, brokers: int, limits: FetchBounds, max_bytes: int, min_messages: int) -> Bound | None:
    """The bound of a consumer; None where none of its messages is captured.

    fetches: EXCHANGE[n], its answered fetches. max_bytes, min_messages: as THRESHOLDS have them.
    """
    messages, value_bytes = int(fetches["records"].sum()), int(fetches["value_bytes"].sum())
    if not messages:
        return None
    mean = max(value_bytes / messages, 1.0)
    threshold = int(min(max_bytes, min_messages * mean))
    overshoot = overshoot_of(fetches, brokers, limits)
    return Bound(threshold, overshoot, int(min(min_messages, max_bytes / mean) + overshoot / mean))


def overshoot_of(fetches: Records, brokers: int, limits: FetchBounds) -> int:
    """Bytes of values that come at most when each broker has been asked once more.

    fetches: EXCHANGE[n], the consumer's answered fetches.
    """
    connection, firsts = group_numbers(fetches["connection"])
    partitions, largest = np.zeros((2, len(firsts)), np.int64)
    np.maximum.at(partitions, connection, fetches["asked"])
    np.maximum.at(largest, connection, fetches["value_bytes"])
    expansion = int(fetches["value_bytes"].sum()) / max(int(fetches["record_bytes"].sum()), 1)
    limit = np.minimum(limits.max_bytes, partitions * limits.partition_max_bytes)
    of_connection: Ints = (limit * expansion).astype(np.int64)
    if limits.is_captured and not limits.asks_less:
        of_connection = np.maximum(of_connection, largest)
    return int(np.sort(of_connection)[::-1][:brokers].sum())
