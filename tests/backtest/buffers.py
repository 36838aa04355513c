"""A producer's buffer.memory: predictions for more or less of it, compared with producers that had it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from schemas.tables import algorithms
from schemas.tables.gold_memory import PRODUCER_MEMORY, PRODUCER_MEMORY_RANGES
from tests.backtest.buffer_traffic import CHANGES, LITTLE, PACES, capture, named
from tests.backtest.coverage import Case, Range, coverage_row
from tests.backtest.figures import Figures
from tests.backtest.replays import Replayed, replayed

PAIRS = (("", LITTLE), (LITTLE, ""))
"""Settings that are predicted from each other: (from, for)."""
RANGED = {
    "waits": "batches or sends that wait",
    "wait_ms_total": "wait ms, in all",
    "wait_ms_max": "... longest",
    "exhausted": "... give up",
}
"""The figures with a range, by the metric of `producer_memory_ranges`."""


def compared(work: Path, repeats: int) -> Iterator[tuple[str, Figures]]:
    """For each prediction its subject and its figures."""
    for pace in PACES:
        for a, b in PAIRS:
            of_a, of_b = ([named(pace, change, again) for again in range(repeats)] for change in (a, b))
            from_a = of(work, pace, a, b)
            yield (
                f"{pace}: {a or 'plenty'} -> {b or 'plenty'}",
                Figures(
                    [seen(work, pace, a, name) for name in of_a],
                    [predicted(from_a, name) for name in of_a],
                    [seen(work, pace, b, name) for name in of_b],
                ),
            )


def covered(work: Path, repeats: int) -> Iterator[Sequence[str]]:
    """How often seen values lie in the predicted range: for less memory, and for equal runs with as little."""
    for threads in sorted({pace.threads for pace in PACES.values()}):
        paces = [name for name, pace in PACES.items() if pace.threads == threads]
        for metric, figure in RANGED.items():
            for a in CHANGES:
                cases = [case_of(work, repeats, metric, pace, a) for pace in paces]
                yield coverage_row(f"{threads} threads, from {a or 'plenty'}", figure, cases)


def case_of(work: Path, repeats: int, metric: str, pace: str, a: str) -> Case:
    """Producers with little memory, predicted from the runs of one group."""
    replay, of_a, of_b = (
        of(work, pace, a, next(b for one, b in PAIRS if one == a)),
        *([named(pace, change, again) for again in range(repeats)] for change in (a, LITTLE)),
    )
    return Case(
        [predicted_range(replay, replay.lanes[0 if a else -1], name, metric) for name in of_a],
        [seen(work, pace, a, name)[RANGED[metric]] for name in of_a],
        [seen(work, pace, LITTLE, name)[RANGED[metric]] for name in of_b],
        are_same=a == LITTLE,
    )


def predicted_range(replay: Replayed, lane: str, name: str, metric: str) -> Range:
    """The range of a producer's figure in a lane."""
    t = PRODUCER_MEMORY_RANGES
    (row,) = replay.rows(t, f"scenario = '{lane}' and {t.client_id} = '{name}' and {t.metric} = '{metric}'")
    return Range(row[t.p10], row[t.p90])


@cache
def of(work: Path, pace: str, a: str, b: str) -> Replayed:
    """The capture under A, replayed with B's settings."""
    had, wanted = PACES[pace].settings(a), PACES[pace].settings(b)
    changes = [f"producer.buffer.memory={wanted['buffer.memory']}"]
    stated = [f"producer.{key}={value}" for key, value in had.items()] + [f"sending.threads={PACES[pace].threads}"]
    return replayed(algorithms.CONSUMER_MEMORY, capture(work, pace, a), changes, stated)


def predicted(replay: Replayed, name: str) -> dict[str, Any]:
    """The figures of a producer in the lane with the changed settings."""
    t = PRODUCER_MEMORY
    (row,) = replay.rows(t, f"scenario = '{replay.lanes[-1]}' and {t.client_id} = '{name}'")
    return {
        "batches or sends that wait": row[t.waits],
        "... give up": row[t.exhausted],
        "wait ms, in all": row[t.wait_ms_total],
        "... median": row[t.wait_ms_p50],
        "... 99th percentile": row[t.wait_ms_p99],
        "... longest": row[t.wait_ms_max],
        "most bytes in use": row[t.used_bytes_max],
    }


def seen(work: Path, pace: str, change: str, name: str) -> Mapping[str, Any]:
    """The figures of a producer, as its client reports them."""
    told = json.loads(capture(work, pace, change).with_suffix(".json").read_text())[name]
    return {
        "batches or sends that wait": told["blocked"],
        "... give up": told["exhausted"],
        "wait ms, in all": told["wait-ms"],
        "... median": told["ms-50"],
        "... 99th percentile": told["ms-99"],
        "... longest": told["ms-100"],
        "most bytes in use": told["used-max"],
    }
