"""The process that Spark forks Python workers from, with numba and every kernel loaded before the first fork.

Set as spark.python.daemon.module. Without it each worker imports numba and loads, or even compiles, the kernels for
itself.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

KEPT_MS = "1000"
"""How long Arrow's allocator, mimalloc, keeps memory that is freed before the system has it back: MIMALLOC_PURGE_DELAY.

By default it is 10 ms. A task takes and frees some MB at a time all the while, and memory that is new to a process
costs as much as work on it.
"""


def without_copies(path: Sequence[str]) -> list[str]:
    """A path for imports without the archives of PySpark and Py4J that are part of an installed PySpark on that path.

    Spark puts them in front. Python compiles an archive's modules anew in each process, which takes half a second.
    """
    return [entry for entry in path if not any(entry.startswith(f"{folder}/pyspark/python/lib/") for folder in path)]


if __name__ == "__main__":
    sys.path[:] = without_copies(sys.path)
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", KEPT_MS)  # is read when pyarrow is imported

    from pyspark.daemon import manager

    from udfs.kernels.warm_up import load_kernels

    java = os.getppid()
    load_kernels()
    if os.getppid() != java:
        sys.exit()  # Java has ended meanwhile: nobody is left to fork workers for
    # After each task a worker collects garbage, which takes a tenth of a second if all that was loaded is searched.
    # Freezing excludes it, and also keeps collections from writing to the pages that workers share.
    gc.freeze()
    manager()
