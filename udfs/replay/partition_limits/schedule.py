"""Limits as people write them: a number, or one that changes during the replay."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints
from udfs.replay.shared.lanes import NO_LIMIT

UNLIMITED = (1 << 63) - 1
EXPECTED = "a limit such as 4000, none, or `4000 until 2026-01-31T12:00:00Z then 6000`"
_CHANGE = re.compile(r"\s+until\s+(\S+)\s+then\s+")
_COUNT = re.compile(r"(\d{1,4000})(?:\.0+)?|\d{1,3}(?:_\d{3})+", re.ASCII)


class Schedule(NamedTuple):
    """A limit over time: the values, each in force from its time (us) on. The first time is before all others."""

    times: tuple[int, ...]
    values: tuple[int, ...]

    def at(self, times: Ints) -> Ints:
        """The value in force at each time: int64[times]. times: us."""
        return np.array(self.values, np.int64)[np.searchsorted(self.times, times, "right") - 1]


def parse_schedule(text: str) -> Schedule:
    """The limit that `text` spells. Raises ValueError that says what is wrong.

    >>> parse_schedule("4_000").values
    (4000,)
    """
    words = _CHANGE.split(text.strip())
    times = tuple(_instant(text, word) for word in words[1::2])
    if any(later <= earlier for earlier, later in pairwise(times)):
        raise _limit_error(text, "its times do not ascend")
    return Schedule((-UNLIMITED, *times), tuple(_value(text, word) for word in words[::2]))


def format_schedule(schedule: Schedule) -> str:
    """The spelling of a limit that `parse_schedule` reads back. Equal limits have the same spelling."""
    values = [NO_LIMIT if value == UNLIMITED else str(value) for value in schedule.values]
    times = (datetime.fromtimestamp(us / 1_000_000, UTC).isoformat() for us in schedule.times[1:])
    changes = (f" until {time} then {value}" for time, value in zip(times, values[1:], strict=True))
    return values[0] + "".join(time.replace("+00:00", "Z") for time in changes)


def _value(text: str, word: str) -> int:
    if word == NO_LIMIT:
        return UNLIMITED
    count = _COUNT.fullmatch(word)
    if count is None:
        raise ValueError(f"`{text}` is not {EXPECTED}")
    value = int(count[1] or word.replace("_", ""))
    if not 1 <= value < UNLIMITED:
        raise _limit_error(text, f"a number is between 1 and {UNLIMITED - 1}")
    return value


def _instant(text: str, word: str) -> int:
    try:
        instant = datetime.fromisoformat(word)
        us = round(instant.timestamp() * 1_000_000)
        datetime.fromtimestamp(us / 1_000_000, UTC)
    except (ValueError, OverflowError):
        raise _limit_error(text, f"`{word}` is no ISO 8601 time of the years 1 to 9999") from None
    if instant.tzinfo is None:
        raise _limit_error(text, f"the time {word} has no time zone; end it with Z or an offset")
    return us


def _limit_error(text: str, why: str) -> ValueError:
    return ValueError(f"`{text}`: {why}; expected {EXPECTED}")
