"""The pieces of captured time in which a closed loop is compared with the capture."""

from __future__ import annotations

PIECES = 32
"""Into how many pieces the captured time is split."""
SPAN_TOLERANCE = 0.02
"""How much earlier or later an event may happen and still agree, as a share of the captured time."""
LEAST_TIME_US = 100_000
"""How much earlier or later an event may happen in any case and still agree (us)."""
