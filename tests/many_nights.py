"""What jobs cost on a lake of many nights, compared with a lake of two nights that is measured by turns with it.

    python -m tests.many_nights [--at=30,300] [--times=5]

Everything runs in one session that stays warm. A night is the smallest shipped capture, shifted by a day: `ingest`, one
replay, a gate, a page. Jobs make the first night of the large lake. The further nights, up to each number in --at, are
copies of its rows with other ids and times, which the product's own writer adds to each table, a day after each other
by the times of the logs' files. Then the jobs add
--times more nights to that lake and one each to lakes of two nights, by turns. At the end, this is done once more after
`compact`. Prints medians of seconds: the CPU time of this process and of all that it has started (/proc), and the clock
time in brackets.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from jobs.cli import run_command
from jobs.lake.table_address import table_path
from jobs.lake.target import Target
from jobs.open_lake import open_lake
from jobs.session.spark import spark_session
from jobs.session.spark_properties import Workload
from schemas.tables.gold import GOLD
from schemas.tables.gold_sessions import SESSION_CACHE
from schemas.tables.silver import EXCHANGES, SILVER
from schemas.tables.table import Table
from tests.conftest import REPOSITORY
from tests.unit.capture.capture_files import by_clock, sample_capture, store
from udfs.facts.arrow_tables import arrow_schema

FIRST_NIGHT = datetime(2026, 1, 1, 12, tzinfo=UTC)
A_DAY_US = 24 * 3600 * 1_000_000
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
FEW_NIGHTS = 2
IDS = ("capture_id", "run_id", "checked_id")
REPLAY_ALONE = "replay: {session_cache: {max.incremental.fetch.session.cache.slots: [4]}}"


Rows = dict[Table, pa.Table]


class Nights:
    """A lake to which nights are added one after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0
        self.lake = folder / "lake"
        self.scenario = folder / "scenario.yaml"
        folder.mkdir(parents=True)
        self.scenario.write_text(REPLAY_ALONE)

    def jobs(self) -> dict[str, Callable[[], object]]:
        """The next night's jobs by name, in the order in which they run."""
        self.count += 1
        link_type, packets = sample_capture(REPOSITORY, "starve")
        shifted = by_clock(packets, lambda time_us: time_us + self.count * A_DAY_US)
        capture = store(self.folder / "night.pcap", link_type, shifted)
        at = f"--run-at={(FIRST_NIGHT + timedelta(days=self.count)).isoformat()}"
        lake = f"--lake={self.lake}"
        return {
            "ingest": lambda: command("ingest", f"--captures={capture}", lake),
            "replay": lambda: command("replay", f"--scenario={self.scenario}", lake, at),
            "gate": lambda: command("gate", "--on", "silver", "gold", lake, at),
            "report": lambda: command("report", lake),
            "runs": lambda: command("runs", lake),
            "open_lake": lambda: opened_lake(self.lake),
        }

    def add(self) -> None:
        """Add a night to the lake by running its jobs."""
        for job in self.jobs().values():
            job()

    def copy_first(self, spark: SparkSession, first: Rows, until: int) -> None:
        """Add nights with the rows of the first one, until there are `until` nights."""
        while self.count < until:
            self.count += 1
            for table, rows in first.items():
                changed = later_rows(rows, self.count)
                for identity in pc.unique(changed[str(table.replaced_by)]):
                    own = changed.filter(pc.equal(changed[str(table.replaced_by)], identity))
                    Target(str(self.lake), str(identity)).write_here(spark, own, table)
            self.pass_a_day()

    def pass_a_day(self) -> None:
        """Make the logs' files a day older, since whoever writes a log removes files by their age."""
        for file in self.lake.glob("*/*/_delta_log/*"):
            modified = file.stat().st_mtime - A_DAY_US / 1_000_000
            os.utime(file, (modified, modified))

    def rows(self) -> Rows:
        """By table, the rows; only tables that have any."""
        there = [table for table in (*SILVER, *GOLD) if DeltaTable.is_deltatable(table_path(str(self.lake), table))]
        rows = {
            table: DeltaTable(table_path(str(self.lake), table)).to_pyarrow_table().cast(arrow_schema(table))
            for table in there
        }
        return {table: of for table, of in rows.items() if of.num_rows}

    def files(self) -> tuple[int, int]:
        """(number of Parquet files, number of log files) of the lake's tables."""
        of_logs = sum(1 for _ in self.lake.glob("*/*/_delta_log/*"))
        return sum(1 for _ in self.lake.glob("*/*/*/*.parquet")), of_logs


