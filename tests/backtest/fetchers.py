"""Other numbers of fetchers (`num.replica.fetchers`): predictions for followers, compared with one that had as many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import permutations
from math import inf
from pathlib import Path
from typing import Any

from jobs.scenarios.scenario import CAPTURED_LANE
from schemas.tables import algorithms
from schemas.tables.gold import FETCH_CONSUMERS, FETCH_FAIRNESS, FETCH_RANGES
from schemas.tables.silver import FETCH_PARTITIONS
from tests.backtest.coverage import Case, Range, coverage_row
from tests.backtest.fetcher_traffic import FETCHERS, FOLLOWER, TOPICS, capture
from tests.backtest.fetches import captured_catch_up
from tests.backtest.figures import Figures
from tests.backtest.replays import Replayed, Rows, replayed
from udfs.replay.fetch_max_bytes import settings
from udfs.replay.fetch_max_bytes.rows import CLOSED_LOOP, OPEN_LOOP

CATCH_UP, WAIT = "catch-up ms", "longest wait ms"
RANGED = {"catch_up_ms": CATCH_UP, "longest_wait_ms": WAIT}
"""The figures with a range, and their names here."""
OF_FOLLOWER = f"client_id like 'broker-{FOLLOWER}-fetcher-%'"
OF_TOPICS = f"topic in ({', '.join(repr(topic) for topic in TOPICS)})"


def compared(work: Path, repeats: int) -> Iterator[tuple[str, Figures]]:
    """For each number of fetchers, predicted from each other number, its figures."""
    for before, after in permutations(FETCHERS, 2):
        yield f"fetchers {before} -> {after}", figures_of(before, after, work, repeats)


def covered(work: Path, repeats: int) -> Iterator[Sequence[str]]:
    """How often seen values lie in the predicted range, for each figure."""
    for metric, figure in RANGED.items():
        cases = [case_of(metric, *pair, work, repeats) for pair in permutations(FETCHERS, 2)]
        yield coverage_row("fetchers", figure, cases)


def case_of(metric: str, before: int, after: int, work: Path, repeats: int) -> Case:
    """One number of fetchers, predicted from the runs with another number."""
    seen = figures_of(before, after, work, repeats)
    return Case(
        [predicted_range(replay_of(path), lane_of(after), metric) for path in runs(work, before, repeats)],
        [run[RANGED[metric]] for run in seen.captured],
        [run[RANGED[metric]] for run in seen.seen],
    )


def figures_of(before: int, after: int, work: Path, repeats: int) -> Figures:
    """What was seen with `before` fetchers, what is predicted from that for `after`, and what was seen with `after`."""
    captured, others = (runs(work, fetchers, repeats) for fetchers in (before, after))
    return Figures(
        [seen(replay_of(path)) for path in captured],
        [predicted(replay_of(path), lane_of(after)) for path in captured],
        [seen(replay_of(path)) for path in others],
    )


def runs(work: Path, fetchers: int, repeats: int) -> list[Path]:
    """The captures with this number of fetchers."""
    return [capture(work, fetchers, again) for again in range(repeats)]


def lane_of(fetchers: int) -> str:
    """The name of a lane."""
    return f"{settings.FETCHERS}={fetchers}"


@cache
def replay_of(path: Path) -> Replayed:
    """A capture, replayed with every number of fetchers."""
    return replayed(algorithms.FETCH_MAX_BYTES, path, [f"{settings.FETCHERS}={','.join(map(str, FETCHERS))}"])


def predicted(of: Replayed, lane: str) -> dict[str, Any]:
    """The follower's figures in a lane."""
    c = FETCH_CONSUMERS
    rows = of.rows(c, f"{OF_FOLLOWER} and {c.mode} = '{CLOSED_LOOP}' and {c.scenario} = '{lane}'")
    return waits_of(of, CLOSED_LOOP, lane) | {
        "fetch sessions": sum(row[c.fetchers] for row in rows),
        "requests": sum(row[c.requests] for row in rows),
        CATCH_UP: max(row[c.catch_up_ms] for row in rows),
    }


def seen(of: Replayed) -> dict[str, Any]:
    """The follower's figures in a capture. Under the captured settings the open loop gives the captured responses."""
    f = FETCH_PARTITIONS
    rows = of.rows(f, OF_FOLLOWER)
    clients = {row[f.client_id] for row in rows}
    return waits_of(of, OPEN_LOOP, CAPTURED_LANE) | {
        "fetch sessions": len({row[f.connection_id] for row in rows}),
        "requests": len({(row[f.connection_id], row[f.exchange_no]) for row in rows}),
        CATCH_UP: max(captured_catch_up(of, client) for client in clients),
    }


def waits_of(of: Replayed, mode: str, lane: str) -> dict[str, Any]:
    """The bytes of the topics, which partitions waited, and for how long at most."""
    f = FETCH_FAIRNESS
    whose = f"{OF_FOLLOWER} and {OF_TOPICS} and {f.mode} = '{mode}' and {f.scenario} = '{lane}'"
    rows: Rows = of.rows(f, whose)
    waited = {f"{row[f.topic]}-{row[f.partition]}": 1 for row in rows if row[f.longest_wait_ms] > 0}
    return {
        "record bytes": sum(row[f.bytes] for row in rows),
        "partitions that waited": len(waited),
        "which": waited,
        "reads left empty": sum(row[f.empty_though_available] for row in rows),
        WAIT: max(row[f.longest_wait_ms] for row in rows),
    }


def predicted_range(of: Replayed, lane: str, metric: str) -> Range:
    """The range of the follower's figure in a lane: that of the fetcher with the largest value."""
    t = FETCH_RANGES
    rows = of.rows(t, f"{OF_FOLLOWER} and {t.metric} = '{metric}' and {t.scenario} = '{lane}'")
    return Range(*(max(inf if row[end] is None else row[end] for row in rows) for end in (t.p10, t.p90)))
