"""Which parts of the kernels' machine code are in the cache; imports neither numba nor numpy."""

from __future__ import annotations

import os
from pathlib import Path

DECODER = ("capture", "facts")
"""The parts that every run needs; both take about as long, so that two processes can share the work. Each other part is
named after the algorithm whose kernels it has."""
QUICKSTART = (
    ("capture", "session_cache", "batch_split"),
    ("facts", "fetch_max_bytes", "consumer_memory", "partition_limits"),
)
"""The parts that conf/quickstart.yaml needs, for two processes, which make about as much machine code."""


def marker_of_part(part: str) -> Path:
    """The file whose existence says that a part's kernels are in the cache."""
    return Path(os.environ["NUMBA_CACHE_DIR"]) / f"{part}.compiled"
