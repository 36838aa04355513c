"""From a connection's captured fetches to what it would read in any lane: who wants which partitions, and when."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schemas.tables.steps import READS
from schemas.tables.values import FOLLOWER
from udfs.columns.arrays import Ints, edges
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.replay.fetch_max_bytes.client_order import JAVA_4, LIBRDKAFKA
from udfs.replay.fetch_max_bytes.client_pace import ClientLanes, Fetches
from udfs.replay.fetch_max_bytes.client_rules import FIRST_WITH_MAX_BYTES, profile_of
from udfs.replay.fetch_max_bytes.closed_changes import STOP, UNKNOWN, Changes, Moves, Placed, Times, changes_of
from udfs.replay.fetch_max_bytes.closed_logs import (
    Log,
    by_partition,
    known_logs,
    read_from_to,
    records_of,
    requests_of,
    told_of,
)
from udfs.replay.fetch_max_bytes.closed_unit import Rules, Unit
from udfs.replay.fetch_max_bytes.fetch_read import Lanes
from udfs.replay.fetch_max_bytes.log_reach import Sought
from udfs.replay.fetch_max_bytes.observed import FETCHED, SERVED, TOLD, UNSET, Columns, FirstRead, Observed, joined
from udfs.replay.shared.lanes import AS_CAPTURED

REQUESTS_A_FETCH = 64


@dataclass(frozen=True)
class Servings:
    """The captured parts of responses with records, in time order, int64[n] each.

    partition: place in the unit. begin, end: batches that they made of it.
    """

    partition: Ints
    request: Ints
    response: Ints
    size: Ints
    begin: Ints
    end: Ints


@dataclass(frozen=True)
class Intent:
    """One connection, ready to be replayed, and what the capture shows of it.

    unit: of this connection alone. begin, horizon: of its capture (us). most_records: of any response. throttled:
    responses that were empty for a quota; is_delayed: others were held back. logs: of the unit's partitions.
    """

    unit: Unit
    begin: int
    horizon: int
    most_requests: int
    changes: Changes
    fetches: Fetches
    profile: int
    most_records: int
    throttled: int
    is_delayed: bool
    servings: Servings
    logs: list[Log]
    seen: Observed


def intent_of(seen: Observed, keys: list[str], reader: str, broker_max_bytes: int) -> Intent:
    """The intent of a connection with answered fetches. keys: the partitions' keys by their numbers."""
    fetches = joined(seen.fetches, FETCHED)
    request, response, opens, is_late, size = (fetches[str(name)] for name in FETCHED)
    throttled = (is_late == 1) & (size == 0)
    begin, horizon = int(request[0]), max(int(request[0]), int(response.max()))
    numbers, told = list(seen.first), joined(seen.told, TOLD)
    moves = Moves(*(np.concatenate(columns) for columns in zip(*seen.moves, strict=True)))
    bounds = told_of(places_of(numbers, told[READS.partition]), len(numbers), told)
    sought, requests = sought_by(seen, numbers, moves), requests_of(fetches)
    logs = known_logs(seen, keys, requests, bounds, sought, horizon, reader == FOLLOWER)
    unit = unit_of([seen.first[n] for n in numbers], numbers, logs)
    kept = joined(seen.servings, SERVED)
    servings = servings_of(kept, numbers, logs, unit)
    most = seen.limits[READS.max_bytes]
    unit = unit._replace(segment_end=segment_ends(kept, servings, unit, logs, min(most, broker_max_bytes)))
    opens_session = (opens == 1) & ((seen.limits[READS.in_session] == 1) | (request == request[0]))
    times = Times(request, response, opens_session, throttled)
    changes = changes_of(
        times, moves, placed(moves, numbers, logs, unit), [seen.last[n].fetch for n in numbers],
        np.array([seen.first[n].since for n in numbers], np.int64),
        np.array([seen.moved_away.get(n, NEVER) for n in numbers], np.int64), seen.limits[READS.profile] == JAVA_4,
    )  # fmt: skip
    unit = unit._replace(
        change_time=changes.time, change_what=changes.what, change_to=changes.to, change_until=changes.until,
        change_since=changes.since,
    )  # fmt: skip
    records, ready = by_fetch(fetches, servings, unit)
    stopped = np.isin(request, changes.to[changes.what == STOP])
    wait_us = seen.limits[READS.max_wait_ms] * 1000
    return Intent(
        unit, begin, horizon, REQUESTS_A_FETCH * (len(request) + len(unit.visible)) + 1000, changes,
        Fetches(request, response, records, size, ready, stopped, wait_us),
        profile_of(seen, reader, servings.request, servings.partition),
        int(records.max(initial=0)), int(throttled.sum()), bool(((is_late == 1) & ~throttled).any()), servings, logs,
        seen,
    )  # fmt: skip


