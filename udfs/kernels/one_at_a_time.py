"""A lock among processes.

It uses only the standard library, since it is needed before the Python environment is set up.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def one_at_a_time(lock: Path) -> Iterator[None]:
    """Hold a lock while the block runs. All processes name the same file. Makes the file's folder if it is missing."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
