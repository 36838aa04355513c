"""Readers that share quotas, replayed together: in each lane what happens first, at whichever reader, comes first.

Readers have nothing in common but their brokers' meters (quota.py). All others are replayed alone, by the same code.
A kernel takes no list of tuples of arrays, so the arrays of all readers are put one behind the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from udfs.columns.arrays import Bools, Ints, Records, read_only
from udfs.columns.records import as_bytes
from udfs.columns.time_units import NEVER
from udfs.kernels.kernel import kernel
from udfs.replay.fetch_max_bytes.closed_loop.ends import end_lane, start_lane
from udfs.replay.fetch_max_bytes.closed_loop.quota import new_meters
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
from udfs.replay.fetch_max_bytes.state import Sums
from udfs.replay.shared.captured_pieces import PIECES
from udfs.replay.shared.event_heap import Heap
from udfs.replay.shared.histogram import BUCKETS

STARTS, RUNS, ENDS, IS_OVER = range(4)
"""What readers do in a lane: all of them start, then they run in turn, then all of them end."""


class ReaderInLanes(NamedTuple):
    """A reader to be replayed: what it reads, by which rules, RULES[nodes, lanes], and what it comes to."""

    unit: Unit
    rules: Records
    outcome: ReaderLanes


class Together(NamedTuple):
    """Readers that are replayed together.

    flat: the arrays of all readers in one dimension, those of a reader behind those of the one before; they have one
    set of meters. ends: in place of each of these arrays, int64[readers + 1], where that of each reader begins. due:
    int64[readers], when something happens next at each (us). shares: bool[lanes], whether any two have a common meter.
    """

    flat: ReaderSim
    ends: ReaderSim
    due: Ints
    shares: Bools


@kernel
def step_reader(together: Together, r: int, lane: int, phase: int, until: int) -> int:
    """Have reader `r` start, run through `until` (us), or end; returns when something happens next (us)."""
    # All views are taken here, for a kernel without numba's runtime cannot return one.
    flat, ends, lanes = together.flat, together.ends, len(together.shares)
    nodes = ends.unit.nodes[r + 1] - ends.unit.nodes[r]
    numbers = ends.outcome.given_up_backlogs[r + 1] - ends.outcome.given_up_backlogs[r]
    sim = ReaderSim(
        Unit(
            flat.unit.partitions[ends.unit.partitions[r] : ends.unit.partitions[r + 1]],
            flat.unit.batches[ends.unit.batches[r] : ends.unit.batches[r + 1]],
            flat.unit.changes[ends.unit.changes[r] : ends.unit.changes[r + 1]],
            flat.unit.nodes[ends.unit.nodes[r] : ends.unit.nodes[r + 1]],
            flat.unit.taking[ends.unit.taking[r] : ends.unit.taking[r + 1]],
            flat.unit.sending[ends.unit.sending[r] : ends.unit.sending[r + 1]],
        ),
        flat.rules[ends.rules[r] : ends.rules[r + 1]].reshape((nodes, lanes)),
        Start(
            flat.start.partitions[ends.start.partitions[r] : ends.start.partitions[r + 1]],
            flat.start.nodes[ends.start.nodes[r] : ends.start.nodes[r + 1]],
            flat.start.applications[ends.start.applications[r] : ends.start.applications[r + 1]],
        ),
        State(
            flat.state.partitions[ends.state.partitions[r] : ends.state.partitions[r + 1]],
            flat.state.nodes[ends.state.nodes[r] : ends.state.nodes[r + 1]],
            flat.state.applications[ends.state.applications[r] : ends.state.applications[r + 1]],
            Orders(
                flat.state.orders.client[ends.state.orders.client[r] : ends.state.orders.client[r + 1]],
                flat.state.orders.session[ends.state.orders.session[r] : ends.state.orders.session[r + 1]],
                flat.state.orders.requested[ends.state.orders.requested[r] : ends.state.orders.requested[r + 1]],
                flat.state.orders.served[ends.state.orders.served[r] : ends.state.orders.served[r + 1]],
            ),
            flat.state.answers[ends.state.answers[r] : ends.state.answers[r + 1]],
            flat.state.marks[ends.state.marks[r] : ends.state.marks[r + 1]],
            Heap(
                flat.state.moved.time[ends.state.moved.time[r] : ends.state.moved.time[r + 1]],
                flat.state.moved.code[ends.state.moved.code[r] : ends.state.moved.code[r + 1]],
                flat.state.moved.events[ends.state.moved.events[r] : ends.state.moved.events[r + 1]],
            ),
            flat.state.meters,
            flat.state.random[ends.state.random[r] : ends.state.random[r + 1]],
        ),
        ReaderLanes(
            Sums(
                flat.outcome.sums.partitions[
                    ends.outcome.sums.partitions[r] : ends.outcome.sums.partitions[r + 1]
                ].reshape((numbers, lanes)),
                flat.outcome.sums.responses[ends.outcome.sums.responses[r] : ends.outcome.sums.responses[r + 1]],
                flat.outcome.sums.sizes[ends.outcome.sums.sizes[r] : ends.outcome.sums.sizes[r + 1]].reshape(
                    (lanes, BUCKETS)
                ),
            ),
            Timeline(
                flat.outcome.timeline.buckets[
                    ends.outcome.timeline.buckets[r] : ends.outcome.timeline.buckets[r + 1]
                ].reshape((lanes, numbers, -1)),
                flat.outcome.timeline.held[ends.outcome.timeline.held[r] : ends.outcome.timeline.held[r + 1]].reshape(
                    (lanes, TICKS)
                ),
                flat.outcome.timeline.lanes[ends.outcome.timeline.lanes[r] : ends.outcome.timeline.lanes[r + 1]],
                flat.outcome.timeline.stays[ends.outcome.timeline.stays[r] : ends.outcome.timeline.stays[r + 1]],
            ),
            flat.outcome.lanes[ends.outcome.lanes[r] : ends.outcome.lanes[r + 1]],
            flat.outcome.catch_up_us[ends.outcome.catch_up_us[r] : ends.outcome.catch_up_us[r + 1]].reshape(
                (numbers, lanes)
            ),
            flat.outcome.given_up_backlogs[ends.outcome.given_up_backlogs[r] : ends.outcome.given_up_backlogs[r + 1]],
            CapturedLane(
                flat.outcome.captured.turns[ends.outcome.captured.turns[r] : ends.outcome.captured.turns[r + 1]],
                flat.outcome.captured.nodes[ends.outcome.captured.nodes[r] : ends.outcome.captured.nodes[r + 1]],
                flat.outcome.captured.pieces[
                    ends.outcome.captured.pieces[r] : ends.outcome.captured.pieces[r + 1]
                ].reshape((nodes, PIECES)),
                flat.outcome.captured.catch_up_us[
                    ends.outcome.captured.catch_up_us[r] : ends.outcome.captured.catch_up_us[r + 1]
                ],
                flat.outcome.captured.positions[
                    ends.outcome.captured.positions[r] : ends.outcome.captured.positions[r + 1]
                ],
            ),
            flat.outcome.responses[ends.outcome.responses[r] : ends.outcome.responses[r + 1]].reshape((lanes, -1)),
            flat.outcome.given_up[ends.outcome.given_up[r] : ends.outcome.given_up[r + 1]].reshape((lanes, -1)),
        ),
    )
    if phase == STARTS:
        return start_lane(sim, lane)
    if phase == RUNS:
        return run_until(sim, lane, until)
    end_lane(sim, lane)
    return NEVER


@kernel
def first_due(due: Ints) -> int:
    """The reader at which something happens first, at one time that with the lowest number. due: int64[readers], us."""
    first = 0
    for r in range(1, len(due)):
        if due[r] < due[first]:
            first = r
    return first


@kernel
def time_of_others(together: Together, r: int, lane: int) -> int:
    """When something happens first at another reader (us), NEVER where none shares a meter in this lane."""
    first = NEVER
    if together.shares[lane]:
        for other in range(len(together.due)):
            if other != r:
                first = min(first, together.due[other])
    return first


@kernel
def replay_lane(together: Together, lane: int) -> None:
    """All readers in one lane. step_reader has one call, for each one makes all of its code anew."""
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
    """All readers in every lane; lanes do not affect one another."""
    for lane in range(len(together.shares)):
        replay_lane(together, lane)


def replay_readers(readers: Sequence[ReaderInLanes]) -> None:
    """Replay readers in every lane, into their outcomes. Readers whose rules name the same meter share it."""
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
    """Where each reader's part of each array begins, and the end of the last one: int64[arrays, readers + 1].

    of_sims: of each reader all arrays, in the order of `arrays_in`.
    """
    sizes = [[array.size for array in arrays] for arrays in zip(*of_sims, strict=True)]
    edges = np.zeros((len(sizes), len(of_sims) + 1), np.int64)
    np.cumsum(sizes, axis=1, out=edges[:, 1:])
    return edges


def lanes_that_share(rules: Sequence[Records]) -> Bools:
    """Whether readers have a common meter in each lane: bool[lanes]. rules: RULES[nodes, lanes] of each reader."""
    meters = [
        [set(of["meter"][of["byte_rate"][:, lane] > 0, lane].tolist()) for of in rules]
        for lane in range(rules[0].shape[1])
    ]
    return np.array([sum(map(len, of_lane)) > len(set().union(*of_lane)) for of_lane in meters])


def arrays_in(of: Any) -> Iterator[Any]:
    """The arrays of a tuple of arrays and of such tuples, one after the other."""
    if isinstance(of, np.ndarray):
        yield of
    else:
        for part in of:
            yield from arrays_in(part)


def with_arrays(of: Any, arrays: Iterator[Any]) -> Any:
    """A tuple such as `of` with other arrays in place of its own, taken in the order of `arrays_in`."""
    return next(arrays) if isinstance(of, np.ndarray) else type(of)(*(with_arrays(part, arrays) for part in of))


def in_one_dimension(arrays: Sequence[Any]) -> Any:
    """Arrays one behind the other, in one dimension; one array alone is not copied."""
    if len(arrays) == 1:
        return arrays[0].reshape(-1)
    flat = np.concatenate([as_bytes(array) for array in arrays]).view(arrays[0].dtype)
    return flat if arrays[0].flags.writeable else read_only(flat)
