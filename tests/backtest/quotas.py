"""Controller mutation quotas (KIP-599): predictions for other quotas, compared with clients that had them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from schemas.tables import algorithms
from schemas.tables.gold_limits import PARTITION_LIMIT_REFUSALS
from schemas.tables.silver_topics import TOPIC_CHANGES
from tests.backtest.figures import Figures
from tests.backtest.quota_traffic import QUOTAS, RATE, REQUESTS, capture, client
from tests.backtest.replays import Replayed, Rows, replayed

THROTTLING_QUOTA_EXCEEDED, UNKNOWN_TOPIC_OR_PARTITION = 89, 3
RATES = tuple(dict.fromkeys(quota.rate for quota in QUOTAS.values() if quota.rate))
UNLIMITED = 1_000_000
"""A rate that nobody reaches."""
PAIRS = (
    ("none", "2"), ("none", "5"), ("5", "2"), ("2", "5"), ("2", "none"), ("5", "none"),
    ("none", "5-retried"), ("5-retried", "5"), ("5-retried", "none"), ("none", "5-user"),
)  # fmt: skip
"""Quotas that are predicted from each other: (from, for)."""


def compared(work: Path, repeats: int) -> Iterator[tuple[str, Figures]]:
    """For each prediction its subject and its figures."""
    for a, b in PAIRS:
        for kind in REQUESTS:
            of_a, of_b = ([client(name, kind, again) for again in range(repeats)] for name in (a, b))
            from_a, from_b = of(work, a), of(work, b)
            yield (
                f"{kind}: quota {a} -> {b}",
                Figures(
                    [seen(from_a, name) for name in of_a],
                    [predicted(from_a, name, QUOTAS[b].rate or UNLIMITED) for name in of_a],
                    [seen(from_b, name) for name in of_b],
                ),
            )


@cache
def of(work: Path, name: str) -> Replayed:
    """The capture of a quota, replayed with all quotas."""
    rates = ",".join(map(str, (*RATES, UNLIMITED)))
    stated = QUOTAS[name].rate
    return replayed(
        algorithms.PARTITION_LIMITS, capture(work, name), [f"{RATE}={rates}"], [f"{RATE}={stated}"] if stated else []
    )


def predicted(replay: Replayed, name: str, rate: int) -> dict[str, Any]:
    """The figures of a client in the lane of a rate."""
    lane = next(lane for lane in replay.lanes if lane.endswith(f"={rate}"))
    t = PARTITION_LIMIT_REFUSALS
    rows = replay.rows(t, f"scenario = '{lane}' and {t.client_id} = '{name}'")
    asked = replay.rows(TOPIC_CHANGES, f"{TOPIC_CHANGES.client_id} = '{name}'")
    told = {position_of(row): row[t.error_code] for row in rows}
    return figures([row | {"error_code": told.get(position_of(row), 0)} for row in asked])


def seen(replay: Replayed, name: str) -> dict[str, Any]:
    """The captured figures of a client."""
    return figures(replay.rows(TOPIC_CHANGES, f"{TOPIC_CHANGES.client_id} = '{name}'"))


def position_of(row: dict[str, Any]) -> tuple[int, int, int]:
    """The position of a row's change among all changes."""
    return row["connection_id"], row["exchange_no"], row["position"]


def figures(rows: Rows) -> dict[str, Any]:
    """The figures of these changes."""
    refused = [row for row in rows if row["error_code"] == THROTTLING_QUOTA_EXCEEDED]
    gone = [row for row in rows if row["error_code"] == UNKNOWN_TOPIC_OR_PARTITION]
    return {
        "changes asked for": len(rows),
        "changes refused": len(refused),
        "requests with one refused": len({position_of(row)[:2] for row in refused}),
        "partitions to be made, refused": sum(row["num_partitions"] or 0 for row in refused
                                              if row["kind"] == "create_topic"),
        "of topics that were refused": len(gone),
        "which are refused": {change_of(row): 1 for row in refused},
        "which are of such topics": {change_of(row): 1 for row in gone},
    }  # fmt: skip


def change_of(row: dict[str, Any]) -> tuple[str, str, int]:
    """A change, without the client that asks for it."""
    return row["kind"], row["topic"].rpartition("-")[2], row["num_partitions"] or 0
