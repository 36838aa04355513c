"""What of the kernels' machine code is in the cache (`udfs.warm_up` puts it there). Imports neither numba nor numpy."""

from __future__ import annotations

import os
from pathlib import Path

PARTS = ("capture", "facts")
"""Two parts of about the same length, so that two processes can share the work."""


def compiled(part: str) -> Path:
    """The file that says that a part's kernels are in the cache."""
    return Path(os.environ["NUMBA_CACHE_DIR"]) / f"{part}.compiled"
