"""Readers for the closed loop, written down in a few words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from udfs.columns.time_units import NEVER
from udfs.replay.fetch_max_bytes import fairness
from udfs.replay.fetch_max_bytes.client_order import CLIENT, JAVA_4
from udfs.replay.fetch_max_bytes.client_pace import Curves, Pace
from udfs.replay.fetch_max_bytes.closed_changes import LEAVE, REOPEN
from udfs.replay.fetch_max_bytes.closed_loop import CapturedLane, Outcome, simulate
from udfs.replay.fetch_max_bytes.closed_responses import no_responses
from udfs.replay.fetch_max_bytes.closed_unit import NO_BACKLOG, Course, Rules, Unit
from udfs.replay.fetch_max_bytes.timeline import align, new_timeline
from udfs.replay.shared.captured_pieces import PIECES
from udfs.replay.shared.lanes import AS_CAPTURED

MOST = 2**31 - 1
MS = 1000


@dataclass(frozen=True)
class Times:
    """How long things take on every connection (us)."""

    gap: float = 1.0 * MS
    answer: float = 1.0 * MS
    late: float = 0.0
    byte: float = 0.0
    taking: Sequence[tuple[int, float]] = ()  # (records, time) so far

    def pace(self, nodes: int) -> Pace:
        """These times as the replay takes them."""
        points = [(0, 0.0), *self.taking]
        taking = Curves(
            np.array([0, len(points)], np.int64), np.array([n for n, _ in points], np.int64),
            np.array([time for _, time in points], np.float64),
        )  # fmt: skip
        sending = Curves(
            2 * np.arange(nodes + 1), np.tile(np.array([0, MOST]), nodes), np.tile([0.0, MOST * self.byte], nodes)
        )  # fmt: skip
        gap, answer, late = (np.full(nodes, time) for time in (self.gap, self.answer, self.late))
        return Pace(gap, answer, late, taking, sending)


PACE = Times()


@dataclass(frozen=True)
class Part:
    """A partition: its batches' sizes, when each can be read (us, from 1 on by default), and its limit."""

    sizes: Sequence[int]
    visible: Sequence[int] = ()
    max_bytes: int = MOST
    joins: int = 1
    leaves: int = NEVER
    records: int = 1  # in each batch
    node: int = 0
    moves: Sequence[tuple[int, int]] = ()  # (time, batch it is read from then)
    gone_at: int = NEVER  # what was buffered when it leaves or moves
    asked_last: int = NEVER  # before it leaves or moves
    segments: Sequence[int] = ()  # batches with which segments begin


@dataclass(frozen=True)
class Client:
    """A lane's settings."""

    max_bytes: int = MOST
    is_hard: bool = False
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


def changes_of(
    parts: Sequence[Part], first: Sequence[int], reopens: Sequence[int]
) -> list[tuple[int, int, int, int, int, int]]:
    """(node, time, what, to, until, since) of all that changes, in order."""
    found = [(0, time, REOPEN, 0, time, NEVER) for time in reopens]
    place = [sum(other.node == part.node for other in parts[:p]) for p, part in enumerate(parts)]
    for part, at, begin in zip(parts, place, first, strict=True):
        moves = [(time, begin + batch if batch >= 0 else batch) for time, batch in part.moves]
        found.append((part.node, part.joins, at, begin, part.joins, NEVER))
        found += [(part.node, time, at, to, part.gone_at, part.asked_last) for time, to in moves]
        if part.leaves != NEVER:
            found.append((part.node, part.leaves, at, LEAVE, part.gone_at, part.asked_last))
    return sorted(found, key=lambda change: change[:2])


