"""Starts the Spark session, and meanwhile compiles the kernels in separate processes, once for each version."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from pyspark.sql import SparkSession

from jobs.flags import REPLAYS
from jobs.lake.lake_storage import check_catalog_lasts, check_reachable, largest_part
from jobs.paths import python_path
from jobs.run import Run
from jobs.session.child_process import bound_command, end_at_exit
from jobs.session.connect_server import is_server_named
from jobs.session.driver import driver_of
from jobs.session.kernel_cache import choose_kernel_cache, why_not_kept
from jobs.session.spark import is_session_new, spark_session
from jobs.session.spark_properties import Workload
from udfs.capture.compression import estimated_unpacked_bytes
from udfs.errors import SetupError
from udfs.kernels.compiled_parts import DECODER, marker_of_part


def ready_session(run: Run, algorithms: Sequence[str] = ()) -> SparkSession:
    """The session to work in. If kernels run on this machine, those of the decoder and of these algorithms are compiled
    into its cache before this returns. Raises SetupError, and what `begin_session` raises.
    """
    with compile_meanwhile_for(SparkSession.getActiveSession(), algorithms):
        spark = begin_session(run)
        driver_of(spark).check_decoding()
        return spark


def compile_meanwhile_for(spark: SparkSession | None, algorithms: Sequence[str]) -> AbstractContextManager[None]:
    """`compile_meanwhile`, unless this session's kernels run in executors on other machines, which compile for
    themselves.
    """
    runs_here = not is_server_named() if spark is None else driver_of(spark).has_workers_here
    return compile_meanwhile(algorithms) if runs_here else nullcontext()


def begin_session(run: Run) -> SparkSession:
    """The session to work in. A new one is set up for the size of the captures (without captures: of the lake's
    content), and for whether the job replays. Raises SetupError and SparkError, and LakeError if it cannot reach the
    lake.
    """
    is_new = is_session_new()
    captures = run.captures if is_new else ()
    if is_new:
        choose_kernel_cache()
    stored_bytes = largest_part(run.lake) if is_new and not captures else 0
    work = Workload(sum(estimated_unpacked_bytes(str(path)) for path in captures), run.job in REPLAYS, stored_bytes)
    spark = spark_session(run.session.master, f"refetch {run.job}", run.session.conf, work)
    if is_new:
        check_catalog_lasts(spark, run.lake)
    check_reachable(spark, run.lake)
    return spark


def start_workers(spark: SparkSession) -> None:
    """Let Spark start the process from which workers are forked. That takes seconds: call it while other work runs."""
    spark.range(1).mapInArrow(lambda batches: batches, "id bigint").collect()


@contextmanager
def compile_meanwhile(algorithms: Sequence[str]) -> Iterator[None]:
    """Compile the kernels that are not in the cache while the block runs, and wait for that at the block's end.

    Raises SetupError if they cannot be compiled.
    """
    capture, facts = DECODER
    # Two processes, since the decoder's two parts take about the same time; each also gets half of the algorithms.
    wanted = ((capture, *algorithms[1::2]), (facts, *algorithms[::2]))
    shares = [[part for part in share if not marker_of_part(part).exists()] for share in wanted]
    if any(shares):
        sys.stderr.write("refetch: compiling the kernels, once for this version ...\n")
    command = [sys.executable, "-m", "udfs.kernels.warm_up"]
    environment = os.environ | {"PYTHONPATH": python_path()}
    running = [
        subprocess.Popen(bound_command([*command, *share]), stderr=subprocess.PIPE, text=True, env=environment)
        for share in shares
        if share
    ]
    for process in running:
        end_at_exit(process)
    try:
        yield
        for process in running:
            _, errors = process.communicate()
            if process.returncode:
                _check_compiled((errors.strip().splitlines() or ["no reason given"])[-1])
    finally:
        for process in running:
            process.kill()


def _check_compiled(last: str) -> None:
    """Raises SetupError if kernels could not be compiled. If there is merely no room to keep them, stderr says so, and
    the run takes longer.

    last: the last line that the compiling process printed.
    """
    folder = marker_of_part(DECODER[0]).parent
    fault = why_not_kept(folder)
    if fault is None:
        raise SetupError(f"The kernels could not be compiled: {last}. Try again; if that fails, too, delete {folder}.")
    sys.stderr.write(f"refetch: {folder}: {fault}. Each worker compiles the kernels for itself, which takes minutes\n")
