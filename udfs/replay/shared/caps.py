"""How much of one unit is kept in memory, so that even a very large unit fits into a worker's memory."""

from __future__ import annotations

MOST_EXCHANGES = 1 << 20
"""The most exchanges of a process or broker: some 250 bytes of working memory each."""
MOST_RESPONSES = 4 * MOST_EXCHANGES
"""The most responses of a process in the closed loop, over all lanes: 64 bytes each."""
