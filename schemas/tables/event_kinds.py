"""Codes in step tables: what a row is about (columns `kind` and `entry`), and what shows that a request was handled."""

from __future__ import annotations

from enum import IntEnum


class LogEvent(IntEnum):
    """Values of LOG_EVENTS.kind."""

    ABORTED = -1
    BATCH = 0
    WITNESS = 1
    READ = 2


class MemoryEvent(IntEnum):
    """Values of MEMORY_EVENTS.kind."""

    FETCHED = -1
    EXCHANGE = 0
    PARTITION = 1
    BATCH = 2
    RESPONSES = 3
    TAKEN_OVER = 4
    GIVEN_UP = 5
    IN_LOOP = 6


class HandledBy(IntEnum):
    """Values of MEMORY_EVENTS.released_by: what shows when a request was handled. REPLICAS: a response that waited for
    replicas. PACE is no value of that column: the time is estimated.
    """

    RESPONSE = 0
    FETCH = 1
    REQUEST_LOG = 2
    REPLICAS = 3
    PACE = 4


class TopicEvent(IntEnum):
    """Values of TOPIC_EVENTS.entry."""

    BROKER = 0
    SIGHTING = 1
    CHANGE = 2
    REQUEST = 3
    USES = 4
