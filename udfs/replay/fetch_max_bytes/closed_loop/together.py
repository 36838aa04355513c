"""Readers that share quotas, replayed together: in each lane, the events of all readers happen in time order.

Readers have only their brokers' meters in common (quota_meter.py). A reader that shares none is replayed alone, by the
same code. A kernel takes no list of tuples of arrays, so the arrays of all readers are laid one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from udfs.columns.arrays import Bools, Ints, Records, read_only
from udfs.columns.records import as_bytes
from udfs.columns.time_units import NEVER
from udfs.kernels.kernel import inlined_kernel, kernel
from udfs.replay.fetch_max_bytes.closed_loop.ends import end_lane, start_lane
from udfs.replay.fetch_max_bytes.closed_loop.simulation import run_until
from udfs.replay.fetch_max_bytes.closed_loop.state import (
    CapturedLane,
    Orders,
    ReaderLanes,
    ReaderSim,
    Start,
    State,
    Timeline,
    Unit,
    new_sim,
)
from udfs.replay.fetch_max_bytes.closed_loop.timeline import TICKS, align_lanes
from udfs.replay.fetch_max_bytes.quota_meter import new_meters
from udfs.replay.fetch_max_bytes.state import Sums
from udfs.replay.shared.captured_pieces import PIECES
from udfs.replay.shared.event_heap import Heap
from udfs.replay.shared.histogram import BUCKETS

STARTS, RUNS, ENDS, IS_OVER = range(4)
"""The phases of a lane: all readers start, then they run in turn, then all of them end."""


class ReaderInLanes(NamedTuple):
    """A reader to be replayed: what it reads, its rules, RULES[nodes, lanes], and its outcome, which is written."""

    unit: Unit
    rules: Records
    outcome: ReaderLanes


class Together(NamedTuple):
    """Readers that are replayed together.

    flat: each array of all readers in one dimension, one reader after the other; the meters are common to all readers.
    ends: in the place of each of these arrays, int64[readers + 1], where each reader's part begins. due:
    int64[readers], when something happens next at each reader (us). shares: bool[lanes], whether two readers have a
    meter in common in the lane.
    """

    flat: ReaderSim
    ends: ReaderSim
    due: Ints
    shares: Bools


@inlined_kernel
def part_of(flat: Any, ends: Any, r: int) -> Any:
    """Reader `r`'s part of an array of all readers. ends: int64[readers + 1], where each reader's part begins."""
    return flat[ends[r] : ends[r + 1]]


@inlined_kernel
def unit_of(flat: Unit, ends: Unit, r: int) -> Unit:
    """Reader `r`'s own unit, a view."""
    return Unit(
        partitions=part_of(flat.partitions, ends.partitions, r),
        batches=part_of(flat.batches, ends.batches, r),
        changes=part_of(flat.changes, ends.changes, r),
        nodes=part_of(flat.nodes, ends.nodes, r),
        taking=part_of(flat.taking, ends.taking, r),
        sending=part_of(flat.sending, ends.sending, r),
    )


@inlined_kernel
def start_of(flat: Start, ends: Start, r: int) -> Start:
    """Reader `r`'s own start, a view."""
    return Start(
        partitions=part_of(flat.partitions, ends.partitions, r),
        nodes=part_of(flat.nodes, ends.nodes, r),
        applications=part_of(flat.applications, ends.applications, r),
    )


@inlined_kernel
def orders_of(flat: Orders, ends: Orders, r: int) -> Orders:
    """Reader `r`'s own orders, a view."""
    return Orders(
        client=part_of(flat.client, ends.client, r),
        session=part_of(flat.session, ends.session, r),
        requested=part_of(flat.requested, ends.requested, r),
        served=part_of(flat.served, ends.served, r),
    )


@inlined_kernel
def state_of(flat: State, ends: State, r: int) -> State:
    """Reader `r`'s own state, a view; but the meters are those of all readers."""
    return State(
        partitions=part_of(flat.partitions, ends.partitions, r),
        nodes=part_of(flat.nodes, ends.nodes, r),
        applications=part_of(flat.applications, ends.applications, r),
        orders=orders_of(flat.orders, ends.orders, r),
        answers=part_of(flat.answers, ends.answers, r),
        marks=part_of(flat.marks, ends.marks, r),
        moved=Heap(
            time=part_of(flat.moved.time, ends.moved.time, r),
            code=part_of(flat.moved.code, ends.moved.code, r),
            events=part_of(flat.moved.events, ends.moved.events, r),
        ),
        meters=flat.meters,
        random=part_of(flat.random, ends.random, r),
    )


