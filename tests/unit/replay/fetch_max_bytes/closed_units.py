"""Readers for the closed loop, in a short notation for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from udfs.columns.arrays import Ints, Records, stretch_edges
from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.replay.fetch_max_bytes.closed_loop.outcomes import new_outcome
from udfs.replay.fetch_max_bytes.closed_loop.replay import replay_by_clients_clock
from udfs.replay.fetch_max_bytes.closed_loop.settings import RULES
from udfs.replay.fetch_max_bytes.closed_loop.state import (
    BEYOND_BOUND,
    LEAVE,
    LOG_BATCH,
    NODE,
    POINT,
    READ_PARTITION,
    READING_CHANGE,
    REOPEN,
    ReaderLanes,
    Unit,
)
from udfs.replay.fetch_max_bytes.closed_loop.together import ReaderInLanes
from udfs.replay.fetch_max_bytes.settings import CLIENT_ORDER, JAVA_4, LIBRDKAFKA
from udfs.replay.shared.lanes import AS_CAPTURED

MOST = 2**31 - 1
MS = 1000
TURNS = 1000
"""Room for the turns of a node."""


@dataclass(frozen=True)
class Times:
    """How long things take on every connection (us)."""

    gap: float = 1.0 * MS
    start: float = 0.0
    poll: float = 0.0
    answer: float = 1.0 * MS
    late: float = 0.0
    byte: float = 0.0
    taking: Sequence[tuple[int, float]] = ()  # (records, time that they take), rising


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
    moves: Sequence[tuple[int, int]] = ()  # (time, batch from which it is then read)
    gone_at: int = NEVER  # when the records that were buffered as it left or moved are gone
    asked_last: int = NEVER  # when it was last asked for before it leaves or moves
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
    order: int = CLIENT_ORDER
    in_session: bool = True
    only_first: bool = False
    seed: int = 7
    record_us: float = 0.0
    speed: float = 1.0
    readers: int = AS_CAPTURED
    byte_rate: int = 0  # of each broker; 0 for no quota
    quota_windows: int = 11
    quota_window_ms: int = 1000


def changes_of(
    parts: Sequence[Part], first: Sequence[int], reopens: Sequence[int], beyond: Sequence[tuple[int, int, int]]
) -> tuple[Records, Ints]:
    """All changes, READING_CHANGE[n], and the node of each. first: the first batch of each part."""
    found = [(0, time, REOPEN, 0, time, NEVER, 0) for time in reopens]
    found += [(0, time, BEYOND_BOUND, until, time, NEVER, every_us) for time, until, every_us in beyond]
    for p, (part, begin) in enumerate(zip(parts, first, strict=True)):
        found.append((part.node, part.joins, p, begin, part.joins, NEVER, 0))
        moves = [(time, begin + batch if batch >= 0 else batch) for time, batch in part.moves]
        moves += [(part.leaves, LEAVE)] if part.leaves != NEVER else []
        found += [(part.node, time, p, to, part.gone_at, part.asked_last, 0) for time, to in moves]
    node, time, partition, to, until, since, every_us = np.array(sorted(found, key=lambda of: of[:2]), np.int64).T
    return new_records(
        READING_CHANGE, len(found), time=time, partition=partition, to=to, until=until, since=since,
        every_us=every_us,
    ), node  # fmt: skip


def unit_of(
    parts: Sequence[Part],
    reopens: Sequence[int],
    horizon: int,
    times: Times,
    beyond: Sequence[tuple[int, int, int]] = (),
) -> Unit:
    """The partitions as the replay takes them, those of a node together. Batches readable at 1 us are backlog."""
    counts = [len(part.sizes) for part in parts]
    first = stretch_edges(counts)
    visible = [list(part.visible) or [1] * len(part.sizes) for part in parts]
    partitions = new_records(
        READ_PARTITION,
        len(parts),
        number=np.arange(len(parts)),
        partition_max_bytes=[part.max_bytes for part in parts],
        first_batch=first[:-1],
        start_batch=first[:-1],
        end_batch=first[1:],
        backlog_end=first[:-1] + np.array([sum(time <= 1 for time in of_part) for of_part in visible]),
        is_known=1,
        previous=NONE,
        dealt=np.arange(len(parts)),
    )
    batches = new_records(
        LOG_BATCH,
        int(first[-1]) + 1,
        bytes_before=stretch_edges([size for part in parts for size in part.sizes]),
        records_before=stretch_edges([part.records for part in parts for _ in part.sizes]),
    )
    cuts = [begin + batch for part, begin in zip(parts, first.tolist(), strict=False) for batch in part.segments]
    segments = np.unique([*first[1:].tolist(), *cuts])
    batches["visible_at"][:-1] = [time for of_part in visible for time in of_part]
    batches["segment_end"][:-1] = segments[np.searchsorted(segments, np.arange(first[-1]), side="right")]
    changes, node_of_change = changes_of(parts, first[:-1].tolist(), reopens, beyond)
    taking = np.array([(0, 0.0), *times.taking], POINT)
    sending = np.array([(0, 0.0), (MOST, MOST * times.byte)], POINT)
    nodes = nodes_of([part.node for part in parts], node_of_change, horizon, times)
    nodes["end_taking"], nodes["end_sending"] = len(taking), len(sending)
    return Unit(partitions, batches, changes, nodes, taking, sending)


def nodes_of(of_parts: Sequence[int], of_changes: Ints, horizon: int, times: Times) -> Records:
    """NODE[nodes], which begin at 1 us. of_parts, of_changes: the node of each."""
    count = max(of_parts) + 1
    first_part, first_change = (np.searchsorted(of, np.arange(count + 1)) for of in (of_parts, of_changes))
    return new_records(
        NODE,
        count,
        first_partition=first_part[:-1],
        end_partition=first_part[1:],
        first_change=first_change[:-1],
        end_change=first_change[1:],
        first_turn=np.arange(count) * TURNS,
        end_turn=np.arange(1, count + 1) * TURNS,
        begin=1,
        horizon=horizon,
        request_cap=100_000,
        gap_us=times.gap,
        start_us=times.start,
        poll_us=times.poll,
        answer_us=times.answer,
        late_us=times.late,
    )


def rules_of(clients: Sequence[Client], nodes: int, shares: bool) -> Records:
    """RULES[nodes, lanes]: the lanes' settings, the same on every node. shares: one process has all nodes."""
    found = np.zeros((nodes, len(clients)), RULES)
    same = (
        "is_hard",
        "partition_max_bytes",
        "only_first",
        "min_bytes",
        "max_poll_records",
        "overlaps",
        "profile",
        "order",
        "readers",
    )
    for name in (*same, "in_session", "seed", "speed", "byte_rate", "quota_windows", "quota_window_ms"):
        found[name] = [getattr(client, name) for client in clients]
    found["limit"] = [client.max_bytes for client in clients]
    found["max_wait_us"] = [client.max_wait_ms * MS * client.speed for client in clients]
    found["us_per_record"] = [client.record_us for client in clients]
    found["quota_is_known"] = found["byte_rate"] > 0
    found["meter"] = np.arange(nodes)[:, np.newaxis]
    own = (not shares) | (found["profile"] >= LIBRDKAFKA)
    found["application"] = np.where(own, np.arange(nodes)[:, np.newaxis], 0)
    return found


