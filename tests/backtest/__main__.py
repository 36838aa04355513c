"""Compares predictions with a live cluster: captures under settings A, replayed under B, and captures under B.

    python -m tests.backtest --lab=FOLDER --jars=FOLDER --work=FOLDER [--python=FILE] [--repeats=N] [FAMILY...]

Captures are kept in --work. Existing ones are not recorded again. Recording needs root, Java, tcpdump, kcat and a lab.
Recording takes ten minutes each for buffers, byte-rates, fetches, quotas, racks and splits, eight for starts, six each
for produce-rates and queued, five each for growth and user-rates, four for fetchers, and three for each of the twelve
runs of sessions.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from tests.backtest import (
    buffer_traffic,
    buffers,
    byte_rate_traffic,
    byte_rates,
    fetch_traffic,
    fetcher_traffic,
    fetchers,
    fetches,
    follow_traffic,
    growth,
    growth_traffic,
    produce_rate_traffic,
    produce_rates,
    queued_request_traffic,
    queued_requests,
    quota_traffic,
    quotas,
    rack_reads,
    rack_traffic,
    session_traffic,
    sessions,
    split_traffic,
    splits,
    start_traffic,
    starts,
    user_rate_traffic,
    user_rates,
)
from tests.backtest.coverage import coverage_lines
from tests.backtest.figures import Figures, lines
from tests.backtest.lab import Lab


@dataclass(frozen=True)
class Family:
    """The functions that record a family's captures and compare them; for predictions with ranges, also the function
    that says how good the ranges are.
    """

    traffic: tuple[ModuleType, ...]
    compared: Callable[[Path, int], Iterator[tuple[str, Figures]]]
    covered: Callable[[Path, int], Iterator[Sequence[str]]] | None = None


FAMILIES = {
    "buffers": Family((buffer_traffic,), buffers.compared, buffers.covered),
    "byte-rates": Family((byte_rate_traffic,), byte_rates.compared, byte_rates.covered),
    "fetchers": Family((fetcher_traffic,), fetchers.compared, fetchers.covered),
    "fetches": Family((fetch_traffic, follow_traffic), fetches.compared, fetches.covered),
    "growth": Family((growth_traffic,), growth.compared, growth.covered),
    "produce-rates": Family((produce_rate_traffic,), produce_rates.compared, produce_rates.covered),
    "queued": Family((queued_request_traffic,), queued_requests.compared, queued_requests.covered),
    "quotas": Family((quota_traffic,), quotas.compared),
    "racks": Family((rack_traffic,), rack_reads.compared),
    "sessions": Family((session_traffic,), sessions.compared),
    "user-rates": Family((user_rate_traffic,), user_rates.compared),
    "splits": Family((split_traffic,), splits.compared, splits.covered),
    "starts": Family((start_traffic,), starts.compared, starts.covered),
}


def arguments() -> argparse.Namespace:
    """The command's arguments."""
    parser = argparse.ArgumentParser(prog="python -m tests.backtest", description="Predictions against a live cluster.")
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=f"{', '.join(FAMILIES)}; default: all")
    parser.add_argument("--lab", type=Path, required=True, help="folder of the lab's scripts")
    parser.add_argument("--jars", type=Path, required=True, help="folder of Kafka's jars")
    parser.add_argument("--work", type=Path, required=True, help="folder of captures and lakes")
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="the Python with the lab's clients")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each, to see how far equal runs differ")
    asked = parser.parse_args()
    if unknown := sorted(set(asked.families) - set(FAMILIES)):
        parser.error(f"no such family: {', '.join(unknown)}; there are {', '.join(FAMILIES)}")
    return asked


def record(lab: Lab, family: Family, repeats: int) -> list[str]:
    """Record what is missing. Returns the obstacles, one sentence for each."""
    lacking = [one for one in family.traffic if not all(file.exists() for file in one.captures(lab.work, repeats))]
    if lacking and (missing := lab.missing()):
        return missing
    for one in lacking:
        one.record(lab, repeats)
    return []


def main() -> int:
    """Record, replay, and print the figures; returns the exit code."""
    asked = arguments()
    lab = Lab(asked.lab.resolve(), asked.jars.resolve(), asked.python, asked.work.resolve())
    lab.work.mkdir(parents=True, exist_ok=True)
    for name in asked.families or FAMILIES:
        if missing := record(lab, FAMILIES[name], asked.repeats):
            sys.stderr.write("\n".join((f"{name}: captures are missing, and cannot be recorded.", *missing, "")))
            return 1
        for title, figures in FAMILIES[name].compared(lab.work, asked.repeats):
            sys.stdout.write("\n".join(lines(title, figures)) + "\n")
            sys.stdout.flush()
        if covered := FAMILIES[name].covered:
            sys.stdout.write("\n".join(coverage_lines(list(covered(lab.work, asked.repeats)))) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
