"""From the captured fetches of a connection to what it would read in any lane: who wants which partitions, and when.

A batch can be read from when a response first showed it, or a high watermark above it, and from the beginning where
the first response did.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from schemas.tables.steps import READS
from udfs.replay.fetch.client_order import FOLLOWER, JAVA_4, LIBRDKAFKA
from udfs.replay.fetch.client_pace import ClientLanes, Pace, measured_pace
from udfs.replay.fetch.closed_unit import Course, Rules, Unit
from udfs.replay.fetch.fetch_read import AS_CAPTURED, Lanes
from udfs.replay.fetch.known_logs import LISTS
from udfs.replay.fetch.observed import FETCHED, SERVED, TOLD, UNSET, Columns, FirstRead, Observed, joined
from udfs.replay.fetch.partition_log import ALWAYS, NEVER
from udfs.wire.arrays import Bools, Ints

GIVEN_UP_US = 1_000_000
"""A partition that is not asked for in so long before the end of a connection's capture was given up."""
REQUESTS_A_FETCH = 64


class Log(NamedTuple):
    """A partition's known batches from the one at the first fetch offset to the first gap, int64[n] each."""

    base: Ints
    last: Ints
    size: Ints
    visible: Ints
    is_known: bool


@dataclass(frozen=True)
class Servings:
    """The captured parts of responses with records, in time order, int64[n] each.

    partition: place in the unit. begin, end: batches that they made of it. moved: it did not begin where the one before
    had ended.
    """

    partition: Ints
    request: Ints
    response: Ints
    size: Ints
    begin: Ints
    end: Ints
    moved: Bools


@dataclass(frozen=True)
class Intent:
    """One connection, ready to be replayed, and what the capture shows of it. most_records: of any response."""

    unit: Unit
    course: Course
    pace: Pace
    profile: int
    most_records: int
    servings: Servings
    seen: Observed


def intent_of(seen: Observed, keys: list[str], reader: str) -> Intent:
    """The intent of a connection with answered fetches. keys: the partitions' keys by their numbers."""
    fetches = joined(seen.fetches, FETCHED)
    begin = int(fetches[READS.request_time][0])
    horizon = max(begin, int(fetches[READS.response_time].max()))
    numbers = list(seen.first)
    told = joined(seen.told, TOLD)
    logs = [known_log(seen, keys[n], n, told, horizon) for n in numbers]
    unit = unit_of([seen.first[n] for n in numbers], numbers, logs, horizon)
    servings = servings_of(joined(seen.servings, SERVED), numbers, logs, unit)
    records, ready = by_fetch(fetches, servings, unit)
    request, response, size = (fetches[str(name)] for name in FETCHED)
    wait_us = seen.limits[READS.max_wait_ms] * 1000
    pace = measured_pace(request, response, records, size, ready, wait_us)
    course = Course(
        begin, horizon, seen.limits[READS.opens_session], REQUESTS_A_FETCH * (len(request) + len(unit.visible)) + 1000
    )
    return Intent(unit, course, pace, profile_of(seen, reader), int(records.max(initial=0)), servings, seen)


def profile_of(seen: Observed, reader: str) -> int:
    """The rules the reader follows: those of its software, else by whether it uses sessions."""
    told = seen.limits[READS.profile]
    if reader == "follower":
        return FOLLOWER
    if told != UNSET:
        return told
    return JAVA_4 if seen.limits[READS.in_session] == 1 else LIBRDKAFKA


def known_log(seen: Observed, key: str, number: int, told: Columns, horizon: int) -> Log:
    """What can be read of a partition until the capture's end."""
    parts = joined(seen.logs.get(key, []), tuple(LISTS))
    base, rows = np.unique(parts["base"], return_index=True)
    last, size, after, before = (parts[name][rows] for name in ("last", "size", "after", "before"))
    of_partition = told[READS.partition] == number
    bounds = np.maximum.accumulate(told[READS.told_bound][of_partition])
    shown_at = shown(last, bounds, told[READS.response_time][of_partition])
    visible = np.maximum(after, np.minimum(before, shown_at))
    first = int(np.searchsorted(last, seen.first[number].fetch_offset))
    breaks = np.flatnonzero(base[first + 1 :] != last[first:-1] + 1)
    end = first + int(breaks[0]) + 1 if len(breaks) else len(base)
    holds = first == len(base) or base[first] <= seen.first[number].fetch_offset
    rising = np.maximum.accumulate(visible[first:end]) if holds else visible[:0]
    count = int(np.searchsorted(rising, horizon, side="right"))
    kept = slice(first, first + count)
    return Log(base[kept], last[kept], np.maximum(size[kept], 1), rising[:count], bool(holds and not len(breaks)))


