"""What can be read of a connection's partitions: their known batches, and what offsets and sizes mean in them.

A batch can be read from the time when a response first showed it, or a high watermark above it; from the beginning,
if the first response did. When a consumer could read it, its own fetches tell better than those of others: followers
get a batch before the high watermark is above it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from schemas.tables.steps import READS
from udfs.replay.fetch.closed_unit import Unit
from udfs.replay.fetch.known_logs import LISTS
from udfs.replay.fetch.observed import Columns, Observed, joined
from udfs.time_units import ALWAYS, NEVER
from udfs.wire.arrays import Ints


class Log(NamedTuple):
    """A partition's known batches from the one at the lowest fetch offset to the first gap, int64[n] each.

    start: index of the one at the first fetch offset.
    """

    base: Ints
    last: Ints
    size: Ints
    visible: Ints
    start: int
    is_known: bool


class Shown(NamedTuple):
    """When responses showed that batches can be read, int64[n] each (us).

    at: when a response first told a bound above the batch, ALWAYS where the first did, NEVER where none did. asked:
    when that response was asked for. since: the earliest that it could be told, just after the response before.
    """

    at: Ints
    asked: Ints
    since: Ints


class Requests(NamedTuple):
    """A connection's fetches, int64[n], and from when on the response before each was there: int64[n + 1]."""

    sent: Ints
    answered_before: Ints


def requests_of(fetches: Columns) -> Requests:
    """The fetches of a connection, of the columns FETCHED."""
    after = np.maximum.accumulate(fetches[READS.response_time]) + 1
    return Requests(fetches[READS.request_time], np.concatenate([np.full(1, ALWAYS), after]))


def rows_by(partition: Ints, count: int) -> list[Ints]:
    """The rows of each of so many partitions, in their order. partition: int64[rows]."""
    order = np.argsort(partition, kind="stable")
    ends = np.searchsorted(partition[order], np.arange(count + 1)).tolist()
    return [order[a:b] for a, b in pairwise(ends)]


def known_log(
    seen: Observed, key: str, number: int, requests: Requests, told: Columns, sought: Ints, horizon: int,
    is_follower: bool,
) -> Log:  # fmt: skip
    """What can be read of a partition until the capture's end.

    told: what responses told of it, in the columns TOLD. sought: the offsets at which its moves read.
    """
    parts = joined(seen.logs.get(key, []), tuple(LISTS))
    base, rows = np.unique(parts["base"], return_index=True)
    last, size, after, before = (parts[name][rows] for name in ("last", "size", "after", "before"))
    answers_at_once = not is_follower and seen.limits[READS.min_bytes] <= 1
    of_shown = shown(last, told, requests)
    visible = np.maximum(after, visible_from(before, of_shown, answers_at_once))
    breaks = np.flatnonzero(base[1:] != last[:-1] + 1) + 1
    start = int(np.searchsorted(last, seen.first[number].fetch_offset))
    before = np.array([seen.moved_here[number]] if number in seen.moved_here else [], np.int64)
    first = lowest_known(base, last, breaks, start, np.concatenate([sought, before]))
    later = breaks[breaks > first]
    end = int(later[0]) if len(later) else len(base)
    holds = start == len(base) or base[start] <= seen.first[number].fetch_offset
    rising = np.maximum.accumulate(visible[first:end]) if holds else visible[:0]
    count = int(np.searchsorted(rising, horizon, side="right"))
    kept = slice(first, first + count)
    return Log(
        base[kept], last[kept], np.maximum(size[kept], 1), rising[:count], min(start - first, count),
        bool(holds and not len(later) and seen.has_logs),
    )  # fmt: skip


def lowest_known(base: Ints, last: Ints, breaks: Ints, start: int, offsets: Ints) -> int:
    """The batch at the lowest of the offsets that were asked for, of those that lead to `start` without a gap."""
    before = breaks[breaks <= start]
    least = int(before[-1]) if len(before) else 0
    at = np.searchsorted(last, offsets)
    known = (at >= least) & (at < start)
    known[known] &= base[at[known]] <= offsets[known]
    return int(at[known].min(initial=start))


def shown(last: Ints, told: Columns, requests: Requests) -> Shown:
    """What responses of one partition, of the columns TOLD, show of batches that end with these offsets."""
    place = np.searchsorted(np.maximum.accumulate(told[READS.told_bound]), last, side="right")
    is_first = (place == 0) & (len(told[READS.told_bound]) > 0)
    at, asked = (np.append(told[name], NEVER)[place] for name in (READS.response_time, READS.request_time))
    since = requests.answered_before[np.searchsorted(requests.sent, asked)]
    return Shown(*(np.where(is_first, ALWAYS, time) for time in (at, asked, since)))


def visible_from(before: Ints, of_shown: Shown, answers_at_once: bool) -> Ints:
    """When each batch can be read (us). before: when a response first had records of it.

    answers_at_once: a fetch is answered as soon as there is something for its reader, so that what others got earlier
    was not there for this reader yet.
    """
    found: Ints = np.minimum(before, of_shown.at)
    if not answers_at_once:
        return found
    return np.where(found > of_shown.asked, of_shown.at, np.maximum(found, of_shown.since))


def records_of(log: Log) -> Ints:
    """Records by batch, as far as offsets tell."""
    return log.last - log.base + 1


def read_from_to(logs: Sequence[Log], unit: Unit, partition: Ints, offset: Ints, size: Ints) -> tuple[Ints, Ints]:
    """The batches at these offsets, and those behind the last one that so many bytes hold whole."""
    begin, end = np.zeros_like(offset), np.zeros_like(offset)
    for p, (log, rows) in enumerate(zip(logs, rows_by(partition, len(logs)), strict=True)):
        first, n = int(unit.first[p]), len(log.base)
        begin[rows] = first + np.searchsorted(log.last, offset[rows])
        until = unit.starts[np.minimum(begin[rows], first + n)] + size[rows]
        end[rows] = np.searchsorted(unit.starts[first : first + n + 1], until, side="right") - 1 + first
    return begin, end
