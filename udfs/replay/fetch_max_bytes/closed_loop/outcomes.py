"""Outcomes of a reader's lanes: empty ones, those of several readers joined, and some lanes put among all lanes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from udfs.columns.arrays import Ints, Records
from udfs.columns.records import new_records
from udfs.replay.fetch_max_bytes.closed_loop.state import (
    GIVEN_UP,
    LANE_OUTCOME,
    LANE_RESPONSE,
    NO_BACKLOG,
    ReaderLanes,
    Timeline,
    Unit,
    new_captured_lane,
)
from udfs.replay.fetch_max_bytes.closed_loop.timeline import (
    BUCKETS,
    Stays,
    align_lanes,
    new_timeline,
    stays_of,
    stays_of_timeline,
)
from udfs.replay.fetch_max_bytes.state import Sums, no_sums

OF_THE_LONGEST = ("longest_requests", "longest_us", "largest")
"""Fields of sums of which the largest of several readers counts. All other fields are added up."""
OF_SINGLE_RESPONSES = ("responses", "given_up")
"""Fields of LANE_OUTCOME that say how many single responses, and records given up of them, a lane has."""


def new_outcome(
    unit: Unit, numbers: int, lanes: int, response_room: int = 0, buckets: int = BUCKETS, stays: Stays | None = None
) -> ReaderLanes:
    """The empty outcome before the first lane. buckets, stays: of the timeline; by default the unit's own stays.

    A change may give up records twice: those that are buffered, and those that are under way.
    """
    given_up_room = 2 * len(unit.changes) if response_room else 0
    return ReaderLanes(
        sums=no_sums(numbers, lanes),
        timeline=new_timeline(lanes, numbers, stays or stays_of(unit.nodes["begin"], unit.nodes["horizon"]), buckets),
        lanes=new_records(LANE_OUTCOME, lanes, is_finished=1),
        catch_up_us=np.full((numbers, lanes), NO_BACKLOG),
        given_up_backlogs=np.zeros(numbers, np.int64),
        captured=new_captured_lane(unit),
        responses=np.zeros((lanes, response_room), LANE_RESPONSE),
        given_up=np.zeros((lanes, given_up_room), GIVEN_UP),
    )


def blank_outcome(of: ReaderLanes, unit: Unit, numbers: int, lanes: Ints, response_room: int = 0) -> ReaderLanes:
    """The empty outcome of some lanes, with the same stays and as many buckets as the outcome `of`.

    lanes: int64[n], indices; these lanes have not been replayed in `of`.
    """
    line = of.timeline
    buckets, stays = line.buckets.shape[2], stays_of_timeline(line, int(lanes[0]))
    return new_outcome(unit, numbers, len(lanes), response_room, buckets, stays)


def joined_outcomes(outcomes: Sequence[ReaderLanes], are_one_process: bool = False) -> ReaderLanes:
    """The joined outcome of readers of different partitions, in the same lanes and over the same time.

    Of held bytes and of waits the largest counts; everything else is added up. If the readers are one process, their
    held bytes are added up in each tick. The captured lane is the first reader's. Single responses are in each lane
    those of the reader that holds most.
    """
    first, numbers = outcomes[0], np.arange(len(outcomes[0].lanes))
    most = np.argmax([of.timeline.held.max(axis=1) for of in outcomes], axis=0)
    of_most = [outcomes[reader] for reader in most.tolist()]
    lanes = new_records(
        LANE_OUTCOME,
        len(first.lanes),
        **{name: sum(of.lanes[name] for of in outcomes) for name in LANE_OUTCOME.names or ()}
        | {"is_finished": np.min([of.lanes["is_finished"] for of in outcomes], axis=0)}
        | {name: [of.lanes[name][n] for n, of in zip(numbers, of_most, strict=True)] for name in OF_SINGLE_RESPONSES},
    )
    return first._replace(
        sums=Sums(
            joined_sums([of.sums.partitions for of in outcomes]),
            joined_sums([of.sums.responses for of in outcomes]),
            np.sum([of.sums.sizes for of in outcomes], axis=0),
        ),
        timeline=joined_timelines([of.timeline for of in outcomes], are_one_process),
        lanes=lanes,
        catch_up_us=np.max([of.catch_up_us for of in outcomes], axis=0),
        responses=rows_of_lanes([of.responses for of in of_most]),
        given_up=rows_of_lanes([of.given_up for of in of_most]),
    )


def rows_of_lanes(by_lane: Sequence[Records]) -> Records:
    """The first row of the first array, the second of the second one and so on: kind[lanes, room].

    by_lane: kind[lanes, its own room], an array for each lane.
    """
    rows = np.zeros((len(by_lane), max(of.shape[1] for of in by_lane)), by_lane[0].dtype)
    for lane, of in enumerate(by_lane):
        rows[lane, : of.shape[1]] = of[lane]
    return rows


def joined_sums(sums: Sequence[Records]) -> Records:
    """The sums of several readers joined. sums: PARTITION_SUMS[partitions, lanes] or RESPONSES[lanes] of each."""
    joined = sums[0].copy()
    for name in joined.dtype.names or ():
        of_all = [of[name] for of in sums]
        joined[name] = np.max(of_all, axis=0) if name in OF_THE_LONGEST else np.sum(of_all, axis=0)
    return joined


def joined_timelines(timelines: Sequence[Timeline], are_one_process: bool) -> Timeline:
    """The timelines of readers of different partitions joined, with buckets as long as the longest of theirs."""
    count, first = len(timelines), timelines[0]
    all_lanes = first._replace(
        buckets=np.concatenate([of.buckets for of in timelines]),
        held=np.concatenate([of.held for of in timelines]),
        lanes=np.concatenate([of.lanes for of in timelines]),
    )
    align_lanes(all_lanes)
    buckets = np.zeros(first.buckets.shape, first.buckets.dtype)
    for name in first.buckets.dtype.names or ():
        buckets[name] = all_lanes.buckets[name].reshape(count, *buckets.shape).sum(axis=0)
    held_by_each = all_lanes.held.reshape(count, *first.held.shape)
    held = held_by_each.sum(axis=0) if are_one_process else held_by_each.max(axis=0)
    return first._replace(buckets=buckets, held=held, lanes=all_lanes.lanes[: len(first.lanes)])


def put_lanes(outcome: ReaderLanes, lanes: Ints, of_lanes: ReaderLanes) -> None:
    """Write the outcome of some lanes into the outcome of all lanes.

    outcome: of all lanes, written in place; its captured lane is written if `lanes` begins with lane 0. lanes:
    int64[n], the indices of the lanes of `of_lanes`.
    """
    outcome.sums.partitions[:, lanes] = of_lanes.sums.partitions
    outcome.sums.responses[lanes] = of_lanes.sums.responses
    outcome.sums.sizes[lanes] = of_lanes.sums.sizes
    outcome.timeline.buckets[lanes] = of_lanes.timeline.buckets
    outcome.timeline.held[lanes] = of_lanes.timeline.held
    outcome.timeline.lanes[lanes] = of_lanes.timeline.lanes
    outcome.lanes[lanes] = of_lanes.lanes
    outcome.catch_up_us[:, lanes] = of_lanes.catch_up_us
    for whole, part in ((outcome.responses, of_lanes.responses), (outcome.given_up, of_lanes.given_up)):
        whole[lanes, : part.shape[1]] = part
    if lanes[0] == 0:
        outcome.given_up_backlogs[:] = of_lanes.given_up_backlogs
        for array, of_captured in zip(outcome.captured, of_lanes.captured, strict=True):
            np.copyto(np.asarray(array), np.asarray(of_captured))
