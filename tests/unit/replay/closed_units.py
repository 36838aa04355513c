"""Readers for the closed loop, written down in a few words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from udfs.replay.fetch import fairness
from udfs.replay.fetch.client_order import CLIENT, JAVA_4
from udfs.replay.fetch.client_pace import Pace
from udfs.replay.fetch.closed_fidelity import captured_lane
from udfs.replay.fetch.closed_loop import NO_BACKLOG, Outcome, simulate
from udfs.replay.fetch.closed_responses import no_responses
from udfs.replay.fetch.closed_unit import Course, Rules, Unit
from udfs.replay.fetch.fetch_read import AS_CAPTURED
from udfs.replay.fetch.partition_log import NEVER
from udfs.replay.fetch.timeline import align, new_timeline

MOST = 2**31 - 1
MS = 1000
PACE = Pace(gap=1.0 * MS, record=0.0, answer=1.0 * MS, byte=0.0, late=0.0)


@dataclass(frozen=True)
class Part:
    """A partition: its batches' sizes, when each can be read (us, from 1 on by default), and its limit."""

    sizes: Sequence[int]
    visible: Sequence[int] = ()
    max_bytes: int = MOST
    joins: int = 1
    leaves: int = NEVER
    records: int = 1  # in each batch


@dataclass(frozen=True)
class Client:
    """A lane's settings."""

    max_bytes: int = MOST
    partition_max_bytes: int = AS_CAPTURED
    min_bytes: int = 1
    max_wait_ms: int = 500
    max_poll_records: int = 500
    overlaps: bool = False
    profile: int = JAVA_4
    order: int = CLIENT
    in_session: bool = True
    only_first: bool = False
    seed: int = 7
    record_us: float = 0.0


def unit_of(parts: Sequence[Part]) -> Unit:
    """The partitions as the replay takes them; all that can be read at 1 us is backlog."""
    counts = np.array([len(part.sizes) for part in parts], np.int64)
    ends = np.cumsum(counts)
    visible = [list(part.visible) or [1] * len(part.sizes) for part in parts]
    backlog = np.array([sum(time <= 1 for time in times) for times in visible], np.int64)
    sizes = np.array([size for part in parts for size in part.sizes], np.int64)
    records = np.array([part.records for part in parts for _ in part.sizes], np.int64)
    return Unit(
        np.arange(len(parts)),
        np.array([part.joins for part in parts], np.int64),
        np.array([part.leaves for part in parts], np.int64),
        np.array([part.max_bytes for part in parts], np.int64),
        ends - counts,
        ends,
        ends - counts + backlog,
        np.ones(len(parts), np.int64),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate([[0], np.cumsum(records)]).astype(np.int64),
        np.array([time for times in visible for time in times], np.int64),
    )


def rules_of(clients: Sequence[Client]) -> Rules:
    """The lanes' settings."""

    def column(name: str) -> np.ndarray:
        return np.array([getattr(client, name) for client in clients], np.int64)

    names = ("max_bytes", "partition_max_bytes", "only_first", "min_bytes")
    more = ("max_poll_records", "overlaps", "profile", "order", "in_session", "seed")
    record_us = np.array([client.record_us for client in clients])
    return Rules(*map(column, names), column("max_wait_ms") * MS, *map(column, more), record_us)


def replayed(
    parts: Sequence[Part], clients: Sequence[Client], horizon: int = 1, pace: Pace = PACE, opens: bool = True
) -> Outcome:
    """What becomes of the reader in every lane, from 1 us on until `horizon` and until all is read."""
    n, m = len(clients), len(parts)
    sums = fairness.no_sums(n)
    out = Outcome(
        fairness.with_room(sums.partitions, m), sums.responses, new_timeline(n, m, 1, max(horizon, 1000)),
        np.zeros(n, np.int64), np.ones(n, np.int64), np.full((m, n), NO_BACKLOG), captured_lane(1000, m),
        no_responses(n, 1000),
    )  # fmt: skip
    simulate(unit_of(parts), rules_of(clients), pace, Course(1, horizon, int(opens), 100_000), out)
    align(out.timeline)
    return out


def turns(out: Outcome) -> list[int]:
    """The partitions that got records of their backlog in lane 0, one after the other."""
    found: list[int] = out.captured.order[: out.captured.ordered[0]].tolist()
    return found
