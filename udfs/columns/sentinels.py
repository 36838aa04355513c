"""Numbers that stand in columns of integers in place of what is not there."""

from __future__ import annotations

NONE = -1
"""In place of a place in an array, a number, a key, a time or a count, where there is none or the capture has none."""
UNKNOWN = -(1 << 62)
"""In place of what is not known where any small number, -1 too, may be a value: an offset in a stream, what a broker
answered, a row."""
