"""Batches and splits (KIP-126): predictions for other producer settings, compared with producers that had them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from schemas.tables import algorithms
from schemas.tables.gold_splits import BATCH_SPLIT, BATCH_SPLIT_RANGES
from schemas.tables.silver import RECORD_BATCHES
from schemas.wire.errors import MESSAGE_TOO_LARGE
from tests.backtest.coverage import Case, Range, coverage_row
from tests.backtest.figures import Figures
from tests.backtest.replays import Replayed, replayed
from tests.backtest.split_traffic import BASE, CHANGES, PAIRS

SIZES = ("recompressed", "exact")
"""Where the replay gets the sizes of batches that were not captured."""
KEYS = {"batch.size": "producer.batch.size", "linger.ms": "producer.linger.ms",
        "compression.type": "producer.compression.type", "max.message.bytes": "topic.max.message.bytes"}  # fmt: skip


def compared(work: Path, repeats: int) -> Iterator[tuple[str, Figures]]:
    """For each prediction, in both directions, its subject and its figures."""
    clients = {name: [f"split-{name}-{again}" for again in range(repeats)] for name in CHANGES}
    for pair in PAIRS:
        for a, b in (pair, pair[::-1]):
            for sizes in SIZES:
                from_a, from_b = of(work, a, b), of(work, b, a)
                yield (
                    f"{a} -> {b}, recut.sizes={sizes}",
                    Figures(
                        [seen(work, a, from_a, client) for client in clients[a]],
                        [predicted(from_a, client, sizes) for client in clients[a]],
                        [seen(work, b, from_b, client) for client in clients[b]],
                    ),
                )


RANGED = {"splits": "splits", "batches": "... first", "bytes_resent": "bytes resent"}
"""The figures with a range, and their names here."""


def covered(work: Path, repeats: int) -> Iterator[Sequence[str]]:
    """How often seen values lie in the predicted range, for each figure."""
    pairs = [pair for both in PAIRS for pair in (both, both[::-1])]
    for metric in RANGED:
        yield coverage_row("producer", RANGED[metric], [case_of(work, repeats, metric, *pair) for pair in pairs])


def case_of(work: Path, repeats: int, metric: str, a: str, b: str) -> Case:
    """One group of settings, predicted from the runs of another."""
    of_a, of_b = of(work, a, b), of(work, b, a)
    clients_a, clients_b = ([f"split-{name}-{again}" for again in range(repeats)] for name in (a, b))
    return Case(
        [predicted_range(of_a, client, metric) for client in clients_a],
        [seen(work, a, of_a, client)[RANGED[metric]] for client in clients_a],
        [seen(work, b, of_b, client)[RANGED[metric]] for client in clients_b],
    )


def predicted_range(replay: Replayed, client: str, metric: str) -> Range:
    """The range of a producer's figure in the lane with the changed settings."""
    lane, t = lane_of(replay, SIZES[0]), BATCH_SPLIT_RANGES
    (row,) = replay.rows(t, f"scenario = '{lane}' and {t.client_id} = '{client}' and {t.metric} = '{metric}'")
    return Range(row[t.p10], row[t.p90])


@cache
def of(work: Path, a: str, b: str) -> Replayed:
    """The capture of A, replayed with B's settings."""
    had, wanted = {**BASE, **CHANGES[a]}, {**BASE, **CHANGES[b]}
    changes = [f"{name}={wanted[key]}" for key, name in KEYS.items() if had[key] != wanted[key]]
    stated = [f"{key}={had[key]}" for key in ("batch.size", "linger.ms")]
    return replayed(
        algorithms.BATCH_SPLIT, work / f"split-{a}.pcap", [*changes, f"recut.sizes={','.join(SIZES)}"], stated
    )


def lane_of(replay: Replayed, sizes: str) -> str:
    """The lane with the changed settings that gets sizes in this way."""
    return next(name for name in replay.lanes if name.endswith(f"recut.sizes={sizes}"))


def predicted(replay: Replayed, client: str, sizes: str) -> dict[str, Any]:
    """The figures of a producer in the lane with the changed settings."""
    lane, t = lane_of(replay, sizes), BATCH_SPLIT
    (row,) = replay.rows(t, f"scenario = '{lane}' and {t.client_id} = '{client}'")
    return {
        "splits": row[t.splits],
        "batches sent": row[t.batches] + row[t.split_batches],
        "... first": row[t.batches],
        "bytes sent": row[t.bytes_sent],
        "bytes resent": row[t.bytes_resent],
        "largest batch": row[t.batch_bytes_max],
    }


def seen(work: Path, name: str, replay: Replayed, client: str) -> Mapping[str, Any]:
    """The captured figures of a producer. A part of a split batch has sequence numbers of that batch.

    Raises ValueError if the client's own count of splits differs from the number of refused batches.
    """
    t = RECORD_BATCHES
    rows = replay.rows(t, f"{t.client_id} = '{client}' and source = 'produce'")
    rows.sort(key=lambda row: (row[t.request_time], row[t.exchange_no], row[t.position]))
    refused: dict[int, set[int]] = {}
    parts = []
    for row in rows:
        numbers = refused.setdefault(row[t.partition], set())
        if row[t.base_sequence] in numbers:
            parts.append(row)
        if row[t.error_code] == MESSAGE_TOO_LARGE:
            numbers.update(range(row[t.base_sequence], row[t.base_sequence] + row[t.record_count]))
    splits = sum(row[t.error_code] == MESSAGE_TOO_LARGE for row in rows)
    told = json.loads((work / f"split-{name}.json").read_text())[client]
    if told != splits:
        raise ValueError(f"{client}: {splits} batches refused in the capture, batch-split-total is {told}")
    return {
        "splits": splits,
        "batches sent": len(rows),
        "... first": len(rows) - len(parts),
        "bytes sent": sum(row[t.size_bytes] for row in rows),
        "bytes resent": sum(row[t.size_bytes] for row in parts),
        "largest batch": max(row[t.size_bytes] for row in rows),
    }
