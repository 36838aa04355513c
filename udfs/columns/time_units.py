"""Factors between units of time, and times before and after all others."""

from __future__ import annotations

NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000
US_PER_MS = 1_000
MS_PER_S = 1_000
US_PER_S = 1_000_000
US_PER_DAY = 86_400 * US_PER_S

ALWAYS, NEVER = -(1 << 62), 1 << 62
"""Times before and after every time of a capture, in us and in ns; a duration can be added to either."""