def replayed(
    parts: Sequence[Part], clients: Sequence[Client], horizon: int = 1, pace: Times = PACE, opens: bool = True,
    reopens: Sequence[int] = (), shares: bool = True, beyond: Sequence[tuple[int, int, int]] = (),
) -> ReaderLanes:  # fmt: skip
    """The reader's outcome in every lane, from 1 us until `horizon` and until all is read.

    opens: whether the first fetch opens a session. reopens: when others do, on node 0. shares: whether one process has
    all nodes. beyond: from when until when node 0 asks for records beyond a bound, and how
    far apart its captured fetches are then, on average.
    """
    unit = unit_of(parts, [*([1] if opens else []), *reopens], horizon, pace, beyond)
    rules = rules_of(clients, len(unit.nodes), shares)
    outcome = new_outcome(unit, len(parts), len(clients), response_room=1000)
    replay_by_clients_clock([ReaderInLanes(unit, rules, outcome)])
    return outcome


def turns(outcome: ReaderLanes, node: int = 0) -> list[int]:
    """The partitions of a node that got records of their backlog in lane 0, one after the other."""
    first, count = node * TURNS, outcome.captured.nodes["turns"][node]
    return outcome.captured.turns[first : first + count].tolist()


def responses_of(outcome: ReaderLanes) -> Records:
    """LANE_RESPONSE[n] of lane 0."""
    return outcome.responses[0, : outcome.lanes["responses"][0]]