def unit_of(first: list[FirstRead], numbers: list[int], logs: list[Log]) -> Unit:
    """The partitions with their logs, one behind the other, without changes and in one segment."""
    counts = np.array([len(log.base) for log in logs], np.int64)
    ends = np.cumsum(counts)
    backlogs = zip(logs, first, strict=True)
    there = [int(np.searchsorted(log.visible, read.time, side="right")) for log, read in backlogs]
    size, span = (
        np.concatenate(columns) for columns in zip(*((log.size, records_of(log)) for log in logs), strict=True)
    )
    none = np.zeros(0, np.int64)
    return Unit(
        np.array(numbers, np.int64),
        np.array([read.partition_max_bytes for read in first], np.int64),
        ends - counts,
        ends - counts + np.array([log.start for log in logs], np.int64),
        ends,
        ends - counts + np.array(there, np.int64),
        np.array([log.is_known for log in logs]).astype(np.int64),
        np.full(len(logs), -1),
        np.zeros(len(logs), np.int64),
        none,
        none,
        none,
        none,
        none,
        edges(size),
        edges(span),
        np.concatenate([log.visible for log in logs]),
        np.repeat(ends, counts),
    )


def places_of(numbers: list[int], of: Ints) -> Ints:
    """The places in the unit of partitions by their numbers."""
    place = np.full(max(numbers) + 1, 0)
    place[numbers] = np.arange(len(numbers))
    return place[of]


def sought_by(seen: Observed, numbers: list[int], moves: Moves) -> Sought:
    """The offsets at which moves read, and the brokers before, by the places of the partitions."""
    moved = [number for number in numbers if number in seen.moved_here]
    partition = np.append(moves.partition, np.array(moved, np.int64))
    offset = np.append(moves.fetch_offset, np.array([seen.moved_here[number] for number in moved], np.int64))
    return Sought(*by_partition(places_of(numbers, partition), len(numbers), [offset]))


def servings_of(kept: Columns, numbers: list[int], logs: list[Log], unit: Unit) -> Servings:
    """The captured servings, placed in the unit's logs."""
    partition = places_of(numbers, kept[READS.partition])
    offset, size = kept[READS.fetch_offset], kept[READS.returned_bytes]
    begin, end = read_from_to(logs, unit, partition, offset, size)
    return Servings(partition, kept[READS.request_time], kept[READS.response_time], size, begin, end)


def placed(moves: Moves, numbers: list[int], logs: list[Log], unit: Unit) -> Placed:
    """The moves, placed in the unit's logs. For a log that breaks off, it is not known that a move leads elsewhere."""
    partition = places_of(numbers, moves.partition)
    begin, _ = read_from_to(logs, unit, partition, moves.fetch_offset, np.zeros_like(moves.returned))
    _, expected = read_from_to(logs, unit, partition, moves.from_offset, np.maximum(moves.returned, 0))
    lowest = np.array([log.base[0] if len(log.base) else UNSET for log in logs])[partition]
    behind = np.array([log.last[-1] + 1 if len(log.base) else UNSET for log in logs])[partition]
    has_batches = behind != UNSET
    known = ~has_batches | ((moves.fetch_offset >= lowest) & (moves.fetch_offset <= behind))
    elsewhere = np.where(known, begin, np.where(unit.is_known[partition] == 1, UNKNOWN, expected))
    return Placed(partition, np.where(moves.before < 0, unit.start[partition], elsewhere), expected)


