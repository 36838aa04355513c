"""Which parts of the machine code of kernels are in the cache. Imports neither numba nor numpy."""

from __future__ import annotations

import os
from pathlib import Path

DECODER = ("capture", "facts")
"""Parts that every run needs, of about the same length, so that two processes can share the work. The other parts are
named after the algorithms whose kernels they are."""
QUICKSTART = (("capture", "session_cache"), ("facts", "fetch_max_bytes", "consumer_memory"))
"""What two processes compile while the environment is made, for about as long: all that conf/quickstart.yaml needs."""


def compiled(part: str) -> Path:
    """The file that says that a part's kernels are in the cache."""
    return Path(os.environ["NUMBA_CACHE_DIR"]) / f"{part}.compiled"