def unit_of(parts: Sequence[Part], reopens: Sequence[int]) -> tuple[Unit, list[int]]:
    """The partitions as the replay takes them, those of a node together, and the node of each change.

    All that can be read at 1 us is backlog.
    """
    counts = np.array([len(part.sizes) for part in parts], np.int64)
    ends = np.cumsum(counts)
    visible = [list(part.visible) or [1] * len(part.sizes) for part in parts]
    backlog = np.array([sum(time <= 1 for time in times) for times in visible], np.int64)
    sizes = np.array([size for part in parts for size in part.sizes], np.int64)
    records = np.array([part.records for part in parts for _ in part.sizes], np.int64)
    first = (ends - counts).tolist()
    cuts = np.array([*ends, *(begin + at for part, begin in zip(parts, first, strict=True) for at in part.segments)])
    changes = changes_of(parts, first, reopens)
    time, what, to, until, since = (np.array([change[i] for change in changes], np.int64) for i in (1, 2, 3, 4, 5))
    unit = Unit(
        np.arange(len(parts)),
        np.array([part.max_bytes for part in parts], np.int64),
        ends - counts,
        ends - counts,
        ends,
        ends - counts + backlog,
        np.ones(len(parts), np.int64),
        np.full(len(parts), -1),
        np.zeros(len(parts), np.int64),
        time,
        what,
        to,
        until,
        since,
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate([[0], np.cumsum(records)]).astype(np.int64),
        np.array([time for times in visible for time in times], np.int64),
        np.unique(cuts)[np.searchsorted(np.unique(cuts), np.arange(len(sizes)), side="right")],
    )
    return unit, [change[0] for change in changes]


def rules_of(clients: Sequence[Client], nodes: int) -> Rules:
    """The lanes' settings, the same on every node."""

    def column(name: str) -> np.ndarray:
        return np.array([getattr(client, name) for client in clients], np.int64)

    names = ("max_bytes", "is_hard", "partition_max_bytes", "only_first", "min_bytes")
    more = ("max_poll_records", "overlaps", "profile", "order", "in_session", "seed")
    record_us = np.array([client.record_us for client in clients])
    of_node = [*map(column, names), column("max_wait_ms") * MS, *map(column, more), record_us]
    return Rules(*(np.stack([values] * nodes) for values in of_node))


def replayed(
    parts: Sequence[Part], clients: Sequence[Client], horizon: int = 1, pace: Times = PACE, opens: bool = True,
    reopens: Sequence[int] = (), shares: bool = True,
) -> Outcome:  # fmt: skip
    """What becomes of the reader in every lane, from 1 us on until `horizon` and until all is read.

    opens: the first fetch opens a session; reopens: when others do, on node 0. shares: one process has all nodes.
    """
    n, m, nodes = len(clients), len(parts), max(part.node for part in parts) + 1
    sums = fairness.no_sums(n)
    unit, node_of_change = unit_of(parts, [*([1] if opens else []), *reopens])
    room = 1000
    captured = CapturedLane(
        np.zeros(nodes * room, np.int64), np.arange(nodes + 1) * room, np.zeros(nodes, np.int64),
        np.zeros((nodes, PIECES), np.int64), np.zeros(nodes, np.int64), np.zeros(m, np.int64),
        np.zeros(len(unit.change_time), np.int64),
    )  # fmt: skip
    begin, end = np.full(1, 1), np.full(1, max(horizon, 1000))
    out = Outcome(
        fairness.with_room(sums.partitions, m), sums.responses, new_timeline(n, m, begin, end),
        np.zeros(n, np.int64), np.ones(n, np.int64), np.full((m, n), NO_BACKLOG), np.zeros(m, np.int64),
        captured, no_responses(n, 1000, len(unit.change_time)),
    )  # fmt: skip
    of_parts, of_changes = (
        np.searchsorted(of, np.arange(nodes + 1)) for of in ([part.node for part in parts], node_of_change)
    )
    begin, end, most = (np.full(nodes, value) for value in (1, horizon, 100_000))
    course = Course(begin, end, most, of_parts, of_changes, np.full(1, int(shares)))
    simulate(unit, rules_of(clients, nodes), pace.pace(nodes), course, out)
    align(out.timeline)
    return out


def turns(out: Outcome) -> list[int]:
    """The partitions of node 0 that got records of their backlog in lane 0, one after the other."""
    return out.captured.order[: out.captured.ordered[0]].tolist()
