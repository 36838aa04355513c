"""What a simulated reader reads, under which rules, and how far it has read.

A reader is a unit: all its connections, its nodes, are replayed together. What belongs to a node lies together, and
`node_of` cuts it out.
"""

from __future__ import annotations

from typing import NamedTuple

from udfs.columns.arrays import Floats, Ints
from udfs.kernels.kernel import kernel

NO_BACKLOG = -1
"""In place of how long a partition's backlog took."""


class Unit(NamedTuple):
    """What is read: int64[partitions] in the order in which a node first asked for them, int64[batches].

    Partition p's batches are [first[p], end[p]) of those of all partitions, in offset order. Changes say when the node
    wants which partition: see `closed_changes`; int64[changes] in time order.
    """

    number: Ints  # the partition's row in the sums
    partition_max_bytes: Ints
    first: Ints
    start: Ints  # the batch at which it is first asked for
    end: Ints
    backlog_end: Ints  # behind the last batch that was there when the capture first asked for the partition
    is_known: Ints  # 1: no batch is missing behind `end`
    follows: Ints  # place in the whole unit of the same partition at the broker that it moved from; -1 for none
    shift: Ints  # from a batch's index there to its index here
    change_time: Ints
    change_what: Ints
    change_to: Ints
    change_until: Ints  # when what was buffered is gone at the latest: it is asked for again; NEVER where it is not
    change_since: Ints  # when it was last asked for before; NEVER where the partition is not given up by it
    starts: Ints  # int64[batches + 1], bytes before it
    records: Ints  # int64[batches + 1], records before it
    visible: Ints  # when it can be read (us); rises within a partition
    segment_end: Ints  # behind the last batch of its segment, as far as that is known


class Work(NamedTuple):
    """Working memory of a lane: int64[partitions] of a node each, but for `everywhere` and `random`, int64[1]."""

    position: Ints
    taken_at: Ints  # when the client has taken all that it got of it
    held: Ints  # record bytes of that
    turn: Ints  # when the application comes to what it got of it
    asked_at: Ints  # when the client first asked for it, or NEVER
    assigned: Ints  # 1: the client wants it
    moved: Ints  # 1: given up, or sought elsewhere, since the last request
    wanted: Ints
    client: Ints
    session: Ints
    request: Ints
    got: Ints
    served: Ints
    spare: Ints
    catch_up: Ints
    everywhere: Ints  # `position` of all nodes
    random: Ints


class Rules(NamedTuple):
    """What each lane makes of the settings, int64[nodes, lanes] (record_us: float64); of a node int64[lanes]."""

    limit: Ints  # record bytes of a response
    is_hard: Ints  # 1: the request has no max_bytes (Fetch before 3): no batch is returned beyond partition_max_bytes
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
    record_us: Floats  # AS_CAPTURED: along the captured curve


class Course(NamedTuple):
    """When each node's capture begins and ends (us), the most requests of a lane, and which part of the unit is whose.

    int64[nodes]; parts_from, changes_from: int64[nodes + 1]. shares: int64[1], 1 where the connections are one
    process's.
    """

    begin: Ints
    horizon: Ints
    most_requests: Ints
    parts_from: Ints
    changes_from: Ints
    shares: Ints


@kernel
def unit_of_node(unit: Unit, course: Course, node: int) -> Unit:
    """What one node reads."""
    a, b = course.parts_from[node], course.parts_from[node + 1]
    c, d = course.changes_from[node], course.changes_from[node + 1]
    return Unit(
        unit.number[a:b], unit.partition_max_bytes[a:b], unit.first[a:b], unit.start[a:b], unit.end[a:b],
        unit.backlog_end[a:b], unit.is_known[a:b], unit.follows[a:b], unit.shift[a:b], unit.change_time[c:d],
        unit.change_what[c:d], unit.change_to[c:d], unit.change_until[c:d], unit.change_since[c:d], unit.starts,
        unit.records, unit.visible, unit.segment_end,
    )  # fmt: skip


@kernel
def work_of_node(work: Work, course: Course, node: int) -> Work:
    """A node's working memory."""
    a, b = course.parts_from[node], course.parts_from[node + 1]
    return Work(
        work.position[a:b], work.taken_at[a:b], work.held[a:b], work.turn[a:b], work.asked_at[a:b],
        work.assigned[a:b], work.moved[a:b], work.wanted[a:b], work.client[a:b], work.session[a:b], work.request[a:b],
        work.got[a:b], work.served[a:b], work.spare[a:b], work.catch_up[a:b], work.everywhere, work.random,
    )  # fmt: skip


@kernel
def rules_of_node(rules: Rules, node: int) -> Rules:
    """A node's rules, by lane."""
    return Rules(
        rules.limit[node], rules.is_hard[node], rules.partition_max_bytes[node], rules.only_first[node],
        rules.min_bytes[node], rules.max_wait_us[node], rules.max_poll_records[node], rules.overlaps[node],
        rules.profile[node], rules.order[node], rules.in_session[node], rules.seed[node], rules.record_us[node],
    )  # fmt: skip


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


@kernel
def in_segment(unit: Unit, begin: int, end: int) -> int:
    """How far a read from batch `begin` to `end` goes: it ends with the segment (LogSegment.read)."""
    return min(end, unit.segment_end[begin]) if begin < end else end
