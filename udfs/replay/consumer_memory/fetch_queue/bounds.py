"""How much a librdkafka consumer can have in its queue, whatever the application does.

Each fetcher asks while the queue is below its thresholds, and the response then comes on top, one from each broker. The
queue counts uncompressed bytes, and limits of fetches count compressed bytes. librdkafka counts only the values of
messages, without keys and headers (rko_len); each message takes MESSAGE_BYTES more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Records
from udfs.columns.groups import group_numbers

MESSAGE_BYTES = 350
"""Memory that librdkafka takes for a message besides its value: 329 to 439 bytes were measured (VALIDATION.md)."""
DEFAULT_MAX_BYTES, DEFAULT_MESSAGE_MAX_BYTES = 50 << 20, 1_000_000
"""The defaults of fetch.max.bytes and message.max.bytes."""


class FetchBounds(NamedTuple):
    """The limits of a consumer's fetches (bytes).

    is_captured: the lane leaves the limits as captured. asks_less: the client itself asks for less, because its queue
    is smaller.
    """

    max_bytes: int
    partition_max_bytes: int
    is_captured: bool
    asks_less: bool = False


def default_max_bytes(max_queued_bytes: int) -> int:
    """How many bytes a consumer without its own fetch.max.bytes asks for in a fetch: at most
    queued.max.messages.kbytes, which are units of 1,024 bytes here, and at least message.max.bytes
    (rd_kafka_conf_finalize).
    """
    return min(DEFAULT_MAX_BYTES, max(max_queued_bytes // 1000 * 1024, DEFAULT_MESSAGE_MAX_BYTES))


def asked_max_bytes(captured: int, captured_queue: int, queue: int) -> int:
    """How many bytes a fetch asks for with another queue. captured: the bytes that it asks for with the captured queue.
    If that is the default for the captured queue, the client asks for the default for the other queue.
    """
    return default_max_bytes(queue) if captured == default_max_bytes(captured_queue) else captured


class Bound(NamedTuple):
    """The most that a queue can have. threshold: the bytes from which on nothing more is asked for. overshoot: the
    bytes that can still come then. messages: how many messages can be in the queue.
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
        """About the most bytes of memory that the queue takes."""
        return self.queued + self.messages * MESSAGE_BYTES


def bound_of(fetches: Records, brokers: int, limits: FetchBounds, max_bytes: int, min_messages: int) -> Bound | None:
    """The bound of a consumer; None where none of its messages is captured.

    fetches: EXCHANGE[n], its answered fetches. max_bytes, min_messages: as in THRESHOLDS.
    """
    messages, value_bytes = int(fetches["records"].sum()), int(fetches["value_bytes"].sum())
    if not messages:
        return None
    mean = max(value_bytes / messages, 1.0)
    threshold = int(min(max_bytes, min_messages * mean))
    overshoot = overshoot_of(fetches, brokers, limits)
    return Bound(threshold, overshoot, int(min(min_messages, max_bytes / mean) + overshoot / mean))


def overshoot_of(fetches: Records, brokers: int, limits: FetchBounds) -> int:
    """The most bytes of values that can come when each broker has been asked once more.

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