def shown(last: Ints, bounds: Ints, times: Ints) -> Ints:
    """When a response first told a bound above each offset: ALWAYS where the first did, NEVER where none did."""
    place = np.searchsorted(bounds, last, side="right")
    at = np.append(times, NEVER)[place]
    found: Ints = np.where((place == 0) & (len(times) > 0), ALWAYS, at)
    return found


def unit_of(first: list[FirstRead], numbers: list[int], logs: list[Log], horizon: int) -> Unit:
    """The partitions with their logs, one behind the other."""
    counts = np.array([len(log.base) for log in logs], np.int64)
    ends = np.cumsum(counts)
    joins = np.array([read.since for read in first], np.int64)
    last_time = np.array([read.last_time for read in first], np.int64)
    backlogs = zip(logs, first, strict=True)
    there = [int(np.searchsorted(log.visible, read.time, side="right")) for log, read in backlogs]
    size, span = (
        np.concatenate(columns) for columns in zip(*((log.size, records_of(log)) for log in logs), strict=True)
    )
    return Unit(
        np.array(numbers, np.int64),
        joins,
        np.where(last_time < horizon - GIVEN_UP_US, last_time, NEVER),
        np.array([read.partition_max_bytes for read in first], np.int64),
        ends - counts,
        ends,
        ends - counts + np.array(there, np.int64),
        np.array([log.is_known for log in logs]).astype(np.int64),
        np.concatenate([np.zeros(1, np.int64), np.cumsum(size)]),
        np.concatenate([np.zeros(1, np.int64), np.cumsum(span)]),
        np.concatenate([log.visible for log in logs]),
    )


def records_of(log: Log) -> Ints:
    """Records by batch, as far as offsets tell."""
    return log.last - log.base + 1


def servings_of(kept: Columns, numbers: list[int], logs: list[Log], unit: Unit) -> Servings:
    """The captured servings, placed in the unit's logs."""
    place = np.full(max(numbers) + 1, 0)
    place[numbers] = np.arange(len(numbers))
    partition = place[kept[READS.partition]]
    offset, size = kept[READS.fetch_offset], kept[READS.returned_bytes]
    begin, end, moved = np.zeros_like(offset), np.zeros_like(offset), np.zeros(len(offset), np.bool_)
    for p, log in enumerate(logs):
        rows = np.flatnonzero(partition == p)
        first, n = int(unit.first[p]), len(log.base)
        begin[rows] = first + np.searchsorted(log.last, offset[rows])
        until = unit.starts[np.minimum(begin[rows], first + n)] + size[rows]
        end[rows] = np.searchsorted(unit.starts[first : first + n + 1], until, side="right") - 1 + first
        moved[rows[1:]] = begin[rows[1:]] != end[rows[:-1]]
    return Servings(partition, kept[READS.request_time], kept[READS.response_time], size, begin, end, moved)


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
    """Every lane's settings, those of the capture where a lane leaves them."""
    limits = intent.seen.limits

    def chosen(values: Ints, captured: int) -> Ints:
        return np.where(values == AS_CAPTURED, captured, values)

    profile = chosen(clients.profile, intent.profile)
    has_session = np.where(clients.profile == AS_CAPTURED, limits[READS.in_session] == 1, profile != LIBRDKAFKA)
    record_us = np.where(clients.us_per_record == AS_CAPTURED, intent.pace.record, clients.us_per_record)
    polls = clients.max_poll_records
    # Where no response took two polls, the pace does not tell work beside a fetch from what delays it.
    is_told = intent.most_records > polls[0]
    overlaps = is_told | (clients.us_per_record != AS_CAPTURED) | (polls != polls[0])
    return Rules(
        np.minimum(chosen(lanes.max_bytes, limits[READS.max_bytes]), lanes.broker_max_bytes),
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
        record_us.astype(np.float64),
    )
