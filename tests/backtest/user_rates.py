"""Quotas of users (KIP-55): predictions for two consumers that share a quota, compared with two that did."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from schemas.tables import algorithms
from tests.backtest.byte_rates import predicted, seen
from tests.backtest.figures import Figures
from tests.backtest.replays import Replayed, replayed
from tests.backtest.user_rate_traffic import BOTH, RATES, capture, client

KEY = "user.consumer_byte_rate"
WHOLE = "consumer_byte_rate"
"""The quota of each client.id: the prediction if every consumer had the whole quota."""
PAIRS = (("none", "1m", KEY), ("none", "1m", WHOLE), ("1m", "1m", KEY))
"""Quotas that are predicted from each other, and with which setting: (from, for, setting). A quota from itself is the
replay of the captured settings."""


def compared(work: Path, repeats: int) -> Iterator[tuple[str, Figures]]:
    """For each prediction its subject and its figures."""
    for a, b, key in PAIRS:
        yield (
            f"two consumers of a user: quota {a} -> {b}, by {key}",
            Figures(
                [seen(of(work, a, again), client(a, again, which)) for again in range(repeats) for which in BOTH],
                [
                    predicted(of(work, a, again), client(a, again, which), lane_of(of(work, a, again), a, b, key))
                    for again in range(repeats)
                    for which in BOTH
                ],
                [seen(of(work, b, again), client(b, again, which)) for again in range(repeats) for which in BOTH],
            ),
        )


@cache
def of(work: Path, name: str, again: int) -> Replayed:
    """The capture of a run under a quota. Its own quota is stated, and the others are replayed in two ways."""
    stated = RATES[name]
    lanes = [] if stated else [f"{key}={rate}" for key in (KEY, WHOLE) for rate in RATES.values() if rate]
    return replayed(
        algorithms.FETCH_MAX_BYTES, capture(work, name, again), [f"{lane},none" for lane in lanes],
        [f"{KEY}={stated}"] if stated else [],
    )  # fmt: skip


def lane_of(replay: Replayed, a: str, b: str, key: str) -> str:
    """The lane with only this quota; the captured lane in the quota's own capture."""
    lanes = replay.run.scenario.lanes(algorithms.FETCH_MAX_BYTES)
    other = {KEY: WHOLE, WHOLE: KEY}[key]
    return next(
        lane.name
        for lane in lanes
        if a == b or (lane.settings.get(key) == RATES[b] and lane.settings.get(other, "none") == "none")
    )
