"""Does the closed loop at the captured settings run as the capture did? Verdicts with their reasons.

The metrics and their tolerances are those of the column `metric` of `fidelity`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum

import numpy as np

from schemas.tables.steps import READS
from udfs.columns.arrays import Bools, Ints, edges
from udfs.columns.time_units import NEVER
from udfs.replay.fetch_max_bytes.closed_changes import UNCHECKED as NOT_COMPARED
from udfs.replay.fetch_max_bytes.closed_intent import Intent, Servings
from udfs.replay.fetch_max_bytes.closed_loop import CapturedLane
from udfs.replay.fetch_max_bytes.closed_unit import NO_BACKLOG, Course
from udfs.replay.shared.captured_pieces import LEAST_TIME_US, PIECES, SPAN_TOLERANCE

BYTES_TOLERANCE, TIME_TOLERANCE, REQUESTS_TOLERANCE = 0.01, 0.2, 0.1
LEAST_REQUESTS = 3


class Metric(StrEnum):
    """What is compared."""

    ORDER = "closed_loop_order"
    BYTES = "closed_loop_bytes"
    CATCH_UP = "closed_loop_catch_up"
    REQUESTS = "closed_loop_requests"
    RESTARTS = "closed_loop_restarts"


class Drift(StrEnum):
    """Why a connection could not be checked, or how the closed loop departed: schemas.tables.fidelity_reasons."""

    SESSION_UNKNOWN = "session_unknown"
    THROTTLED = "throttled"
    RESPONSE_ERROR = "response_error"
    PARTITION_REFUSED = "partition_refused"
    LOG_UNKNOWN = "log_content_unknown"
    POSITION_MOVED = "position_moved"
    CONVERTED = "converted_format"
    COMPACTED = "compacted"
    OTHER_PARTITION = "other_partition"
    FEWER_BYTES = "fewer_bytes"
    MORE_BYTES = "more_bytes"
    SLOWER = "slower"
    FASTER = "faster"
    FEWER_REQUESTS = "fewer_requests"
    MORE_REQUESTS = "more_requests"


UNCHECKED = frozenset(
    (Drift.SESSION_UNKNOWN, Drift.THROTTLED, Drift.RESPONSE_ERROR, Drift.PARTITION_REFUSED, Drift.LOG_UNKNOWN,
     Drift.POSITION_MOVED, Drift.CONVERTED, Drift.COMPACTED)
)  # fmt: skip
AGREED = ""
NONE_BEFORE = -1
"""Stands for the part before the first."""
Verdicts = Counter[tuple[str, str, str]]
"""Counts by broker, Metric, and Drift or AGREED."""


def captured_lane(intents: Sequence[Intent]) -> CapturedLane:
    """Room for what lane 0 does."""
    nodes = len(intents)
    room = edges([2 * len(intent.servings.partition) + 16 for intent in intents])
    return CapturedLane(
        np.zeros(room[-1], np.int64), room, np.zeros(nodes, np.int64), np.zeros((nodes, PIECES), np.int64),
        np.zeros(nodes, np.int64), np.zeros(sum(len(intent.unit.number) for intent in intents), np.int64),
        np.zeros(sum(len(intent.changes.time) for intent in intents), np.int64),
    )  # fmt: skip


def lane_of_node(lane: CapturedLane, course: Course, node: int, batches: int) -> CapturedLane:
    """What lane 0 does at one node, as a unit of its own. batches: those of the nodes before."""
    first, last = lane.order_from[node], lane.order_from[node + 1]
    return CapturedLane(
        lane.order[first:last], np.array([0, last - first]), lane.ordered[node : node + 1],
        lane.pieces[node : node + 1], lane.requests[node : node + 1],
        lane.catch_up[course.parts_from[node] : course.parts_from[node + 1]],
        lane.at_change[course.changes_from[node] : course.changes_from[node + 1]] - batches,
    )  # fmt: skip


def judge(intent: Intent, replayed: CapturedLane) -> Verdicts:
    """The verdicts on one connection."""
    obstacle = why_unchecked(intent)
    found: Verdicts = Counter()
    for metric, drift in compared(intent, replayed):
        agrees_anyway = drift == AGREED and obstacle == Drift.COMPACTED
        found[intent.seen.broker, metric, drift if obstacle is None or agrees_anyway else obstacle] += 1
    return found


def why_unchecked(intent: Intent) -> Drift | None:
    """Why the connection cannot be checked."""
    flags = intent.seen.flags
    if flags[READS.session_known] < intent.seen.reads:
        return Drift.SESSION_UNKNOWN
    for was_seen, drift in (
        (intent.is_delayed, Drift.THROTTLED), (flags[READS.refused], Drift.RESPONSE_ERROR),
        (flags[READS.redirected], Drift.PARTITION_REFUSED),
    ):  # fmt: skip
        if was_seen:
            return drift
    if not intent.unit.is_known.all():
        return Drift.LOG_UNKNOWN
    if intent.changes.lost:
        return Drift.POSITION_MOVED
    if flags[READS.is_converted]:
        return Drift.CONVERTED
    return Drift.COMPACTED if flags[READS.is_compacted] else None


def compared(intent: Intent, replayed: CapturedLane) -> Iterator[tuple[Metric, str]]:
    """Every comparison's metric and outcome."""
    yield from ((Metric.ORDER, drift) for drift in order_drift(intent, replayed))
    yield from ((Metric.BYTES, drift) for drift in bytes_drift(intent, replayed))
    yield from ((Metric.CATCH_UP, drift) for drift in catch_up_drift(intent, replayed))
    yield Metric.REQUESTS, requests_drift(intent, replayed)
    yield from ((Metric.RESTARTS, drift) for drift in restarts_drift(intent, replayed))


