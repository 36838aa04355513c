"""Begin and end of a window as people write them: a time, or a time span after the capture's begin."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import NamedTuple

from udfs.columns.time_units import US_PER_DAY, US_PER_MS, US_PER_S

EXPECTED = "a time such as 2026-01-31T12:00:00Z, or one after the capture's begin such as 90s, 5m or 1h30m"
_UNITS = {"d": US_PER_DAY, "h": 3600 * US_PER_S, "m": 60 * US_PER_S, "s": US_PER_S, "ms": US_PER_MS, "us": 1}
_PART = r"(\d{1,12}(?:\.\d{1,12})?)(d|h|ms|min|m|us|s)"
_AFTER = re.compile(rf"\+?(?:{_PART})+", re.ASCII)
_PARTS = re.compile(_PART, re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOST_AFTER_US = 100 * 366 * US_PER_DAY
"""The longest accepted time after a capture's begin, us: a hundred years, longer than any capture."""


class Moment(NamedTuple):
    """A time (us since 1970), or a time after the capture's begin (us)."""

    us: int
    is_after_begin: bool = False

    def __str__(self) -> str:
        """Its canonical spelling, in seconds or in UTC. `parse_moment` reads it back."""
        if not self.is_after_begin:
            return utc_datetime(self.us).isoformat().replace("+00:00", "Z")
        seconds, us = divmod(self.us, US_PER_S)
        return f"{seconds}s" if us == 0 else f"{seconds}.{us:06}".rstrip("0") + "s"

    def in_capture(self, begin_us: int) -> int:
        """The time in a capture that begins at `begin_us`; both are us since 1970."""
        return self.us + begin_us if self.is_after_begin else self.us


def parse_moment(text: str) -> Moment:
    """The time in `text`. Raises ValueError, which says what is wrong.

    >>> str(parse_moment("1m30s")), str(parse_moment("2026-01-31T13:00+01:00"))
    ('90s', '2026-01-31T12:00:00Z')
    """
    word = text.strip()
    if _AFTER.fullmatch(word):
        return _after_begin(text, word)
    try:
        time = datetime.fromisoformat(word)
    except ValueError:
        raise ValueError(f"`{text}` is not {EXPECTED}") from None
    if time.tzinfo is None:
        raise ValueError(f"`{text}` has no time zone; end it with Z or an offset")
    return Moment((time - _EPOCH) // timedelta(microseconds=1))


def utc_datetime(us: int) -> datetime:
    """A time in us since 1970, aware, UTC."""
    return _EPOCH + timedelta(microseconds=us)


def _after_begin(text: str, word: str) -> Moment:
    parts = [(Fraction(number), "m" if unit == "min" else unit) for number, unit in _PARTS.findall(word)]
    exact = sum((number * _UNITS[unit] for number, unit in parts), Fraction(0))
    if exact.denominator != 1 or exact > MOST_AFTER_US:
        raise ValueError(f"`{text}` is no whole number of microseconds, or is more than a hundred years")
    return Moment(int(exact), is_after_begin=True)
