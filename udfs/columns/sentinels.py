"""Numbers in integer columns that mean that there is no value."""

from __future__ import annotations

NONE = -1
"""Means that there is no place in an array, number, key, time or count, or that the capture has none."""
UNKNOWN = -(1 << 62)
"""Means that a value is not known. It is used if small numbers, also -1, may be values: for an offset in a stream, a
broker's answer, a row."""
