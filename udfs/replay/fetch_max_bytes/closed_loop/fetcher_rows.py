"""A follower's fetchers in the gold tables: whether Kafka's rule fits, how many there are, and their memory bound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from schemas.tables.fetch_reasons import FETCHERS
from schemas.tables.gold import FIDELITY
from schemas.tables.table import Table
from schemas.tables.values import FOLLOWER
from udfs.columns.arrays import Ints
from udfs.columns.sentinels import NONE
from udfs.replay.fetch_max_bytes.closed_loop.fetchers import can_be_dealt, judged_fetchers
from udfs.replay.fetch_max_bytes.closed_loop.more_fetchers import own_partitions
from udfs.replay.fetch_max_bytes.closed_loop.replay import Member, threads_of
from udfs.replay.fetch_max_bytes.rows import Labels, LaneBounds, verdict_rows
from udfs.replay.fetch_max_bytes.settings import FetchLanes
from udfs.replay.shared.key_numbers import partition_of
from udfs.replay.shared.lanes import AS_CAPTURED

BoundsOf = Callable[[Labels], Ints]
"""KIP-74's memory bound of a reader in each lane, if it reads the partitions of these labels: int64[lanes], bytes."""
Group = Sequence[tuple[Labels, Member]]


def fetcher_verdicts(group: Group, lanes: FetchLanes) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """Rows of `fidelity` on whether Kafka's rule gives each partition of a follower to the fetcher that has it; only if
    a lane has another number of fetchers. group: all fetchers of the follower.
    """
    members = [member for _, member in group]
    if not lanes.deals_fetchers or members[0].reader.kind != FOLLOWER:
        return
    (metric,) = FETCHERS.metrics
    for (labels, member), words in zip(group, judged_fetchers(threads_of(members)), strict=True):
        brokers = [partition_of(key)[0] for key in member.intent.keys]
        counts = Counter(zip(brokers, words, strict=True))
        verdicts = ((broker, metric, word, count) for (broker, word), count in sorted(counts.items()))
        yield FIDELITY, verdict_rows(labels, verdicts, FETCHERS)


def lane_bounds(group: Group, bounds_of: Sequence[BoundsOf], lanes: FetchLanes) -> list[LaneBounds]:
    """The bounds of each reader of a group in each lane. bounds_of: one for each reader."""
    members = [member for _, member in group]
    as_captured = [bounds(labels) for (labels, _), bounds in zip(group, bounds_of, strict=True)]
    if members[0].reader.kind != FOLLOWER:
        return [LaneBounds(memory_bound) for memory_bound in as_captured]
    counts = lanes.follower_client["readers"]
    is_dealt = counts != AS_CAPTURED
    if not can_be_dealt(threads_of(members)):
        return [
            LaneBounds(memory_bound, np.where(is_dealt, NONE, labels.brokers))
            for (labels, _), memory_bound in zip(group, as_captured, strict=True)
        ]
    bounds = [
        LaneBounds(np.where(is_dealt, 0, memory_bound), np.where(is_dealt, 0, labels.brokers))
        for (labels, _), memory_bound in zip(group, as_captured, strict=True)
    ]
    for count in np.unique(counts[is_dealt]).tolist():
        add_fetchers(group, bounds_of, bounds, count, np.flatnonzero(counts == count))
    return bounds


def add_fetchers(
    group: Group, bounds_of: Sequence[BoundsOf], bounds: Sequence[LaneBounds], fetchers: int, lanes: Ints
) -> None:
    """Add the bounds of `fetchers` fetchers in some lanes to the captured fetchers with which they are counted.

    bounds: written in place. lanes: int64[n], indices.
    """
    units = [member.intent.unit for _, member in group]
    for number in range(fetchers):
        own = own_partitions(units, fetchers, number)
        place = int(np.argmax([len(numbers) for numbers in own]))
        labels = group[place][0]._replace(
            partitions=[of.partitions[n] for (of, _), numbers in zip(group, own, strict=True) for n in numbers.tolist()]
        )
        bounds[place].memory_bound[lanes] += bounds_of[place](labels)[lanes]
        of_reader = bounds[place].fetchers
        if of_reader is not None:
            of_reader[lanes] += labels.brokers