@inlined_kernel
def sums_of(flat: Sums, ends: Sums, r: int, partitions: int, lanes: int) -> Sums:
    """Reader `r`'s own sums, a view."""
    return Sums(
        partitions=part_of(flat.partitions, ends.partitions, r).reshape((partitions, lanes)),
        responses=part_of(flat.responses, ends.responses, r),
        sizes=part_of(flat.sizes, ends.sizes, r).reshape((lanes, BUCKETS)),
    )


@inlined_kernel
def captured_lane_of(flat: CapturedLane, ends: CapturedLane, r: int) -> CapturedLane:
    """Reader `r`'s own captured lane, a view."""
    nodes = ends.nodes[r + 1] - ends.nodes[r]
    return CapturedLane(
        turns=part_of(flat.turns, ends.turns, r),
        nodes=part_of(flat.nodes, ends.nodes, r),
        pieces=part_of(flat.pieces, ends.pieces, r).reshape((nodes, PIECES)),
        catch_up_us=part_of(flat.catch_up_us, ends.catch_up_us, r),
        positions=part_of(flat.positions, ends.positions, r),
    )


@inlined_kernel
def outcome_of(flat: ReaderLanes, ends: ReaderLanes, r: int, lanes: int) -> ReaderLanes:
    """Reader `r`'s own outcome, a view."""
    partitions = ends.given_up_backlogs[r + 1] - ends.given_up_backlogs[r]
    return ReaderLanes(
        sums=sums_of(flat.sums, ends.sums, r, partitions, lanes),
        timeline=Timeline(
            buckets=part_of(flat.timeline.buckets, ends.timeline.buckets, r).reshape((lanes, partitions, -1)),
            held=part_of(flat.timeline.held, ends.timeline.held, r).reshape((lanes, TICKS)),
            lanes=part_of(flat.timeline.lanes, ends.timeline.lanes, r),
            stays=part_of(flat.timeline.stays, ends.timeline.stays, r),
        ),
        lanes=part_of(flat.lanes, ends.lanes, r),
        catch_up_us=part_of(flat.catch_up_us, ends.catch_up_us, r).reshape((partitions, lanes)),
        given_up_backlogs=part_of(flat.given_up_backlogs, ends.given_up_backlogs, r),
        captured=captured_lane_of(flat.captured, ends.captured, r),
        responses=part_of(flat.responses, ends.responses, r).reshape((lanes, -1)),
        given_up=part_of(flat.given_up, ends.given_up, r).reshape((lanes, -1)),
    )


@kernel
def step_reader(together: Together, r: int, lane: int, phase: int, until: int) -> int:
    """Let reader `r` start, run through `until` (us) or end, by the phase; returns when something happens next (us)."""
    flat, ends, lanes = together.flat, together.ends, len(together.shares)
    nodes = ends.unit.nodes[r + 1] - ends.unit.nodes[r]
    sim = ReaderSim(
        unit=unit_of(flat.unit, ends.unit, r),
        rules=part_of(flat.rules, ends.rules, r).reshape((nodes, lanes)),
        start=start_of(flat.start, ends.start, r),
        state=state_of(flat.state, ends.state, r),
        outcome=outcome_of(flat.outcome, ends.outcome, r, lanes),
    )
    if phase == STARTS:
        return start_lane(sim, lane)
    if phase == RUNS:
        return run_until(sim, lane, until)
    end_lane(sim, lane)
    return NEVER


@kernel
def first_due(due: Ints) -> int:
    """The reader at which something happens next; of several at the same time, the one with the lowest number.

    due: int64[readers], us.
    """
    first = 0
    for r in range(1, len(due)):
        if due[r] < due[first]:
            first = r
    return first


@kernel
def time_of_others(together: Together, r: int, lane: int) -> int:
    """When something happens next at another reader (us); NEVER if no readers share a meter in this lane."""
    first = NEVER
    if together.shares[lane]:
        for other in range(len(together.due)):
            if other != r:
                first = min(first, together.due[other])
    return first


