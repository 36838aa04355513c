"""Which parts of the kernels' machine code are in the cache. This module imports neither numba nor numpy."""

from __future__ import annotations

import os
from pathlib import Path

DECODER = ("capture", "facts")
"""The parts that every run needs. Both take about the same time, so two processes can share the work. Every other part
has the name of the algorithm whose kernels it has."""
QUICKSTART = (
    ("capture", "session_cache", "batch_split"),
    ("facts", "fetch_max_bytes", "consumer_memory", "partition_limits"),
)
"""The parts that conf/quickstart.yaml needs, for two processes that make about the same amount of machine code."""


def marker_of_part(part: str) -> Path:
    """The file that exists if a part's kernels are in the cache."""
    return Path(os.environ["NUMBA_CACHE_DIR"]) / f"{part}.compiled"
