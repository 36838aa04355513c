"""What a row of a step table is about: the values of its column `kind` or `entry`."""

from __future__ import annotations

from enum import IntEnum


class LogEvent(IntEnum):
    """Of LOG_EVENTS.kind."""

    BATCH = 0
    WITNESS = 1
    READ = 2


class MemoryEvent(IntEnum):
    """Of MEMORY_EVENTS.kind."""

    FETCHED = -1
    EXCHANGE = 0
    PARTITION = 1
    BATCH = 2
    RESPONSES = 3
    TAKEN_OVER = 4
    GIVEN_UP = 5


class TopicEvent(IntEnum):
    """Of TOPIC_EVENTS.entry."""

    BROKER = 0
    SIGHTING = 1
    CHANGE = 2
    REQUEST = 3
    USES = 4