@kernel
def replay_lane(together: Together, lane: int) -> None:
    """Replay all readers in one lane. `step_reader` is called at one place: each call site compiles all of its code."""
    due, meters = together.due, together.flat.state.meters.meters
    for number in range(len(meters)):
        meters[number].samples = 0
    r, phase = 0, STARTS
    while phase != IS_OVER:
        due[r] = step_reader(together, r, lane, phase, time_of_others(together, r, lane))
        if phase == RUNS:
            r = first_due(due)
            if due[r] == NEVER:
                r, phase = 0, ENDS
        elif r + 1 < len(due):
            r += 1
        elif phase == STARTS:
            r, phase = first_due(due), RUNS
        else:
            phase = IS_OVER


@kernel
def replay_lanes(together: Together) -> None:
    """Replay all readers in every lane. Lanes do not affect one another."""
    for lane in range(len(together.shares)):
        replay_lane(together, lane)


def replay_readers(readers: Sequence[ReaderInLanes]) -> None:
    """Replay readers in every lane, and write their outcomes. Readers whose rules name the same meter share it."""
    rules = [reader.rules for reader in readers]
    most = max(int(of["meter"].max(initial=0)) for of in rules) + 1
    meters = new_meters(most, max(int(of["quota_windows"].max(initial=0)) for of in rules))
    sims = [new_sim(*reader, meters) for reader in readers]
    of_sims = [list(arrays_in(sim)) for sim in sims]
    flat = [in_one_dimension(arrays) for arrays in zip(*of_sims, strict=True)]
    together = Together(
        with_arrays(sims[0], iter(flat)),
        with_arrays(sims[0], iter(edges_of_readers(of_sims))),
        np.full(len(readers), NEVER),
        lanes_that_share(rules),
    )
    together = together._replace(flat=together.flat._replace(state=together.flat.state._replace(meters=meters)))
    replay_lanes(together)
    if len(readers) > 1:
        for r, reader in enumerate(readers):
            of_outcome = zip(
                arrays_in(reader.outcome),
                arrays_in(together.flat.outcome),
                arrays_in(together.ends.outcome),
                strict=True,
            )
            for array, of_all, edges in of_outcome:
                as_bytes(array)[:] = as_bytes(of_all[edges[r] : edges[r + 1]])
    for reader in readers:
        align_lanes(reader.outcome.timeline)


def edges_of_readers(of_sims: Sequence[Sequence[npt.NDArray[Any]]]) -> Ints:
    """Where each reader's part of each array begins, and where the last part ends: int64[arrays, readers + 1].

    of_sims: the arrays of each reader, in the order of `arrays_in`.
    """
    sizes = [[array.size for array in arrays] for arrays in zip(*of_sims, strict=True)]
    edges = np.zeros((len(sizes), len(of_sims) + 1), np.int64)
    np.cumsum(sizes, axis=1, out=edges[:, 1:])
    return edges


def lanes_that_share(rules: Sequence[Records]) -> Bools:
    """Whether readers have a meter in common in each lane: bool[lanes]. rules: RULES[nodes, lanes] of each reader."""
    meters = [
        [set(of["meter"][of["byte_rate"][:, lane] > 0, lane].tolist()) for of in rules]
        for lane in range(rules[0].shape[1])
    ]
    return np.array([sum(map(len, of_lane)) > len(set().union(*of_lane)) for of_lane in meters])


def arrays_in(of: Any) -> Iterator[Any]:
    """The arrays of a nested tuple of arrays, one after the other."""
    if isinstance(of, np.ndarray):
        yield of
    else:
        for part in of:
            yield from arrays_in(part)


def with_arrays(of: Any, arrays: Iterator[Any]) -> Any:
    """A nested tuple like `of`, with other arrays in place of its own, in the order of `arrays_in`."""
    return next(arrays) if isinstance(of, np.ndarray) else type(of)(*(with_arrays(part, arrays) for part in of))


def in_one_dimension(arrays: Sequence[Any]) -> Any:
    """Arrays one after the other, in one dimension. A single array is not copied."""
    if len(arrays) == 1:
        return arrays[0].reshape(-1)
    flat = np.concatenate([as_bytes(array) for array in arrays]).view(arrays[0].dtype)
    return flat if arrays[0].flags.writeable else read_only(flat)
