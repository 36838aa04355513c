"""Fetch sessions (KIP-227): predictions for brokers with fewer and more slots, compared with brokers that had them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from jobs.scenarios.scenario import CAPTURED_LANE
from schemas.tables import algorithms
from schemas.tables.gold_sessions import SESSION_CACHE, SESSION_EVICTIONS, SESSION_SLOTS
from schemas.tables.silver import EXCHANGES
from tests.backtest.figures import Figures
from tests.backtest.replays import Replayed, replayed
from tests.backtest.session_traffic import BROKERS, SLOTS, capture

NOT_FOUND = 70
"""FETCH_SESSION_ID_NOT_FOUND."""
SUMS = ("fetches", "full_fetches", "created", "refused", "not_found")
PAIRS = (("8", "4"), ("8", "16"), ("8", "64"), ("16", "8"), ("64", "8"), ("64", "16"))


def compared(work: Path, repeats: int) -> Iterator[tuple[str, Figures]]:
    """For each prediction its subject and its figures."""
    found = {name: [of(capture(work, name, again), name) for again in range(repeats)] for name in BROKERS}
    for a, b in PAIRS:
        yield (
            f"sessions {a} slots -> {b}",
            Figures(
                [seen(replay) for replay in found[a]],
                [predicted(replay, lane_of(replay, b)) for replay in found[a]],
                [seen(replay) for replay in found[b]],
            ),
        )


@cache
def of(path: Path, slots: str) -> Replayed:
    """A capture of brokers with this many slots, replayed with all numbers of slots."""
    return replayed(algorithms.SESSION_CACHE, path, [f"{SLOTS}={','.join(BROKERS)}"], [f"{SLOTS}={slots}"])


def predicted(replay: Replayed, lane: str) -> dict[str, Any]:
    """The figures of a lane, over all brokers."""
    where = f"scenario = '{lane}'"
    rows = replay.rows(SESSION_CACHE, where)
    victims: Counter[str] = Counter()
    for row in replay.rows(SESSION_EVICTIONS, where):
        victims[row[SESSION_EVICTIONS.victim]] += row[SESSION_EVICTIONS.evictions]
    needed = replay.rows(SESSION_SLOTS, where)
    return {
        **{name: sum(row[name] for row in rows) for name in SUMS},
        "slots needed, by broker": {row["broker"]: row["zero_harm_slots"] for row in needed},
        "evicted clients": dict(victims),
    }


def lane_of(replay: Replayed, slots: str) -> str:
    """The lane with this many slots."""
    return next(name for name in replay.lanes if name.endswith(f"={slots}"))


def seen(replay: Replayed) -> dict[str, Any]:
    """The figures of the capture itself. An evicted client shows when it comes back. The number of needed slots comes
    from the replay of the captured slots."""
    t, x = SESSION_CACHE, EXCHANGES
    as_replayed = predicted(replay, CAPTURED_LANE)
    rows = replay.rows(t, "scenario = 'captured'")
    captured = {name: sum(row[f"captured_{name}"] for row in rows)
                for name in ("fetches", "created", "refused", "not_found")}  # fmt: skip
    full = replay.rows(x, f"{x.api_name} = 'FETCH' and {x.fetch_session_epoch} <= 0")
    lost = replay.rows(x, f"{x.api_name} = 'FETCH' and {x.error_code} = {NOT_FOUND}")
    return {
        **as_replayed,
        **captured,
        "full_fetches": len(full),
        "evicted clients": dict(Counter(row[x.client_id] for row in lost)),
    }