def segment_ends(kept: Columns, servings: Servings, unit: Unit, logs: list[Log], max_bytes: int) -> Ints:
    """Behind the last batch of each batch's segment, as far as the capture tells: int64[batches].

    A read that ended with a whole batch, below its limits and below the bound that the response tells, ended where the
    segment does (LogSegment.read of kafka-storage 4.3).
    """
    request, size = servings.request, servings.size
    before = np.cumsum(size) - size
    of_fetch = np.searchsorted(request, request)  # the first of the same response
    left = max_bytes - (before - before[of_fetch])
    within = size < np.minimum(kept[READS.partition_max_bytes], left)
    end = servings.end
    inside = end < unit.end[servings.partition]
    at = np.minimum(end, max(len(unit.visible) - 1, 0))
    base = np.concatenate([*(log.base for log in logs), np.zeros(1, np.int64)])[at]
    whole = unit.starts[end] == unit.starts[np.minimum(servings.begin, len(unit.visible))] + size
    ends = end[within & inside & whole & (base < kept[READS.told_bound])]
    cuts = np.unique(np.concatenate([ends, unit.end]))
    return cuts[np.searchsorted(cuts, np.arange(len(unit.visible)), side="right")]


def by_fetch(fetches: Columns, servings: Servings, unit: Unit) -> tuple[Ints, Ints]:
    """(records, when the first of them could be read) of each fetch."""
    request = fetches[READS.request_time]
    fetch = np.searchsorted(request, servings.request)
    records = np.zeros(len(request), np.int64)
    np.add.at(records, fetch, np.maximum(unit.records[servings.end] - unit.records[servings.begin], 0))
    ready = np.where(fetches[READS.returned_bytes] > 0, NEVER, 0)
    visible = np.append(unit.visible, ALWAYS)[np.minimum(servings.begin, len(unit.visible))]
    np.minimum.at(ready, fetch, visible)
    return records, ready


def rules_of(intent: Intent, lanes: Lanes, clients: ClientLanes, seeds: Ints) -> Rules:
    """Every lane's settings, those of the capture where a lane leaves them, int64[lanes] each."""
    limits = intent.seen.limits

    def chosen(values: Ints, captured: int) -> Ints:
        return np.where(values == AS_CAPTURED, captured, values)

    profile = chosen(clients.profile, intent.profile)
    has_session = np.where(clients.profile == AS_CAPTURED, limits[READS.in_session] == 1, profile != LIBRDKAFKA)
    polls = clients.max_poll_records
    # Where no response took two polls, the pace cannot distinguish work beside a fetch from what delays it.
    is_told = intent.most_records > polls[0]
    overlaps = is_told | (clients.us_per_record != AS_CAPTURED) | (polls != polls[0])
    is_old = UNSET < limits[READS.api_version] < FIRST_WITH_MAX_BYTES
    return Rules(
        np.minimum(chosen(lanes.max_bytes, limits[READS.max_bytes]), lanes.broker_max_bytes),
        # A lane with max_bytes is a client that knows it.
        (is_old & (lanes.max_bytes == AS_CAPTURED)).astype(np.int64),
        lanes.partition_max_bytes,
        lanes.only_first,
        chosen(clients.min_bytes, max(limits[READS.min_bytes], 0)),
        chosen(clients.max_wait_ms, limits[READS.max_wait_ms]) * 1000,
        polls,
        (overlaps & (profile < LIBRDKAFKA)).astype(np.int64),
        profile,
        chosen(clients.order, 0),
        has_session.astype(np.int64),
        seeds,
        clients.us_per_record.astype(np.float64),
    )
