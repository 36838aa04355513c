"""Consumers that start together with their producers: what the replay of each run predicts for the other, equal runs.

No setting is varied. The seen values of a run come from its replay of the captured settings, because packets alone do
not show what a consumer held.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from schemas.tables import algorithms
from schemas.tables.gold import FETCH_RANGES
from schemas.tables.values import CONSUMER, FOLLOWER
from tests.backtest.coverage import Case, Range, coverage_row
from tests.backtest.figures import Figures
from tests.backtest.replays import replayed
from tests.backtest.start_traffic import SCENARIOS, capture

RANGED = {
    "held_bytes": "held bytes",
    "requests": "requests",
    "catch_up_ms": "catch-up ms",
    "longest_wait_ms": "longest wait ms",
    "end_lag_bytes": "unread bytes",
}
"""The figures with a range, and their names here."""
READERS = (CONSUMER, FOLLOWER)


class Ranged(NamedTuple):
    """A figure of a run: at its own pace, its median over drawn paces, and p10 to p90 over these."""

    value: float
    p50: float
    range: Range


def compared(work: Path, repeats: int) -> Iterator[tuple[str, Figures]]:
    """For each reader the medians that its runs predict, and the runs' own figures."""
    for scenario, reader in product(SCENARIOS, READERS):
        runs = [ranged_figures(work, scenario, again) for again in range(repeats)]
        for client in clients_of(runs, reader):
            seen = [{name: run[reader, client, metric].value for metric, name in RANGED.items()} for run in runs]
            medians = [{name: run[reader, client, metric].p50 for metric, name in RANGED.items()} for run in runs]
            yield f"{scenario}: {reader} {client} -> the equal other runs", Figures(seen, medians, seen)


def covered(work: Path, repeats: int) -> Iterator[Sequence[str]]:
    """How often a run lies in the range that the other, equal runs predict, for each scenario, kind of reader and
    figure.
    """
    for scenario, reader in product(SCENARIOS, READERS):
        runs = [ranged_figures(work, scenario, again) for again in range(repeats)]
        for metric, name in RANGED.items():
            cases = list[Case]()
            for client in clients_of(runs, reader):
                of_runs = [run[reader, client, metric] for run in runs]
                values = [of.value for of in of_runs]
                cases.append(Case([of.range for of in of_runs], values, values, are_same=True))
            yield coverage_row(f"{scenario} {reader}", name, cases)


Run = dict[tuple[str, str, str], Ranged]
"""The figures of a run, by kind of reader, client.id and metric."""


def clients_of(runs: Sequence[Run], reader: str) -> list[str]:
    """The client.ids of the runs, which must be the same in all. Raises ValueError if they are not."""
    by_run = [{client for kind, client, _ in run if kind == reader} for run in runs]
    if any(clients != by_run[0] for clients in by_run):
        raise ValueError(f"{reader}s differ between equal runs: {[sorted(clients) for clients in by_run]}")
    return sorted(by_run[0])


@cache
def ranged_figures(work: Path, scenario: str, again: int) -> Run:
    """The figures of a run in the captured lane."""
    t = FETCH_RANGES
    of_run = replayed(algorithms.FETCH_MAX_BYTES, capture(work, scenario, again))
    rows = of_run.rows(t, f"{t.scenario} = '{of_run.lanes[0]}'")
    return {(row[t.reader], row[t.client_id], row[t.metric]): ranged(row) for row in rows if row[t.metric] in RANGED}


def ranged(row: dict[str, Any]) -> Ranged:
    """The figure in a row of `fetch_ranges`; null means infinite."""
    t = FETCH_RANGES
    value, p10, p50, p90 = (inf if row[name] is None else float(row[name]) for name in (t.value, t.p10, t.p50, t.p90))
    return Ranged(value, p50, Range(p10, p90))
