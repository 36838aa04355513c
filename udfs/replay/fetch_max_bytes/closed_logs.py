"""What can be read of a connection's partitions: their known batches, and what offsets and sizes mean in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from schemas.tables.steps import READS
from udfs.columns.arrays import Ints, all_read_only, edges, read_only
from udfs.columns.time_units import ALWAYS
from udfs.kernels.kernel import kernel
from udfs.replay.fetch_max_bytes.closed_unit import Unit, first_above
from udfs.replay.fetch_max_bytes.known_logs import LISTS
from udfs.replay.fetch_max_bytes.log_reach import Pieces, Reach, Requests, Sought, Told, reach_of_logs
from udfs.replay.fetch_max_bytes.observed import Columns, Observed, joined


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


def requests_of(fetches: Columns) -> Requests:
    """The fetches of a connection, of the columns FETCHED."""
    after = np.maximum.accumulate(fetches[READS.response_time]) + 1
    return Requests(fetches[READS.request_time], np.concatenate([np.full(1, ALWAYS), after]))


def by_partition(partition: Ints, count: int, columns: Iterable[Ints]) -> Iterator[Ints]:
    """The columns in the order of their partitions, and where those of each of `count` partitions begin."""
    order = np.argsort(partition, kind="stable")
    yield from (column[order] for column in columns)
    yield edges(np.bincount(partition, minlength=count))


def told_of(partition: Ints, count: int, told: Columns) -> Told:
    """What responses told, of the columns TOLD. partition: of each row, below `count`."""
    columns = (told[name] for name in (READS.told_bound, READS.response_time, READS.request_time))
    found = Told(*by_partition(partition, count, columns))
    rise(found.bound, found.begin)
    return found


@kernel
def rise(values: Ints, begin: Ints) -> None:
    """Have each value of a stretch be the highest so far."""
    for stretch in range(len(begin) - 1):
        for i in range(begin[stretch] + 1, begin[stretch + 1]):
            values[i] = max(values[i], values[i - 1])


def pieces_of(seen: Observed, keys: Sequence[str]) -> Pieces:
    """The batches of these partitions, each once."""
    logs = [seen.logs.get(key, []) for key in keys]
    columns = joined([piece for pieces in logs for piece in pieces], tuple(LISTS))
    place = np.repeat(np.arange(len(logs)), [sum(len(piece["base"]) for piece in pieces) for pieces in logs])
    order = np.lexsort((columns["base"], place))
    base, place = columns["base"][order], place[order]
    is_first = np.append(True, (base[1:] != base[:-1]) | (place[1:] != place[:-1]))[: len(base)]
    rows = order[is_first]
    begin = edges(np.bincount(place[is_first], minlength=len(logs)))
    return Pieces._make([*(columns[name][rows] for name in LISTS), begin])


def known_logs(
    seen: Observed, keys: Sequence[str], requests: Requests, told: Told, sought: Sought, horizon: int,
    is_follower: bool,
) -> list[Log]:  # fmt: skip
    """What can be read of a connection's partitions until the capture's end.

    keys: of all partitions of the reader, by number. told, sought: of those of the connection, in their order.
    """
    numbers, pieces = list(seen.first), pieces_of(seen, [keys[n] for n in seen.first])
    first_offset = np.array([seen.first[n].fetch_offset for n in numbers], np.int64)
    reach = Reach(*(np.zeros(len(numbers), np.int64) for _ in Reach._fields))
    visible = np.zeros_like(pieces.base)
    answers_at_once = not is_follower and seen.limits[READS.min_bytes] <= 1
    reach_of_logs(
        Pieces(*map(read_only, pieces)), Told(*map(read_only, told)), Sought(*map(read_only, sought)),
        Requests(*map(read_only, requests)), read_only(first_offset), horizon, answers_at_once, visible, reach,
    )  # fmt: skip
    columns, is_whole = (pieces.base, pieces.last, np.maximum(pieces.size, 1), visible), reach.is_known == 1
    return [
        Log._make([*(column[first:end] for column in columns), min(start, end) - first, known and seen.has_logs])
        for first, start, end, known in zip(*(c.tolist() for c in (*reach[:3], is_whole)), strict=True)
    ]


def records_of(log: Log) -> Ints:
    """Records by batch, as far as offsets tell."""
    return log.last - log.base + 1


def read_from_to(logs: Sequence[Log], unit: Unit, partition: Ints, offset: Ints, size: Ints) -> tuple[Ints, Ints]:
    """The batches at these offsets, and those behind the last one that so many bytes hold whole."""
    begin, end = np.zeros_like(offset), np.zeros_like(offset)
    last = np.concatenate([np.zeros(0, np.int64), *(log.last for log in logs)])
    first, ends, starts, last, partition, offset, size = all_read_only(
        (unit.first, unit.end, unit.starts, last, partition, offset, size)
    )
    place_reads(first, ends, starts, last, partition, offset, size, begin, end)
    return begin, end


@kernel
def place_reads(
    first: Ints, ends: Ints, starts: Ints, last: Ints, partition: Ints, offset: Ints, size: Ints, begin: Ints, end: Ints
) -> None:
    """`read_from_to` into given arrays. first, ends, starts: of the unit. last: int64[batches], of its batches."""
    for i in range(len(partition)):
        a, b = first[partition[i]], ends[partition[i]]
        begin[i] = first_above(last, a, b, offset[i] - 1)
        end[i] = first_above(starts, a, b + 1, starts[begin[i]] + size[i]) - 1
