"""Bandwidth quotas of producers (KIP-13): predictions for other quotas, compared with producers that had them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from schemas.tables import algorithms
from schemas.tables.gold import PRODUCER_THROTTLE_RANGES, PRODUCER_THROTTLES
from tests.backtest.byte_rates import clients
from tests.backtest.coverage import Case, Range, coverage_row
from tests.backtest.figures import Figures
from tests.backtest.produce_rate_traffic import RATE, RATES
from tests.backtest.replays import Replayed, replayed

KINDS = ("java", "librdkafka")
PAIRS = (
    ("none", "400k"), ("none", "200k"), ("400k", "200k"), ("200k", "400k"), ("200k", "none"), ("400k", "none"),
    ("400k", "400k"), ("200k", "200k"),
)  # fmt: skip
"""Quotas predicted from each other: (from, for). A quota from itself is the replay of the captured settings."""

SENDING = str(PRODUCER_THROTTLES.sending_ms)
RANGED = {SENDING: "sending ms", "throttled_requests": "throttled requests", "throttle_time_ms": "throttled ms"}
"""The figures with a range, by the metric of `producer_throttle_ranges`."""


def compared(work: Path, repeats: int) -> Iterator[tuple[str, Figures]]:
    """For each prediction its subject and its figures."""
    for a, b in PAIRS:
        for kind in KINDS:
            yield (
                f"{kind} producer: quota {a} -> {b}",
                Figures(
                    [captured(of(work, a), client) for client in clients(kind, a, repeats)],
                    [predicted(of(work, a), client, lane_of(work, a, b)) for client in clients(kind, a, repeats)],
                    [captured(of(work, b), client) for client in clients(kind, b, repeats)],
                ),
            )


def covered(work: Path, repeats: int) -> Iterator[Sequence[str]]:
    """How often seen values lie in the predicted range under another quota, for each kind of client and each figure;
    and for the time of sending without a quota, where nobody is throttled.
    """
    for kind in KINDS:
        for under_quota, figures in ((True, RANGED), (False, {SENDING: RANGED[SENDING]})):
            pairs = [(a, b) for a, b in PAIRS if a != b and (RATES[b] is not None) == under_quota]
            for metric, name in figures.items():
                cases = [case_of(work, repeats, kind, metric, *pair) for pair in pairs]
                yield coverage_row(f"{kind}, {'under a quota' if under_quota else 'without'}", name, cases)


def case_of(work: Path, repeats: int, kind: str, metric: str, a: str, b: str) -> Case:
    """One quota predicted from the runs of another."""
    of_a, of_b = clients(kind, a, repeats), clients(kind, b, repeats)
    return Case(
        [predicted_range(of(work, a), client, lane_of(work, a, b), metric) for client in of_a],
        [captured(of(work, a), client)[RANGED[metric]] for client in of_a],
        [captured(of(work, b), client)[RANGED[metric]] for client in of_b],
    )


def predicted_range(replay: Replayed, client: str, lane: str, metric: str) -> Range:
    """The range of a client's figure in a lane, as it is shown: of its slowest broker, or the sum over its brokers."""
    t, combined = PRODUCER_THROTTLE_RANGES, max if metric == SENDING else sum
    whose = f"{t.client_id} = '{client}' and {t.metric} = '{metric}' and {t.scenario} = '{lane}'"
    rows = replay.rows(t, whose)
    return Range(combined(row[t.p10] for row in rows), combined(row[t.p90] for row in rows))


@cache
def of(work: Path, name: str) -> Replayed:
    """The capture of a quota, replayed with the others and without any; its own quota is stated."""
    stated = RATES[name]
    others = [str(rate or "none") for rate in RATES.values() if rate != stated]
    return replayed(
        algorithms.FETCH_MAX_BYTES, work / f"produce-rate-{name}.pcap", [f"{RATE}={','.join(others)}"],
        [f"{RATE}={stated}"] if stated else [],
    )  # fmt: skip


def lane_of(work: Path, a: str, b: str) -> str:
    """The lane of a quota in the capture of another quota; the captured lane in its own capture."""
    lanes = of(work, a).run.scenario.lanes(algorithms.FETCH_MAX_BYTES)
    return next(lane.name for lane in lanes if a == b or lane.settings.get(RATE) == (RATES[b] or "none"))


def rows_of(replay: Replayed, client: str, lane: str) -> list[dict[str, Any]]:
    """The rows of a producer in a lane, one for each broker."""
    t = PRODUCER_THROTTLES
    return replay.rows(t, f"{t.client_id} = '{client}' and {t.scenario} = '{lane}'")


def predicted(replay: Replayed, client: str, lane: str) -> dict[str, Any]:
    """The figures of a client in a lane."""
    t = PRODUCER_THROTTLES
    return figures(rows_of(replay, client, lane), t.sending_ms, t.throttled_requests, t.throttle_time_ms)


def captured(replay: Replayed, client: str) -> dict[str, Any]:
    """The captured figures of a client."""
    t, rows = PRODUCER_THROTTLES, rows_of(replay, client, "captured")
    return figures(rows, t.captured_sending_ms, t.captured_throttled_requests, t.captured_throttle_time_ms)


def figures(rows: Sequence[dict[str, Any]], sending: str, throttled: str, throttle: str) -> dict[str, Any]:
    """The figures of a client: its slowest broker, and sums over all brokers."""
    return {
        "sending ms": max(row[sending] for row in rows),
        "throttled requests": sum(row[throttled] for row in rows),
        "throttled ms": sum(row[throttle] for row in rows),
    }
