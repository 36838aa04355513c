"""How far each partition's log can be read in closed loop, and when each batch of that.

A batch can be read from the time when a response first showed it, or a high watermark above it; from the beginning,
if the first response did. When a consumer could read it, its own fetches tell better than those of others: followers
get a batch before the high watermark is above it.
"""

from __future__ import annotations

from typing import NamedTuple

from udfs.columns.arrays import Ints
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.kernels.kernel import kernel
from udfs.replay.fetch_max_bytes.closed_unit import first_above


class Requests(NamedTuple):
    """A connection's fetches, int64[n], and from when on the response before each was there: int64[n + 1]."""

    sent: Ints
    answered_before: Ints


class Pieces(NamedTuple):
    """The known batches of all partitions, int64[n] each; partition p has those from begin[p] to begin[p + 1]."""

    base: Ints
    last: Ints
    size: Ints
    after: Ints
    before: Ints
    begin: Ints


class Told(NamedTuple):
    """What responses told of partitions in the order of their requests, int64[n] each; those of partition p begin at
    begin[p].

    bound: the highest so far.
    """

    bound: Ints
    response: Ints
    request: Ints
    begin: Ints


class Sought(NamedTuple):
    """The offsets at which partitions were read elsewhere than before, int64[n]; those of partition p begin at
    begin[p]."""

    offset: Ints
    begin: Ints


class Reach(NamedTuple):
    """How much of partitions' logs can be read, int64[partitions] each.

    first: the batch at the lowest fetch offset. start: the one at the first fetch offset. end: behind the last one that
    can be read by the capture's end. is_known: 1 where no batch is missing behind it.
    """

    first: Ints
    start: Ints
    end: Ints
    is_known: Ints


@kernel
def visible_from(last: int, before: int, partition: int, told: Told, requests: Requests, answers_at_once: bool) -> int:
    """When a batch that ends with this offset can be read (us): when a response first told a bound above it, ALWAYS
    where the first did, NEVER where none did, or had records of it.

    before: when a response first had records of it. answers_at_once: a fetch is answered as soon as there is something
    for its reader, so that what others got earlier was not there for this reader before the response that came before
    the one that tells of it.
    """
    begin, end = told.begin[partition], told.begin[partition + 1]
    place = first_above(told.bound, begin, end, last)
    if begin < end and place == begin:
        return ALWAYS
    at, asked = (told.response[place], told.request[place]) if place < end else (NEVER, NEVER)
    found = min(before, at)
    if not answers_at_once:
        return found
    since = requests.answered_before[first_above(requests.sent, 0, len(requests.sent), asked - 1)]
    return at if found > asked else max(found, since)


@kernel
def follows_on(pieces: Pieces, batch: int) -> bool:
    """Whether no offset is missing between a batch and the one before."""
    return pieces.base[batch] == pieces.last[batch - 1] + 1


@kernel
def first_gap(pieces: Pieces, first: int, end: int) -> int:
    """The first batch behind `first` that offsets are missing before; `end` for none."""
    for batch in range(first + 1, end):
        if not follows_on(pieces, batch):
            return batch
    return end


@kernel
def lowest_known(pieces: Pieces, partition: int, start: int, sought: Sought) -> int:
    """The batch at the lowest of the offsets that were asked for, of those that lead to `start` without a gap."""
    begin, end = pieces.begin[partition], pieces.begin[partition + 1]
    least = min(start, end - 1)
    while least > begin and follows_on(pieces, least):
        least -= 1
    lowest = start
    for i in range(sought.begin[partition], sought.begin[partition + 1]):
        at = first_above(pieces.last, begin, end, sought.offset[i] - 1)
        if least <= at < lowest and pieces.base[at] <= sought.offset[i]:
            lowest = at
    return lowest


@kernel
def reach_of_logs(
    pieces: Pieces, told: Told, sought: Sought, requests: Requests, first_offset: Ints, horizon: int,
    answers_at_once: bool, visible: Ints, reach: Reach,
) -> None:  # fmt: skip
    """Fill how far each partition can be read, and when each batch of that: int64[batches] (us), rising.

    first_offset: int64[partitions], the first fetch offset of each.
    """
    for p in range(len(first_offset)):
        begin, end = pieces.begin[p], pieces.begin[p + 1]
        start = first_above(pieces.last, begin, end, first_offset[p] - 1)
        first = lowest_known(pieces, p, start, sought)
        holds = start == end or pieces.base[start] <= first_offset[p]
        gap = first_gap(pieces, first, end)
        at, latest = first, ALWAYS
        while holds and at < gap:
            from_then = visible_from(pieces.last[at], pieces.before[at], p, told, requests, answers_at_once)
            latest = max(latest, pieces.after[at], from_then)
            if latest > horizon:
                break
            visible[at] = latest
            at += 1
        reach.first[p], reach.start[p], reach.end[p] = first, start, at
        reach.is_known[p] = 1 if holds and gap == end else 0
