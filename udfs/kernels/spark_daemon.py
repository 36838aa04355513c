"""The process from which Spark forks Python workers, with numba and every kernel loaded before the first fork.

It is set as spark.python.daemon.module. Without it each worker imports numba and loads, or even compiles, the kernels
itself.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

KEPT_MS = "1000"
"""How long Arrow's allocator, mimalloc, keeps freed memory before it gives it back to the system:
MIMALLOC_PURGE_DELAY.

The default is 10 ms. A task takes and frees some MB again and again, and getting new memory from the system costs as
much as the work on it.
"""


def without_copies(path: Sequence[str]) -> list[str]:
    """A path for imports, without the archives of PySpark and Py4J that belong to an installed PySpark on that path.

    Spark puts them in front. Python compiles an archive's modules again in each process, which takes half a second.
    """
    return [entry for entry in path if not any(entry.startswith(f"{folder}/pyspark/python/lib/") for folder in path)]


if __name__ == "__main__":
    sys.path[:] = without_copies(sys.path)
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", KEPT_MS)  # pyarrow reads it when it is imported

    from pyspark.daemon import manager

    from udfs.kernels.warm_up import load_kernels

    java = os.getppid()
    load_kernels()
    if os.getppid() != java:
        sys.exit()  # Java has ended meanwhile, so nobody needs workers
    # After each task a worker collects garbage. That takes a tenth of a second if everything that was loaded is
    # searched. Freezing excludes that, and also keeps collections from writing to memory pages that workers share.
    gc.freeze()
    manager()
