"""Numbers that stand in columns of integers in place of what is not there."""

from __future__ import annotations

NONE = -1
"""In place of a place in an array, a number, a key, a time or a count, where there is none or the capture has none."""
