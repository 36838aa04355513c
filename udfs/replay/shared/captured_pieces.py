"""The pieces of captured time in which a closed loop is compared with the capture."""

from __future__ import annotations

PIECES = 32
"""How many pieces the captured time is cut into."""
SPAN_TOLERANCE = 0.02
"""How much earlier or later something may happen, as a share of the captured time."""
LEAST_TIME_US = 100_000
"""The least time by which something may happen earlier or later, us."""
