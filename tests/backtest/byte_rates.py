"""Bandwidth quotas (KIP-13): predictions for consumers under other quotas, compared with consumers that had them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

from schemas.tables import algorithms
from schemas.tables.gold import FETCH_CONSUMERS, FETCH_RANGES
from schemas.tables.silver import EXCHANGES
from tests.backtest.byte_rate_traffic import RATE, RATES
from tests.backtest.coverage import Case, Range, coverage_row
from tests.backtest.fetches import captured_catch_up
from tests.backtest.figures import Figures
from tests.backtest.replays import Replayed, replayed
from udfs.replay.fetch_max_bytes.rows import CLOSED_LOOP

KINDS = ("java", "librdkafka")
PAIRS = (("none", "1m"), ("none", "500k"), ("1m", "500k"), ("500k", "1m"), ("1m", "1m"), ("500k", "500k"))
"""Quotas predicted from each other: (from, for). A quota from itself is the replay of the captured settings."""
RANGED = {"catch_up_ms": "catch-up ms", "throttle_time_ms": "throttled ms"}
"""The figures with a range, and their names here."""


def compared(work: Path, repeats: int) -> Iterator[tuple[str, Figures]]:
    """For each prediction its subject and its figures."""
    for a, b in PAIRS:
        for kind in KINDS:
            yield (
                f"{kind}: quota {a} -> {b}",
                Figures(
                    [seen(of(work, a), client) for client in clients(kind, a, repeats)],
                    [predicted(of(work, a), client, lane_of(work, a, b)) for client in clients(kind, a, repeats)],
                    [seen(of(work, b), client) for client in clients(kind, b, repeats)],
                ),
            )


def covered(work: Path, repeats: int) -> Iterator[Sequence[str]]:
    """How often seen values lie in the predicted range, for each kind of client and each figure."""
    for kind in KINDS:
        for metric, name in RANGED.items():
            yield coverage_row(kind, name, [case_of(work, repeats, kind, metric, *pair) for pair in PAIRS])


def case_of(work: Path, repeats: int, kind: str, metric: str, a: str, b: str) -> Case:
    """One quota predicted from the runs of another."""
    of_a, of_b = clients(kind, a, repeats), clients(kind, b, repeats)
    return Case(
        [predicted_range(of(work, a), client, lane_of(work, a, b), metric) for client in of_a],
        [seen(of(work, a), client)[RANGED[metric]] for client in of_a],
        [seen(of(work, b), client)[RANGED[metric]] for client in of_b],
    )


def clients(kind: str, name: str, repeats: int) -> list[str]:
    """The client.id of each run under a quota."""
    return [f"{kind}-{name}-{again}" for again in range(repeats)]


@cache
def of(work: Path, name: str) -> Replayed:
    """The capture of a quota, replayed with the others; its own quota is stated."""
    stated, others = RATES[name], [str(rate) for rate in RATES.values() if rate not in (None, RATES[name])]
    return replayed(
        algorithms.FETCH_MAX_BYTES, work / f"byte-rate-{name}.pcap", [f"{RATE}={','.join(others)}"],
        [f"{RATE}={stated}"] if stated else [],
    )  # fmt: skip


def lane_of(work: Path, a: str, b: str) -> str:
    """The lane of a quota in the capture of another quota; the captured lane in its own capture."""
    lanes = of(work, a).run.scenario.lanes(algorithms.FETCH_MAX_BYTES)
    return next(lane.name for lane in lanes if a == b or lane.settings.get(RATE) == RATES[b])


def predicted(replay: Replayed, client: str, lane: str) -> dict[str, Any]:
    """The figures of a client in a lane."""
    c = FETCH_CONSUMERS
    whose = f"{c.client_id} = '{client}' and {c.mode} = '{CLOSED_LOOP}' and {c.scenario} = '{lane}'"
    (reader,) = replay.rows(c, whose)
    return figures(reader[c.catch_up_ms], reader[c.throttle_time_ms])


def predicted_range(replay: Replayed, client: str, lane: str, metric: str) -> Range:
    """The range of a client's figure in a lane."""
    t = FETCH_RANGES
    whose = f"{t.client_id} = '{client}' and {t.metric} = '{metric}' and {t.scenario} = '{lane}'"
    (row,) = replay.rows(t, whose)
    low, high = (inf if row[end] is None else row[end] for end in (t.p10, t.p90))
    return Range(low, high)


def seen(replay: Replayed, client: str) -> dict[str, Any]:
    """The captured figures of a client."""
    e = EXCHANGES
    throttled = replay.rows(e, f"{e.client_id} = '{client}' and {e.throttle_time_ms} > 0")
    return figures(captured_catch_up(replay, client), sum(row[e.throttle_time_ms] for row in throttled))


def figures(catch_up_ms: float, throttled_ms: float) -> dict[str, Any]:
    """The figures of a client, by name."""
    return {"catch-up ms": catch_up_ms, "throttled ms": throttled_ms}
