"""Lanes with `traffic.consumers`: this number of consumers shares the partitions that one captured consumer reads.

Each captured member of a group is replaced by `traffic.consumers` consumers, and its partitions are dealt to them in
turn: with 3 consumers, the first consumer gets the partitions of rank 0, 3, 6 and so on. Each consumer is a client of
its own, with the settings and the pace of the captured one. All of them share one quota, for a quota belongs to a
client.id or a user. If there are fewer partitions than consumers, some consumers have nothing to read.

The tables show the consumers together, as the captured reader: bytes and requests are sums over the consumers, and of
held bytes and waits the largest counts. Single responses are those of the consumer that holds most.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from udfs.columns.arrays import Ints, stretch_edges
from udfs.columns.records import pick_records
from udfs.replay.fetch_max_bytes.closed_loop.more_fetchers import outcomes_of_fetchers
from udfs.replay.fetch_max_bytes.closed_loop.outcomes import blank_outcome, joined_outcomes, put_lanes
from udfs.replay.fetch_max_bytes.closed_loop.state import ReaderLanes, Unit
from udfs.replay.fetch_max_bytes.closed_loop.timeline import align_lanes
from udfs.replay.fetch_max_bytes.closed_loop.together import ReaderInLanes, replay_readers
from udfs.replay.fetch_max_bytes.settings import REPLICA_FETCHER
from udfs.replay.shared.caps import MOST_RESPONSES
from udfs.replay.shared.lanes import AS_CAPTURED


def replay_dealt(readers: Sequence[ReaderInLanes]) -> None:
    """Replay readers together in every lane, and write their outcomes: each consumer as the lane's number of consumers,
    and the fetchers of a follower as the lane's number of fetchers (more_fetchers.py).
    """
    counts = np.max([reader.rules["readers"].max(axis=0) for reader in readers], axis=0)
    if (counts == AS_CAPTURED).all():
        replay_readers(readers)
        return
    are_fetchers = all((reader.rules["profile"] == REPLICA_FETCHER).all() for reader in readers)
    for count in np.unique(counts).tolist():
        lanes = np.flatnonzero(counts == count)
        is_dealt_by_rule = are_fetchers and count != AS_CAPTURED
        outcomes_of = outcomes_of_fetchers if is_dealt_by_rule else outcomes_of_consumers
        for reader, outcome in zip(readers, outcomes_of(readers, max(count, 1), lanes), strict=True):
            put_lanes(reader.outcome, lanes, outcome)
    for reader in readers:
        align_lanes(reader.outcome.timeline)


def outcomes_of_consumers(readers: Sequence[ReaderInLanes], consumers: int, lanes: Ints) -> list[ReaderLanes]:
    """The outcomes of readers in some lanes, each reader as `consumers` consumers. lanes: int64[n], indices."""
    shares = [shares_of_reader(reader, consumers, lanes) for reader in readers]
    replay_readers([share for of_reader in shares for share in of_reader])
    return [joined_outcomes([share.outcome for share in of_reader]) for of_reader in shares]


def shares_of_reader(reader: ReaderInLanes, consumers: int, lanes: Ints) -> list[ReaderInLanes]:
    """The consumers that share a reader's partitions, in some of its lanes. lanes: int64[n], indices."""
    numbers, rules = len(reader.outcome.given_up_backlogs), np.ascontiguousarray(reader.rules[:, lanes])
    units = [share_of_unit(reader.unit, consumers, share) for share in range(consumers)]
    every_lane, room = reader.outcome.responses.shape
    room = min(room, MOST_RESPONSES // (every_lane * consumers))
    return [ReaderInLanes(unit, rules, blank_outcome(reader.outcome, unit, numbers, lanes, room)) for unit in units]


def share_of_unit(unit: Unit, consumers: int, share: int) -> Unit:
    """What one of several consumers reads: the changes by which it would want the others' partitions are left out."""
    is_own, partitions = unit.partitions["dealt"] % consumers == share, unit.partitions.copy()
    partitions["backlog_end"][~is_own] = partitions["start_batch"][~is_own]
    partition = unit.changes["partition"]
    is_of_reader = partition < 0
    kept = is_of_reader | is_own[np.where(is_of_reader, 0, partition)]
    first, nodes = stretch_edges(kept), unit.nodes.copy()
    for name in ("first_change", "end_change"):
        nodes[name] = first[nodes[name]]
    changes = pick_records(unit.changes, kept)
    changes["bytes"] //= consumers
    return unit._replace(partitions=partitions, changes=changes, nodes=nodes)
