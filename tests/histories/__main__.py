"""Random histories of one lake: each step's outcome is compared with a model of what the lake must hold.

    python -m tests.histories [--seed=N] [--steps=N] [--minutes=N] [--only=N,N,...] [--undisturbed=FOLDER]
                              [--keep]

A history is a number of random steps: ingest, replay, pipeline, gate, report, compare, runs, prune, compact, migrate.
Clocks go forward and back. Captures come again, under the name of another one, or continuing an earlier set. Processes
are killed, and commands run at the same time. The next history has the next seed. Each step is printed when it ends.
The same seed and commit give the same steps again, but a kill comes after a part of the usual time, so its moment
varies. The exit code is 1 after the first history with a fault. --only does only some steps of a history, to find which
ones matter.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from jobs.paths import CONF
from jobs.session.spark import spark_session
from jobs.session.spark_properties import SMALL, read_properties
from tests.histories.commands import Home
from tests.histories.history import Done, History, undone
from tests.histories.steps import plan
from tests.histories.undisturbed import kept

JAVA_OPTIONS = " ".join((
    "-XX:+UseSerialGC", "-XX:Tier4InvocationThreshold=50000", "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000", "-XX:Tier4BackEdgeThreshold=400000",
))  # fmt: skip
"""Java's second compiler compiles only what is ten times as hot as by default. Histories may run for hours."""


def asked() -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.histories", description="Random histories of one lake.")
    parser.add_argument("--seed", type=int, default=1, help="of the first history; default: 1")
    parser.add_argument("--steps", type=int, default=25, help="of each history; default: 25")
    parser.add_argument("--minutes", type=float, default=0.0, help="begin histories for this long; default: one")
    parser.add_argument("--only", default="", metavar="N,N", help="the steps that are done, from 1; default: all")
    parser.add_argument("--undisturbed", type=Path, metavar="FOLDER", help="keeps this code's undisturbed lake")
    parser.add_argument("--keep", action="store_true", help="keep the folder, and print its path")
    return parser.parse_args()


def started() -> None:
    """Start the Spark session in which steps run."""
    small = {
        **read_properties(CONF / SMALL), "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        "spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2",
    }  # fmt: skip
    spark_session("local[2]", "refetch histories", small)


def now() -> datetime:
    """The time at which a history begins, in whole seconds."""
    return datetime.now(UTC).replace(microsecond=0)


def told(done: Iterable[Done]) -> Counter[str]:
    """Print each step when it ends. Returns the number of steps of each kind, of kills and of steps with faults."""
    kinds = Counter[str]()
    for one in done:
        sys.stdout.write(f"{one}\n")
        sys.stdout.flush()
        kinds[one.step.kind] += 1
        kinds["really killed"] += one.was_killed
        kinds["faults"] += len(one.faults) > 0
    return kinds


def main() -> int:
    """Do histories. Returns 1 if one has a fault."""
    of, folder = asked(), Path(tempfile.mkdtemp(prefix="refetch-histories-"))
    until = time.monotonic() + 60 * of.minutes if of.minutes else float("inf")
    started()
    known, pipeline_s = kept(Home(of.undisturbed or folder / "undisturbed", now()))
    hashes = known.hashes
    sys.stdout.write(f"a pipeline in a process of its own takes {pipeline_s:.0f} s\n")
    kinds, seed = Counter[str](), of.seed
    only = frozenset(map(int, filter(None, of.only.split(","))))
    while True:
        sys.stdout.write(f"seed {seed}, {of.steps} steps\n")
        home = Home(folder / str(seed), now())
        home.prepare()
        history = History(home, known, hashes, pipeline_s)
        kinds += told(history.done(undone(plan(seed, of.steps)), only, until))
        kinds["histories"] += 1
        seed += 1
        if not of.minutes or time.monotonic() > until or kinds["faults"]:
            break
    sys.stdout.writelines(f"{count:6,} {kind}\n" for kind, count in sorted(kinds.items()))
    if of.keep or kinds["faults"]:
        sys.stdout.write(f"{folder}\n")
    else:
        shutil.rmtree(folder)
    return int(kinds["faults"] > 0)


if __name__ == "__main__":
    sys.exit(main())
