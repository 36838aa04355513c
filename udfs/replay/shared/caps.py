"""How much of one unit is kept in memory, so that no unit, however large, takes more than a worker has."""

from __future__ import annotations

MOST_EXCHANGES = 1 << 20
"""Exchanges of a process or broker: some 250 bytes of working memory each."""
MOST_RESPONSES = 4 * MOST_EXCHANGES
"""Responses of a process in the closed loop, of all lanes together: 64 bytes each."""
