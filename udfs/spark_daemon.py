"""The process that Spark forks Python workers from, with numba and every kernel loaded before the first fork.

Set as spark.python.daemon.module. Without it each worker imports numba and loads, or even compiles, the kernels for
itself.
"""

from __future__ import annotations

import gc

from pyspark.daemon import manager

from udfs.warm_up import load

if __name__ == "__main__":
    load()
    # After each task a worker collects garbage, among all that has been loaded: a tenth of a second, unless it is set
    # apart. Nor does a collection then write to the pages that workers share.
    gc.freeze()
    manager()