def later_rows(rows: pa.Table, days: int) -> pa.Table:
    """The rows as a night this many days later would have them, with other ids of capture sets and runs."""
    for place, column in enumerate(rows.schema):
        if pa.types.is_timestamp(column.type):
            shifted = pc.add(rows[place], pa.scalar(timedelta(days=days), pa.duration("us")))
            rows = rows.set_column(place, column, shifted.cast(column.type))
        elif column.name in IDS:
            others = pc.replace_substring_regex(rows[place], pattern="[0-9a-f]{8}$", replacement=f"{days:08x}")
            rows = rows.set_column(place, column, others)
    return rows


def command(*arguments: str) -> None:
    """Run a job without printing its output. Raises RuntimeError if it fails."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()) as errors:
        code = run_command([*arguments])
    if code:
        raise RuntimeError(f"{' '.join(arguments)} ended with exit code {code}: {errors.getvalue()}")


def opened_lake(lake: Path) -> None:
    """Open the lake as a notebook does, and read two tables."""
    with redirect_stderr(StringIO()):
        opened = open_lake(str(lake))
        opened.rows(str(EXCHANGES.name)).count()
        opened.rows(str(SESSION_CACHE.name)).collect()


def cpu_seconds() -> float:
    """Seconds of CPU time of this process and all of its descendants."""
    ticks, parents = dict[int, int](), dict[int, int]()
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                fields = (process / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
            parents[int(process.name)] = int(fields[1])
            ticks[int(process.name)] = sum(map(int, fields[11:15]))  # with those of its ended children
    return sum(ticks[pid] for pid in ticks if is_below(pid, os.getpid(), parents)) / CLOCK_TICKS


def is_below(pid: int, of: int, parents: dict[int, int]) -> bool:
    """Whether the process `pid` is `of` or one of its descendants. parents: each process's parent."""
    while pid and pid != of:
        pid = parents.get(pid, 0)
    return pid == of


def measured(large: Nights, few: Sequence[Nights], times: int) -> Iterator[str]:
    """Lines of a table: the cost of each job on lakes of few nights and on the large one."""
    cost = defaultdict[tuple[str, bool], list[tuple[float, float]]](list)
    for turn in range(times):
        for is_large in (False, True) if turn % 2 else (True, False):
            night = large if is_large else few[turn]
            for name, job in night.jobs().items():
                cpu, clock = cpu_seconds(), time.monotonic()
                job()
                cost[name, is_large].append((cpu_seconds() - cpu, time.monotonic() - clock))
    for name in dict.fromkeys(name for name, _ in cost):
        (few_cpu, few_clock), (cpu, clock) = (
            [median(column) for column in zip(*cost[name, is_large], strict=True)] for is_large in (False, True)
        )
        yield f"  {name:10} {few_cpu:6.2f} ({few_clock:5.2f})   {cpu:6.2f} ({clock:5.2f})   {cpu / few_cpu - 1:+7.1%}"


def lakes_of_few_nights(folder: Path, count: int) -> list[Nights]:
    """Equal lakes, of FEW_NIGHTS each."""
    first = Nights(folder / "few-0")
    for _ in range(FEW_NIGHTS):
        first.add()
    lakes = [first]
    for number in range(1, count):
        other = Nights(folder / f"few-{number}")
        shutil.copytree(first.lake, other.lake)
        other.count = first.count
        lakes.append(other)
    return lakes


def show(large: Nights, folder: Path, times: int, what: str) -> None:
    """Measure the jobs, and print a table."""
    few = lakes_of_few_nights(folder / f"at-{large.count}-{what}", times)
    sys.stdout.write(f"{large.count} nights{what}, files {large.files()}: CPU (clock) of {FEW_NIGHTS}, then of all\n")
    for line in measured(large, few, times):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def main() -> None:
    """Build the lakes, and measure the jobs on them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at", default="30,300", help="numbers of nights, separated by commas")
    parser.add_argument("--times", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small = Workload(captured_bytes=1, is_replayed=True, stored_bytes=1)
        spark = spark_session("local[2]", "refetch many nights", work=small)
        large = Nights(folder / "large")
        large.add()
        first = large.rows()
        for mark in sorted(map(int, given.at.split(","))):
            large.copy_first(spark, first, mark)
            show(large, folder, given.times, "")
        command("compact", f"--lake={large.lake}", "--retention=0h")
        show(large, folder, given.times, ", compacted")
        spark.stop()


if __name__ == "__main__":
    main()
