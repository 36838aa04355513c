"""Whether a change leaves every row as it was: hashes of each table, for captures and scenarios with all five replays.

    python -m tests.equal_rows --lakes=FOLDER --out=before.json [CAPTURE ...]
    python -m tests.equal_rows --lakes=FOLDER --out=after.json --against=before.json [CAPTURE ...]

Each lake stays in FOLDER, so that the rows themselves can be compared where a hash differs. A CAPTURE is a name in
../shared/captures, or the path of any other pcap file; default: six of the former. It takes some minutes.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from jobs.ingest import ingest
from jobs.ready_session import compile_meanwhile_for
from jobs.replay import replay
from jobs.run import Run
from jobs.scenarios.scenario_file import resolve_scenario
from jobs.session.spark import spark_session
from schemas.tables.gold import GOLD
from schemas.tables.silver import SILVER
from tests.conftest import REPOSITORY
from tests.equal_rows.hashes import table_hash

CAPTURES = REPOSITORY.parent / "shared" / "captures"
NAMES = ("admin", "mixed", "sasl", "sessions", "split", "starve")
SCENARIOS = ("rules", "sizes")
RUN_AT = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
IN_FORCE = {
    "sessions": ["max.incremental.fetch.session.cache.slots=8"],
    "split": ["batch.size=38000", "linger.ms=20", "max.message.bytes=40000"],
}
"""Settings that were in force, by capture: the capture does not show them."""

Hashes = dict[str, dict[str, tuple[int, str]]]
"""(number of rows, their hash) by lake and table."""


def lake_hashes(spark: SparkSession, capture: Path, home: Path) -> Iterator[tuple[str, dict[str, tuple[int, str]]]]:
    """The hashes of a capture's silver tables, and of the gold tables of each scenario."""
    lake, silver = home / capture.stem, dict[str, tuple[int, str]]()
    shutil.rmtree(lake, ignore_errors=True)
    for name in SCENARIOS:
        asked = Path(__file__).with_name(f"scenario_{name}.yaml")
        scenario = resolve_scenario(str(asked), [], IN_FORCE.get(capture.stem, []))
        run = Run(scenario, (capture,), str(lake), RUN_AT)
        capture_id = ingest(spark, run, keep=True)
        if not silver:
            silver = {table.name: table_hash(str(lake), table, capture_id) for table in SILVER}
            yield f"{capture.stem} silver", silver
        run_id = replay(spark, replace(run, capture=capture_id), capture_id).run_id
        yield f"{capture.stem} {name}", {table.name: table_hash(str(lake), table, run_id) for table in GOLD}


def differences(before: Hashes, after: Hashes) -> list[str]:
    """One line for each table that differs."""
    return [
        f"{lake} {table}: {before.get(lake, {}).get(table)} before, {found} now"
        for lake, tables in after.items()
        for table, found in tables.items()
        if tuple(before.get(lake, {}).get(table, ())) != found
    ]


def main() -> int:
    """Write each table's hash, and print what differs from another run. Returns 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.equal_rows", description=__doc__)
    parser.add_argument("captures", nargs="*", metavar="CAPTURE")
    parser.add_argument("--lakes", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--against", type=Path)
    asked = parser.parse_args()
    paths = [Path(name) if "/" in name else CAPTURES / f"{name}.pcap" for name in asked.captures or NAMES]
    algorithms = resolve_scenario(str(Path(__file__).with_name("scenario_rules.yaml"))).algorithms
    found: Hashes = {}
    with compile_meanwhile_for(None, algorithms):
        spark = spark_session("local[2]", "refetch equal_rows", {"spark.driver.memory": "4g"})
    for path in paths:
        for lake, tables in lake_hashes(spark, path, asked.lakes):
            found[lake] = tables
            sys.stdout.write(f"{lake}: {sum(rows for rows, _ in tables.values()):,} rows\n")
    asked.out.write_text(json.dumps(found, indent=1))
    if asked.against is None:
        return 0
    told = differences(json.loads(asked.against.read_text()), found)
    sys.stdout.writelines(f"{line}\n" for line in told or ["every table is row for row the same"])
    return int(bool(told))


if __name__ == "__main__":
    sys.exit(main())
