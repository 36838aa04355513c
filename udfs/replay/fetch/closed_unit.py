"""What a simulated reader reads, under which rules, and how far it has read."""

from __future__ import annotations

from typing import NamedTuple

from udfs.wire.arrays import Floats, Ints
from udfs.wire.kernel import kernel


class Unit(NamedTuple):
    """What one connection reads: int64[partitions] in the order in which they were first asked for, int64[batches].

    Partition p's batches are [first[p], end[p]) of those of all partitions, in offset order.
    """

    number: Ints  # the partition's row in the sums
    joins: Ints  # when it is first asked for (us)
    leaves: Ints  # when it was given up, or NEVER
    partition_max_bytes: Ints
    first: Ints
    end: Ints
    backlog_end: Ints  # behind the last batch that was there when the capture first asked for the partition
    is_known: Ints  # 1: no batch is missing behind `end`
    starts: Ints  # int64[batches + 1], bytes before it
    records: Ints  # int64[batches + 1], records before it
    visible: Ints  # when it can be read (us); rises within a partition


class Work(NamedTuple):
    """Working memory of a lane, int64[partitions] each but for `random`, int64[1]."""

    position: Ints
    taken_at: Ints  # when the client has taken all that it got of it
    held: Ints  # record bytes of that
    asked_at: Ints  # when the client first asked for it, or NEVER
    wanted: Ints
    client: Ints
    session: Ints
    request: Ints
    got: Ints
    served: Ints
    spare: Ints
    catch_up: Ints
    random: Ints


class Rules(NamedTuple):
    """What each lane makes of the settings, int64[lanes] (record_us: float64[lanes])."""

    limit: Ints  # record bytes of a response
    partition_max_bytes: Ints  # AS_CAPTURED leaves the partition's own
    only_first: Ints
    min_bytes: Ints
    max_wait_us: Ints
    max_poll_records: Ints
    overlaps: Ints  # 1: the records of the last poll() are worked on while the next fetch is under way
    profile: Ints
    order: Ints
    in_session: Ints
    seed: Ints
    record_us: Floats


class Course(NamedTuple):
    """Begin and end of the unit's capture (us), 1 where its first fetch opens a session, and a lane's most requests."""

    begin: int
    horizon: int
    opens: int
    most_requests: int


@kernel
def first_above(values: Ints, low: int, high: int, value: int) -> int:
    """Index of the first of values[low:high], which rise, that is above `value`; `high` where none is."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] > value:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def readable_to(unit: Unit, work: Work, partition: int, time: int) -> int:
    """Behind the last batch of the partition that can be read at that time."""
    return first_above(unit.visible, work.position[partition], unit.end[partition], time)