def of_backlog(servings: Servings, backlog_end: Ints) -> Ints:
    """The partitions that got records of the backlog, in captured order."""
    return servings.partition[servings.begin < backlog_end[servings.partition]]


def order_drift(intent: Intent, replayed: CapturedLane) -> list[str]:
    """Of each captured part of the backlog, whether the closed loop had it follow a part of the same partition.

    The nth part of a partition is compared with its nth, so that one part more or less does not shift all behind it.
    """
    captured = of_backlog(intent.servings, intent.unit.backlog_end)
    again = follows(captured, replayed.order[: replayed.ordered[0]], len(intent.unit.number))
    return [AGREED if equal else Drift.OTHER_PARTITION for equal in again.tolist()]


def follows(captured: Ints, given: Ints, partitions: int) -> Bools:
    """Where the nth part of a partition follows one of the same partition in both orders: bool[n] of the captured.

    captured, given: int64[n], int64[m], the partition of each part, below `partitions`.

    >>> follows(np.array([0, 1, 0, 1]), np.array([0, 1, 1, 0, 1]), 2).tolist()
    [True, True, True, False]
    """
    by_partition, given_by_partition = (np.argsort(order, kind="stable") for order in (captured, given))
    begin, given_begin = (edges(np.bincount(order, minlength=partitions)) for order in (captured, given))
    partition = captured[by_partition]
    place = given_begin[partition] + np.arange(len(captured)) - begin[partition]
    is_given = place < given_begin[partition + 1]
    before, given_before = (np.concatenate([[NONE_BEFORE], order[:-1]]) for order in (captured, given))
    found = np.zeros(len(captured), np.bool_)
    which = by_partition[is_given]
    found[which] = before[which] == given_before[given_by_partition[place[is_given]]]
    return found


def bytes_drift(intent: Intent, replayed: CapturedLane) -> list[str]:
    """At the end of each piece of the captured time, whether as many bytes had been read, a little earlier or later."""
    servings, span = intent.servings, intent.horizon - intent.begin + 1
    ends = intent.begin + np.arange(1, PIECES + 1) * span // PIECES
    near = max(SPAN_TOLERANCE * span, LEAST_TIME_US)
    read = edges(servings.size)
    least = read[np.searchsorted(servings.response, ends - near, side="right")]
    most = read[np.searchsorted(servings.response, ends + near, side="right")]
    given, some = np.cumsum(replayed.pieces[0]), BYTES_TOLERANCE * int(servings.size.sum())
    drifts = np.select([given < least - some, given > most + some], [Drift.FEWER_BYTES, Drift.MORE_BYTES], AGREED)
    return [str(drift) for drift in drifts.tolist()] if len(servings.size) else []


def catch_up_drift(intent: Intent, replayed: CapturedLane) -> list[str]:
    """Of each partition whose backlog was read in the capture, whether that took as long."""
    captured = captured_catch_up(intent)
    found = []
    for took, again in zip(captured.tolist(), replayed.catch_up.tolist(), strict=True):
        if took not in (NEVER, NO_BACKLOG):
            more = again - took
            near = abs(more) <= max(TIME_TOLERANCE * took, LEAST_TIME_US)
            found.append(AGREED if near else Drift.SLOWER if more > 0 else Drift.FASTER)
    return found


def captured_catch_up(intent: Intent) -> Ints:
    """How long each partition's backlog took in the capture (us): NO_BACKLOG, or NEVER where it was not read."""
    unit, servings = intent.unit, intent.servings
    asked_at = np.array([intent.seen.first[n].time for n in unit.number.tolist()], np.int64)
    took = np.where(unit.backlog_end > unit.start, NEVER, NO_BACKLOG)
    ends = servings.end >= unit.backlog_end[servings.partition]
    read = ends & (servings.begin < unit.backlog_end[servings.partition])
    np.minimum.at(took, servings.partition[read], servings.response[read] - asked_at[servings.partition[read]])
    return took


def requests_drift(intent: Intent, replayed: CapturedLane) -> str:
    """Whether as many requests were sent, but for those that a quota left without an answer."""
    count = intent.seen.count - intent.throttled
    more = int(replayed.requests[0]) - count
    if abs(more) <= max(REQUESTS_TOLERANCE * count, LEAST_REQUESTS):
        return AGREED
    return Drift.MORE_REQUESTS if more > 0 else Drift.FEWER_REQUESTS


def restarts_drift(intent: Intent, replayed: CapturedLane) -> list[str]:
    """Of each time that the reader gave a partition up or went elsewhere in it, whether it had read as far by then."""
    changes, servings, starts = intent.changes, intent.servings, intent.unit.starts
    compared = changes.read_to != NOT_COMPARED
    given, captured = starts[replayed.at_change[compared]], starts[changes.read_to[compared]]
    response = np.bincount(np.searchsorted(servings.request, servings.request), servings.size).max(initial=0)
    some = max(BYTES_TOLERANCE * int(servings.size.sum()), int(response))
    drifts = np.select(
        [given < captured - some, given > captured + some], [Drift.FEWER_BYTES, Drift.MORE_BYTES], AGREED
    )
    return [str(drift) for drift in drifts.tolist()]
