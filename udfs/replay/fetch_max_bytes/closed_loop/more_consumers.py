"""Lanes with `traffic.consumers`: so many consumers share what one captured consumer reads.

The members of a group get more, and each captured one's partitions are dealt among as many consumers: the first gets
the first of every so many partitions, the second the next of them. Each is a client of its own, with the settings and
the pace of the captured one, and all of them have one quota, for that is a client.id's or a user's. Where there are
fewer partitions than consumers, some have nothing to read. Together they are the captured reader: what they read and
request is summed up, and of what is held and of waits that of the consumer counts for which it is most.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from udfs.columns.arrays import Ints, stretch_edges
from udfs.columns.records import pick_records
from udfs.replay.fetch_max_bytes.closed_loop.outcomes import joined_outcomes, new_outcome, put_lanes
from udfs.replay.fetch_max_bytes.closed_loop.state import Unit
from udfs.replay.fetch_max_bytes.closed_loop.timeline import align_lanes
from udfs.replay.fetch_max_bytes.closed_loop.together import ReaderInLanes, replay_readers


def replay_consumers(readers: Sequence[ReaderInLanes]) -> None:
    """Replay readers together in every lane, into their outcomes, each as so many consumers as the lane has."""
    consumers = np.max([reader.rules["consumers"].max(axis=0) for reader in readers], axis=0)
    if (consumers == 1).all():
        replay_readers(readers)
        return
    for count in np.unique(consumers).tolist():
        lanes = np.flatnonzero(consumers == count)
        shares = [shares_of_reader(reader, count, lanes) for reader in readers]
        replay_readers([share for of_reader in shares for share in of_reader])
        for reader, of_reader in zip(readers, shares, strict=True):
            put_lanes(reader.outcome, lanes, joined_outcomes([share.outcome for share in of_reader]))
    for reader in readers:
        align_lanes(reader.outcome.timeline)


def shares_of_reader(reader: ReaderInLanes, consumers: int, lanes: Ints) -> list[ReaderInLanes]:
    """The consumers that share what a reader reads, in some of its lanes: int64[n], which they are."""
    numbers, buckets = len(reader.outcome.given_up_backlogs), reader.outcome.timeline.buckets.shape[2]
    units = [share_of_unit(reader.unit, consumers, share) for share in range(consumers)]
    rules = np.ascontiguousarray(reader.rules[:, lanes])
    return [ReaderInLanes(unit, rules, new_outcome(unit, numbers, len(lanes), buckets=buckets)) for unit in units]


def share_of_unit(unit: Unit, consumers: int, share: int) -> Unit:
    """What one of several consumers reads: it never comes to want the partitions of the others."""
    is_own, partitions = unit.partitions["dealt"] % consumers == share, unit.partitions.copy()
    partitions["backlog_end"][~is_own] = partitions["start_batch"][~is_own]
    partition = unit.changes["partition"]
    is_of_reader = partition < 0
    kept = is_of_reader | is_own[np.where(is_of_reader, 0, partition)]
    first, nodes = stretch_edges(kept), unit.nodes.copy()
    for name in ("first_change", "end_change"):
        nodes[name] = first[nodes[name]]
    return unit._replace(partitions=partitions, changes=pick_records(unit.changes, kept), nodes=nodes)
