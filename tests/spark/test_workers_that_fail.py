"""Workers that fail while other tasks still send rows to theirs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FAILING = """\
import sys
sys.path.insert(0, {repository!r})
from jobs.session.spark import spark_session
from jobs.session.spark_properties import Workload

def fail(batches):
    raise ValueError("a worker's own words")

spark = spark_session(None, "failing", {{}}, work=Workload(captured_bytes=1 << 30))
wide = spark.range(0, 200_000, 1, 4).selectExpr("id", *(f"repeat('x', 100 + id % {{n}}) c{{n}}" for n in range(1, 30)))
for _ in range({times}):
    try:
        wide.mapInArrow(fail, wide.schema).write.format("noop").mode("overwrite").save()
    except Exception as fault:
        print("a worker's own words" in str(fault), flush=True)
"""


def test_a_worker_that_fails_does_not_take_java_with_it(repository: Path) -> None:
    """When a task fails, Spark cancels the others. If it also interrupts them, the stream into which such a task just
    writes rows for its worker is closed by another thread, which frees the memory: Java then crashes.
    """
    times = 8
    code = FAILING.format(repository=str(repository), times=times)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stdout.split() == ["True"] * times, run.stderr[-2000:]
