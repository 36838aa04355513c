"""Memory pools of brokers (KIP-72): predictions for pools of other sizes, compared with brokers that had them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import permutations, product
from pathlib import Path
from typing import Any

from schemas.tables import algorithms
from schemas.tables.gold_memory import BROKER_MEMORY, BROKER_MEMORY_RANGES
from tests.backtest.coverage import Case, Range, coverage_row
from tests.backtest.figures import Figures
from tests.backtest.lab import BROKERS
from tests.backtest.pool_log import pool_figures
from tests.backtest.queued_request_traffic import LARGEST_REQUEST, PLENTY, SIZES, capture, pool_log, request_log
from tests.backtest.replays import Replayed, replayed

POOL = "broker.queued.max.request.bytes"
LOGGED = (PLENTY,)
"""The sizes whose captures are also replayed together with the request logs."""
BOUNDED = tuple(size for size in SIZES if size != PLENTY)
RANGED = {
    str(BROKER_MEMORY.waits): "requests that wait",
    str(BROKER_MEMORY.wait_ms_max): "wait ms, longest",
    str(BROKER_MEMORY.depleted_share): "depleted ms",
    str(BROKER_MEMORY.used_bytes_max): "most bytes in use",
}
"""The figures with a range, by the metric of `broker_memory_ranges`."""


def compared(work: Path, repeats: int) -> Iterator[tuple[str, Figures]]:
    """For each prediction its subject, and its figures for each broker in each run. A size from itself is the replay of
    the captured settings.
    """
    for a, b in product(SIZES, SIZES):
        yield f"pool {a} -> {b}", figures_of(work, repeats, a, b, is_logged=False)
        if a in LOGGED:
            yield f"pool {a} -> {b}, with request logs", figures_of(work, repeats, a, b, is_logged=True)


def figures_of(work: Path, repeats: int, a: str, b: str, *, is_logged: bool) -> Figures:
    """What was seen with pools of size `a`, what is predicted from that for size `b`, and what was seen with `b`."""
    of_a, of_b = (list(product((capture(work, size, again) for again in range(repeats)), BROKERS)) for size in (a, b))
    replays = [(of(run, a, is_logged), broker) for run, broker in of_a]
    return Figures(
        [seen(*one) for one in of_a],
        [predicted(replay, broker, lane_of(replay, a, b)) for replay, broker in replays],
        [seen(*one) for one in of_b],
    )


def covered(work: Path, repeats: int) -> Iterator[Sequence[str]]:
    """How often seen values lie in the predicted range, for brokers whose pool binds."""
    from_plenty = [(PLENTY, b) for b in BOUNDED]
    groups = (
        (f"from {PLENTY}", from_plenty, False),
        (f"from {PLENTY}, with request logs", from_plenty, True),
        ("from the other bound", [*permutations(BOUNDED, 2)], False),
        ("equal runs", [(b, b) for b in BOUNDED], False),
    )
    for (family, pairs, is_logged), (metric, figure) in product(groups, RANGED.items()):
        of_brokers = [(*pair, broker) for pair, broker in product(pairs, BROKERS)]
        cases = [case_of(work, repeats, metric, of_broker, is_logged) for of_broker in of_brokers]
        yield coverage_row(family, figure, cases)


def case_of(work: Path, repeats: int, metric: str, of_broker: tuple[str, str, int], is_logged: bool) -> Case:
    """One broker with pools of a size, predicted from the runs with another. of_broker: (from, for, broker)."""
    a, b, broker = of_broker
    of_a, of_b = ([capture(work, size, again) for again in range(repeats)] for size in (a, b))
    replays = [of(run, a, is_logged) for run in of_a]
    return Case(
        [predicted_range(replay, broker, lane_of(replay, a, b), metric) for replay in replays],
        [seen(run, broker)[RANGED[metric]] for run in of_a],
        [seen(run, broker)[RANGED[metric]] for run in of_b],
        are_same=a == b,
    )


def predicted_range(replay: Replayed, broker: int, lane: str, metric: str) -> Range:
    """The range of a broker's figure in a lane."""
    t, m = BROKER_MEMORY_RANGES, BROKER_MEMORY
    own = f"broker = '{broker}' and scenario = '{lane}'"
    (row,) = replay.rows(t, f"{own} and {t.metric} = '{metric}'")
    (result,) = replay.rows(m, own)
    per = result[m.span_ms] if metric == m.depleted_share else 1.0
    return Range(per * row[t.p10], per * row[t.p90])


@cache
def of(run: Path, size: str, is_logged: bool) -> Replayed:
    """A run replayed with pools of the other sizes; its own size is stated."""
    others = [str(pool_bytes) for name, pool_bytes in SIZES.items() if name != size]
    stated = [f"{POOL}={SIZES[size]}", f"broker.socket.request.max.bytes={LARGEST_REQUEST}"]
    logs: Sequence[Path] = [request_log(run, broker) for broker in BROKERS] if is_logged else ()
    return replayed(algorithms.CONSUMER_MEMORY, run, [f"{POOL}={','.join(others)}"], stated, logs)


def lane_of(replay: Replayed, a: str, b: str) -> str:
    """The lane of size `b` in a replay of size `a`; the captured lane if both are the same."""
    lanes = replay.run.scenario.lanes(algorithms.CONSUMER_MEMORY)
    return next(lane.name for lane in lanes if a == b or lane.settings.get(POOL) == SIZES[b])


def predicted(replay: Replayed, broker: int, lane: str) -> dict[str, Any]:
    """The figures of a broker in a lane."""
    t = BROKER_MEMORY
    (row,) = replay.rows(t, f"{t.broker} = '{broker}' and {t.scenario} = '{lane}'")
    return {
        "requests that wait": row[t.waits],
        "wait ms, longest": row[t.wait_ms_max],
        "... 99th percentile of all": row[t.wait_ms_p99],
        "depleted ms": row[t.depleted_share] * row[t.span_ms],
        "most bytes in use": row[t.used_bytes_max],
    }


@cache
def seen(run: Path, broker: int) -> Mapping[str, float]:
    """The figures of a broker from its pool's log; how long the pool was depleted comes from the broker's metrics."""
    told = json.loads(run.with_suffix(".json").read_text())["depleted-ms"][str(broker)]
    with pool_log(run, broker).open() as lines:
        return {**pool_figures(lines), "depleted ms": told}
